"""Figure 14: all distances between the signatures of networks."""

from __future__ import annotations

from fathometer.compare import cluster, family_agreement
from fathometer.report import plot_dendrogram
from papers.affinity.census import Census, network_item
from papers.affinity.predicates import SEPARATION, finds_families, need_relatives
from papers.item import Claim, Numbers, RunContext


def draw(context: RunContext, census: Census) -> None:
    """Draw the matrix of distances, in the order of a tree."""
    context.table("distances", census.distances.frame.rename_axis("network").reset_index())
    context.figure(plot_dendrogram(cluster(census.distances), census.families))


def inside(census: Census) -> Numbers:
    """Find the networks that are nearer to their own family than to any other."""
    need_relatives(census)
    table = family_agreement(census.distances, census.families).dropna(subset="silhouette")
    odd = table.loc[table["silhouette"] <= 0, "network"].to_list()
    return {"inside": len(table) - len(odd), "networks": len(table), "odd": ", ".join(odd) or "none"}


FIGURE_14 = network_item(
    "affinity-figure-14",
    "Figure 14: the full matrix of DTW distances between signatures",
    draw,
    {
        "within": finds_families(
            "The signature identifies the different families of neural architectures.",
            "The paper's DTW distances within families are smaller than between them, by Mann and Whitney's "
            "share of pairs of pairs",
            SEPARATION,
            "a pair of one family is nearer than a pair of two in {value:.0%} of cases",
        ),
        "every": Claim(
            words="It does so correctly, for all models.",
            test="Every network with relatives has a smaller mean distance to its own family than to any "
            "other (its silhouette is above 0); at least two families of two networks.",
            measure=inside,
            holds=lambda n: n["inside"] == n["networks"],
            says="{inside:.0f} of {networks:.0f} networks with relatives are; not: {odd}",
        ),
    },
    also=("within", "every"),
)
