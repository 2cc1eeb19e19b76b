"""Gauges of the path: functions of a block's input A_{l−1} and its output A_l, `[samples, features]` each."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fathometer import gauges
from fathometer.capture.trace import Activation
from fathometer.errors import InputError, first_line
from fathometer.gauges.dimensions import stable_rank_of
from fathometer.gauges.gauge import GaugeFunction


def path_gauges(sigma: Activation | None, gamma: float) -> list[GaugeFunction]:
    """Return the gauges of blocks with the activation σ; without one there are none that need it.

    Args:
        sigma: σ of the blocks.
        gamma: γ₀ of the cost of identity.
    """
    if sigma is None:
        return [stable_rank, speed, nonnegativity, rms, participation]

    def cost_of_identity(_: Tensor, after: Tensor) -> Tensor:
        return gauges.cost_of_identity(after, _image(sigma, after), gamma=gamma)

    def affinity(_: Tensor, after: Tensor) -> float:
        return float(gauges.affinity_score(after, _image(sigma, after)))

    return [stable_rank, cost_of_identity, speed, affinity, nonnegativity, rms, participation]


def _image(sigma: Activation, after: Tensor) -> Tensor:
    try:
        return sigma.apply(after)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # slopes for another number of channels, or the user's code
        raise InputError(
            f"the activation {sigma.operator} cannot be applied to {list(after.shape)} "
            f"({first_line(error)}); give another as sigma, such as relu"
        ) from error


def stable_rank(before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Return ‖A‖*² / ‖A‖² of the output, of the input (`in`), of the output minus its mean (`centred`)."""
    centred = after.double() - after.double().mean(-2, keepdim=True)
    return {"": stable_rank_of(after), "in": stable_rank_of(before), "centred": stable_rank_of(centred)}


def speed(before: Tensor, after: Tensor) -> float:
    """Return ‖A_l − A_{l−1}‖ / ‖A_{l−1}‖; NaN where the width changes, or where A_{l−1} is 0."""
    length = torch.linalg.vector_norm(before.double())
    if before.shape != after.shape or not length:
        return math.nan
    return float(torch.linalg.vector_norm(after.double() - before.double()) / length)


def rms(_: Tensor, after: Tensor) -> Tensor:
    """Return ‖A_l‖ / √(n d), the size of an entry."""
    return after.double().square().mean().sqrt()


def participation(_: Tensor, after: Tensor) -> Tensor:
    """Return (Σ eᵢ)² / (n Σ eᵢ²) with eᵢ = ‖aᵢ‖² of sample i: the share of samples that carry ‖A_l‖².

    It is 1 if all samples have the same length. Near 0, as with the massive activations of language models,
    ranks and speed are those of a few samples.
    """
    energy = after.double().square().sum(-1)
    largest = energy.max()
    energy = energy / torch.where(largest > 0, largest, 1.0)
    total = energy.square().sum()
    return torch.where(total > 0, energy.sum().square() / (len(energy) * total), 1.0)


def nonnegativity(_: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Return the share of A_l that is ≥ 0."""
    return gauges.nonnegativity(after, after)
