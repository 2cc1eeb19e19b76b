"""Changes one thing in a file: bytes, or a value in the structure of JSON, TOML and safetensors."""

from __future__ import annotations

import json
import random
from typing import Any

_GARBAGE = (
    b"\x00",
    b"\xff\xfe",
    b"\xc3(",
    b"\x1b[31m",
    b"\r\n",
    b"\xed\xa0\x80",
    b'"',
    b"[",
    b"}" * 50,
    b"\x00" * 4096,
)
_DEEP = "a deep list"
_NUMBERS = (
    0,
    -1,
    1,
    2,
    0.5,
    -0.0,
    1.5,
    1e308,
    2**31,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
)
_TEXTS = ("", "x", "nan", "1", "x" * 100_000, "\ud800", "\x1b[31m\x07", "../../x", "a\nb", "\x00", _DEEP)
_VALUES: tuple[Any, ...] = (None, True, *_NUMBERS, *_TEXTS, [], {}, [[]], [1, "a", None], {"a": {"b": []}})
_TOML = (
    *("true", "0", "-1", "1.5", "nan", "inf", "9223372036854775808", "1" + "0" * 400, "1e400", "1979-05-27"),
    *('""', '"x"', '"*"', '"../../x"', '"\\u0000"', '"\\u001b[31m"', "'a:b'", '"' + "x" * 100_000 + '"'),
    *("[]", "{}", "[[]]", '["", 1]', "{ a = { b = [1] } }", "[" * 2000 + "]" * 2000, "'''\n", "\x07", "cuda"),
    *('"cuda:9999999999999999999"', '["random:0", "random:9"]'),
)


def mutate(content: bytes, form: str, draw: random.Random) -> bytes:
    """Make one change; where the form has a structure, mostly of that.

    Args:
        content: of the file.
        form: `json`, `jsonl` (one JSON text a line), `toml`, `safetensors` or `bytes`.
        draw: makes the choices.
    """
    structured = {"json": _json, "jsonl": _jsonl, "toml": _toml, "safetensors": _safetensors}.get(form)
    if structured is not None and draw.random() < 0.7:
        return structured(content, draw)
    return draw.choice(_BYTES)(content, draw)


def _place(content: bytes, draw: random.Random) -> int:
    """Anywhere, but mostly near the beginning and the end, where formats have their headers."""
    where, size = draw.random(), max(1, len(content))
    if where < 0.4:
        return draw.randrange(min(size, 256))
    return size - 1 - draw.randrange(min(size, 256)) if where < 0.55 else draw.randrange(size)


def _flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    changed[_place(content, draw)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _set(content: bytes, draw: random.Random) -> bytes:
    changed, place = bytearray(content), _place(content, draw)
    part = changed[place : place + draw.choice((1, 4, 8))]
    changed[place : place + len(part)] = bytes([draw.choice((0, 0x7F, 0x80, 0xFF))]) * len(part)
    return bytes(changed)


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def _delete(content: bytes, draw: random.Random) -> bytes:
    place = _place(content, draw)
    return content[:place] + content[place + draw.choice((1, 2, 8, 64, 512)) :]


def _repeat(content: bytes, draw: random.Random) -> bytes:
    place = _place(content, draw)
    return content[:place] + content[place : place + draw.choice((1, 8, 64, 512))] + content[place:]


def _insert(content: bytes, draw: random.Random) -> bytes:
    place = _place(content, draw)
    return content[:place] + draw.choice(_GARBAGE) + content[place:]


_BYTES = (_flip, _flip, _set, _cut, _delete, _repeat, _insert)


def _json(content: bytes, draw: random.Random) -> bytes:
    whole: Any = {"": json.loads(content)}
    _change(whole, draw)
    return json.dumps(whole[""]).replace(json.dumps(_DEEP), "[" * 50_000 + "]" * 50_000).encode()


def _jsonl(content: bytes, draw: random.Random) -> bytes:
    lines = content.splitlines()
    place = draw.randrange(len(lines))
    lines[place] = _json(lines[place], draw)
    return b"\n".join(lines) + b"\n"


def _safetensors(content: bytes, draw: random.Random) -> bytes:
    """The header, or the JSON text that is stored in its metadata."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    metadata = header.get("__metadata__", {})
    if metadata and draw.random() < 0.6:
        key = draw.choice(sorted(metadata))
        metadata[key] = _json(metadata[key].encode(), draw).decode("utf-8", "surrogatepass")
        changed = json.dumps(header).encode()
    else:
        changed = _json(content[8:end], draw)
    return len(changed).to_bytes(8, "little") + changed + content[end:]


def _change(whole: Any, draw: random.Random) -> None:
    """Walk down to some value and change it in its place."""
    parent: Any = whole
    key: Any = ""
    while isinstance(parent[key], dict | list) and parent[key] and draw.random() < 0.85:
        parent = parent[key]
        key = draw.choice(list(parent)) if isinstance(parent, dict) else draw.randrange(len(parent))
    value, kind = parent[key], draw.random()
    if kind < 0.55:
        parent[key] = draw.choice(_VALUES)
    elif kind < 0.7 and parent is not whole:
        del parent[key]
    elif kind < 0.8 and isinstance(value, int | float) and not isinstance(value, bool):
        parent[key] = draw.choice((-value, 10 * value, value + 1, float(value), str(value)))
    elif kind < 0.9 and isinstance(parent, list):
        parent.insert(draw.randrange(len(parent) + 1), value)
    elif isinstance(value, dict):
        value[draw.choice(("extra", "", "schema", "site", "\x1b"))] = draw.choice(_VALUES)
    else:
        parent[key] = [value]


def _toml(content: bytes, draw: random.Random) -> bytes:
    lines = content.decode().splitlines()
    place, other, kind = draw.randrange(len(lines)), draw.randrange(len(lines)), draw.random()
    if kind < 0.6 and "=" in lines[place]:
        lines[place] = f"{lines[place].partition('=')[0]}= {draw.choice(_TOML)}"
    elif kind < 0.7:
        del lines[place]
    elif kind < 0.8:
        lines.insert(other, lines[place])
    elif kind < 0.9:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines.insert(place, draw.choice(("extra = 1", "[extra]", "[[data]]", "a.b.c = 1", "[families.'']")))
    return "\n".join(lines).encode()
