"""Gauges of the path: functions of a block's input A_{l−1} and its output A_l, `[samples, features]` each."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges import affinity_score, cost_of_identity, nonnegativity
from fathometer.gauges.dimension import stable_rank_of
from fathometer.gauges.registry import Gauge
from fathometer.residual.trace import Activation, applied


def path_gauges(activation: Activation | None, gamma: float) -> list[Gauge]:
    """All of them; those of σ only if there is one."""

    def image(after: Tensor) -> Tensor:
        assert activation is not None
        try:
            return applied(activation, after)
        except Exception as error:  # a slope for each channel of another width, code of others
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(
                f"the activation {activation.operator} cannot be applied to {list(after.shape)} ({reason}); "
                "name another by sigma, such as relu"
            ) from error

    def coi(_: Tensor, after: Tensor) -> Tensor:
        return cost_of_identity(after, image(after), gamma=gamma)

    def affinity(_: Tensor, after: Tensor) -> float:
        return float(affinity_score(after, image(after)))

    coi.__name__ = "cost_of_identity"
    of_sigma: list[Gauge] = [] if activation is None else [coi, affinity]
    return [stable_rank, *of_sigma[:1], speed, *of_sigma[1:], _nonnegativity, rms, carriers]


def stable_rank(before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """‖A‖*² / ‖A‖² of the output, of the input (`in`), and of the output less its mean (`centred`)."""
    centred = after.double() - after.double().mean(-2, keepdim=True)
    return {"": stable_rank_of(after), "in": stable_rank_of(before), "centred": stable_rank_of(centred)}


def speed(before: Tensor, after: Tensor) -> float:
    """‖A_l − A_{l−1}‖ / ‖A_{l−1}‖; not a number where the width changes: there is no difference then."""
    if before.shape != after.shape:
        return math.nan
    length = torch.linalg.vector_norm(before.double())
    return float(torch.linalg.vector_norm(after.double() - before.double()) / length)


def rms(_: Tensor, after: Tensor) -> Tensor:
    """‖A_l‖ / √(n d), the size of an entry."""
    return after.double().square().mean().sqrt()


def carriers(_: Tensor, after: Tensor) -> Tensor:
    """(Σ eᵢ)² / (n Σ eᵢ²) with eᵢ = ‖aᵢ‖² of sample i: the share of samples that carry ‖A_l‖².

    1 where all samples are of one length. Where it is near 0, as with the massive activations of language
    models, ranks and speed are those of a few samples.
    """
    energy = after.double().square().sum(-1)
    most = energy.max()
    energy = energy / torch.where(most > 0, most, 1.0)
    total = energy.square().sum()
    return torch.where(total > 0, energy.sum().square() / (len(energy) * total), 1.0)


def _nonnegativity(_: Tensor, after: Tensor) -> dict[str, Tensor]:
    """The share of A_l that is ≥ 0."""
    return nonnegativity(after, after)


_nonnegativity.__name__ = "nonnegativity"


def check_gamma(gamma: float) -> None:
    """Complain before the work."""
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 < gamma < math.inf:
        raise InputError(f"gamma: expected a finite number > 0, got {gamma!r}")
