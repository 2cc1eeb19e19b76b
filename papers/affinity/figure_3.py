"""Figure 3: ten years of networks, by the least, median and largest of their scores."""

from __future__ import annotations

import pandas as pd

from fathometer.report import plot_years
from papers.affinity.census import BEFORE_VIT, EARLY, LATER, PRIORS, SEVERAL, VIT, Census, network_item
from papers.affinity.predicates import below, rises, within
from papers.item import Claim, RunContext

VIT_YEAR = 2020


def draw(context: RunContext, census: Census) -> None:
    """Draw all networks by year."""
    context.figure(plot_years(census.soundings, census.facts))


def trend(words: str, column: str) -> Claim:
    """Claim that a statistic of the scores rises with the year, before ViT."""

    def by_year(census: Census) -> pd.DataFrame:
        return census.by_architecture(census.table.loc[census.table["year"] < VIT_YEAR, column])

    return rises(words, f"The {column} of the scores, over the architectures published before 2020", by_year)


LOW_MEDIAN = below(
    "ViTs break the trend, and have a distinct pattern of maximising the non-linearity.",
    f"Every ViT (at least {SEVERAL}) has a lower median score than every convnet of the families before it "
    f"(at least {BEFORE_VIT.families} of these families).",
    "median",
    VIT,
    BEFORE_VIT,
)

FIGURE_3 = network_item(
    "affinity-figure-3",
    "Figure 3: median, minimum and maximum scores of networks from 2012 to 2022",
    draw,
    {
        "spread": trend(
            "A clear trend toward the increase of the spread, lasting until the arrival of transformers in "
            "2020.",
            "spread",
        ),
        "maximum": trend("The same trend toward the increase of the maximum values of the linearity.", "max"),
        "median": trend(
            "Until the arrival of transformers, the trend of the landmark models was to decrease their "
            "non-linearity.",
            "median",
        ),
        "early": below(
            "AlexNet and VGGs have a very low spread of the score; that changes with GoogLeNet.",
            "The largest spread of AlexNet and the VGGs is below the least of all Inceptions, ResNets, "
            f"DenseNets, MNASNets and EfficientNets (at least {LATER.families} of these families).",
            "spread",
            EARLY,
            LATER,
        ),
        "vit": LOW_MEDIAN,
        "priors": within(
            "Swin transformers and ConvNeXts look more similar to the pure convolutional networks of the "
            "early 2010s.",
            "Every Swin and ConvNeXt has a smaller mean DTW distance to AlexNet and the VGGs than to the "
            f"ViTs; at least {PRIORS.networks} networks.",
            "nearer_early",
            PRIORS,
            low=0,
        ),
    },
    also=("spread", "maximum", "median"),
)
