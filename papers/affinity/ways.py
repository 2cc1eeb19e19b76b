"""One architecture trained in different ways, for Figures 16 and 17 and Table 3."""

from __future__ import annotations

from functools import partial

from fathometer import Sounding
from papers.images.ensembles import accuracies, ensemble, trained_item, way_of
from papers.images.training import METHODS
from papers.item import RunContext

_PAPERS = "the paper's are 17 ResNet-50 of ImageNet, supervised and self-supervised in three families"
way_item = partial(
    trained_item,
    settings={
        "small": "ResNet-20 of half the width on digits of 16 pixels, supervised in six ways that differ in "
        f"one thing each, three seeds; {_PAPERS}",
        "paper": "ResNet-20 trained here on CIFAR-10 for 24 epochs, supervised in six ways that differ in "
        f"one thing each, three seeds; {_PAPERS}",
    },
)
"""An item about these networks."""


def way_soundings(context: RunContext) -> dict[str, Sounding]:
    """Measure by method and seed; record the accuracy."""
    kind = context.pick(smoke="resnet8", small="resnet20", paper="resnet20")
    seeds = context.seeds(smoke=2, small=3, paper=3)
    methods = METHODS[: context.pick(smoke=3, small=None, paper=None)]
    context.facts["accuracy"] = accuracies(context, {kind: seeds}, methods)
    return {
        f"{way_of(method)} {seed}": each
        for method in methods
        for seed, each in ensemble(context, kind, seeds, method).soundings.items()
    }
