"""One architecture trained in different ways, for Figures 16 and 17 and Table 3."""

from __future__ import annotations

from functools import partial

from fathometer.results.sounding import Sounding
from papers.images.ensembles import (
    ensemble,
    note_accuracy,
    train_ensembles,
    trained_item,
    way_of,
)
from papers.images.training import METHODS
from papers.workshop import Workshop

LEVEL = 0.05

way_item = partial(
    trained_item,
    small="digits of 16 pixels, ResNet-20 of half the width",
    published="networks trained here on CIFAR-10, ResNet-20 in six ways, three seeds each, 24 epochs",
)
"""An item about these networks."""


def kind_of(workshop: Workshop) -> str:
    """The architecture."""
    return workshop.pick(smoke="resnet8", small="resnet20", paper="resnet20")


def seeds_of(workshop: Workshop) -> range:
    """Of each way of training."""
    return range(workshop.pick(smoke=2, small=3, paper=3))


def way_soundings(workshop: Workshop) -> dict[str, Sounding]:
    """By method and seed."""
    kind, seeds = kind_of(workshop), seeds_of(workshop)
    methods = METHODS[: workshop.pick(smoke=3, small=None, paper=None)]
    train_ensembles(workshop, [kind], seeds, methods)
    note_accuracy(workshop, {kind: seeds}, methods)
    return {
        f"{way_of(method)} {seed}": each
        for method in methods
        for seed, each in ensemble(workshop, kind, seeds, method).soundings.items()
    }
