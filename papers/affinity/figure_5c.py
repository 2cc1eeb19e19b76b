"""Figure 5 (C): the distribution of scores in each network."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import combine_pvalues

from fathometer.compare import dip_test, signatures, statistics
from fathometer.report import plot_distributions
from papers.affinity.census import DENSENET, EARLY, PAPER, RESNET, SEVERAL, VIT, Census, Group, network_item
from papers.affinity.predicates import below, within
from papers.item import Claim, Numbers, RunContext, Simulation
from papers.roles import block_roles

LEVEL = 0.05
MOST = 0.51
EFFICIENTNET = Group(("EfficientNet",), SEVERAL)
ALL = Group(PAPER, families=5)
AFTER, INSIDE, WIDTH = 0.95, 0.67, 0.05
"""Scores of a ResNet: close to 1 after the sums, and 0.76 on average, as Table 3 has it for ResNet-50."""


def draw(context: RunContext, census: Census) -> None:
    """Draw the distributions of the scores."""
    context.figure(plot_distributions(signatures(census.shown()), "affinity", statistics(census.shown())))


def bimodal(census: Census) -> Numbers:
    """Test every ResNet for two modes, and combine the tests by Fisher's method."""
    names = census.group(RESNET)
    p = [dip_test(census.scores[name])[1] for name in names]
    return {
        "p": combine_pvalues(p).pvalue,
        "each": p,
        "sites": [len(census.scores[name]) for name in names],
        "sums": [int(block_roles(census.soundings[name].sites).ends.sum()) for name in names],
        "networks": ", ".join(names),
    }


def two_modes(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
    """Draw scores of as many sites and sums; without the effect, uniform ones."""
    p = []
    for sites, sums in zip(numbers["sites"], numbers["sums"], strict=True):
        centre = np.where(np.arange(sites) < sums, AFTER, INSIDE)
        scores = generator.normal(centre, WIDTH).clip(max=1) if present else generator.random(sites)
        p.append(dip_test(scores)[1])
    return {"p": combine_pvalues(p).pvalue}


FIGURE_5C = network_item(
    "affinity-figure-5c",
    "Figure 5 (C): distributions of the scores in each network",
    draw,
    {
        "wide": below(
            "Most models expand the non-linearity ranges of their activation functions compared to early "
            "convnets.",
            "More than half of all other networks (with AlexNet and VGG of at least five families) have a "
            "larger spread than every AlexNet and VGG.",
            "spread",
            EARLY,
            ALL,
            share=MOST,
        ),
        "bimodal": Claim(
            words="ResNets have a bimodal distribution.",
            test=f"Hartigan's dip, combined over all ResNets (at least {SEVERAL}) by Fisher's method, has "
            f"p < {LEVEL}.",
            measure=bimodal,
            holds=lambda n: n["p"] < LEVEL,
            says="p = {p:.2g}; each {each:.2g} ({networks})",
            simulation=Simulation(
                f"scores of {AFTER} ± {WIDTH} after the sums and {INSIDE} ± {WIDTH} inside the blocks, which "
                "gives Table 3's mean of ResNet-50; by chance: uniform scores",
                two_modes,
            ),
        ),
        "vit": within(
            "ViTs are dominated by highly non-linear activation functions.",
            f"The skewness of the scores is above 0 in every ViT (at least {SEVERAL}).",
            "skewness",
            VIT,
            low=0,
        ),
        "densenet": within(
            "DenseNets have a diametrically skewed distribution compared to ViTs.",
            f"The skewness of the scores is below 0 in every DenseNet (at least {SEVERAL}).",
            "skewness",
            DENSENET,
            high=0,
        ),
        "efficientnet": within(
            "So have EfficientNets: a strong negative skewness toward higher linearity.",
            f"The skewness of the scores is below 0 in every EfficientNet (at least {SEVERAL}).",
            "skewness",
            EFFICIENTNET,
            high=0,
        ),
    },
    changes=(
        "The dip was first required of every ResNet, which leaves little power; p was 0.84 in a ResNet-50, "
        "the only one that had been measured then.",
    ),
)
