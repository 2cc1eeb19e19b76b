"""Soundings along depth: one, or several over each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fathometer.errors import InputError
from fathometer.report.figures.style import INK, PALETTE, new_figure
from fathometer.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 40  # so many names still fit under the axis


def plot_soundings(
    soundings: Sequence[Sounding], gauge: str = "affinity", labels: Sequence[str] | None = None
) -> Figure:
    """A gauge at every site, with one standard deviation over batches as error bar.

    One sounding shows the names of its sites; several are laid over each other by relative depth.
    """
    if not soundings:
        raise InputError("expected at least one sounding to plot, got none")
    labels = labels or [str(s.provenance.model.get("name", "")) for s in soundings]
    alone = len(soundings) == 1
    figure = new_figure(max(6.0, min(14.0, 0.22 * len(soundings[0].sites))) if alone else 8.0, 3.6)
    axes = figure.subplots()
    for sounding, label, colour in zip(soundings, labels, _colours(len(soundings)), strict=True):
        _line(axes, sounding, gauge, label, colour, relative=not alone)
    axes.set_ylabel(gauge.replace("_", " "))
    if gauge.startswith("affinity"):
        axes.set_ylim(None, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    if alone:
        _name_sites(axes, soundings[0])
        axes.set_title(labels[0], fontsize=10, color=INK)
    else:
        axes.set_xlabel("relative depth")
        figure.legend(loc="outside upper center", ncols=min(len(soundings), 4), fontsize=8, frameon=False)
    return figure


def _line(axes: Axes, sounding: Sounding, gauge: str, label: str, colour: str, *, relative: bool) -> None:
    mean, std = sounding.mean(gauge).to_numpy(), sounding.std(gauge).fillna(0).to_numpy()
    depth = np.arange(len(mean), dtype=float)
    if relative:
        depth /= max(len(mean) - 1, 1)
    axes.errorbar(depth, mean, yerr=std, color=colour, marker="o", markersize=3.5, linewidth=1.2, label=label)


def _name_sites(axes: Axes, sounding: Sounding) -> None:
    if len(sounding.sites) > _FEW:
        axes.set_xlabel("site, in order of depth")
        return
    names = [site.name.replace("$", r"\$") for site in sounding.sites]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)


def _colours(count: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(count)]
