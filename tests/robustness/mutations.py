"""Changes one thing in a file: bytes, or a value in the structure of JSON, TOML and safetensors."""

from __future__ import annotations

import json
import random
from typing import Any

_GARBAGE = (b"\x00", b"\xff\xfe", b"\x1b[31m", b"\r\n", b"\xed\xa0\x80", b'"', b"}" * 50, b"\x00" * 4096)
_DEEP = "a deep list"
_NUMBERS = (0, -1, 0.5, -0.0, 1e308, 2**31, 2**63, 10**400, float("nan"), float("inf"))
_TEXTS = ("", "x", "nan", "x" * 100_000, "\ud800", "\x1b[31m\x07", "../../x", "a\nb", "\x00", _DEEP)
_VALUES: tuple[Any, ...] = (None, True, *_NUMBERS, *_TEXTS, [], {}, [1, "a", None], {"a": {"b": []}})
_TOML = (
    *("true", "0", "-1", "1.5", "nan", "9223372036854775808", "1" + "0" * 400, "1979-05-27", "cuda", "'''\n"),
    *('""', '"x"', '"*"', '"../../x"', '"\\u0000"', '"\\u001b[31m"', "'a:b'", '"' + "x" * 100_000 + '"'),
    *(
        "[]",
        "{}",
        '["", 1]',
        "{ a = { b = [1] } }",
        "[" * 2000 + "]" * 2000,
        "\x07",
        '["random:0", "random:9"]',
    ),
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
    return _bytes(content, draw)


def _bytes(content: bytes, draw: random.Random) -> bytes:
    """Flip a bit, or overwrite, remove, repeat or insert some bytes, or cut off the end."""
    where, size = draw.random(), max(1, len(content))
    if where < 0.55:  # formats have their headers at the beginning or at the end
        place = draw.randrange(min(size, 256))
        place = place if where < 0.4 else size - 1 - place
    else:
        place = draw.randrange(size)
    before, after, length = content[:place], content[place:], draw.choice((1, 8, 64, 512))
    return draw.choice(
        (
            before + bytes([after[0] ^ 1 << draw.randrange(8)]) + after[1:] if after else before,
            before + bytes([draw.choice((0, 0x7F, 0x80, 0xFF))]) * len(after[:8]) + after[8:],
            before + after[length:],
            before + after[:length] + after,
            before + draw.choice(_GARBAGE) + after,
            before,
        )
    )


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
    if kind < 0.6:
        parent[key] = draw.choice(_VALUES)
    elif kind < 0.75 and parent is not whole:
        del parent[key]
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
    else:
        lines.insert(place, draw.choice(("extra = 1", "[extra]", "[[data]]", "a.b.c = 1", "[families.'']")))
    return "\n".join(lines).encode()
