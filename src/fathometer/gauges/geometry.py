"""How samples lie in the space of their features, and which features carry nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.gauges.samples import Samples, prepare
from fathometer.gauges.spectrum import to_unit
from fathometer.transport.arrays import Array

_OUTER = 0.99  # of half the range: beyond, an output is saturated
_MAJORITY = 0.5  # of the samples: beyond, a feature is saturated


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


def _mean_cosine(samples: Samples) -> Tensor:
    rows, _ = to_unit(samples.items)
    norms = torch.linalg.vector_norm(rows, dim=-1)
    inverse = torch.where(norms > 0, 1 / norms, 0.0)
    n = rows.shape[-2]
    total = (inverse[:, None] @ rows).square().sum((-2, -1))
    return (total - (norms > 0).sum(-1)) / (n * (n - 1))


def _share_of_dead(samples: Samples) -> Tensor:
    alive, d = samples.varying.sum(-1).to(samples.mean), samples.values.shape[-1]
    count = torch.full_like(alive, d) if samples.widths is None else torch.tensor(samples.widths).to(alive)
    return (count - alive) / count
