"""Soundings of one network while it learns: step × site × gauge, what else was logged, what it cost."""

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

_SHOWN = 60  # so many sites in a notebook


@dataclass(frozen=True)
class Cost:
    """What measuring took of a training's time.

    Attributes:
        seconds: spent on soundings, on logging them, and on asking at every step whether to take one.
        in_all: seconds from the first sounding to the last step or `finish`, soundings included.
        bound: the share that was asked for; None if there was no bound.
    """

    seconds: float = 0.0
    in_all: float = 0.0
    bound: float | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "in_all", "bound"):
            value = getattr(self, name)
            if value is None and name == "bound":
                continue
            if not math.isfinite(value) or value < 0:
                raise InputError(f"cost: expected {name} that are finite and not negative, got {value!r}")
            object.__setattr__(self, name, float(value))

    @property
    def share(self) -> float:
        """Seconds spent measuring ÷ seconds in all."""
        return self.seconds / self.in_all if self.in_all else 0.0

    def __str__(self) -> str:
        bound = "" if self.bound is None else f", asked for at most {self.bound:.1%}"
        return f"{self.seconds:.1f} s of {self.in_all:.1f} s, {self.share:.1%}{bound}"


def metrics_frame(values: Mapping[str, Iterable[tuple[int, float]]]) -> pd.DataFrame:
    """Metrics by name, (step, value) each, as a table in order of steps."""
    rows = [(step, name, value) for name, pairs in values.items() for step, value in pairs]
    rows.sort(key=lambda row: row[0])
    kinds = {"step": "int64", "name": "object", "value": "float64"}
    return pd.DataFrame(rows, columns=list(METRICS)).astype(kinds)


def _no_metrics() -> pd.DataFrame:
    return metrics_frame({})


@dataclass(frozen=True, eq=False)
class History:
    """A network at several steps of its training.

    Attributes:
        steps: how many updates the weights had had, growing.
        soundings: one for each step, of the same sites and gauges.
        metrics: what was logged beside them, losses and others: `step`, `name`, `value`.
        cost: the time that measuring took.
        missed: step and reason of each sounding that failed, as where weights are no longer finite, or that a
            log did not take.
    """

    steps: tuple[int, ...]
    soundings: tuple[Sounding, ...]
    metrics: pd.DataFrame = field(default_factory=_no_metrics)
    cost: Cost = field(default_factory=Cost)
    missed: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.steps or len(self.steps) != len(self.soundings):
            raise InputError(
                "history: expected a step for each sounding, and one at least, "
                f"got {len(self.steps)} steps and {len(self.soundings)} soundings"
            )
        try:
            object.__setattr__(self, "steps", tuple(map(operator.index, self.steps)))
            missed = tuple((operator.index(step), str(reason)) for step, reason in self.missed)
            object.__setattr__(self, "missed", missed)
        except (TypeError, ValueError) as error:
            raise InputError(f"history: expected steps that are whole numbers ({error})") from error
        if any(after <= before for before, after in pairwise(self.steps)):
            raise InputError(f"history: expected steps that grow, got {list(self.steps)}")
        first = self.soundings[0]
        for step, sounding in zip(self.steps, self.soundings, strict=True):
            if sounding.sites != first.sites or sounding.gauges != first.gauges:
                raise InputError(
                    f"history: the sites or gauges of step {step} are not those of step {self.steps[0]}; "
                    "a history is of one network, measured in one way"
                )
        if tuple(self.metrics.columns) != METRICS:
            raise InputError(
                f"history: expected metrics with the columns {', '.join(METRICS)}, "
                f"got {', '.join(map(str, self.metrics.columns))}"
            )
        for name in self.metrics["name"].unique():
            if not isinstance(name, str):
                raise InputError(f"history: expected metrics that have text as names, got {name!r}")

    @property
    def gauges(self) -> list[str]:
        """The names of what was measured."""
        return self.soundings[0].gauges

    @property
    def signature(self) -> pd.DataFrame:
        """The non-linearity signature over time: step × site (Figure 9 has its first and last row)."""
        return self.table("affinity")

    def table(self, gauge: str) -> pd.DataFrame:
        """A gauge over time: step × site, the mean over batches."""
        rows = [sounding.mean(gauge) for sounding in self.soundings]
        table = pd.DataFrame(rows, index=pd.Index(self.steps, name="step"))
        return table.rename_axis(columns="site")

    def change(self, gauge: str = "affinity") -> pd.DataFrame:
        """A gauge before and after: for each site `first`, `last` and `change`, their difference."""
        first, last = self.soundings[0].mean(gauge), self.soundings[-1].mean(gauge)
        return pd.DataFrame({"first": first, "last": last, "change": last - first})

    def metric(self, name: str) -> pd.Series[float]:
        """One of the metrics, by step."""
        chosen = self.metrics[self.metrics["name"] == name]
        if chosen.empty:
            known = ", ".join(map(str, self.metrics["name"].unique())) or "nothing"
            raise InputError(f"{name!r} was not logged here, but {known}")
        return pd.Series(chosen["value"].to_numpy(), pd.Index(chosen["step"], name="step"), name=name)

    def plot(self, gauge: str = "affinity", *, columns: Literal[1, 2] = 2) -> Figure:
        """The gauge by site and step, and its first and last values. `figure.savefig` keeps it.

        Args:
            gauge: what to show.
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report.figures.history import plot_history

        return plot_history(self, gauge, columns=columns)

    def save(self, path: str | Path) -> Path:
        """One `.json` file; it appears once it is complete."""
        from fathometer.results.history_file import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        model = self.soundings[0].provenance.model.get("name", "?")
        counts = f"{len(self.steps)} soundings, steps {self.steps[0]} to {self.steps[-1]}"
        missed = f", {len(self.missed)} missed" if self.missed else ""
        sites = len(self.soundings[0].sites)
        return f"History of {model}: {counts}{missed}, {sites} sites; measuring took {self.cost}"

    def _repr_html_(self) -> str:
        """For notebooks: the first gauge of every site before and after."""
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
