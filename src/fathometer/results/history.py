"""Soundings of one network during training: step × site × gauge, logged metrics, and the cost."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pandas as pd

from fathometer.errors import InputError
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = ("step", "name", "value")
"""Columns of `History.metrics`."""

_SHOWN = 60  # sites in a notebook


@dataclass(frozen=True)
class Cost:
    """The share of training time that measuring took.

    Attributes:
        seconds: spent on soundings, on logging them, and on deciding at every step whether to take one.
        total: seconds from the first sounding to the last step or `finish`, soundings included.
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
        bound = "" if self.bound is None else f", limit {self.bound:.1%}"
        return f"{self.seconds:.1f} s of {self.total:.1f} s, {self.share:.1%}{bound}"


def metrics_frame(values: Mapping[str, Iterable[tuple[int, float]]]) -> pd.DataFrame:
    """Return metrics, given as (step, value) by name, as a table in order of steps."""
    rows = [(step, name, value) for name, pairs in values.items() for step, value in pairs]
    rows.sort(key=lambda row: row[0])
    kinds = {"step": "int64", "name": "object", "value": "float64"}
    return pd.DataFrame(rows, columns=list(METRICS)).astype(kinds)


def _no_metrics() -> pd.DataFrame:
    return metrics_frame({})


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
    metrics: pd.DataFrame = field(default_factory=_no_metrics)
    cost: Cost = field(default_factory=Cost)
    missed: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.steps or len(self.steps) != len(self.soundings):
            raise InputError(
                "history: expected a step for each sounding, and at least one, "
                f"got {len(self.steps)} steps and {len(self.soundings)} soundings"
            )
        try:
            object.__setattr__(self, "steps", tuple(map(operator.index, self.steps)))
            missed = tuple((operator.index(step), str(reason)) for step, reason in self.missed)
            object.__setattr__(self, "missed", missed)
        except (TypeError, ValueError) as error:
            raise InputError(f"history: expected steps that are whole numbers ({error})") from error
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
        for name in self.metrics["name"].unique():
            if not isinstance(name, str):
                raise InputError(f"history: expected text as names of metrics, got {name!r}")

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

    def metric(self, name: str) -> pd.Series[float]:
        """Return one of the metrics, by step."""
        chosen = self.metrics[self.metrics["name"] == name]
        if chosen.empty:
            known = ", ".join(map(str, self.metrics["name"].unique())) or "nothing"
            raise InputError(f"{name!r} was not logged, but {known}")
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
        from fathometer.results.history_file import save

        return save(self, Path(path))

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
            for site, first, last, by in change.head(_SHOWN).itertuples()
        ]
        more = "" if len(change) <= _SHOWN else f"<p>and {len(change) - _SHOWN} more sites</p>"
        heads = ("site", f"{gauge}, step {self.steps[0]}", f"step {self.steps[-1]}", "change")
        return (
            f"<p>{escape(repr(self))}</p><table><thead><tr>"
            f"{''.join(f'<th>{escape(head)}</th>' for head in heads)}"
            f"</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"
        )
