"""Statistics of the entries of a pair (appendix G): zeros, entropy, and the distance between both sides."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from fathometer.errors import NumericalError, check_whole
from fathometer.gauges.samples import Samples, prepare
from fathometer.gauges.spectrum import squares, to_unit
from fathometer.transport.arrays import Array

_HUGE = 1e300  # the difference of such numbers may overflow


@torch.no_grad()
def sparsity(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the share of entries that are exactly 0, before and after, and its change (after − before).

    Example:
        >>> import torch
        >>> x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]])
        >>> sparsity(x, x.relu())["change"].item()
        0.5
    """
    return _change(prepare(x, y).each_side(_share_of_zeros))


@torch.no_grad()
def entropy(x: Array, y: Array, *, bins: int = 256) -> dict[str, Tensor]:
    """Compute Shannon's entropy of the entries, in nats, before and after, and its change (after − before).

    −Σ p log p over the histogram of all entries of a matrix, in `bins` equal parts of the range from its
    smallest to its largest: from 0 (constant up to the rounding of its dtype) to log(bins) (spread evenly).
    Neither scale nor shift matters; a far outlier does, as it widens the range. The paper names
    entropy without defining it.

    Args:
        x: inputs.
        y: outputs.
        bins: number of bins.

    Example:
        >>> import torch
        >>> x = torch.linspace(-1, 1, 1000)[:, None]
        >>> {name: round(value.item(), 2) for name, value in entropy(x, x.relu(), bins=8).items()}
        {'before': 2.08, 'after': 1.54, 'change': -0.54}
    """
    bins = check_whole("bins", bins, 1)
    return _change(prepare(x, y).each_side(partial(_entropy, bins=bins)))


@torch.no_grad()
def norm(x: Array, y: Array) -> Tensor:
    """Compute ‖Y − X‖, the root of the sum of the squares of all entries. It grows with scale, n and d.

    Example:
        >>> import torch
        >>> norm(torch.zeros(2, 2), torch.tensor([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0
    """
    pair = prepare(x, y)
    difference, size = to_unit(pair.y.values - pair.x.values)
    length = squares(difference).sqrt() * size
    if not bool(length.isfinite().all()):
        raise NumericalError("‖Y − X‖ overflows float64; rescale both sides first")
    return length


@torch.no_grad()
def scale(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the typical size of inputs and outputs: the median over features of their root mean square.

    Features that are 0 for every sample do not count, and a few huge ones hardly do.

    Example:
        >>> import torch
        >>> x = torch.tensor([[-3.0, 3.0, 0.0], [3.0, -3.0, 0.0]])
        >>> {name: round(value.item(), 3) for name, value in scale(x, x.relu()).items()}
        {'x': 3.0, 'y': 2.121}
    """
    return prepare(x, y, unequal=True).each_side(_typical_size)


def _typical_size(samples: Samples) -> Tensor:
    unit, size = to_unit(samples.items)
    each = unit.square().mean(-2).sqrt()
    return torch.where(each > 0, each, torch.nan).nanquantile(0.5, dim=-1).nan_to_num(0.0) * size


def _change(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {"before": values["x"], "after": values["y"], "change": values["y"] - values["x"]}


def _share_of_zeros(samples: Samples) -> Tensor:
    return (samples.items == 0).to(samples.items).mean((-2, -1))


def _entropy(samples: Samples, bins: int) -> Tensor:
    """Compute the entropy of the entries of each item, by one count with bins of its own for each."""
    entries = samples.items.flatten(1)
    huge = entries.abs().amax(-1, keepdim=True) > _HUGE
    entries = torch.where(huge, entries / 4, entries)  # scale does not matter
    smallest, largest = entries.amin(-1, keepdim=True), entries.amax(-1, keepdim=True)
    width = largest - smallest
    varies = width > samples.resolution * torch.maximum(smallest.abs(), largest.abs())
    place = (entries - smallest).div_(torch.where(varies, width, torch.inf)).mul_(bins)
    place = place.long().clamp_(max=bins - 1)
    place += bins * torch.arange(len(entries), device=entries.device)[:, None]
    counts = torch.bincount(place.flatten(), minlength=bins * len(entries)).reshape(-1, bins)
    return torch.special.entr(counts.to(entries) / entries.shape[-1]).sum(-1)
