"""Figure 5 (B): how far the later networks are from the early convnets."""

from __future__ import annotations

import pandas as pd

from fathometer.compare import cluster
from fathometer.report import plot_dendrogram
from papers.affinity.census import EARLY, PRIORS, SEVERAL, SWIN, VIT, Census, network_item
from papers.affinity.predicates import below, rises
from papers.item import RunContext


def draw(context: RunContext, census: Census) -> None:
    """Draw the distances between representatives of the families."""
    shown = census.only(census.shown())
    context.figure(plot_dendrogram(cluster(shown.distances), shown.families))


def from_early(census: Census) -> pd.DataFrame:
    """Average the distance of each architecture after the early convnets, until ViT, from these."""
    census.group(EARLY)
    families = census.table["family"]
    return census.by_architecture(
        census.table.loc[~families.isin(EARLY.members + PRIORS.members), "to_early"]
    )


FIGURE_5B = network_item(
    "affinity-figure-5b",
    "Figure 5 (B): distances between representatives of the families",
    draw,
    {
        "falls": rises(
            "The similarity between early convnets and other models is decreasing with time.",
            "The mean DTW distance from AlexNet and the VGGs, over the architectures after them and until "
            "ViT",
            from_early,
        ),
        "back": below(
            "That lasts until computer vision priors are introduced into Swin transformers in 2021.",
            "The mean DTW distance of the Swins from AlexNet and the VGGs is below that of the ViTs; at "
            f"least {SEVERAL} of each.",
            "to_early",
            SWIN,
            VIT,
            mean=True,
        ),
    },
    also=("falls",),
)
