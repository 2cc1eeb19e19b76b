"""The sites of a network along an axis: bands for blocks, and names as far as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fathometer.capture.sites import Site
from fathometer.report.blocks import Block, blocks_of
from fathometer.report.figures.style import LIGHT_GREY, MARGIN, SMALL_SIZE, UPRIGHT, plain, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 26  # letters of a name that still stands under an axis


def mark_blocks(axes: Axes, blocks: Sequence[Block]) -> None:
    """Every other block on a band; site i reaches from i − ½ to i + ½."""
    for block in blocks[1::2]:
        axes.axvspan(block.start - 0.5, block.stop - 0.5, color=LIGHT_GREY, linewidth=0, zorder=-10)


def name_depth(axes: Axes, sites: Sequence[Site], width: float, *, marks: bool = True) -> None:
    """Names under an axis along the sites: of all sites, else of their blocks, else of none.

    Args:
        axes: site i stands at i.
        sites: in order of depth.
        width: of the figure, in inches.
        marks: whether a name has a tick.
    """
    room = (width - MARGIN) / max(len(sites), 1)
    names = [plain(site.name) for site in sites]
    if room >= UPRIGHT and max(map(len, names), default=0) <= _LONGEST:
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=SMALL_SIZE)
        axes.tick_params("x", length=2.5 if marks else 0)
        return
    blocks = blocks_of(sites)
    if len(blocks) < 2:
        axes.set_xlabel("site, in order of depth")
        return
    name_blocks(axes, blocks, room)


def name_blocks(axes: Axes, blocks: Sequence[Block], room: float) -> None:
    """The labels of the blocks in their middles; where two would touch, the larger block keeps its own.

    Args:
        axes: site i stands at i.
        blocks: of the sites.
        room: inches that a site has.
    """
    labels = {block: plain(block.label, _LONGEST) for block in blocks}
    flat = all(width_of(labels[block], SMALL_SIZE) + 0.05 <= room * len(block) for block in blocks)
    shown: list[Block] = []
    for block in sorted(blocks, key=len, reverse=True):
        if flat or all(room * abs(_middle(block) - _middle(other)) >= UPRIGHT for other in shown):
            shown.append(block)
    shown.sort(key=lambda block: block.start)
    axes.set_xticks(
        [_middle(block) for block in shown],
        [labels[block] for block in shown],
        rotation=0 if flat else 90,
        fontsize=SMALL_SIZE,
    )
    axes.tick_params("x", length=0)


def _middle(block: Block) -> float:
    return (block.start + block.stop - 1) / 2
