"""What a column of a table does as L̃ grows: a row for each network, with `effective_depth` and `seed`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.intervals import Interval, mean_interval, pm


def power(table: pd.DataFrame, column: str, start: float = 0.0) -> Interval:
    """Fit the power of L̃ that a column follows, for each seed from some L̃ on, with its 95 % interval.

    Example:
        >>> rows = pd.DataFrame({"effective_depth": [1.0, 2.0, 4.0], "seed": 0, "length": [3.0, 6.0, 12.0]})
        >>> round(power(rows, "length").mean, 6)
        1.0
    """
    late = table[table["effective_depth"] >= start]
    fits = [
        float(np.polyfit(np.log(group["effective_depth"]), np.log(group[column]), 1)[0])
        for _, group in late.groupby("seed")
    ]
    return mean_interval(fits)


def over_depths(table: pd.DataFrame, column: str) -> str:
    """Write mean ± standard deviation over seeds at every L̃."""
    groups = table.groupby("effective_depth")[column]
    return ", ".join(f"{pm(values)} (L̃ = {depth:g})" for depth, values in groups)
