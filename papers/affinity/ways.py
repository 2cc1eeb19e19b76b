"""One architecture trained in different ways, for Figures 16 and 17 and Table 3."""

from __future__ import annotations

from functools import partial

from fathometer import Sounding
from papers.images.ensembles import ensemble, note_accuracy, train_ensembles, trained_item, way_of
from papers.images.training import METHODS
from papers.item import RunContext

LEVEL = 0.05

way_item = partial(
    trained_item,
    small="digits of 16 pixels, ResNet-20 of half the width",
    published="networks trained here on CIFAR-10, ResNet-20 in six ways, three seeds each, 24 epochs",
)
"""An item about these networks."""


def kind_of(context: RunContext) -> str:
    """Return the architecture."""
    return context.pick(smoke="resnet8", small="resnet20", paper="resnet20")


def seeds_of(context: RunContext) -> range:
    """Return the seeds of each way of training."""
    return range(context.pick(smoke=2, small=3, paper=3))


def way_soundings(context: RunContext) -> dict[str, Sounding]:
    """Measure by method and seed."""
    kind, seeds = kind_of(context), seeds_of(context)
    methods = METHODS[: context.pick(smoke=3, small=None, paper=None)]
    train_ensembles(context, [kind], seeds, methods)
    note_accuracy(context, {kind: seeds}, methods)
    return {
        f"{way_of(method)} {seed}": each
        for method in methods
        for seed, each in ensemble(context, kind, seeds, method).soundings.items()
    }
