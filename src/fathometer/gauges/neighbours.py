"""How many dimensions samples fill locally, from the distances to their nearest neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.gauges.samples import Samples, prepare
from fathometer.transport.arrays import Array

_KEPT = 0.9  # of the ratios of distances: a few far samples would decide the fit otherwise
_EQUAL = 1e-6  # a mean logarithm of ratios of distances that may be rounding: a dimension of a million
_ROUNDED = 8  # what is left of the distance of equal samples, in multiples of the rounding of their norms
_SINGLE = torch.finfo(torch.float32).eps  # in a coarser dtype, samples are equal or far apart


@torch.no_grad()
def intrinsic_dimension(x: Array, y: Array) -> dict[str, Tensor]:
    """Estimate how many dimensions inputs and outputs fill locally, by two estimators.

    - TwoNN (Facco et al., 2017): the ratios μ = r₂ / r₁ of the distances to the second and the nearest other
      sample have the distribution F(μ) = 1 − μ^−D. D is the slope of the line through 0 and the points
      (log μ, −log(1 − F)), without the largest tenth of μ. It sees the smallest scale, and noise first.
    - Maximum likelihood (Levina and Bickel, 2005, averaged as MacKay and Ghahramani, 2005, propose):
      1/D is the mean of log(r_k / r_j) over all samples and their k − 1 nearest, with k = 20, or n − 1. It
      varies less, and sees a larger scale.

    Distances that are 0, or rounding, are left out: a sample that occurs twice says nothing about the
    dimension. NaN where nothing is left, or all distances are equal, e.g. where a side is constant. Both
    assume that the density hardly changes between neighbours, and are too small where D is large: 512 normal
    samples of 100 dimensions have about 46 (TwoNN) and 36. Compare at one n, differences rather than values.

    Example:
        >>> import torch
        >>> angle = torch.rand(500, 1, generator=torch.Generator().manual_seed(0)) * 6
        >>> curve = torch.cat([angle.cos(), angle.sin(), angle], 1)
        >>> found = intrinsic_dimension(curve, curve.relu())
        >>> {name: round(value.item(), 1) for name, value in found.items()}
        {'twonn_x': 0.9, 'twonn_y': 0.9, 'mle_x': 1.0, 'mle_y': 1.0}
    """
    pair = prepare(x, y)
    found = {"twonn": pair.each_side(_two_nn), "mle": pair.each_side(_maximum_likelihood)}
    return {f"{name}_{side}": value for name, values in found.items() for side, value in values.items()}


def _two_nn(samples: Samples) -> Tensor:
    n = samples.values.shape[-2]
    if n < 3:
        return torch.full_like(samples.norms2[:, 0], torch.nan)
    nearest, second = samples.nearest[..., 0], samples.nearest[..., 1]
    distinct = _are_distinct(samples)[..., 0]
    ratio = second / torch.where(distinct, nearest, 1.0)
    logarithms = torch.where(distinct, ratio.log(), torch.inf).sort(-1).values
    count = distinct.sum(-1, keepdim=True).to(ratio)
    place = torch.arange(1, n + 1).to(ratio)
    kept = place <= (count * _KEPT).floor()
    rise = -torch.log1p(-torch.where(kept, place / count, 0.0))
    logarithms = torch.where(kept, logarithms, 0.0)
    known = (kept.sum(-1) >= 2) & (logarithms.sum(-1) > _EQUAL * count[:, 0])
    slope = (logarithms * rise).sum(-1) / torch.where(known, logarithms.square().sum(-1), 1.0)
    return torch.where(known, slope, torch.nan)


def _maximum_likelihood(samples: Samples) -> Tensor:
    distances = samples.nearest
    distinct = _are_distinct(samples)
    farthest = distances[..., -1:]
    logarithms = torch.where(distinct, (farthest / torch.where(distinct, distances, 1.0)).log(), 0.0)
    total = logarithms.sum((-2, -1))
    count = (distinct.sum(-1) - 1).clamp(min=0).sum(-1)
    known = total > _EQUAL * count
    return torch.where(known, count / torch.where(known, total, 1.0), torch.nan)


def _are_distinct(samples: Samples) -> Tensor:
    """Tell which of the distances to the nearest samples are more than rounding, `[items, n, 20]`."""
    squared = samples.norms2 + samples.mean.square().sum(-1, keepdim=True)
    rounding = _ROUNDED * min(samples.resolution, _SINGLE) * squared.sqrt()
    return (samples.nearest > rounding[..., None]) & samples.varies[:, None, None]
