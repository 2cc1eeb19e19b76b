"""All measures along one path: two tables, the spectra, the bottleneck rank, and a summary.

A path without momenta, from `path_through`, or with L̃ = 0, has the same tables: what is not known is NaN.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from fathometer.gauges import affinity_score, cost_of_identity
from fathometer.gauges.affinity import AffinityScores
from fathometer.gauges.spectrum import squares
from fathometer.leaky.energy import (
    GAMMA,
    KernelProducts,
    balance,
    criticality,
    exact_cost,
    gamma_of,
    hamiltonians,
    in_dimensions,
    kernel_products,
)
from fathometer.leaky.model import with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.transport.arrays import check_finite

CRITICAL = 0.1
"""Weights are at a critical point of the loss if the median of `crit` over the layers is at most this."""

CLEAR_GAP = 2.0
"""Below, the singular values after the bottleneck rank are too near for a bottleneck."""

BOTTLENECK = 0.5
"""The bottleneck is where the cost of identity is at most this far above its minimum, in dimensions."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PathMeasures:
    """What `measure_path` found.

    Attributes:
        points: one row for each p_0 … p_L: `point`, `p`, `cost_of_identity` (with ridge, without the bias),
            `cost_of_identity_exact`, `stable_rank` (‖A‖*²/‖A‖²), `negative` (‖A₋‖/‖A‖), `norm` (‖A‖),
            `momentum_norm` (‖B‖), `momentum_sigma` (‖Bσ(A)ᵀ‖, bias included), `affinity` of σ.
        layers: one row for each layer: `layer`, from 1, `p` of its start, `step`, −2H/L̃ as `hamiltonian`
            (staggered), `hamiltonian_plain`, `hamiltonian_averaged`, `hamiltonian_stable`; its parts in the
            same units, `kinetic` = ‖∂A‖²/L̃² and `potential` = ‖A‖² in K + γI, bias included; `potential` −
            `kinetic` is `hamiltonian_stable`; `move`, ‖A_l − A_{l−1}‖/‖A_l‖; `weight_norm`,
            `bias_norm`, `weight_stable_rank`, and `crit`, ‖W − L̃Bσᵀ‖/‖W‖: 0 at a critical point.
        spectra: singular values of A, `[layers + 1, min(width, samples)]`.
        weight_spectra: those of W, bias included, `[layers, width]`; None if W is not known.
        summary: one number for each measure; see `measure_path`.
        gamma0: γ₀.
    """

    points: pd.DataFrame
    layers: pd.DataFrame
    spectra: Numbers
    weight_spectra: Numbers | None
    summary: dict[str, float]
    gamma0: float


@torch.no_grad()
def measure_path(
    path: RepresentationPath, *, gamma0: float = GAMMA, affinity: bool = True, warn: bool = True
) -> PathMeasures:
    """Measure a path at every point and in every layer.

    The summary holds medians over layers, or extremes as named: `hamiltonian`, `hamiltonian_min` and
    `hamiltonian_max`, the same of `hamiltonian_stable`; the smallest `cost_of_identity`, `stable_rank` and
    `negative`; `rank`, `gap` and `rank_layer` from `bottleneck_rank`; `crit`; `length`, `length_per_root_n`
    (over √N) and `length_kernel`; `balance_error`; `momentum`, the median of ‖B‖, and `momentum_max`;
    `affinity`, the largest in the bottleneck, where the cost of identity is within half a dimension of its
    minimum.

    Args:
        path: the path. That of a network should be critical.
        gamma0: γ₀ of the ridge γ_p = γ₀‖K_p‖_op.
        affinity: whether to measure the affinity score, which takes longest.
        warn: whether to warn if a network is not critical.

    Example:
        >>> from fathometer.leaky.path import path_through
        >>> a = torch.rand(3, 5, 20, generator=torch.Generator().manual_seed(0))
        >>> found = measure_path(path_through(a), gamma0=1e-9)
        >>> found.points[["p", "cost_of_identity", "affinity"]].round(3).values.tolist()
        [[0.0, 5.0, 1.0], [0.5, 5.0, 1.0], [1.0, 5.0, 1.0]]
    """
    check_finite(path.representations, "representations")
    spectra = torch.linalg.svdvals(path.representations)
    weight_spectra = None if path.weights is None else torch.linalg.svdvals(path.weights)
    products = kernel_products(path, gamma_of(path.images[:-1], gamma0))
    points = _points(path, spectra, gamma0, affinity)
    layers = _layers(path, weight_spectra, products)
    summary = _summary(path, points, layers, weight_spectra, products)
    if warn and summary["crit"] > CRITICAL:
        warnings.warn(
            f"the weights are not at a critical point: median ‖W − L̃Bσᵀ‖/‖W‖ is {summary['crit']:.2g}, above "
            f"{CRITICAL:g}; the Hamiltonian means little there, train longer or with a smaller learning rate",
            stacklevel=3,  # the caller, beyond no_grad
        )
    weight_values = None if weight_spectra is None else _array(weight_spectra)
    return PathMeasures(points, layers, _array(spectra), weight_values, summary, gamma0)


class BottleneckRank(NamedTuple):
    """How many dimensions pass through the narrowest layer."""

    rank: int  # k, the number of singular values above L̃/2
    gap: float  # s_k / s_{k+1}; infinite if there is no s_{k+1}, NaN if k = 0
    layer: int  # the layer they were counted in, from 1


def bottleneck_rank(spectra: Tensor, effective_depth: float) -> BottleneckRank:
    """Count the singular values of W above L̃/2, in the layer with the smallest ‖W‖*² / ‖W‖_F².

    Inside the bottleneck W σ(A) ≈ L̃ A: W has k* singular values near L̃, and the rest near 0. The layer is
    chosen by the stable rank of Proposition 1, with the nuclear norm. The common one, ‖W‖_F² / ‖W‖_op², is
    also small if a single singular value is large, as in the first and last layers, which are no bottleneck:
    over 12 small networks it leaves gaps from 2 to 27, and two wrong ranks; this one has gaps from 26 to 304.
    `spectra` are the singular values of W with its bias, decreasing, `[layers, width]`; without the bias the
    last layer may be chosen too.

    Example:
        >>> spectra = torch.tensor([[4.0, 3.9, s, 0.1] for s in (3.0, 0.2, 2.5)])
        >>> rank, gap, layer = bottleneck_rank(spectra, 4.0)
        >>> rank, round(gap, 3), layer
        (2, 19.5, 2)
    """
    layer = int(stable_ranks(spectra).argmin())
    values = spectra[layer].tolist()
    rank = sum(value > effective_depth / 2 for value in values)
    left = values[rank] if rank < len(values) else 0.0
    gap = math.nan if rank == 0 else values[rank - 1] / left if left > 0 else math.inf
    return BottleneckRank(rank, gap, layer + 1)


def stable_ranks(spectra: Tensor) -> Tensor:
    """Compute (Σ s)² / Σ s² of singular values `[..., number]` (Proposition 1); 0 if all are 0."""
    total = spectra.square().sum(-1)
    return spectra.sum(-1).square() / torch.where(total > 0, total, 1.0)


def _points(path: RepresentationPath, spectra: Tensor, gamma0: float, affinity: bool) -> pd.DataFrame:
    a, images, unknown = path.representations, path.images, path.places * math.nan
    norm = _norm(a)
    columns = {
        "p": path.places,
        "cost_of_identity": cost_of_identity(a.mT, images.mT, gamma=gamma0),
        "cost_of_identity_exact": exact_cost(a, images),
        "stable_rank": stable_ranks(spectra),
        "negative": _norm(a.clamp(max=0)) / torch.where(norm > 0, norm, 1.0),
        "norm": norm,
        "momentum_norm": unknown if path.momenta is None else _norm(path.momenta),
        "momentum_sigma": unknown if path.momenta is None else _norm(path.momenta @ with_ones(images).mT),
    }
    table = pd.DataFrame({name: _array(column) for name, column in columns.items()})
    scores = affinity_score(a.mT, images.mT) if affinity else None
    table["affinity"] = scores.value if isinstance(scores, AffinityScores) else math.nan
    table.insert(0, "point", range(len(table)))
    return table


def _layers(
    path: RepresentationPath, weight_spectra: Tensor | None, products: KernelProducts
) -> pd.DataFrame:
    a, depth = path.representations, path.effective_depth
    columns = dict.fromkeys(
        "p step hamiltonian hamiltonian_plain hamiltonian_averaged hamiltonian_stable kinetic potential "
        "move weight_norm bias_norm crit weight_stable_rank".split(),
        path.steps * math.nan,
    )
    columns |= {"p": path.places[:-1], "step": path.steps, "move": _norm(a.diff(dim=0)) / _norm(a[1:])}
    if depth > 0:
        columns["kinetic"], columns["potential"] = products.velocity_norm2 / depth**2, products.position_norm2
        columns["hamiltonian_stable"] = columns["potential"] - columns["kinetic"]
    if path.weights is not None and weight_spectra is not None:
        columns["weight_norm"], columns["bias_norm"] = _norm(path.weights), path.weights[..., -1].norm(dim=-1)
        columns["weight_stable_rank"] = stable_ranks(weight_spectra)
        if path.momenta is not None and depth > 0:
            read = hamiltonians(path)
            columns["hamiltonian"] = in_dimensions(read.staggered, depth)
            columns["hamiltonian_plain"] = in_dimensions(read.plain, depth)
            columns["hamiltonian_averaged"] = in_dimensions(read.averaged, depth)
            columns["crit"] = criticality(path)
    table = pd.DataFrame({name: _array(column) for name, column in columns.items()})
    table.insert(0, "layer", range(1, len(table) + 1))
    return table


def _summary(
    path: RepresentationPath,
    points: pd.DataFrame,
    layers: pd.DataFrame,
    weight_spectra: Tensor | None,
    products: KernelProducts,
) -> dict[str, float]:
    summary: dict[str, float] = {}
    for name in ("hamiltonian", "hamiltonian_stable"):
        column = layers[name]
        summary |= {name: column.median(), f"{name}_min": column.min(), f"{name}_max": column.max()}
    summary |= {name: points[name].min() for name in ("cost_of_identity", "stable_rank", "negative")}
    summary |= dict.fromkeys(["rank", "gap", "rank_layer", "balance_error"], math.nan)
    if weight_spectra is not None and path.effective_depth > 0:
        summary["rank"], summary["gap"], summary["rank_layer"] = bottleneck_rank(
            weight_spectra, path.effective_depth
        )
        if path.momenta is not None and path.sigma.homogeneous:
            summary["balance_error"] = balance(path).error
    length = _norm(path.representations.diff(dim=0)).sum().item()
    narrow = points["cost_of_identity"] <= summary["cost_of_identity"] + BOTTLENECK
    summary |= {
        "crit": layers["crit"].median(),
        "length": length,
        "length_per_root_n": length / math.sqrt(path.representations.shape[-1]),
        "length_kernel": (path.steps * products.velocity_norm2.sqrt()).sum().item(),
        "momentum": points["momentum_norm"].median(),
        "momentum_max": points["momentum_norm"].max(),
        "affinity": points.loc[narrow, "affinity"].max(),
    }
    return {name: value if isinstance(value, int) else float(value) for name, value in summary.items()}


def _norm(a: Tensor) -> Tensor:
    return squares(a).sqrt()


def _array(values: Tensor) -> Numbers:
    return values.cpu().numpy()
