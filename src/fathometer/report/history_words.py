"""What stands out in a training, in words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fathometer.report.words import in_words, number
from fathometer.results.history import History


def history_words(history: History, gauge: str = "affinity") -> str:
    """Which site changed most between the first and the last step, which least, and how the middle moved."""
    first, last = history.steps[0], history.steps[-1]
    name = in_words(gauge)
    if len(history.steps) == 1:
        return f"One sounding, of step {first}: nothing has changed yet."
    table = history.change(gauge)
    known = table[np.isfinite(table.to_numpy(float)).all(axis=1)]
    missing = len(table) - len(known)
    gap = f" {missing} of {len(table)} sites have no value at the first step or the last." if missing else ""
    if not len(known):
        return f"{name.capitalize()} has no value at both the first and the last step.{gap}"
    order = known["change"].abs().to_numpy(float).argsort()
    least, most = (known.iloc[int(place)] for place in (order[0], order[-1]))
    before, after = known["first"].median(), known["last"].median()
    rising = int((known["change"] > 0).sum())
    sentences = [
        f"From step {first} to {last} the {name} changes most at {_said(most)}"
        + (f", and least at {_said(least)}." if len(known) > 1 else "."),
        f"The median over sites goes from {number(float(before))} to {number(float(after))}; it rises at "
        f"{rising} of {len(known)} sites.",
    ]
    return " ".join(sentences) + gap


def cost_words(history: History) -> str:
    """What measuring took, and which soundings failed."""
    text = f"Measuring took {history.cost}." if history.cost.in_all else ""
    if history.missed:
        told = "; ".join(f"step {step}: {reason}" for step, reason in history.missed[:3])
        more = f"; and {len(history.missed) - 3} more" if len(history.missed) > 3 else ""
        count = len(history.missed)
        failed = "1 sounding failed" if count == 1 else f"{count} soundings failed"
        text = f"{text} {failed} ({told}{more}).".strip()
    return text


def _said(row: pd.Series[float]) -> str:
    return f"{row.name}, from {number(row['first'])} to {number(row['last'])}"
