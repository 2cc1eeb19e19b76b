"""What figures and pages of the leaky lab show: networks by depth, the bottleneck, the paths of samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakyRun, LeakySweep, RepresentationPath
from fathometer.leaky.measures import BOTTLENECK
from fathometer.leaky.plan import Scheme
from fathometer.leaky.run import differs_in_depth
from fathometer.leaky.schemes import Projection, check_alike
from fathometer.leaky.theory import Statement, check_all

Results: TypeAlias = LeakySweep | LeakyRun
"""A run, or a sweep from which `usual_run` takes one."""

USUAL_DEPTH = 7.0  # L̃ of Figure 1b
LINEAR = 5.0  # dimensions up to which an axis is linear; beyond, it is logarithmic
DECADES = 4  # of singular values shown below the largest


def trained(sweep: LeakySweep) -> list[LeakyRun]:
    """The runs that did not diverge; an error where there is none."""
    runs = [run for run in sweep.runs if run.diverged is None]
    if not runs:
        raise InputError(
            f"sweep: expected a network that did not diverge, got {len(sweep.runs)} that did; "
            "train with a smaller learning rate"
        )
    return runs


def usual_run(results: Results) -> LeakyRun:
    """The run with L̃ nearest 7, the greater of two, and of these the least seed, then the most layers."""
    if isinstance(results, LeakyRun):
        return results

    def order(run: LeakyRun) -> tuple[float, ...]:
        depth = run.design.effective_depth
        return abs(depth - USUAL_DEPTH), -depth, run.design.seed, -run.design.layers

    return min(trained(results), key=order)


def depth_table(sweep: LeakySweep) -> pd.DataFrame:
    """What Figures 1a and 3 show: a row for each network, by L̃ and seed; see `network_row`."""
    runs = [run for run in trained(sweep) if run.design.effective_depth > 0]
    depths = sorted({run.design.effective_depth for run in runs})
    if len(depths) < 2:
        got = ", ".join(f"L̃ = {depth:g}" for depth in depths) or "none"
        raise InputError(
            f"expected networks of two or more effective depths above 0, got {got}; "
            "train them with `fathometer leaky sweep --depths`, or grid(design, effective_depth=[…])"
        )
    check_alike(runs, "effective_depth")
    rows = pd.DataFrame([network_row(run) for run in runs])
    return rows.sort_values(["effective_depth", "seed"], ignore_index=True)


def network_row(run: LeakyRun) -> dict[str, Any]:
    """A network in one row: `effective_depth`, `seed`, `rank_of_task`, its summary of measures, its momenta.

    These are the median, `_min` and `_max` over p of ‖B‖ as `momentum` and of ‖Bσᵀ‖ as `momentum_sigma`.
    """
    measures = run.measure(warn=False)  # what shows it says which are not critical
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


def bottleneck_stretches(points: pd.DataFrame) -> list[tuple[float, float]]:
    """Where p lies in the bottleneck, as far as half-way to the points outside it, neighbours together.

    Example:
        >>> points = pd.DataFrame({"p": [0, 0.25, 0.5, 0.75, 1], "cost_of_identity": [9, 3.2, 3.0, 5, 9]})
        >>> bottleneck_stretches(points)
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


def statements_of(run: LeakyRun, kin: Iterable[LeakyRun] = ()) -> list[Statement]:
    """Every statement of the paper that applies to a network; none where it diverged.

    Args:
        run: the network.
        kin: networks among which those of other depths, alike in everything else, serve Proposition 5.
    """
    if run.diverged is not None:
        return []
    others = [
        other.path for other in kin if other.diverged is None and differs_in_depth(other.design, run.design)
    ]
    return check_all(run.path, run.gamma0, others if len(others) > 1 else ())


def sample_paths(path: RepresentationPath, samples: Sequence[int]) -> Projection:
    """Columns of A_p in the plane of the first two principal components of all columns at all p.

    The mean over all samples and places is subtracted. The sign of a component is such that its largest entry
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


def comparable_schemes(sweep: LeakySweep) -> list[LeakyRun]:
    """Two step schemes or more of one L and seed, in their order: of the most layers, then the least seed."""
    every = trained(sweep)
    found: dict[tuple[int, int], dict[str, LeakyRun]] = {}
    for run in every:
        found.setdefault((-run.design.layers, run.design.seed), {})[run.design.scheme] = run
    enough = {key: runs for key, runs in found.items() if len(runs) >= 2}
    if not enough:
        raise InputError(
            "paths: expected two schemes with the same L and seed, got none; "
            "train `fathometer leaky sweep --schemes equidistant,adaptive`, or grid(design, scheme=[…])"
        )
    check_alike(every, "layers", "scheme")
    runs = enough[min(enough)]
    return [runs[scheme] for scheme in get_args(Scheme) if scheme in runs]
