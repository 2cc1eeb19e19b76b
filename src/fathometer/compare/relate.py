"""What goes together along depth: the affinity score and its companions (Tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fathometer.compare.gathering import Array, Soundings, by_name, not_measured
from fathometer.compare.series import varies
from fathometer.errors import InputError

COMPANIONS = ("cka", "norm", "sparsity_change", "entropy_change", "r2")
"""The columns of Tables 1 and 2, by our names."""


def correlations(
    soundings: Soundings, gauge: str = "affinity", companions: Sequence[str] | None = None
) -> pd.DataFrame:
    """Pearson correlation between a gauge and others over the sites of each network (Table 2).

    r = Σ (aᵢ − ā)(bᵢ − b̄) / sqrt( Σ (aᵢ − ā)² Σ (bᵢ − b̄)² ), over sites i, of means over batches. Missing
    where either is constant, where fewer than three sites have both, or where a network lacks the companion.
    `family_table` makes Table 1 of it.

    Args:
        soundings: by name, or a list.
        gauge: what the others are held against.
        companions: those of the paper that any of the networks has, if left out.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> layers = [layer for _ in range(5) for layer in (torch.nn.Linear(6, 6), torch.nn.ReLU())]
        >>> sounding = measure(torch.nn.Sequential(*layers), torch.randn(99, 6), samples=99)
        >>> correlations([sounding]).columns.to_list()
        ['cka', 'norm', 'sparsity_change', 'entropy_change', 'r2']
    """
    named = by_name(soundings)
    for name, sounding in named.items():
        if gauge not in sounding.gauges:
            raise InputError(f"{name}: {not_measured(gauge, sounding.gauges)}")
    measured = dict.fromkeys(other for sounding in named.values() for other in sounding.gauges)
    wanted = (
        [c for c in COMPANIONS if c in measured and c != gauge] if companions is None else list(companions)
    )
    unknown = [companion for companion in wanted if companion not in measured]
    if unknown or not wanted:
        raise InputError(
            f"companions: {', '.join(unknown) or 'none of the paper'} was measured in no network, but "
            f"{', '.join(measured)}"
        )
    rows = {
        name: {
            companion: _pearson(sounding.mean(gauge).to_numpy(), sounding.mean(companion).to_numpy())
            if companion in sounding.gauges
            else np.nan
            for companion in wanted
        }
        for name, sounding in named.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")


def _pearson(a: Array, b: Array) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    if len(a) < 3 or not varies(a) or not varies(b):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / (np.sqrt(a @ a) * np.sqrt(b @ b)))
