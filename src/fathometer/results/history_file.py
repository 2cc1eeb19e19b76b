"""Histories on disk: one JSON file with a versioned schema. What all soundings share is said once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pandas as pd

from fathometer.errors import InputError
from fathometer.results.files import check_format, complete_file
from fathometer.results.history import Cost, History, metrics_frame
from fathometer.results.sounding_file import from_json as sounding_from_json
from fathometer.results.sounding_file import to_json as sounding_to_json
from fathometer.results.standard_json import as_json_number, json_number, strict_json

SCHEMA = "fathometer.history"
VERSION = 1
SUFFIX = ".json"


def save(history: History, path: Path) -> Path:
    """Write the file; it appears once it is complete."""
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path.name}: expected a name that ends in {SUFFIX}")
    with complete_file(path) as part:
        part.write_text(to_json(history), "utf-8")
    return path


def load(path: str | Path) -> History:
    """A history from a file that `History.save` wrote."""
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path}: expected a history, a file that ends in {SUFFIX}")
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise InputError(f"{path}: broken, or not a history ({error})") from error
    return from_json(text, str(path))


def to_json(history: History) -> str:
    """The text of a file, a line for each sounding."""
    members = [json.loads(sounding_to_json(sounding)) for sounding in history.soundings]
    shared = reduce(_common, members)
    head = {
        "schema": SCHEMA,
        "version": VERSION,
        "cost": {
            "seconds": history.cost.seconds,
            "in_all": history.cost.in_all,
            "bound": history.cost.bound,
        },
        "missed": [list(entry) for entry in history.missed],
        "metrics": _columns(history.metrics),
        "shared": shared,
    }
    lines = [
        json.dumps({"step": step, **_rest(member, shared)}, allow_nan=False, separators=(",", ":"))
        for step, member in zip(history.steps, members, strict=True)
    ]
    start = json.dumps(head, allow_nan=False, separators=(",", ":"))
    return start[:-1] + ',"soundings":[\n' + ",\n".join(lines) + "\n]}\n"


def from_json(text: str, name: str = "history") -> History:
    """A history from the text of a file, which errors call by `name`."""
    try:
        content = strict_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: broken, or not a history ({error})") from error
    check_format(content, SCHEMA, VERSION, name, "a history; `History.save` writes them")
    try:
        return _assembled(content, name)
    except InputError as error:
        raise InputError(f"{name}: broken, the parts do not fit ({error})") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{name}: broken, the parts do not fit ({error!r})") from error


def _assembled(content: dict[str, Any], name: str) -> History:
    steps, soundings = [], []
    for entry in content["soundings"]:
        step = _whole(entry.pop("step"))
        member = json.dumps(_merged(content["shared"], entry))
        steps.append(step)
        soundings.append(sounding_from_json(member, f"{name}, step {step}"))
    cost = content["cost"]
    return History(
        tuple(steps),
        tuple(soundings),
        _frame(content["metrics"]),
        Cost(
            json_number(cost["seconds"]),
            json_number(cost["in_all"]),
            None if cost["bound"] is None else json_number(cost["bound"]),
        ),
        tuple((_whole(step), str(reason)) for step, reason in content["missed"]),
    )


def _common(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What two dictionaries have in common, at any depth."""
    found: dict[str, Any] = {}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            found[key] = _common(one[key], other[key])
        elif one[key] == other[key]:
            found[key] = one[key]
    return {key: found[key] for key in one if key in found}


def _rest(member: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """What is not shared."""
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
        if isinstance(shared[key], dict):
            both[key] = _merged(shared[key], rest[key])
    return both


def _columns(metrics: pd.DataFrame) -> dict[str, dict[str, list[Any]]]:
    return {
        str(name): {
            "step": [int(step) for step in group["step"]],
            "value": [as_json_number(float(value)) for value in group["value"]],
        }
        for name, group in metrics.groupby("name", sort=False)
    }


def _frame(columns: dict[str, dict[str, list[Any]]]) -> pd.DataFrame:
    return metrics_frame(
        {
            name: zip(map(_whole, column["step"]), map(json_number, column["value"]), strict=True)
            for name, column in columns.items()
        }
    )


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"step {value!r}")
    return value
