"""Measure how affine activation functions are on sliding Gaussian inputs (Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fathometer.activations.catalogue import PAPER_ACTIVATIONS, Activation, activations
from fathometer.errors import InputError, check_whole
from fathometer.gauges.affinity import affinity_score
from fathometer.transport.moments import DEFAULT_RIDGE, CovarianceKind, Ridge, as_ridge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_STDS = (2.0, 1.0, 0.5, 0.25, 0.1, 0.01)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of measurements done, and their total."""


@dataclass(frozen=True)
class AtlasSettings:
    """How an activation atlas is measured; the defaults are those of the paper's appendix D.

    A plain number as `ridge` is a relative one.
    """

    interval: tuple[float, float] = (-20.0, 20.0)
    means: int = 20
    stds: tuple[float, ...] = PAPER_STDS
    samples: int = 1000
    features: int = 300
    seed: int = 0
    covariance: CovarianceKind = "ledoit-wolf"
    ridge: Ridge = DEFAULT_RIDGE

    def __post_init__(self) -> None:
        if not -math.inf < self.interval[0] < self.interval[1] < math.inf:
            raise InputError(f"expected finite low < high, got {self.interval}", parameter="interval")
        check_whole("means", self.means, 1)
        check_whole("features", self.features, 1)
        check_whole("samples", self.samples, 2)
        check_whole("seed", self.seed)
        if not self.stds or not all(0 < std < math.inf for std in self.stds):
            raise InputError(
                f"expected one or more finite numbers above 0, got {self.stds}", parameter="stds"
            )
        object.__setattr__(self, "ridge", as_ridge(self.ridge))


@dataclass(frozen=True, eq=False)
class ActivationAtlas:
    """Affinity scores of activation functions over sliding Gaussian inputs.

    Attributes:
        table: a row for each activation, mean and std: score, w2, bound, coupling.
        baseline: by activation, the score of inputs spread evenly over the whole interval.
        settings: how it was measured.
    """

    table: pd.DataFrame
    baseline: pd.Series
    settings: AtlasSettings

    def summary(self) -> pd.DataFrame:
        """Return a row for each activation: its lowest score and where, its median, its baseline."""
        by_name = self.table.groupby("activation", sort=False)["score"]
        lowest = self.table.loc[by_name.idxmin()].set_index("activation")
        return pd.DataFrame(
            {
                "min": lowest["score"],
                "at_mean": lowest["mean"],
                "at_std": lowest["std"],
                "median": by_name.median(),
                "baseline": self.baseline,
            }
        ).loc[lowest.index]

    def records(self) -> pd.DataFrame:
        """Return the table with the baseline and the settings as columns, to be kept as a file."""
        settings = self.settings
        return self.table.assign(
            baseline=self.table["activation"].map(self.baseline),
            samples=settings.samples,
            features=settings.features,
            seed=settings.seed,
            covariance=settings.covariance,
            ridge=settings.ridge.value,
            ridge_relative=settings.ridge.relative,
        )

    def medians(self, name: str) -> pd.Series:
        """Return the median score of one activation over the stds, by mean."""
        part = self.table[self.table["activation"] == name]
        medians: pd.Series = part.groupby("mean")["score"].median()
        return medians

    def plot(self, *, columns: Literal[1, 2] = 2) -> Figure:
        """Draw box plots of every activation by mean (Figure 6). `figure.savefig("atlas.pdf")` keeps it.

        Args:
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report import plot_activation_atlas

        return plot_activation_atlas(self, columns=columns)


def activation_atlas(
    names: Sequence[str] = PAPER_ACTIVATIONS,
    settings: AtlasSettings | None = None,
    *,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> ActivationAtlas:
    """Score activations on X ~ N(m, s² I), for means m along an interval and several stds s.

    Every activation gets the same inputs. The result does not depend on which others are measured.

    Example:
        >>> few = AtlasSettings(means=3, stds=(1.0,), samples=100, features=5)
        >>> atlas = activation_atlas(["ReLU"], few)
        >>> [round(score, 1) for score in atlas.medians("ReLU")]
        [1.0, 0.6, 1.0]
    """
    settings = settings or AtlasSettings()
    functions = activations(names)
    generator = torch.Generator().manual_seed(settings.seed)
    shape = (settings.samples, settings.features)
    low, high = settings.interval
    cells = [(m, s) for m in np.linspace(low, high, settings.means).tolist() for s in settings.stds]
    total = len(cells) + 1
    rows = []
    for done, (mean, std) in enumerate(cells):
        x = mean + std * torch.randn(shape, generator=generator, dtype=torch.float64)
        rows.append(_scores(functions, x.to(device), settings).assign(mean=mean, std=std))
        if progress:
            progress(done + 1, total)
    spread = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    baseline = _scores(functions, spread.to(device), settings)
    if progress:
        progress(total, total)
    columns = ["activation", "mean", "std", "score", "w2", "bound", "coupling"]
    table = pd.concat(rows)[columns].sort_index(kind="stable").reset_index(drop=True)
    return ActivationAtlas(table, baseline.set_index("activation")["score"], settings)


def _scores(functions: dict[str, Activation], x: Tensor, settings: AtlasSettings) -> pd.DataFrame:
    """Return a row for each activation on one input."""
    result = affinity_score(
        x.expand(len(functions), -1, -1),
        torch.stack([f(x) for f in functions.values()]),
        covariance=settings.covariance,
        ridge=settings.ridge,
    )
    return pd.DataFrame(
        {
            "activation": list(functions),
            "score": result.value,
            "w2": result.w2,
            "bound": result.bound,
            "coupling": result.coupling,
        }
    )
