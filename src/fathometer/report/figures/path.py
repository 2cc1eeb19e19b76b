"""The residual path along depth: stable rank, cost of identity and speed, one above the other."""

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

_PANELS = {"stable_rank": "stable rank", "cost_of_identity": "cost of identity", "speed": "speed"}
_FEW = 40  # so many names still fit under the axis


def plot_path(paths: Sequence[Sounding], labels: Sequence[str] | None = None) -> Figure:
    """Three panels along the blocks, with one standard deviation over batches as error bar.

    The stable rank begins with the input of the first block; a ring marks where it is least. Several paths
    are laid over each other, by name where they have the same blocks, else by relative depth.

    Args:
        paths: what `residual_path` gives.
        labels: of the lines; the names of the networks if left out.
    """
    if not paths:
        raise InputError("expected at least one path to plot, got none")
    for path in paths:
        if not {"stable_rank", "stable_rank_in", "speed"} <= set(path.gauges):
            raise InputError(f"expected what residual_path gives, got a sounding of {', '.join(path.gauges)}")
    labels = labels or [str(path.provenance.model.get("name", "")) for path in paths]
    panels = [gauge for gauge in _PANELS if any(gauge in path.gauges for path in paths)]
    names = [[site.name for site in path.sites] for path in paths]
    alike = all(other == names[0] for other in names)
    figure = new_figure(max(6.0, min(14.0, 0.26 * len(names[0]))), 2.0 * len(panels) + 0.8)
    every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for number, (path, label) in enumerate(zip(paths, labels, strict=True)):
        for axes, gauge in zip(every, panels, strict=True):
            if gauge in path.gauges:
                _line(axes, path, gauge, label, PALETTE[number % len(PALETTE)], relative=not alike)
    for axes, gauge in zip(every, panels, strict=True):
        axes.set_ylabel(_PANELS[gauge])
        axes.set_ylim(0, None)
        axes.spines[["top", "right"]].set_visible(False)
    _name_blocks(every[-1], names[0] if alike else [])
    if len(paths) == 1:
        every[0].set_title(labels[0], fontsize=10, color=INK)
    else:
        figure.legend(
            *every[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=min(len(paths), 4),
            fontsize=8,
            frameon=False,
        )
    return figure


def _line(axes: Axes, path: Sounding, gauge: str, label: str, colour: str, *, relative: bool) -> None:
    mean, std = path.mean(gauge).to_numpy(), path.std(gauge).fillna(0).to_numpy()
    depth = np.arange(1, len(mean) + 1, dtype=float)  # 0 is the input of the first block
    if gauge == "stable_rank":
        start = path.sites[0].name
        mean = np.r_[path.mean("stable_rank_in")[start], mean]
        std = np.r_[path.std("stable_rank_in").fillna(0)[start], std]
        depth = np.r_[0, depth]
    if relative:
        depth /= len(path.sites)
    axes.errorbar(depth, mean, yerr=std, color=colour, marker="o", markersize=3.5, linewidth=1.2, label=label)
    if gauge == "stable_rank":
        least = 1 + int(np.argmin(mean[1:]))
        axes.plot(depth[least], mean[least], "o", markersize=9, fillstyle="none", color=colour)


def _name_blocks(axes: Axes, names: Sequence[str]) -> None:
    if not names:
        axes.set_xlabel("relative depth")
    elif len(names) > _FEW:
        axes.set_xlabel("block")
    else:
        shown = ["input", *(name.replace("$", r"\$") for name in names)]
        axes.set_xticks(range(len(shown)), shown, rotation=90, fontsize=7)
