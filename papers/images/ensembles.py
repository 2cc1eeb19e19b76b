"""Several trainings of one architecture, which differ in their seed alone, and their signatures side by side.

Scores are `[seeds, sites]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer import Sounding
from papers.images.trained import GAUGES, State, sounding, trained
from papers.images.training import Method
from papers.item import Item, RunContext
from papers.roles import BlockRoles, block_roles

Scores = NDArray[np.float64]

trained_item = partial(Item, sources=("cifar10",), device="cuda")
"""An item about networks that are trained here."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Soundings of one architecture."""

    kind: str
    soundings: Mapping[int, Sounding]  # by the seed of the training

    @cached_property
    def scores(self) -> Scores:
        """The affinity score, `[seeds, sites]`."""
        return np.array([each.signature.to_numpy(float) for each in self.soundings.values()])

    @cached_property
    def roles(self) -> BlockRoles:
        """The role of each site of a ResNet, or of one without its shortcuts."""
        return block_roles(next(iter(self.soundings.values())).sites)

    @property
    def ends(self) -> Scores:
        """For each seed, the mean score at the ends of blocks."""
        return self.scores[:, self.roles.ends].mean(1)

    @property
    def gaps(self) -> Scores:
        """For each seed, the mean score at the ends of blocks minus that inside them."""
        return self.ends - self.scores[:, self.roles.inside].mean(1)

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.kind)


def title_of(kind: str) -> str:
    """Write a kind of network.

    Example:
        >>> title_of("resnet20"), title_of("plain20"), title_of("vgg16")
        ('ResNet-20', 'plain 20', 'VGG-16')
    """
    name, depth = re.fullmatch(r"(\D+)(\d+)", kind).groups()  # type: ignore[union-attr]
    return {"resnet": "ResNet-", "plain": "plain ", "vgg": "VGG-"}[name] + depth


def way_of(method: Method) -> str:
    """Write a way of training.

    Example:
        >>> way_of("sgd"), way_of("no_decay")
        ('SGD', 'no decay')
    """
    return {"sgd": "SGD", "adam": "Adam"}.get(method, method.replace("_", " "))


def ensemble(
    context: RunContext,
    kind: str,
    seeds: Sequence[int],
    method: Method = "sgd",
    *,
    state: State = "trained",
    samples: int | None = None,
    gauges: str = GAUGES,
) -> Ensemble:
    """Measure one architecture over seeds, on the test images; arguments as those of `sounding`."""
    found = {
        seed: sounding(context, kind, seed, method, state=state, samples=samples, gauges=gauges)
        for seed in seeds
    }
    return Ensemble(kind, found)


def scores_table(ensembles: Mapping[str, Ensemble]) -> pd.DataFrame:
    """Make a row for each site of each training, with its standard deviation over batches.

    `of` is the name that the ensemble has here.
    """
    parts = [
        pd.DataFrame(
            {
                "of": name,
                "seed": seed,
                "place": range(len(each.sites)),
                "site": [site.name for site in each.sites],
                "score": each.signature.to_numpy(float),
                "batch_std": each.std("affinity").to_numpy(float),
            }
        )
        for name, group in ensembles.items()
        for seed, each in group.soundings.items()
    ]
    return pd.concat(parts, ignore_index=True)


def accuracies(
    context: RunContext, seeds_of: Mapping[str, Sequence[int]], methods: Sequence[Method] = ("sgd",)
) -> str:
    """Say the accuracy of networks on held-out images, in per cent: kind → seeds."""
    words = []
    for kind, seeds in seeds_of.items():
        for method in methods:
            found = [trained(context, kind, seed, method).accuracy for seed in seeds]
            way = f" ({way_of(method)})" if len(methods) > 1 else ""
            words.append(f"{title_of(kind)}{way} {_per_cent(found)} ({len(seeds)} seeds)")
    return ", ".join(words)


def _per_cent(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")
