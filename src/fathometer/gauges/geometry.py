"""How samples lie in the space of their features, and which features carry nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.gauges.samples import Samples, prepare
from fathometer.gauges.spectrum import to_unit
from fathometer.transport.arrays import Array

_OUTER = 0.99  # of half the range: beyond, an output is saturated
_MAJORITY = 0.5  # of the samples: beyond, a feature is saturated
_SAME = 0.9999  # correlation from which a feature is a copy of another
_MAX_FEATURES_TO_COMPARE = 8192  # each with each


@torch.no_grad()
def anisotropy(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the mean cosine between two different samples, of inputs and outputs: Ethayarajh (2019).

    With u = x / ‖x‖ it is (‖Σu‖² − Σ‖u‖²) / (n(n − 1)): from −1 / (n − 1), about 0 where samples point in all
    directions, to 1 where they point in one. The cosine with a sample of zeros counts as 0, as in
    scikit-learn. Samples are not centred: a common mean is what it sees most, so that outputs of a ReLU,
    which are not negative, are anisotropic whatever the network does.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        >>> {name: round(value.item(), 3) for name, value in anisotropy(x, x + 1).items()}
        {'x': -0.333, 'y': 0.714}
    """
    return prepare(x, y).each_side(_mean_cosine)


@torch.no_grad()
def dead(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the share of features that never vary by more than the rounding of their dtype, of X and of Y.

    A feature of Y that is dead while that of X is not is switched off by the activation, as a ReLU does, or
    stuck at its limit. It may be alive for other data: with few samples, rare features count as dead.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, -2.0], [3.0, -1.0]])
        >>> {name: value.item() for name, value in dead(x, x.relu()).items()}
        {'x': 0.0, 'y': 0.5}
    """
    return prepare(x, y).each_side(_share_of_dead)


@torch.no_grad()
def saturated(x: Array, y: Array, *, bounds: tuple[float, float] | None = None) -> Tensor:
    """Compute the share of features of Y that lie beyond 99 % of a bounded activation's range.

    For a range from a to b, with middle m, an output is saturated if |y − m| > 0.99 (b − a) / 2, e.g. a Tanh
    beyond ±0.99, a sigmoid outside of 0.005 to 0.995. A feature is, if more than half of its samples are, at
    either end. For ReLU6 the lower end is 0, where it is off. NaN without bounds, as for sums over positions.

    `measure` knows the range of Tanh, sigmoid, hard sigmoid, softsign and ReLU6, by the name of the site's
    operator. A mean over positions is saturated only if nearly all positions are, at one end: reduce by
    `"position"` or `"flatten"` to see single ones.

    Args:
        x: inputs; they are not used.
        y: outputs.
        bounds: the ends of the range; left out, those of the site.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.1, 9.0], [-0.2, -9.0], [0.3, 9.0]])
        >>> saturated(x, x.tanh(), bounds=(-1, 1)).item()
        0.5
    """
    pair = prepare(x, y)
    samples, limits = pair.y, bounds or pair.bounds
    if limits is None:
        return samples.each(samples.items.new_full((len(samples.items),), torch.nan))
    middle, half = sum(limits) / 2, (limits[1] - limits[0]) / 2
    outer = (samples.items - middle).abs() > _OUTER * half
    is_saturated = outer.to(samples.items).mean(-2) > _MAJORITY
    return samples.each(is_saturated.to(samples.items).mean(-1))


@torch.no_grad()
def duplicates(x: Array, y: Array) -> Tensor:
    """Compute the share of features of X that are copies of an earlier one: their correlation exceeds 0.9999.

    Scale and shift do not matter, and features that never vary do not count. NaN for more than 8192 features.

    Args:
        x: inputs.
        y: outputs; they are not used.

    Example:
        >>> import torch
        >>> x = torch.randn(100, 3, generator=torch.manual_seed(0))
        >>> x[:, 2] = 3 * x[:, 0] + 1
        >>> round(duplicates(x, x.relu()).item(), 3)
        0.333
    """
    samples = prepare(x, y, unequal=True).x
    if samples.values.shape[-1] > _MAX_FEATURES_TO_COMPARE:
        return samples.each(samples.items.new_full((len(samples.items),), torch.nan))
    norms = torch.linalg.vector_norm(samples.centred, dim=-2, keepdim=True)
    is_alive = (norms > 0) & samples.varying[:, None]
    units = torch.where(is_alive, samples.centred / torch.where(is_alive, norms, 1.0), 0.0).float()
    copies = (torch.tril(units.mT @ units, -1) > _SAME).any(-1).sum(-1).to(norms)
    return samples.each(copies / _widths(samples).to(copies))


def _widths(samples: Samples) -> Tensor:
    """Return the number of features of each item, without those that were appended."""
    return torch.tensor(samples.widths or [samples.values.shape[-1]] * len(samples.items))


def _mean_cosine(samples: Samples) -> Tensor:
    rows, _ = to_unit(samples.items)
    norms = torch.linalg.vector_norm(rows, dim=-1)
    inverse = torch.where(norms > 0, 1 / norms, 0.0)
    n = rows.shape[-2]
    total = (inverse[:, None] @ rows).square().sum((-2, -1))
    return (total - (norms > 0).sum(-1)) / (n * (n - 1))


def _share_of_dead(samples: Samples) -> Tensor:
    alive = samples.varying.sum(-1).to(samples.mean)
    count = _widths(samples).to(alive)
    return (count - alive) / count
