"""Figure 14: all distances between the signatures of networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare import Distances, distances, family_agreement
from papers.affinity.census import Census, judged, keep_figure, network_item, take_census
from papers.affinity.figure_5a import LEVEL, lacking_relatives
from papers.affinity.network_figures import plot_matrix
from papers.item import Answer, Answers, Claim, RunContext
from papers.ranks import auc, label_chance


def run(context: RunContext) -> Answers:
    """Draw the matrix of distances."""
    census = take_census(context)
    near = distances(census.soundings)
    context.table("distances", near.frame.rename_axis("network").reset_index())
    families = {name: census.families.get(name, name) for name in near.names}
    keep_figure(context, census, plot_matrix(near.frame, families))
    return {
        "within": judged(census, lacking_relatives, nearer_within),
        "every": judged(census, lacking_relatives, every_network),
    }


def separation(near: Distances, families: Sequence[object]) -> float:
    """Compute how often networks of one family are nearer than those of different ones; ½ by chance.

    Example:
        >>> from fathometer.compare import signature_distances
        >>> near = signature_distances({"a": [0.0], "b": [0.1], "c": [0.8], "d": [1.0]})
        >>> separation(near, ["x", "x", "y", "y"]), separation(near, ["x", "y", "x", "y"])
        (1.0, 0.25)
    """
    found = auc(-near.condensed, same_family(families))
    return 0.5 if np.isnan(found) else found


def same_family(families: Sequence[object]) -> NDArray[np.bool_]:
    """Say for every pair, in the order of condensed distances, whether both are of one family."""
    first, second = np.triu_indices(len(families), 1)
    labels = pd.factorize(np.array(families, dtype=object))[0]
    return np.asarray(labels[first] == labels[second])


def nearer_within(census: Census) -> Answer:
    """Check whether distances within families are smaller."""
    near = distances(census.only(census.families).soundings)
    families = [census.families[name] for name in near.names]
    found = label_chance(families, lambda order: separation(near, order))
    own = same_family(families)
    within, between = near.condensed[own], near.condensed[~own]
    return Answer(
        found.value > 0.5 and found.p < LEVEL,
        f"mean DTW distance {within.mean():.2f} within families ({len(within)} pairs), {between.mean():.2f} "
        f"between; a pair within is the nearer one in {found.value:.0%} of cases (p = {found.p:.3g})",
        {"within": within.mean(), "between": between.mean(), "separation": found.value, "p": found.p},
    )


def every_network(census: Census) -> Answer:
    """Check whether every network is nearer to its own family than to any other."""
    table = family_agreement(distances(census.soundings), census.families).dropna(subset="silhouette")
    inside = table["silhouette"] > 0
    odd = table.loc[~inside, "network"].to_list()
    named = f"; not {', '.join(odd[:8])}{' …' if len(odd) > 8 else ''}" if odd else ""
    return Answer(
        not odd,
        f"{int(inside.sum())} of {len(table)} networks with relatives are (mean silhouette "
        f"{table['silhouette'].mean():.2f}){named}",
        {"inside": inside.sum(), "networks": len(table), "silhouette": table["silhouette"].mean()},
    )


FIGURE_14 = network_item(
    name="affinity-figure-14",
    title="Figure 14: the full matrix of DTW distances between signatures",
    claims={
        "within": Claim(
            "The signature identifies the different families of neural architectures.",
            "DTW distances within families are smaller than between them: Mann and Whitney's share of "
            f"pairs of pairs is above ½ with p < {LEVEL} over 1000 orders of the families.",
        ),
        "every": Claim(
            "It does so correctly, for all models.",
            "Every network with relatives has a smaller mean distance to its own family than to any other: "
            "its silhouette is above 0.",
        ),
    },
    run=run,
)
