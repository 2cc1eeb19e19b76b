"""Histories on disk: one JSON file with a versioned schema. What all soundings share is written once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import msgspec

from fathometer.errors import InputError
from fathometer.results import sounding_file
from fathometer.results.files import as_json_number, check_format, complete_file, read_json, strict_json
from fathometer.results.history import Cost, History, metrics_frame

SCHEMA = "fathometer.history"
VERSION = 1
SUFFIX = ".json"


class _Cost(msgspec.Struct):
    seconds: float
    total: float = msgspec.field(name="in_all")
    bound: float | None


class _Metric(msgspec.Struct):
    step: list[int]
    value: list[float | Literal["nan", "inf", "-inf"]]


class _File(msgspec.Struct):
    """What a file holds beside its schema and version: a sounding is what is shared, and the rest of it."""

    cost: _Cost
    missed: list[tuple[int, str]]
    metrics: dict[str, _Metric]
    shared: dict[str, Any]
    soundings: list[dict[str, Any]]


def save(history: History, path: Path) -> Path:
    """Write the file; it appears once it is complete."""
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path.name}: expected a name that ends in {SUFFIX}")
    with complete_file(path) as part:
        part.write_text(to_json(history), "utf-8")
    return path


def load(path: str | Path) -> History:
    """Read a history from a file that `History.save` wrote."""
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path}: expected a history, a file that ends in {SUFFIX}")
    return from_plain(read_json(path, "a history"), str(path))


def to_json(history: History) -> str:
    """Return the text of a file, with a line for each sounding."""
    members = [sounding_file.to_plain(sounding) for sounding in history.soundings]
    members = json.loads(json.dumps(members, allow_nan=False))  # tuples are lists in a file
    shared = reduce(_common, members)
    cost = history.cost
    metrics = {
        str(name): {
            "step": [int(step) for step in group["step"]],
            "value": [as_json_number(float(value)) for value in group["value"]],
        }
        for name, group in history.metrics.groupby("name", sort=False)
    }
    head = {
        "schema": SCHEMA,
        "version": VERSION,
        "cost": {"seconds": cost.seconds, "in_all": cost.total, "bound": cost.bound},
        "missed": [list(entry) for entry in history.missed],
        "metrics": metrics,
        "shared": shared,
    }
    lines = [
        json.dumps({"step": step, **_rest(member, shared)}, allow_nan=False, separators=(",", ":"))
        for step, member in zip(history.steps, members, strict=True)
    ]
    start = json.dumps(head, allow_nan=False, separators=(",", ":"))
    return start[:-1] + ',"soundings":[\n' + ",\n".join(lines) + "\n]}\n"


def from_json(text: str, name: str = "history") -> History:
    """Make a history from the text of a file; errors call it `name`."""
    try:
        content = strict_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: broken, or not a history ({error})") from error
    return from_plain(content, name)


def from_plain(content: Any, name: str = "history") -> History:
    """Make a history from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a history; `History.save` writes them")
    try:
        return _assembled(msgspec.convert(content, _File), name)
    except (KeyError, ValueError, OverflowError, RecursionError, msgspec.ValidationError) as error:
        raise InputError(f"{name}: broken, the parts do not fit ({error})") from error


def _assembled(file: _File, name: str) -> History:
    steps = [msgspec.convert(entry["step"], int) for entry in file.soundings]
    soundings = [
        sounding_file.from_plain(_merged(file.shared, entry), f"{name}, step {step}")
        for step, entry in zip(steps, file.soundings, strict=True)
    ]
    metrics = {
        each: zip(column.step, map(float, column.value), strict=True) for each, column in file.metrics.items()
    }
    cost = Cost(file.cost.seconds, file.cost.total, file.cost.bound)
    return History(tuple(steps), tuple(soundings), metrics_frame(metrics), cost, tuple(file.missed))


def _common(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return what two dictionaries have in common, at any depth."""
    found: dict[str, Any] = {}
    for key in one:
        if key in other and isinstance(one[key], dict) and isinstance(other[key], dict):
            found[key] = _common(one[key], other[key])
        elif key in other and one[key] == other[key]:
            found[key] = one[key]
    return found


def _rest(member: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Return what is not shared."""
    rest: dict[str, Any] = {}
    for key, value in member.items():
        if key not in shared:
            rest[key] = value
        elif isinstance(value, dict) and (inner := _rest(value, shared[key])):
            rest[key] = inner
    return rest


def _merged(shared: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    both = {**shared, **rest}
    for key in shared.keys() & rest.keys():
        if isinstance(shared[key], dict) and isinstance(rest[key], dict):
            both[key] = _merged(shared[key], rest[key])
    return both
