"""Soundings of one network during training: step × site × gauge, logged metrics, and the cost.

A history is one JSON file with a versioned schema. What all its soundings share is written once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pandas as pd

from fathometer.errors import InputError, check_whole
from fathometer.results import sounding as sounding_format
from fathometer.results.checkup import Finding
from fathometer.results.files import as_json_number, assembled, check_format, parse_json, save_json
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = ("step", "name", "value")
"""Columns of `History.metrics`."""

SCHEMA = "fathometer.history"
VERSION = 1

_MAX_SHOWN = 60  # sites in a notebook


@dataclass(frozen=True)
class Cost:
    """The share of training time that measuring took.

    Attributes:
        seconds: spent on soundings, on logging them, and on deciding at every step whether to take one.
        total: seconds from the first sounding to the last step or `finish`, soundings included; 0 if
            checkpoints were measured after the training.
        bound: the largest share that was allowed; None if there was no limit.
    """

    seconds: float = 0.0
    total: float = 0.0
    bound: float | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "total", "bound"):
            value = getattr(self, name)
            if value is None and name == "bound":
                continue
            if not math.isfinite(value) or value < 0:
                raise InputError(f"cost: expected finite {name} ≥ 0, got {value!r}")
            object.__setattr__(self, name, float(value))

    @property
    def share(self) -> float:
        """The share of the total time that was spent on measuring."""
        return self.seconds / self.total if self.total else 0.0

    def __str__(self) -> str:
        if not self.total:
            return f"{self.seconds:.1f} s"
        bound = "" if self.bound is None else f", limit {self.bound:.1%}"
        return f"{self.seconds:.1f} s of {self.total:.1f} s, {self.share:.1%}{bound}"


def metrics_frame(values: Mapping[str, Iterable[tuple[int, float]]]) -> pd.DataFrame:
    """Return metrics, given as (step, value) by name, as a table in order of steps."""
    rows = [(step, name, value) for name, pairs in values.items() for step, value in pairs]
    rows.sort(key=lambda row: row[0])
    kinds = {"step": "int64", "name": "object", "value": "float64"}
    return pd.DataFrame(rows, columns=list(METRICS)).astype(kinds)


@dataclass(frozen=True, eq=False)
class History:
    """Soundings of a network at several steps of its training.

    Attributes:
        steps: number of updates of the weights before each sounding, increasing.
        soundings: one for each step, with the same sites and gauges.
        metrics: losses and other logged numbers: `step`, `name`, `value`.
        cost: the time that measuring took.
        missed: step and reason of each sounding that failed, for example because weights are no longer
            finite, or that could not be logged.
    """

    steps: tuple[int, ...]
    soundings: tuple[Sounding, ...]
    metrics: pd.DataFrame = field(default_factory=lambda: metrics_frame({}))
    cost: Cost = field(default_factory=Cost)
    missed: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.steps or len(self.steps) != len(self.soundings):
            raise InputError(
                "history: expected a step for each sounding, and at least one, "
                f"got {len(self.steps)} steps and {len(self.soundings)} soundings"
            )
        object.__setattr__(self, "steps", tuple(check_whole("steps", step) for step in self.steps))
        missed = tuple((check_whole("missed", step), str(reason)) for step, reason in self.missed)
        object.__setattr__(self, "missed", missed)
        if any(after <= before for before, after in pairwise(self.steps)):
            raise InputError(f"history: expected increasing steps, got {list(self.steps)}")
        first = self.soundings[0]
        for step, sounding in zip(self.steps, self.soundings, strict=True):
            if sounding.sites != first.sites or sounding.gauges != first.gauges:
                raise InputError(
                    f"history: the sites or gauges of step {step} are not those of step {self.steps[0]}; "
                    "all soundings of a history have the same network and options"
                )
        if tuple(self.metrics.columns) != METRICS:
            raise InputError(
                f"history: expected metrics with the columns {', '.join(METRICS)}, "
                f"got {', '.join(map(str, self.metrics.columns))}"
            )

    @property
    def gauges(self) -> list[str]:
        """The names of the measured columns."""
        return self.soundings[0].gauges

    @property
    def signature(self) -> pd.DataFrame:
        """The non-linearity signature over time: step × site (Figure 9 has its first and last row)."""
        return self.table("affinity")

    def table(self, gauge: str) -> pd.DataFrame:
        """Return a gauge over time: step × site, as a mean over batches."""
        rows = [sounding.mean(gauge) for sounding in self.soundings]
        table = pd.DataFrame(rows, index=pd.Index(self.steps, name="step"))
        return table.rename_axis(columns="site")

    def change(self, gauge: str = "affinity") -> pd.DataFrame:
        """Return for each site the `first` and `last` value of a gauge and their difference, `change`."""
        first, last = self.soundings[0].mean(gauge), self.soundings[-1].mean(gauge)
        return pd.DataFrame({"first": first, "last": last, "change": last - first})

    def findings(self) -> list[tuple[int, Finding]]:
        """Return the first warning or error of each rule of `fathometer.check`, with its step."""
        reported: set[str] = set()
        pairs = zip(self.steps, self.soundings, strict=True)
        return [(step, found) for step, each in pairs for found in each.check().unreported(reported)]

    def metric(self, name: str) -> pd.Series[float]:
        """Return one of the metrics, by step."""
        chosen = self.metrics[self.metrics["name"] == name]
        if chosen.empty:
            known = ", ".join(map(str, self.metrics["name"].unique())) or "none"
            raise InputError(f"{name!r} was not logged; the metrics of this history are: {known}")
        return pd.Series(chosen["value"].to_numpy(), pd.Index(chosen["step"], name="step"), name=name)

    def plot(self, gauge: str = "affinity", *, columns: Literal[1, 2] = 2) -> Figure:
        """Plot a gauge by site and step, with its first and last values; `figure.savefig` saves it.

        Args:
            gauge: the gauge to plot.
            columns: width of the figure in columns of a page, 1 or 2.
        """
        from fathometer.report import plot_history

        return plot_history(self, gauge, columns=columns)

    def save(self, path: str | Path) -> Path:
        """Save one `.json` file; it appears once it is complete."""
        return save_json(path, to_json(self))

    def __repr__(self) -> str:
        model = self.soundings[0].provenance.model.get("name", "?")
        counts = f"{len(self.steps)} soundings, steps {self.steps[0]} to {self.steps[-1]}"
        missed = f", {len(self.missed)} missed" if self.missed else ""
        sites = len(self.soundings[0].sites)
        return f"History of {model}: {counts}{missed}, {sites} sites; measuring took {self.cost}"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the first gauge of every site, before and after."""
        gauge = self.gauges[0]
        change = self.change(gauge)
        rows = [
            f"<tr><td>{escape(str(site))}</td><td>{first:.3f}</td><td>{last:.3f}</td><td>{by:+.3f}</td></tr>"
            for site, first, last, by in change.head(_MAX_SHOWN).itertuples()
        ]
        more = "" if len(change) <= _MAX_SHOWN else f"<p>and {len(change) - _MAX_SHOWN} more sites</p>"
        heads = ("site", f"{gauge}, step {self.steps[0]}", f"step {self.steps[-1]}", "change")
        return (
            f"<p>{escape(repr(self))}</p><table><thead><tr>"
            f"{''.join(f'<th>{escape(head)}</th>' for head in heads)}"
            f"</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"
        )


class _Metric(msgspec.Struct):
    step: list[int]
    value: list[float | Literal["nan", "inf", "-inf"]]


class _File(msgspec.Struct):
    """What a file holds beside its schema and version: a sounding is what is shared, and the rest of it."""

    cost: dict[str, float | None]
    missed: list[tuple[int, str]]
    metrics: dict[str, _Metric]
    shared: dict[str, Any]
    soundings: list[dict[str, Any]]


def to_json(history: History) -> str:
    """Return the text of a file, with a line for each sounding."""
    members = [sounding_format.to_plain(sounding) for sounding in history.soundings]
    members = json.loads(json.dumps(members, allow_nan=False))  # tuples are lists in a file
    shared = reduce(_common, members)
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
        "cost": asdict(history.cost),
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


def from_json(content: str | bytes, name: str = "history") -> History:
    """Make a history from the content of a file; errors call it `name`."""
    return from_plain(parse_json(content, name, "a history"), name)


def from_plain(content: Any, name: str = "history") -> History:
    """Make a history from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a history; `History.save` writes them")
    return assembled(name, lambda: _assembled(msgspec.convert(content, _File), name))


def _assembled(file: _File, name: str) -> History:
    steps = [msgspec.convert(entry["step"], int) for entry in file.soundings]
    soundings = [
        sounding_format.from_plain(_merged(file.shared, entry), f"{name}, step {step}")
        for step, entry in zip(steps, file.soundings, strict=True)
    ]
    metrics = {
        each: zip(column.step, map(float, column.value), strict=True) for each, column in file.metrics.items()
    }
    # The total was called `in_all` in files of version 0.1.
    cost = Cost(**{"total" if key == "in_all" else key: value for key, value in file.cost.items()})  # type: ignore[arg-type]
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
