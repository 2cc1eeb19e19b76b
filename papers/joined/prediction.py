"""What goes with the gap 1 − affinity: rank correlations, held-out errors, and means over seeds.

Tables have a row for each layer of each network, as `joined_layers` gives them: `rank`, `effective_depth`,
`seed`, `point`, `p`, and a column for each predictor and for the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import isotonic_regression

from papers.intervals import mean_interval
from papers.ranks import spearman

Numbers = npt.NDArray[np.float64]

NETWORK = ["rank", "effective_depth", "seed"]
"""What tells one network from another."""
TARGET = "gap"
DIMENSIONS = ("cost_of_identity", "stable_rank", "stable_rank_op", "ridge_rank")
"""What counts dimensions; a cost of identity with another ridge has a name that begins with the first."""


def inner(layers: pd.DataFrame) -> pd.DataFrame:
    """Select the layers with 0.1 ≤ p ≤ 0.9, without the jumps at both ends, which all measures follow."""
    return layers[layers["p"].between(0.1 - 1e-9, 0.9 + 1e-9)]


def per_rank(layers: pd.DataFrame) -> pd.DataFrame:
    """Divide dimensions by k, so that networks of different rank can be pooled."""
    every = map(str, layers.columns)
    names = [name for name in every if name in DIMENSIONS or name.startswith(f"{DIMENSIONS[0]}_")]
    return layers.assign(**{name: layers[name] / layers["rank"] for name in names})


def middle(layers: pd.DataFrame) -> pd.DataFrame:
    """Select the layer of each network whose p is nearest ½."""
    away = (layers["p"] - 0.5).abs()
    return layers.loc[away.groupby([layers[name] for name in NETWORK]).idxmin()]


def along_path(layers: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Make a row for each network: the rank correlation of each predictor with the gap over its layers."""
    return _correlations(layers, NETWORK, names)


def across_networks(layers: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Make a row for each seed: the same over its networks, of any rank and depth, at p = ½, over k."""
    return _correlations(middle(per_rank(layers)), ["seed"], names)


def same_place(layers: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Make a row for each layer of each rank and depth: the same over seeds, with all else equal."""
    return _correlations(layers, ["rank", "effective_depth", "point"], names)


def _correlations(layers: pd.DataFrame, keys: list[str], names: Sequence[str]) -> pd.DataFrame:
    rows = []
    for values, group in layers.groupby(keys):
        found = {name: spearman(group[name], group[TARGET]) for name in names}
        rows.append({**dict(zip(keys, values, strict=True)), **found})
    return pd.DataFrame(rows)


def left_out(layers: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Make a row for each network: the mean absolute error of the gap, predicted by each measure.

    A monotone curve (isotonic regression, rising or falling as the data have it) is fitted to the layers of
    all other seeds, dimensions in units of k. `none` predicts their mean.
    """
    scaled = per_rank(layers)
    parts = []
    for seed, held in scaled.groupby("seed"):
        rest = scaled[scaled["seed"] != seed]
        y = rest[TARGET].to_numpy(float)
        predicted = {"none": np.full(len(held), y.mean())}
        for name in names:
            predicted[name] = monotone(rest[name].to_numpy(float), y, held[name].to_numpy(float))
        errors = {name: (held[TARGET] - values).abs() for name, values in predicted.items()}
        parts.append(held[NETWORK].assign(**errors))
    return pd.concat(parts).groupby(NETWORK, as_index=False).mean()


def monotone(x: Numbers, y: Numbers, new: Numbers) -> Numbers:
    """Fit an isotonic regression of y on x, and interpolate it linearly at new places.

    Example:
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> monotone(x, np.array([1.0, 3.0, 2.0]), np.array([0.0, 1.5, 9.0])).tolist()
        [1.0, 1.75, 2.5]
    """
    places, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, y) / counts
    fit = isotonic_regression(means, weights=counts, increasing=spearman(x, y) >= 0).x
    return np.interp(new, places, fit)


def seed_means(table: pd.DataFrame, *names: str) -> dict[str, pd.Series]:
    """Average columns by seed: networks of one seed share teacher and weights, so that a seed counts once."""
    means = table.groupby("seed")[list(names)].mean()
    return {name: means[name] for name in names}


def jackknife(layers: pd.DataFrame, statistic: Callable[[pd.DataFrame], pd.Series]) -> dict[str, float]:
    """Compute statistics of all seeds, with `_low` and `_high` by leaving out one seed at a time."""
    seeds = sorted(layers["seed"].unique())
    whole = statistic(layers)
    parts = pd.DataFrame([statistic(layers[layers["seed"] != seed]) for seed in seeds])
    found: dict[str, float] = {"seeds": len(seeds)}
    for name, value in whole.items():
        pseudo = mean_interval(len(seeds) * value - (len(seeds) - 1) * parts[name].to_numpy())
        half = (pseudo.high - pseudo.low) / 2
        found |= {str(name): float(value), f"{name}_low": value - half, f"{name}_high": value + half}
    return found
