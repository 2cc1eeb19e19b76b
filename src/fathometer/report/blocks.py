"""Sites that belong together: the blocks of a network, as its module paths tell them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from fathometer.capture.sites import Site

FEWEST, MOST = 3, 20
"""How many blocks are worth telling apart."""


@dataclass(frozen=True)
class Block:
    """Consecutive sites, `sites[start:stop]`.

    Attributes:
        name: the module they share: `layer1.0`; empty for the network itself; `layers.0–3` for several.
        label: the same as short as the other blocks allow: `block3` of `features.dense.block3`.
        start: the first site.
        stop: the one after the last.
    """

    name: str
    label: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def blocks_of(sites: Sequence[Site]) -> tuple[Block, ...]:
    """The blocks of a network, in order of depth: about 3 to 20, as far as its module paths tell them.

    A site lies in the module that holds its activation (`layer1.0` for `layer1.0.relu`, `inception3a.branch1`
    for the function `inception3a.branch1/relu`). Paths are cut at the depth that gives the most blocks, up to
    20, and fewer than sites if that leaves 3. Where one depth gives fewer than 3 and the next more than 20,
    as in a language model of 30 equal layers, neighbours are put together: `model.layers.0–1`.

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
    fitting = [spans for spans in cuts if len(spans) <= MOST]
    several = [spans for spans in fitting if FEWEST <= len(spans) < len(sites)]
    best = max(several or fitting, key=len)  # the first of several: the least depth
    deeper = [spans for spans in cuts if len(spans) > MOST]
    if len(best) < FEWEST and deeper:
        return tuple(_bundled(deeper[0]))
    labels = _labels([span.home for span in best])
    return tuple(
        Block(".".join(span.home), labels[span.home] or _alone(sites, span), span.start, span.stop)
        for span in best
    )


@dataclass(frozen=True)
class _Span:
    home: tuple[str, ...]
    start: int
    stop: int


def _home(site: Site) -> tuple[str, ...]:
    """The path of the module that holds the activation, in parts."""
    parts = tuple(site.module.split(".")) if site.module else ()
    return parts[:-1] if site.own else parts


def _cut(homes: Sequence[tuple[str, ...]], depth: int) -> list[_Span]:
    """Runs of sites whose homes begin alike."""
    runs = [(home, len(list(run))) for home, run in groupby(home[:depth] for home in homes)]
    edges = [0]
    for _, length in runs:
        edges.append(edges[-1] + length)
    return [_Span(home, *edge) for (home, _), edge in zip(runs, pairwise(edges), strict=True)]


def _bundled(spans: Sequence[_Span]) -> list[Block]:
    """Neighbours of one parent together, so many that there are 20 blocks or little more."""
    size = math.ceil(len(spans) / MOST)
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
    """Of each path the last parts that no other has, from a part that is no number on."""
    known = set(homes)
    labels = {}
    for home in known:
        ends = [home[place:] for place in range(len(home) - 1, -1, -1) if not home[place].isdecimal()]
        own = (end for end in ends if not any(other[-len(end) :] == end for other in known - {home}))
        labels[home] = ".".join(next(own, home))
    return labels


def _alone(sites: Sequence[Site], span: _Span) -> str:
    """What to call sites that lie in no module."""
    return sites[span.start].name if span.stop - span.start == 1 else "network"
