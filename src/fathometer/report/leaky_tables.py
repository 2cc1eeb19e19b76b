"""What pictures of Leaky ResNets show, as tables: one network along p, networks by depth, step schemes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakyRun, LeakySweep, RepresentationPath
from fathometer.leaky.measures import BOTTLENECK
from fathometer.leaky.run import siblings_of
from fathometer.leaky.schemes import Projection, check_alike, held_out_errors, project_paths
from fathometer.leaky.theory import Statement, check_all
from fathometer.report.figures.style import BLUE, GREEN, ORANGE, PURPLE, RED, SKY_BLUE

RunOrSweep: TypeAlias = LeakySweep | LeakyRun
"""A run, or a sweep from which `default_run` takes one."""
Axis: TypeAlias = Literal["linear", "unit", "log", "symlog"]

DEFAULT_DEPTH = 7.0  # L̃ of Figure 1b
LINEAR = 5.0  # dimensions up to which an axis is linear; beyond, it is logarithmic
DECADES = 4  # of singular values shown below the largest

SERIES = {
    "potential": ("potential (COI)", ORANGE, "s"),
    "kinetic": ("kinetic", PURPLE, "^"),
    "hamiltonian": ("−2H/L̃", BLUE, "o"),
    "hamiltonian_averaged": ("−2H/L̃, averaged over both ends", GREEN, "v"),
    "hamiltonian_stable": ("stable −2H_γ/L̃", RED, "D"),
    "cost_of_identity": ("cost of identity", ORANGE, "s"),
    "stable_rank": ("stable rank of A_p", GREEN, "^"),
    "weight_stable_rank": ("stable rank of W_p", SKY_BLUE, "v"),
    "rank": ("bottleneck rank", SKY_BLUE, "P"),
    "affinity": ("affinity score of σ", BLUE, "o"),
    "negative": ("‖A₋‖/‖A‖", RED, "s"),
    "error": ("mean squared error", BLUE, ""),
    "decay": ("weight decay", PURPLE, ""),
    "crit": ("‖W − L̃Bσᵀ‖/‖W‖, median over layers", RED, ""),
    "train_error": ("train", BLUE, "o"),
    "test_error": ("test", RED, "s"),
    "length_per_root_n": ("Euclidean, per √N", BLUE, "o"),
    "length_kernel": ("in the K norm", ORANGE, "s"),
    "momentum": ("‖B_p‖", RED, "D"),
    "momentum_sigma": ("‖B_p σ(A_p)ᵀ‖", PURPLE, "^"),
}
"""Label, colour and marker of each quantity, in every picture."""
SCHEME_LOOKS = {
    "equidistant": (BLUE, "o"),
    "irregular": (ORANGE, "s"),
    "adaptive": (RED, "^"),
    "given": (GREEN, "D"),
}


@dataclass(frozen=True)
class Panel:
    """A chart of some columns, for print and for the page.

    Attributes:
        part: its name on the page.
        axis: the scale of the values.
        y: the title of the axis.
        series: column → label.
        mark: a level to compare with: the rank k* of the task, or the limit of `crit`.
        x: the column to draw against; None for what the networks of a sweep differ in.
    """

    part: str
    axis: Axis
    y: str
    series: Mapping[str, str]
    mark: Literal["rank", "critical"] | None = None
    x: Literal["p", "epoch"] | None = None


def _named(*columns: str, **others: str) -> dict[str, str]:
    """Return column → label; `others` are labels of this panel alone."""
    return {name: others.get(name, SERIES[name][0]) for name in columns}


_ENERGIES = _named("potential", "kinetic", "hamiltonian", "hamiltonian_stable")
_HAMILTONIANS = _named("hamiltonian", "hamiltonian_averaged", "hamiltonian_stable")
_RANKS = _named("cost_of_identity", "stable_rank", "weight_stable_rank")
_LOWEST = {"cost_of_identity": "lowest COI", "stable_rank": "lowest stable rank"}
_SUMMARY = _named("cost_of_identity", "stable_rank", "hamiltonian_stable", "hamiltonian", "rank", **_LOWEST)

ENERGIES = Panel("energies", "symlog", "dimensions", _ENERGIES, "rank", "p")
HAMILTONIANS = Panel("hamiltonians", "linear", "−2H/L̃ (dimensions)", _HAMILTONIANS, "rank", "p")
RANKS = Panel("dimensions", "log", "dimensions", _RANKS, "rank", "p")
AFFINITY = Panel("affinity", "unit", "affinity, share of A₋", _named("affinity", "negative"), None, "p")
LOSSES = Panel("losses", "log", "loss", _named("error", "decay"), None, "epoch")
CRIT = Panel("crit", "log", "crit", _named("crit"), "critical", "epoch")
RUN_PANELS = (ENERGIES, HAMILTONIANS, RANKS, AFFINITY, LOSSES, CRIT)
"""Of one network."""

DIMENSIONS = Panel("against-dimensions", "symlog", "dimensions", _SUMMARY, "rank")
ERRORS = Panel("against-errors", "log", "mean squared error", _named("train_error", "test_error"))
IN_BOTTLENECK = Panel("against-affinity", "unit", "in the bottleneck", _named("affinity", "negative"))
LENGTHS = Panel("against-lengths", "linear", "path length", _named("length_per_root_n", "length_kernel"))
MOMENTA = Panel("against-momenta", "linear", "momenta, median over p", _named("momentum", "momentum_sigma"))
SWEEP_PANELS = (DIMENSIONS, ERRORS, IN_BOTTLENECK, LENGTHS, MOMENTA)
"""Of the networks of a sweep. Bars reach from the column's `_min` to its `_max`, where it has these."""


def default_run(results: RunOrSweep) -> LeakyRun:
    """Return the run with L̃ nearest 7 (the greater of two), the lowest seed, and the most layers."""
    if isinstance(results, LeakyRun):
        return results

    def order(run: LeakyRun) -> tuple[float, ...]:
        depth = run.design.effective_depth
        return abs(depth - DEFAULT_DEPTH), -depth, run.design.seed, -run.design.layers

    return min(results.trained, key=order)


def depth_table(sweep: LeakySweep) -> pd.DataFrame:
    """Return what Figures 1a and 3 show: a row for each network, by L̃ and seed; see `network_row`."""
    runs = [run for run in sweep.trained if run.design.effective_depth > 0]
    depths = sorted({run.design.effective_depth for run in runs})
    if len(depths) < 2:
        got = ", ".join(f"L̃ = {depth:g}" for depth in depths) or "none"
        raise InputError(
            f"expected networks of two or more effective depths above 0, got {got}; "
            "train such networks: grid(design, effective_depth=[…])"
        )
    check_alike(runs, "effective_depth")
    rows = pd.DataFrame([network_row(run) for run in runs])
    return rows.sort_values(["effective_depth", "seed"], ignore_index=True)


def network_row(run: LeakyRun) -> dict[str, Any]:
    """Return a network in one row: `effective_depth`, `seed`, `rank_of_task`, the summary of its measures.

    `momentum` and `momentum_sigma`, with `_min` and `_max`, are the median and range over p of ‖B‖ and ‖Bσᵀ‖.
    """
    measures = run.measure(warn=False)  # the picture says which networks are not critical
    points = measures.points
    row: dict[str, Any] = {
        "effective_depth": run.design.effective_depth,
        "seed": run.design.seed,
        "rank_of_task": run.task.rank,
        **measures.summary,
    }
    for name, column in (("momentum", points["momentum_norm"]), ("momentum_sigma", points["momentum_sigma"])):
        row |= {name: column.median(), f"{name}_min": column.min(), f"{name}_max": column.max()}
    return row


def leaky_path_table(run: LeakyRun) -> pd.DataFrame:
    """Return all measures along p, a row for each point; those of a layer are at the p where it begins."""
    measures = run.measure(warn=False)
    return measures.points.join(measures.layers.drop(columns="p"))


def bottleneck_intervals(points: pd.DataFrame) -> list[tuple[float, float]]:
    """Return where p is in the bottleneck, as intervals that end half-way to the points outside it.

    Example:
        >>> points = pd.DataFrame({"p": [0, 0.25, 0.5, 0.75, 1], "cost_of_identity": [9, 3.2, 3.0, 5, 9]})
        >>> bottleneck_intervals(points)
        [(0.125, 0.625)]
    """
    p, cost = points["p"].to_numpy(float), points["cost_of_identity"].to_numpy(float)
    edges = np.r_[p[0], (p[1:] + p[:-1]) / 2, p[-1]]
    found: list[tuple[float, float]] = []
    for number in np.flatnonzero(cost <= cost.min() + BOTTLENECK):
        begin, end = float(edges[number]), float(edges[number + 1])
        if found and found[-1][1] == begin:
            begin = found.pop()[0]
        found.append((begin, end))
    return found


def statements_of(run: LeakyRun, runs: Iterable[LeakyRun]) -> list[Statement]:
    """Check every statement of the paper that applies to a network; none if it diverged.

    Proposition 5 is about all depths: it is checked once, with the deepest of the `runs` that differ in depth
    alone.
    """
    if run.diverged is not None:
        return []
    others = siblings_of(run, runs)
    deepest = all(other.design.effective_depth < run.design.effective_depth for other in others)
    paths = [other.path for other in others] if deepest and len(others) > 1 else []
    return check_all(run.path, run.gamma0, paths)


def sample_paths(path: RepresentationPath, samples: Sequence[int]) -> Projection:
    """Project columns of A_p to the first two principal components of all columns at all p.

    The mean over all samples and points is subtracted. The sign of a component is such that its largest entry
    is positive.
    """
    a = path.representations.numpy()
    points, width, _ = a.shape
    centred = a - a.mean(axis=(0, 2), keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("pin,pjn->ij", centred, centred))
    count = min(2, width)
    axes = vectors[:, ::-1][:, :count]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), range(count)])
    plane = np.zeros((len(samples), points, 2))
    plane[..., :count] = np.einsum("pin,ij->npj", centred[:, :, list(samples)], axes)
    shares = np.clip(values[::-1][:2], 0, None) / max(float(values.sum()), math.ulp(0))
    return Projection(list(plane), (float(shares[0]), float(shares[1]) if count > 1 else 0.0))


def scheme_paths(sweep: LeakySweep) -> tuple[pd.DataFrame, list[LeakyRun], tuple[float, float]]:
    """Return paths of several step schemes in the plane of a joint PCA (Figure 2c).

    Of the networks of one L and seed with several schemes, those with the most layers, then the lowest seed.

    Returns:
        a table with `scheme`, `p`, `x` and `y`; the runs; the shares of the variance that the axes explain.
    """
    found: dict[tuple[int, int], dict[str, LeakyRun]] = {}
    for run in sweep.trained:
        found.setdefault((-run.design.layers, run.design.seed), {})[run.design.scheme] = run
    enough = [key for key, runs in found.items() if len(runs) >= 2]
    if not enough:
        raise InputError(
            "paths: expected two schemes with the same L and seed, got none; "
            "train such networks: grid(design, scheme=[…])"
        )
    check_alike(sweep.trained, "layers", "scheme")
    chosen = found[min(enough)]
    runs = [chosen[scheme] for scheme in SCHEME_LOOKS if scheme in chosen]
    plane = project_paths(runs)
    parts = [
        pd.DataFrame({"scheme": run.design.scheme, "p": run.path.places.numpy(), "x": x, "y": y})
        for run, (x, y) in zip(runs, (path.T for path in plane.paths), strict=True)
    ]
    return pd.concat(parts, ignore_index=True), runs, plane.explained


def error_table(sweep: LeakySweep | pd.DataFrame) -> pd.DataFrame:
    """Return test errors by `scheme` and `layers`: `mean`, `std`, `low` and `high` over seeds (Figure 2a).

    Args:
        sweep: networks that differ only in scheme, L and seed, or their `held_out_errors`.
    """
    groups = held_out_errors(sweep).groupby(["scheme", "layers"])["test_error"]
    table = pd.DataFrame({"mean": groups.mean(), "std": groups.std().fillna(0)}).reset_index()
    return table.assign(low=table["mean"] - table["std"], high=table["mean"] + table["std"])
