"""A training as a film: the signature of every step, a map of all of them, what was logged, what changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.report.page.encoding import column, packed, short
from fathometer.report.page.film_charts import film_charts
from fathometer.report.page.items import Page, Section, View, Words
from fathometer.report.page.sounding import provenance_facts, sounding_data
from fathometer.report.words import cost_words, history_words
from fathometer.results.history import History

MOST = 1_000_000
"""So many numbers go into a page at most: step × site × gauge. Beyond, some steps are left out."""
POINTS = 400
"""So many values of a metric are drawn."""


def history_page(history: History, title: str | None = None) -> Page:
    """The report of a training."""
    last = history.soundings[-1]
    name = title or str(last.provenance.model.get("name", "a network"))
    count = len(history.steps)
    soundings = "1 sounding" if count == 1 else f"{count} soundings"
    steps = f"step {history.steps[0]}" if count == 1 else f"steps {history.steps[0]} to {history.steps[-1]}"
    lead = (
        f"{soundings} of {len(last.sites)} activation sites, {steps}, on "
        f"{last.provenance.data.get('name', 'data')}"
    )
    view = View("film", film_data(history, name), film_charts())
    origin: list[Any] = [provenance_facts(last.provenance)]
    cost = cost_words(history)
    if cost:
        origin.insert(0, Words(cost))
    return Page(name, lead, (Section("", (view,)), Section("Where it came from", tuple(origin))))


def film_data(history: History, name: str) -> dict[str, Any]:
    """Everything that the view shows of a training, as plain values; `frames` are step × site."""
    kept = frames_kept(history)
    values = {gauge: history.table(gauge).to_numpy(float)[kept] for gauge in history.gauges}
    errors = {gauge: _errors(history, gauge, kept) for gauge in history.gauges}
    still = sounding_data(history.soundings[-1], name)
    return {
        **{key: still[key] for key in ("name", "gauges", "sites", "blocks")},
        "steps": [int(history.steps[place]) for place in kept],
        "left_out": len(history.steps) - len(kept),
        "frames": {gauge: [packed(row) for row in rows] for gauge, rows in values.items()},
        "errors": {
            gauge: None if error is None else [packed(row) for row in error]
            for gauge, error in errors.items()
        },
        "extent": {gauge: _extent(values[gauge], errors[gauge]) for gauge in history.gauges},
        "change": {
            gauge: {name: packed(values) for name, values in history.change(gauge).items()}
            for gauge in history.gauges
        },
        "words": {gauge: history_words(history, gauge) for gauge in history.gauges},
        "metrics": {
            str(metric): _metric(group, [history.steps[place] for place in kept])
            for metric, group in history.metrics.groupby("name", sort=False)
        },
    }


def frames_kept(history: History, most: int = MOST) -> list[int]:
    """Which steps are in the film: all, or as many as fit, evenly, the first and the last among them."""
    count = len(history.steps)
    size = len(history.soundings[0].sites) * len(history.gauges)
    fitting = max(2, most // max(size, 1))
    if count <= fitting:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, fitting).tolist()})


def _errors(history: History, gauge: str, kept: list[int]) -> npt.NDArray[np.float64] | None:
    """Standard deviations over batches; None where there was one batch."""
    found = np.array([history.soundings[place].std(gauge).to_numpy(float) for place in kept])
    return found if (np.nan_to_num(found) > 0).any() else None


def _extent(
    values: npt.NDArray[np.float64], errors: npt.NDArray[np.float64] | None
) -> list[float | int | None] | None:
    """The least and the largest value over the film, error bars included; None where there is none."""
    spread = 0.0 if errors is None else np.nan_to_num(errors)
    both = np.concatenate([values - spread, values + spread])
    finite = both[np.isfinite(both)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [short(low), short(high)]


def _metric(group: pd.DataFrame, steps: list[int]) -> dict[str, Any]:
    """Steps and values of one metric, evenly fewer where there are very many; `at` the steps of the film."""
    places = np.unique(np.linspace(0, len(group) - 1, min(len(group), POINTS)).round().astype(int))
    part = group.iloc[places]
    by_step = group.drop_duplicates("step", keep="last").set_index("step")["value"]
    return {
        "step": column(part["step"]),
        "value": column(part["value"]),
        "at": column(by_step.reindex(steps)),
    }
