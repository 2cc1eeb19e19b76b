"""A file with something wrong with it: bytes, and the structure of JSON, TOML and safetensors.

A mutation is drawn from a number, and says in words what it did.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

_GARBAGE = (
    b"\x00",
    b"\xff\xfe",
    b"\xc3(",
    b"\x1b[31m",
    b"\r\n",
    "\u202e".encode(),
    b"\xed\xa0\x80",
    b'"',
    b"[",
    b"}" * 50,
    b"\x00" * 4096,
)
_DEEP = "deep, deep down"
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    0.5,
    -0.0,
    1.5,
    -3.25,
    1e308,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "x",
    "nan",
    "inf",
    "1",
    "x" * 100_000,
    "\ud800",
    "\x1b[31m\x07",
    "../../x",
    "a\nb",
    "\x00",
    [],
    {},
    [[]],
    [1, "a", None],
    {"a": {"b": []}},
    _DEEP,
)
_TOML = (
    "true",
    "0",
    "-1",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "9223372036854775808",
    "1" + "0" * 400,
    "1e400",
    '""',
    '"x"',
    '"*"',
    '"../../x"',
    '"\\u0000"',
    '"\\u001b[31m"',
    "'a:b'",
    "[]",
    "{}",
    "[[]]",
    '["", 1]',
    "{ a = { b = [1] } }",
    "1979-05-27",
    "07:32:00",
    "[" * 2000 + "]" * 2000,
    '"' + "x" * 100_000 + '"',
    "'''\n",
    "\x07",
    "cuda",
    '"cuda:9999999999999999999"',
    '["random:0", "random:9"]',
)


class Mutated(NamedTuple):
    """The file as it is now, and what was done to it."""

    content: bytes
    words: str


Mutation = Callable[[bytes, random.Random], Mutated]


def mutate(content: bytes, form: str, seed: str) -> Mutated:
    """One change, drawn by the seed; in a form that has a structure, mostly of that."""
    drawn = random.Random(seed)
    structured = {"json": _json, "jsonl": _jsonl, "toml": _toml, "safetensors": _safetensors}.get(form)
    if structured is not None and drawn.random() < 0.7:
        return structured(content, drawn)
    return drawn.choice(_BYTES)(content, drawn)


def _place(content: bytes, drawn: random.Random) -> int:
    """Anywhere, but mostly where formats have their heads and tails."""
    where, size = drawn.random(), max(1, len(content))
    if where < 0.4:
        return drawn.randrange(min(size, 256))
    return size - 1 - drawn.randrange(min(size, 256)) if where < 0.55 else drawn.randrange(size)


def _flip(content: bytes, drawn: random.Random) -> Mutated:
    place, bit = _place(content, drawn), 1 << drawn.randrange(8)
    changed = bytearray(content)
    if changed:
        changed[place] ^= bit
    return Mutated(bytes(changed), f"bit {bit:#x} of byte {place} flipped")


def _set(content: bytes, drawn: random.Random) -> Mutated:
    place, value, run = _place(content, drawn), drawn.choice((0, 0x7F, 0x80, 0xFF)), drawn.choice((1, 4, 8))
    changed = bytearray(content)
    changed[place : place + run] = bytes([value]) * len(changed[place : place + run])
    return Mutated(bytes(changed), f"{run} bytes from {place} set to {value:#x}")


def _cut(content: bytes, drawn: random.Random) -> Mutated:
    place = drawn.randrange(max(1, len(content)))
    return Mutated(content[:place], f"cut at byte {place}")


def _delete(content: bytes, drawn: random.Random) -> Mutated:
    place, length = _place(content, drawn), drawn.choice((1, 2, 8, 64, 512))
    return Mutated(content[:place] + content[place + length :], f"{length} bytes deleted at {place}")


def _repeat(content: bytes, drawn: random.Random) -> Mutated:
    place, length = _place(content, drawn), drawn.choice((1, 8, 64, 512))
    chunk = content[place : place + length]
    return Mutated(content[:place] + chunk + content[place:], f"{length} bytes repeated at {place}")


def _swap(content: bytes, drawn: random.Random) -> Mutated:
    one, two = sorted((_place(content, drawn), _place(content, drawn)))
    length = min(drawn.choice((1, 4, 16)), two - one)
    a, b = content[one : one + length], content[two : two + length]
    found = content[:one] + b + content[one + length : two] + a + content[two + length :]
    return Mutated(found, f"{length} bytes at {one} and {two} swapped")


def _insert(content: bytes, drawn: random.Random) -> Mutated:
    place, garbage = _place(content, drawn), drawn.choice(_GARBAGE)
    return Mutated(content[:place] + garbage + content[place:], f"{garbage[:8]!r} inserted at {place}")


_BYTES: tuple[Mutation, ...] = (_flip, _flip, _set, _cut, _delete, _repeat, _swap, _insert)


def _json(content: bytes, drawn: random.Random) -> Mutated:
    whole: Any = {"": json.loads(content)}
    words = _change(whole, drawn)
    text = json.dumps(whole[""])
    return Mutated(text.replace(json.dumps(_DEEP), "[" * 50_000 + "]" * 50_000).encode(), words)


def _jsonl(content: bytes, drawn: random.Random) -> Mutated:
    lines = content.splitlines()
    place = drawn.randrange(len(lines))
    changed = _json(lines[place], drawn)
    lines[place] = changed.content
    return Mutated(b"\n".join(lines) + b"\n", f"line {place}: {changed.words}")


def _safetensors(content: bytes, drawn: random.Random) -> Mutated:
    """Its head, or the facts that stand in the head as JSON, and the length that is told before it."""
    end = 8 + int.from_bytes(content[:8], "little")
    head = json.loads(content[8:end])
    facts = head.get("__metadata__", {}).get("facts")
    if facts is not None and drawn.random() < 0.6:
        inner = _json(facts.encode(), drawn)
        head["__metadata__"]["facts"] = inner.content.decode("utf-8", "surrogatepass")
        outer = Mutated(json.dumps(head).encode(), f"facts: {inner.words}")
    else:
        outer = _json(content[8:end], drawn)
    return Mutated(len(outer.content).to_bytes(8, "little") + outer.content + content[end:], outer.words)


def _change(whole: Any, drawn: random.Random) -> str:
    """Walk down to some value and change it in its place."""
    parent, path = whole, "$"
    key: Any = ""
    while isinstance(parent[key], dict | list) and parent[key] and drawn.random() < 0.85:
        parent = parent[key]
        key = drawn.choice(list(parent)) if isinstance(parent, dict) else drawn.randrange(len(parent))
        path += f".{key}"
    value = parent[key]
    kind = drawn.random()
    if kind < 0.55:
        parent[key] = drawn.choice(_VALUES)
        return f"{path} = {repr(parent[key])[:40]}"
    if kind < 0.7 and path != "$":
        del parent[key]
        return f"{path} deleted"
    if kind < 0.8 and isinstance(value, int | float) and not isinstance(value, bool):
        parent[key] = drawn.choice((-value, 10 * value, value + 1, float(value), str(value)))
        return f"{path} = {parent[key]!r} for {value!r}"
    if kind < 0.9 and isinstance(parent, list):
        parent.insert(drawn.randrange(len(parent) + 1), value)
        return f"{path} twice"
    if isinstance(value, dict):
        value[drawn.choice(("extra", "", "schema", "site", "\x1b"))] = drawn.choice(_VALUES)
        return f"{path} with one more key"
    parent[key] = [value]
    return f"{path} in a list"


def _toml(content: bytes, drawn: random.Random) -> Mutated:
    lines = content.decode().splitlines()
    place, other = drawn.randrange(len(lines)), drawn.randrange(len(lines))
    kind = drawn.random()
    if kind < 0.6 and "=" in lines[place]:
        key, _, _ = lines[place].partition("=")
        lines[place] = f"{key}= {drawn.choice(_TOML)}"
    elif kind < 0.7:
        del lines[place]
    elif kind < 0.8:
        lines.insert(other, lines[place])
    elif kind < 0.9:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines.insert(place, drawn.choice(("extra = 1", "[extra]", "[[data]]", "a.b.c = 1", "[families.'']")))
    there = lines[min(place, len(lines) - 1)] if lines else ""
    return Mutated("\n".join(lines).encode(), f"line {place + 1}: {there[:50]!r}")
