"""What an activation does in its block, by the names of the modules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathometer import Site

_BLOCK = re.compile(r"layer\d+\.\d+(?=\.|$)")
OTHERS = "others"
_MANY = 6  # kinds that colours still tell apart


class BlockRoles(NamedTuple):
    """The role of every site in the blocks `layerN.M` of a ResNet; none before and after them."""

    ends: NDArray[np.bool_]  # whether it is the last activation of its block, after the sum if there is one
    inside: NDArray[np.bool_]  # whether it is another activation of a block


def block_roles(sites: Sequence[Site]) -> BlockRoles:
    """Find the roles from the names of the modules.

    Example:
        >>> names = ["relu", "layer1.0.relu", "layer1.0.relu2"]
        >>> found = block_roles([Site(name, "relu", 1, order, True) for order, name in enumerate(names)])
        >>> found.ends.tolist(), found.inside.tolist()
        ([False, False, True], [False, True, False])
    """
    blocks = [match[0] if (match := _BLOCK.match(site.module)) else "" for site in sites]
    last = {block: place for place, block in enumerate(blocks)}
    ends = np.array([bool(block) and last[block] == place for place, block in enumerate(blocks)])
    return BlockRoles(ends, np.array([bool(block) for block in blocks]) & ~ends)


def kinds_of(sites: Sequence[Site]) -> list[str]:
    """Name the kinds of sites that every block has: `relu#2`, `mlp.1`, `branch1`.

    The name is the last part of the module's path that has letters; a kind with one site is `others`. The
    operator is taken if that gives one kind or too many.

    Example:
        >>> names = ["stem", "layer1.0.relu", "layer1.1.relu"]
        >>> kinds_of([Site(name, "relu", 2, order, True) for order, name in enumerate(names)])
        ['others', 'relu#2', 'relu#2']
    """
    names = [_kind(site) for site in sites]
    often = Counter(names)
    found = [name if often[name] > 1 else OTHERS for name in names]
    return found if 1 < len(set(found)) <= _MANY else [site.operator for site in sites]


def _kind(site: Site) -> str:
    parts = site.module.split(".")
    start = next((place for place in reversed(range(len(parts))) if not parts[place].isdecimal()), 0)
    name = ".".join(parts[start:]) or site.operator
    return name if site.call == 1 else f"{name}#{site.call}"
