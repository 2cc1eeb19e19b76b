"""What an activation does in its block: in ResNets the one after the sum, in DenseNets the transitions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathometer.capture.sites import Site
from fathometer.sounding import Sounding

_BLOCK = re.compile(r"layer\d+\.\d+(?=\.|$)")
OTHERS = "others"
_MANY = 6  # kinds that colours still tell apart


class Residual(NamedTuple):
    """The scores in residual blocks, in order of depth.

    Attributes:
        after: of the last activation of each block, which sees the sum.
        inside: of all others.
    """

    after: NDArray[np.float64]
    inside: NDArray[np.float64]


def residual_scores(sounding: Sounding) -> Residual | None:
    """Scores after the sums and inside the blocks `layerN.M`; none without such blocks."""
    blocks = [_block(site) for site in sounding.sites]
    last = {block: place for place, block in enumerate(blocks)}
    scores = sounding.signature.to_numpy(float)
    after = np.array([bool(block) and last[block] == place for place, block in enumerate(blocks)])
    inside = np.array([bool(block) for block in blocks]) & ~after
    return Residual(scores[after], scores[inside]) if inside.any() else None


def transitions(sounding: Sounding) -> NDArray[np.bool_]:
    """Of every site, whether it is in a transition between dense blocks."""
    return np.array(["transition" in site.module for site in sounding.sites])


def kinds_of(sites: Sequence[Site]) -> list[str]:
    """What sites have in common that come back in every block: `relu#2`, `mlp.1`, `branch1`.

    From the last part of the module's path that has letters; what comes once is `others`. It is the operator,
    where that gives one kind or too many.

    Example:
        >>> names = ["stem", "layer1.0.relu", "layer1.1.relu"]
        >>> kinds_of([Site(name, "relu", 2, order, True) for order, name in enumerate(names)])
        ['others', 'relu#2', 'relu#2']
    """
    names = [_kind(site) for site in sites]
    often = Counter(names)
    found = [name if often[name] > 1 else OTHERS for name in names]
    return found if 1 < len(set(found)) <= _MANY else [site.operator for site in sites]


def _block(site: Site) -> str:
    match = _BLOCK.match(site.module)
    return match[0] if match else ""


def _kind(site: Site) -> str:
    parts = site.module.split(".")
    start = next((place for place in reversed(range(len(parts))) if not parts[place].isdecimal()), 0)
    name = ".".join(parts[start:]) or site.operator
    return name if site.call == 1 else f"{name}#{site.call}"
