"""Gauges of the path: functions of a block's input A_{l−1} and its output A_l, `[samples, features]` each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count

import pandas as pd
import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError, first_line
from fathometer.gauges import affinity_score, cost_of_identity, nonnegativity
from fathometer.gauges.dimensions import stable_rank_of
from fathometer.gauges.gauge import GaugeFunction, GaugeValue
from fathometer.residual.trace import Activation


class PathGauges:
    """All gauges of a path.

    A gauge does not know at which block it is. So those of σ are computed for every σ of the path, one or two
    in most networks, and `choose` keeps that of the block.

    Args:
        sigmas: every σ of the path, the most common one first; empty if no activation is known.
        gamma: γ₀ of the cost of identity.
    """

    def __init__(self, sigmas: Sequence[Activation], gamma: float) -> None:
        self._sigmas, self._gamma = sigmas, gamma
        self._failures: dict[int, InputError | NumericalError] = {}
        self._numbers = count()  # of failures; gauges run in threads

    def every(self) -> list[GaugeFunction]:
        """Return the gauges for `measure`; those of σ only if there is one."""
        of_sigma = [self.cost_of_identity, self.affinity] if self._sigmas else []
        return [stable_rank, *of_sigma[:1], speed, *of_sigma[1:], _nonnegativity, rms, carriers]

    def cost_of_identity(self, _: Tensor, after: Tensor) -> GaugeValue:
        """Return the cost of identity of A_l for each σ, under its number."""
        return self._of_each(lambda image: cost_of_identity(after, image, gamma=self._gamma), after)

    def affinity(self, _: Tensor, after: Tensor) -> GaugeValue:
        """Return the affinity score of each σ on A_l, under its number."""
        return self._of_each(lambda image: float(affinity_score(after, image)), after)

    def choose(self, records: pd.DataFrame, numbers: Mapping[str, int]) -> pd.DataFrame:
        """Return the records of a sounding with the values of each site's own σ only, given by its number."""
        if not self._sigmas:
            return records
        own = [numbers.get(site, 0) for site in records["site"]]
        for gauge in ("cost_of_identity", "affinity"):
            columns = [f"{gauge}_{number}" for number in range(len(self._sigmas))]
            failed = [f"{column}_failure" for column in columns if f"{column}_failure" in records]
            for site, number, row in zip(records["site"], own, records.to_dict("records"), strict=True):
                failure = row.get(f"{columns[number]}_failure", math.nan)
                if not math.isnan(failure):
                    error = self._failures[int(failure)]
                    raise type(error)(f"{site}: {gauge}: {error}") from error
            values = records[columns].to_numpy()[range(len(own)), own]
            records = records.rename(columns={columns[0]: gauge}).drop(columns=[*columns[1:], *failed])
            records[gauge] = values
        return records

    def _of_each(self, value: Callable[[Tensor], float | Tensor], after: Tensor) -> GaugeValue:
        found: dict[str, float | Tensor] = {}
        for number, sigma in enumerate(self._sigmas):
            try:
                found[str(number)] = value(_image(sigma, after))
            except (InputError, NumericalError) as error:
                if len(self._sigmas) == 1:
                    raise
                # It only matters if this is the block's own σ. The number of the failure goes into the
                # table, beside the value, because a gauge does not know at which block it is.
                failure = next(self._numbers)
                self._failures[failure] = error
                found[str(number)], found[f"{number}_failure"] = math.nan, float(failure)
        return found


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


def carriers(_: Tensor, after: Tensor) -> Tensor:
    """Return (Σ eᵢ)² / (n Σ eᵢ²) with eᵢ = ‖aᵢ‖² of sample i: the share of samples that carry ‖A_l‖².

    It is 1 if all samples have the same length. Near 0, as with the massive activations of language models,
    ranks and speed are those of a few samples.
    """
    energy = after.double().square().sum(-1)
    most = energy.max()
    energy = energy / torch.where(most > 0, most, 1.0)
    total = energy.square().sum()
    return torch.where(total > 0, energy.sum().square() / (len(energy) * total), 1.0)


def _nonnegativity(_: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Return the share of A_l that is ≥ 0."""
    return nonnegativity(after, after)


_nonnegativity.__name__ = "nonnegativity"
