"""Comparison of step schemes: test errors paired by seed, and paths in one plane (Figure 2).

Networks of one seed share their task and their initial weights. The spread over seeds hides the effect of the
steps, unless one takes the difference within each seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from fathometer.errors import InputError
from fathometer.leaky.run import LeakyRun, LeakySweep

BASELINE = "equidistant"
"""The scheme that the others are compared with."""

CONFIDENCE = 0.95


class Projection(NamedTuple):
    """Paths in the plane of their first two principal components."""

    paths: list[npt.NDArray[np.float64]]  # one array for each path, `[points, 2]`
    explained: tuple[float, float]  # the two shares of the variance


def held_out_errors(sweep: LeakySweep | pd.DataFrame) -> pd.DataFrame:
    """Tabulate `layers`, `scheme`, `seed` and `test_error` of every network that did not diverge.

    Args:
        sweep: networks that differ only in scheme, L and seed, or such a table, which is returned unchanged.
    """
    if isinstance(sweep, pd.DataFrame):
        return sweep
    runs = sweep.trained
    check_alike(runs, "layers", "scheme")
    rows = [(r.design.layers, r.design.scheme, r.design.seed, r.test_error) for r in runs]
    table = pd.DataFrame(rows, columns=["layers", "scheme", "seed", "test_error"])
    if table["test_error"].isna().any():
        raise InputError("expected held-out data, got a task without any", parameter="test_samples")
    twice = table[table.duplicated(["layers", "scheme", "seed"])]
    if len(twice):
        layers, scheme, seed = twice.iloc[0][["layers", "scheme", "seed"]]
        raise InputError(
            f"schemes: expected one network for each L, scheme and seed, got several with L = {layers}, "
            f"{scheme}, seed {seed}; keep one of them"
        )
    return table.sort_values(["layers", "scheme", "seed"], ignore_index=True)


def seed_differences(sweep: LeakySweep | pd.DataFrame) -> pd.DataFrame:
    """Subtract the test error of equidistant steps with the same L and seed, in a column `difference`.

    Seeds without either of the two are left out.

    Args:
        sweep: networks that differ only in scheme, L and seed, or their `held_out_errors`.
    """
    given = sweep["scheme"] if isinstance(sweep, pd.DataFrame) else [r.design.scheme for r in sweep.trained]
    schemes = sorted(set(given))
    if BASELINE not in schemes or len(schemes) < 2:
        raise InputError(
            f"schemes: expected {BASELINE} steps and some other, got {', '.join(schemes)}; train both, with "
            'grid(design, scheme=["equidistant", "adaptive"])'
        )
    table = held_out_errors(sweep)
    base = table[table["scheme"] == BASELINE].drop(columns="scheme")
    others = table[table["scheme"] != BASELINE]
    pairs = others.merge(base, on=["layers", "seed"], suffixes=("", "_base"))
    if pairs.empty:
        raise InputError(
            "schemes: expected networks that share L and seed, got no such pair; train all schemes on the "
            "same layers and seeds"
        )
    pairs["difference"] = pairs["test_error"] - pairs["test_error_base"]
    return pairs[["layers", "scheme", "seed", "difference"]]


def paired_differences(sweep: LeakySweep | pd.DataFrame) -> pd.DataFrame:
    """Compare the test error of each scheme with that of equidistant steps (Figure 2a).

    Columns: `layers` (L), `scheme`, `mean` of the differences over seeds, `low` and `high` of its 95 %
    interval d̄ ± t_{0.975, n−1} s/√n (Student; NaN for a single seed), `wins`, in how many seeds the
    error is smaller, and `seeds`, their number n. Below 0 is better than equidistant.

    Args:
        sweep: networks that differ only in scheme, L and seed, or their `held_out_errors`.
    """
    rows = []
    for (layers, scheme), group in seed_differences(sweep).groupby(["layers", "scheme"], sort=True):
        values = group["difference"].to_numpy(float)
        mean, half, count = float(values.mean()), math.nan, len(values)
        if count > 1:
            half = stdtrit(count - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / math.sqrt(count)
        rows.append((layers, scheme, mean, mean - half, mean + half, int((values < 0).sum()), count))
    return pd.DataFrame(rows, columns=["layers", "scheme", "mean", "low", "high", "wins", "seeds"])


def project_paths(runs: Sequence[LeakyRun]) -> Projection:
    """Project paths A_p onto their first two common principal components (Figure 2c).

    Every A_p is one point, flattened to `[width · samples]`; the mean over the points of all paths is
    subtracted. The sign of a component makes its largest entry over the points positive.
    """
    shapes = {tuple(run.path.representations.shape[1:]) for run in runs}
    if len(shapes) != 1:
        raise InputError(
            "paths: expected networks of one width and number of samples, got "
            f"{', '.join(map(str, sorted(shapes))) or 'none'}"
        )
    flat = [run.path.representations.flatten(1).numpy() for run in runs]
    points = np.concatenate(flat)
    points = points - points.mean(0)
    left, values, _ = np.linalg.svd(points, full_matrices=False)
    plane = left[:, :2] * values[:2]
    plane = plane * np.sign(plane[np.abs(plane).argmax(0), [0, 1]])
    shares = values**2 / max(float((values**2).sum()), np.finfo(float).tiny)
    ends = np.cumsum([len(each) for each in flat])[:-1]
    return Projection(np.split(plane, ends), (float(shares[0]), float(shares[1])))


def check_alike(runs: Sequence[LeakyRun], *free: str) -> None:
    """Refuse designs that differ in more than their seeds and the attributes named in `free`."""
    designs = [asdict(run.design) for run in runs]
    for design in designs:
        for seeded in filter(None, (design, design["teacher"])):
            del seeded["seed"]
    differing = [
        name
        for name in (designs[0] if designs else {})
        if name not in free and any(design[name] != designs[0][name] for design in designs)
    ]
    if len({run.task.rank for run in runs}) > 1:  # the plainer word for another teacher
        differing = ["rank", *(name for name in differing if name != "teacher")]
    if differing:
        raise InputError(
            f"sweep: expected networks that differ only in {', '.join((*free, 'seed'))}, got several values "
            f"of {', '.join(differing)}; keep one of each (`only`)"
        )
