"""Correlations of a gauge with others (Tables 1 and 2), and predictors of accuracy (Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from fathometer.compare.series import varies
from fathometer.compare.soundings import Array, Soundings, by_name, measured_gauges
from fathometer.compare.summary import STATISTICS
from fathometer.errors import InputError
from fathometer.results.sounding import column_of

COMPANIONS = ("cka", "cka_debiased", "norm", "sparsity_change", "entropy_change", "r2")
"""The columns of Tables 1 and 2, and CKA without bias, which `standard` has in the place of CKA."""
CHARACTERISTICS = ("depth", "parameters", "gflops")
_MIN_MEMBERS = 3  # a line through two points always fits
_MAX_EXACT = 7  # with up to 7 members, all 5040 orders are tried
_ORDERS = 2000


def correlations(
    soundings: Soundings, gauge: str = "affinity", companions: Sequence[str] | None = None
) -> pd.DataFrame:
    """Compute the Pearson correlation of a gauge with others over the sites of each network (Table 2).

    r = Σ (aᵢ − ā)(bᵢ − b̄) / sqrt( Σ (aᵢ − ā)² Σ (bᵢ − b̄)² ), over sites i, of means over batches. Missing
    where either is constant, where fewer than three sites have both, or where a network lacks the companion.
    `family_table` turns it into Table 1.

    Args:
        soundings: by name, or a list.
        gauge: the gauge to correlate the others with.
        companions: the other gauges; by default those of the paper that any of the networks has.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> layers = [layer for _ in range(5) for layer in (torch.nn.Linear(6, 6), torch.nn.ReLU())]
        >>> sounding = measure(torch.nn.Sequential(*layers), torch.randn(99, 6), samples=99)
        >>> correlations([sounding]).columns.to_list()
        ['cka_debiased', 'norm', 'sparsity_change', 'entropy_change', 'r2']
    """
    named = by_name(soundings)
    for name, sounding in named.items():
        column_of(gauge, sounding.gauges, f"{name}: ")  # refuses one that was not measured
    measured = measured_gauges(named.values())
    wanted = (
        [c for c in COMPANIONS if c in measured and c != gauge] if companions is None else list(companions)
    )
    unknown = [companion for companion in wanted if companion not in measured]
    if unknown or not wanted:
        raise InputError(
            f"{', '.join(unknown) or 'none of the paper'} was measured in no network, but "
            f"{', '.join(measured)}",
            parameter="companions",
        )
    rows = {
        name: {
            companion: _pearson(sounding.mean(gauge), sounding.mean(companion))
            if companion in sounding.gauges
            else np.nan
            for companion in wanted
        }
        for name, sounding in named.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")


def predictors(
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
) -> pd.DataFrame:
    """Fit a line from every statistic and every characteristic to accuracy, family by family.

    A row for each family and predictor: `kind` (signature or characteristic), `members` that have both,
    `slope`, `r2` of the line in the sample, and `r2_left_out` = 1 − Σ (yᵢ − ŷ₋ᵢ)² / Σ (yᵢ − ȳ₋ᵢ)², where line
    and mean come from all members but the i-th: how well the line predicts a network it has not seen, below 0
    if worse than the mean of the others. A predictor that fewer than three members have is listed without a
    line. Families with fewer than three members of known accuracy are left out.

    Args:
        statistics: network × statistic, as `statistics` returns them.
        facts: network × `accuracy` and any of `depth`, `parameters`, `gflops`.
        families: network → family.
        target: the column of `facts` to predict.
    """
    table = _known(statistics, facts, target)
    rows = []
    for family in dict.fromkeys(families.values()):
        members = _members(table, families, family)
        if len(members) < _MIN_MEMBERS:
            continue
        for name in table.columns.drop(target):
            known = members[np.isfinite(members[name].astype(float))]
            x, y = known[name].to_numpy(float), known[target].to_numpy(float)
            line = _line(x, y) if len(known) >= _MIN_MEMBERS else (np.nan, np.nan, np.nan)
            kind = "characteristic" if name in CHARACTERISTICS else "signature"
            rows.append((family, name, kind, len(known), *line))
    if not rows:
        raise InputError(
            f"expected a family with at least {_MIN_MEMBERS} members whose {target} is known; got none"
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
    """Return each family's best statistic and best characteristic by R² in the sample (Figure 4).

    The best of seven lines through four points fits well whatever the numbers: `p` is the share of
    permutations of the accuracies for which the best of its kind has as large an R². Four members have 24
    permutations: `p` is at least 1/24; with three it is at least 1/6, and nothing can be concluded.
    """
    lines = predictors(statistics, facts, families, target).dropna(subset="r2")
    picked = lines.loc[lines.groupby(["family", "kind"], sort=False)["r2"].idxmax()].copy()
    table = _known(statistics, facts, target)
    shares = []
    for row in picked.to_dict("records"):
        candidates = lines[(lines["family"] == row["family"]) & (lines["kind"] == row["kind"])]["predictor"]
        members = _members(table, families, row["family"])
        x, y = members[list(candidates)].to_numpy(float), members[target].to_numpy(float)
        shares.append(_permutation_p(x, y, row["r2"]))
    return picked.assign(p=shares).reset_index(drop=True)


def _known(statistics: pd.DataFrame, facts: pd.DataFrame, target: str) -> pd.DataFrame:
    """Join statistics, target and characteristics of the networks whose target is known."""
    if target not in facts.columns:
        columns = ", ".join(map(str, facts.columns))
        raise InputError(f"expected a column {target!r}, got {columns}", parameter="facts")
    signature = [name for name in STATISTICS if name in statistics.columns]
    size = [name for name in CHARACTERISTICS if name in facts.columns and name != target]
    table = statistics[signature].join(facts[[target, *size]], how="inner")
    return table[np.isfinite(table[target].astype(float))]


def _members(table: pd.DataFrame, families: Mapping[str, str], family: str) -> pd.DataFrame:
    return table[[families.get(str(name)) == family for name in table.index]]


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Return slope, R² in the sample, and leave-one-out R²; no line if nothing varies."""
    if not varies(x) or not varies(y):
        return 0.0, 0.0, float("nan")
    slope, r2 = _fit(x, y)
    errors, plain = [], []
    for left_out in range(len(y)):
        others = np.arange(len(y)) != left_out
        mean = y[others].mean()
        line = _fit(x[others], y[others])[0] if varies(x[others]) else 0.0
        errors.append(y[left_out] - mean - line * (x[left_out] - x[others].mean()))
        plain.append(y[left_out] - mean)
    return slope, r2, 1 - float(np.square(errors).sum() / np.square(plain).sum())


def _fit(x: Array, y: Array) -> tuple[float, float]:
    a, b = x - x.mean(), y - y.mean()
    slope = float(a @ b / (a @ a))
    return slope, float((a @ b) ** 2 / ((a @ a) * (b @ b))) if varies(y) else 0.0


def _permutation_p(x: Array, y: Array, reached: float) -> float:
    """Return the share of permutations of y for which the best column of x fits as well."""
    count = len(y)
    if count <= _MAX_EXACT:
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


def _pearson(first: pd.Series[float], second: pd.Series[float]) -> float:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    if len(a) < 3 or not varies(a) or not varies(b):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / (np.sqrt(a @ a) * np.sqrt(b @ b)))
