"""What foretells accuracy? Lines through the members of a family, in and out of the sample (Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np
import pandas as pd

from fathometer.compare.gathering import Array
from fathometer.compare.series import varies
from fathometer.compare.summaries import STATISTICS
from fathometer.errors import InputError

CHARACTERISTICS = ("depth", "parameters", "gflops")
_LEAST = 3  # a line through two points explains everything and nothing
_EXACT = 7  # members up to which all orders are tried: 5040
_ORDERS = 2000


def predictors(
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
) -> pd.DataFrame:
    """Every statistic of the signature and every characteristic as the only predictor of accuracy, by family.

    A row for each family and predictor: `kind` (signature or characteristic), `members` that have both,
    `slope`, `r2` of the line in the sample, and `r2_left_out` = 1 − Σ (yᵢ − ŷ₋ᵢ)² / Σ (yᵢ − ȳ₋ᵢ)², where line
    and mean come from all members but the i-th: what the line is worth for a network that it has not seen,
    below 0 if less than the mean of the others. A predictor that fewer than three members have is there
    without a line. Families with fewer than three members of known accuracy are left out.

    Args:
        statistics: network × statistic, as `statistics` gives them.
        facts: network × `accuracy` and any of `depth`, `parameters`, `gflops`.
        families: network → family.
        target: the column of `facts` to predict.
    """
    table = _known(statistics, facts, target)
    rows = []
    for family in dict.fromkeys(families.values()):
        members = _members(table, families, family)
        if len(members) < _LEAST:
            continue
        for name in table.columns.drop(target):
            known = members[np.isfinite(members[name].astype(float))]
            x, y = known[name].to_numpy(float), known[target].to_numpy(float)
            line = _line(x, y) if len(known) >= _LEAST else (np.nan, np.nan, np.nan)
            kind = "characteristic" if name in CHARACTERISTICS else "signature"
            rows.append((family, name, kind, len(known), *line))
    if not rows:
        raise InputError(
            f"expected a family with at least {_LEAST} members whose {target} is known; got none"
        )
    return pd.DataFrame(
        rows, columns=["family", "predictor", "kind", "members", "slope", "r2", "r2_left_out"]
    )


def best_predictors(
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
) -> pd.DataFrame:
    """Of each family the best statistic and the best characteristic by R² in the sample (Figure 4).

    The best of seven lines through four points is a good one whatever the numbers: `chance` is the share of
    orders of the accuracies for which the best of its kind has as large an R². Four members have 24 orders:
    `chance` is at least 1/24; with three it is at least 1/6, and nothing can be concluded.
    """
    lines = predictors(statistics, facts, families, target).dropna(subset="r2")
    picked = lines.loc[lines.groupby(["family", "kind"], sort=False)["r2"].idxmax()].copy()
    table = _known(statistics, facts, target)
    chances = []
    for row in picked.to_dict("records"):
        rivals = lines[(lines["family"] == row["family"]) & (lines["kind"] == row["kind"])]["predictor"]
        members = _members(table, families, row["family"])
        x, y = members[list(rivals)].to_numpy(float), members[target].to_numpy(float)
        chances.append(_chance(x, y, row["r2"]))
    return picked.assign(chance=chances).reset_index(drop=True)


def _known(statistics: pd.DataFrame, facts: pd.DataFrame, target: str) -> pd.DataFrame:
    """Statistics, target and characteristics of the networks whose target is known."""
    if target not in facts.columns:
        raise InputError(f"facts: expected a column {target!r}, got {', '.join(map(str, facts.columns))}")
    signature = [name for name in STATISTICS if name in statistics.columns]
    size = [name for name in CHARACTERISTICS if name in facts.columns and name != target]
    table = statistics[signature].join(facts[[target, *size]], how="inner")
    return table[np.isfinite(table[target].astype(float))]


def _members(table: pd.DataFrame, families: Mapping[str, str], family: str) -> pd.DataFrame:
    return table[[families.get(str(name)) == family for name in table.index]]


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Slope, R² in the sample, R² of those left out. Nothing varies: no line."""
    if not varies(x) or not varies(y):
        return 0.0, 0.0, float("nan")
    slope, r2 = _fit(x, y)
    errors, plain = [], []
    for place in range(len(y)):
        others = np.arange(len(y)) != place
        mean = y[others].mean()
        line = _fit(x[others], y[others])[0] if varies(x[others]) else 0.0
        errors.append(y[place] - mean - line * (x[place] - x[others].mean()))
        plain.append(y[place] - mean)
    return slope, r2, 1 - float(np.square(errors).sum() / np.square(plain).sum())


def _fit(x: Array, y: Array) -> tuple[float, float]:
    a, b = x - x.mean(), y - y.mean()
    slope = float(a @ b / (a @ a))
    return slope, float((a @ b) ** 2 / ((a @ a) * (b @ b))) if varies(y) else 0.0


def _chance(x: Array, y: Array, reached: float) -> float:
    """The share of orders of y for which the best column of x does as well."""
    count = len(y)
    if count <= _EXACT:
        orders = np.array(list(permutations(range(count))))
    else:
        generator = np.random.default_rng(0)
        orders = np.array([np.arange(count), *(generator.permutation(count) for _ in range(_ORDERS - 1))])
    shuffled = y[orders]
    best = np.zeros(len(orders))
    for column in x.T:
        known = np.isfinite(column)
        a, b = column[known], shuffled[:, known]
        if varies(a):
            a, b = a - a.mean(), b - b.mean(1, keepdims=True)
            size = (a @ a) * (b**2).sum(1)
            best = np.maximum(best, np.divide((b @ a) ** 2, size, out=np.zeros(len(b)), where=size > 0))
    return float((best >= reached - 1e-12).mean())
