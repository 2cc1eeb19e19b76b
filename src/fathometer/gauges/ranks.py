"""How many directions samples use: ranks in which small directions count less, and the spectrum's decay."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fathometer.gauges.samples import Samples, prepare
from fathometer.transport.arrays import Array

_RANKME_OFFSET = 1e-7
_FIRST, _LAST = 11, 100  # ranks of the eigenvalues that a power law is fitted to
_MIN_POINTS = 3
_NEGLIGIBLE = 1e-10  # of the largest eigenvalue: below, rounding would be more than 1e-6 of an eigenvalue


@torch.no_grad()
def effective_rank(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute exp(−Σ pᵢ log pᵢ) of inputs and outputs, with pᵢ = σᵢ / Σσ: Roy and Vetterli (2007).

    σ are the singular values of the centred samples. From 1 to min(n − 1, d), which it reaches where all of
    them are equal; 0 where the side is constant. It grows with n as long as n is not much larger than d, and
    does not tell a few dimensions with noise from many small ones.

    Example:
        >>> import torch
        >>> x = torch.cat([torch.eye(4), -torch.eye(4)])
        >>> {name: round(value.item(), 6) for name, value in effective_rank(x, x).items()}
        {'x': 4.0, 'y': 4.0}
    """
    return prepare(x, y).each_side(_effective_rank)


@torch.no_grad()
def participation_ratio(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute (Σλ)² / Σλ² of inputs and outputs, over the eigenvalues λ of the covariance.

    From 1 to min(n − 1, d), which it reaches where all are equal; 0 where the side is constant. Variances
    count squared, so that it sees fewer dimensions than `effective_rank`: one large direction hides all
    others. Gao et al. (2017).

    Example:
        >>> import torch
        >>> x = torch.cat([torch.eye(4), -torch.eye(4)])
        >>> {name: round(value.item(), 6) for name, value in participation_ratio(x, x).items()}
        {'x': 4.0, 'y': 4.0}
    """
    return prepare(x, y).each_side(_participation_ratio)


@torch.no_grad()
def rankme(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute RankMe of inputs and outputs: exp(−Σ pᵢ log pᵢ), pᵢ = σᵢ / Σσ + 1e-7, Garrido et al. (2023).

    σ are the min(n, d) singular values of the samples, not centred: a common mean is one large direction, and
    takes RankMe down. 0 where all samples are 0. Some packages compute it from eigenvalues of the covariance,
    which are squared and centred, and call that RankMe, too. It was made to compare embeddings of
    self-supervised networks on one data set, with as many samples for each.

    Example:
        >>> import torch
        >>> x = torch.eye(4)
        >>> round(rankme(x, x)["x"].item(), 3), round(rankme(x + 3, x)["x"].item(), 3)
        (4.0, 1.991)
    """
    return prepare(x, y).each_side(_rankme)


def max_rankme(n: float, d: float) -> float:
    """Return the largest RankMe of n samples of d features: 1e-7 in each term lifts it above min(n, d)."""
    k = min(n, d)
    share = 1 / k + _RANKME_OFFSET
    return math.exp(-k * share * math.log(share))


@torch.no_grad()
def alpha(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the decay α of the spectrum of inputs and outputs: λᵢ ∝ i^−α, α-ReQ of Agrawal et al. (2022).

    The least-squares line of log λᵢ over log i, with weights 1/i, through the 11th to 100th eigenvalue of the
    covariance, or to the last one above 1e-10 of the largest. NaN with fewer than three of them, i.e. always
    with n ≤ 13 or d ≤ 12. At least 0 (all equal); 1 is thought of as the best, on the line between too rough
    and too smooth. It gives a number for any spectrum, whether or not that is a power law, and falls with
    n where n is not much larger than d. Narrow sides have few eigenvalues, close together: of
    512 normal samples with λᵢ = 1/i, α is 1.3 ± 0.4 for 13 features, 1.24 ± 0.14 for 16, 1.15 ± 0.04 for 32.

    Example:
        >>> import torch
        >>> waves = torch.arange(200)[:, None] * torch.arange(1, 65) * torch.pi / 100
        >>> x = waves.double().cos() * torch.arange(1, 65) ** -0.75
        >>> round(alpha(x, x)["x"].item(), 6)
        1.5
    """
    return prepare(x, y).each_side(_alpha)


def _effective_rank(samples: Samples) -> Tensor:
    values = samples.spectrum.sqrt()
    shares = values / torch.where(samples.varies, values.sum(-1), 1.0)[:, None]
    return torch.where(samples.varies, torch.special.entr(shares).sum(-1).exp(), 0.0)


def _participation_ratio(samples: Samples) -> Tensor:
    total, squared = samples.norms2.sum(-1), samples.gram.square().sum((-2, -1))
    return torch.where(samples.varies, total.square() / torch.where(samples.varies, squared, 1.0), 0.0)


def _rankme(samples: Samples) -> Tensor:
    values = samples.singular_values
    total = values.sum(-1, keepdim=True)
    shares = values / torch.where(total > 0, total, 1.0) + _RANKME_OFFSET
    if samples.widths is not None:  # a singular value for each feature that has not been appended
        counted = torch.tensor(samples.widths, device=values.device)[:, None]
        shares = torch.where(torch.arange(shares.shape[-1], device=values.device) < counted, shares, 0.0)
    return torch.where(total[:, 0] > 0, torch.special.entr(shares).sum(-1).exp(), 0.0)


def _alpha(samples: Samples) -> Tensor:
    values = samples.spectrum[:, _FIRST - 1 : _LAST]
    known = (values > _NEGLIGIBLE * samples.spectrum[:, :1]) & samples.varies[:, None]
    enough = known.sum(-1, keepdim=True) >= _MIN_POINTS
    ranks = torch.arange(_FIRST, _FIRST + values.shape[-1]).to(values)
    weights = torch.where(known & enough, 1 / ranks, 0.0)
    weights = weights / torch.where(enough, weights.sum(-1, keepdim=True), 1.0)
    place = ranks.log() - (weights * ranks.log()).sum(-1, keepdim=True)
    covariance = (weights * place * torch.where(known, values, 1.0).log()).sum(-1)
    variance = (weights * place.square()).sum(-1)
    return torch.where(enough[:, 0], -covariance / variance, torch.nan)
