"""The blocks of a network: sites that belong together, by their module paths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from fathometer.capture.sites import Site

MIN_BLOCKS, MAX_BLOCKS = 3, 20


@dataclass(frozen=True)
class Block:
    """Consecutive sites, `sites[start:stop]`.

    Attributes:
        name: the module that they share: `layer1.0`; empty for the network itself; `layers.0–3` for several.
        label: the same name, as short as is unique: `block3` for `features.dense.block3`.
        start: the first site.
        stop: the site after the last.
    """

    name: str
    label: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def middle(self) -> float:
        """Where its label goes, on an axis with site i at i."""
        return (self.start + self.stop - 1) / 2


def blocks_of(sites: Sequence[Site]) -> tuple[Block, ...]:
    """Return the blocks of a network in order of depth: about 3 to 20, if its module paths have so many.

    A site belongs to the module that holds its activation (`layer1.0` for `layer1.0.relu`,
    `inception3a.branch1` for the function `inception3a.branch1/relu`). Paths are cut at the depth that gives
    the most blocks up to 20, and fewer blocks than sites if at least 3 remain. Where one depth gives fewer
    than 3 and the next more than 20, as in a language model of 30 equal layers, neighbours are joined:
    `model.layers.0–1`.

    Example:
        >>> names = [f"layer{i}.{j}.relu" for i in (1, 2, 3) for j in range(2)]
        >>> found = blocks_of([Site(name, "relu", 1, order, True) for order, name in enumerate(names)])
        >>> [(block.name, len(block)) for block in found]
        [('layer1', 2), ('layer2', 2), ('layer3', 2)]
    """
    homes = [_home(site) for site in sites]
    if not homes:
        return ()
    cuts = [_cut(homes, depth) for depth in range(max(map(len, homes)) + 1)]
    fitting = [spans for spans in cuts if len(spans) <= MAX_BLOCKS]
    several = [spans for spans in fitting if MIN_BLOCKS <= len(spans) < len(sites)]
    best = max(several or fitting, key=len)  # the first of several: the least depth
    deeper = [spans for spans in cuts if len(spans) > MAX_BLOCKS]
    if len(best) < MIN_BLOCKS and deeper:
        return tuple(_joined(deeper[0]))
    labels = _labels([span.home for span in best])
    found = []
    for span in best:
        outside = sites[span.start].name if span.stop - span.start == 1 else "network"  # in no module
        found.append(Block(".".join(span.home), labels[span.home] or outside, span.start, span.stop))
    return tuple(found)


def spaced_blocks(blocks: Sequence[Block], distance: float) -> list[Block]:
    """Return blocks whose middles are so many sites apart; where two are closer, the larger one is kept."""
    shown: list[Block] = []
    for block in sorted(blocks, key=len, reverse=True):
        if all(abs(block.middle - other.middle) >= distance for other in shown):
            shown.append(block)
    return sorted(shown, key=lambda block: block.start)


def site_labels(sites: Sequence[Site], distance: float) -> dict[float, str]:
    """Return what to write along an axis with site i at i, where labels must be so many sites apart.

    These are the names of all sites if they fit, and otherwise those of blocks.
    """
    if distance <= 1:
        return {float(place): site.name for place, site in enumerate(sites)}
    return {block.middle: block.label for block in spaced_blocks(blocks_of(sites), distance)}


@dataclass(frozen=True)
class _Span:
    home: tuple[str, ...]
    start: int
    stop: int


def _home(site: Site) -> tuple[str, ...]:
    """Return the path of the module that holds the activation, in parts."""
    parts = tuple(site.module.split(".")) if site.module else ()
    return parts[:-1] if site.is_module else parts


def _cut(homes: Sequence[tuple[str, ...]], depth: int) -> list[_Span]:
    """Return runs of sites whose modules agree down to this depth."""
    runs = [(home, len(list(run))) for home, run in groupby(home[:depth] for home in homes)]
    edges = [0]
    for _, length in runs:
        edges.append(edges[-1] + length)
    return [_Span(home, *edge) for (home, _), edge in zip(runs, pairwise(edges), strict=True)]


def _joined(spans: Sequence[_Span]) -> list[Block]:
    """Join neighbours of one parent, so that there are about 20 blocks."""
    size = math.ceil(len(spans) / MAX_BLOCKS)
    labels = _labels([span.home for span in spans])
    found = []
    for _, run in groupby(spans, key=lambda span: (len(span.home), span.home[:-1])):
        siblings = list(run)
        for place in range(0, len(siblings), size):
            part = siblings[place : place + size]
            first, last = part[0], part[-1]
            end = f"–{last.home[-1]}" if len(part) > 1 else ""
            name, label = ".".join(first.home), labels[first.home]
            found.append(Block(name + end, label + end, first.start, last.stop))
    return found


def _labels(homes: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return for each path its shortest unique end that does not start with a number."""
    known = set(homes)
    labels = {}
    for home in known:
        ends = [home[place:] for place in range(len(home) - 1, -1, -1) if not home[place].isdecimal()]
        own = (end for end in ends if not any(other[-len(end) :] == end for other in known - {home}))
        labels[home] = ".".join(next(own, home))
    return labels
