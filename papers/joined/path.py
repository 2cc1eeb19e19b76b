"""The affinity score of ReLU along the path of a Leaky ResNet: near 1 inside the bottleneck."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from papers.item import Claim, NotDecided, Numbers, RunContext
from papers.joined.figures import plot_layers
from papers.joined.networks import NOTES, joined_item, joined_layers
from papers.joined.prediction import NETWORK
from papers.ranks import spearman

LEAST, BEST = 0.95, 0.98  # inside the bottleneck: of every layer, and of the best one
LOWER = 0.05  # how far below the layers outside are
MONOTONE = 0.8


def run(context: RunContext) -> pd.DataFrame:
    """Measure affinity, negative part and cost of identity along the path."""
    shown = [*NETWORK, "point", "p", "affinity", "negative", "cost_of_identity", "inside"]
    layers = context.table("layers", joined_layers(context)[shown])
    ranks = sorted(layers["rank"].unique())
    context.figure(plot_layers(layers, int(ranks[len(ranks) // 2])))
    return context.table("networks", by_network(layers))


def by_network(layers: pd.DataFrame) -> pd.DataFrame:
    """Make a row for each network: scores inside and outside the bottleneck, least negative part."""
    rows = []
    for key, of in layers.groupby(NETWORK):
        inside, outside = of.loc[of["inside"], "affinity"], of.loc[~of["inside"], "affinity"]
        found = {"layers_inside": len(inside), "inside": inside.mean(), "outside": outside.mean()}
        found |= {"least": inside.min(), "best": inside.max(), "negative": of["negative"].min()}
        rows.append(dict(zip(NETWORK, key, strict=True)) | found)
    return pd.DataFrame(rows)


def deepest(networks: pd.DataFrame) -> pd.DataFrame:
    """Select the networks with the largest L̃."""
    return networks[networks["effective_depth"] == networks["effective_depth"].max()]


def inside(networks: pd.DataFrame) -> Numbers:
    """Take the lowest score inside, and the lowest of the best ones, at the largest L̃."""
    rows = deepest(networks)
    return {
        "depth": rows["effective_depth"].iloc[0],
        "networks": len(rows),
        "fewest": float(rows["layers_inside"].min()),
        "most": float(rows["layers_inside"].max()),
        "lowest": rows["least"].min(),
        "best": rows["best"].min(),
    }


def outside(networks: pd.DataFrame) -> Numbers:
    """Compare scores inside and outside, in every network that has both."""
    both = deepest(networks).dropna(subset=["inside", "outside"])
    if both.empty:
        raise NotDecided("no network has layers both inside and outside the bottleneck")
    means = {"inside": both["inside"].mean(), "outside": both["outside"].mean(), "networks": len(both)}
    return means | {"difference": float((both["inside"] - both["outside"]).min())}


def trend(name: str) -> Callable[[pd.DataFrame], Numbers]:
    """Correlate a column with L̃, for each rank and seed."""

    def measure(networks: pd.DataFrame) -> Numbers:
        found = [spearman(of["effective_depth"], of[name]) for _, of in networks.groupby(["rank", "seed"])]
        means = networks.groupby("effective_depth")[name].mean()
        return {
            "depths": means.index.to_list(),
            "means": means.to_list(),
            "lowest": min(found),
            "highest": max(found),
        }

    return measure


_TREND = "{means:.3g} at L̃ = {depths:g}; rank correlations {lowest:.2f} to {highest:.2f}"
PATH = joined_item(
    name="joined-path",
    title="The affinity score of ReLU along a Leaky ResNet's path",
    run=run,
    claims={
        "inside": Claim(
            words="In the slow layers, inside the bottleneck, the representation becomes non-negative (Leaky "
            "ResNets, Proposition 5), so that ReLU acts as the identity: its affinity score is near 1.",
            test="At the largest L̃, for every rank and seed: every layer inside (cost of identity within "
            f"half a dimension of its least) scores {LEAST} or more, and one of them {BEST} or more.",
            measure=inside,
            holds=lambda n: n["lowest"] >= LEAST and n["best"] >= BEST,
            says="L̃ = {depth:g}, {networks:.0f} networks with {fewest:.0f} to {most:.0f} layers inside: "
            "lowest score inside {lowest:.3f}, best {best:.3f} or more",
        ),
        "outside": Claim(
            words="Outside the bottleneck ReLU is not affine.",
            test="At the largest L̃, for every rank and seed: the mean score outside is lower than that "
            f"inside by {LOWER} or more.",
            measure=outside,
            holds=lambda n: n["difference"] >= LOWER,
            says="mean inside {inside:.3f}, outside {outside:.3f}; difference {difference:.3f} or more in "
            "{networks:.0f} networks",
        ),
        "depth": Claim(
            words="The deeper the network, the nearer to 1.",
            test=f"The highest score inside the bottleneck has a rank correlation with L̃ of {MONOTONE} or "
            "more, for every rank and seed.",
            measure=trend("best"),
            holds=lambda n: n["lowest"] >= MONOTONE,
            says=_TREND,
        ),
        "negative": Claim(
            words="The negative part ‖A₋‖/‖A‖ vanishes likewise.",
            test=f"Its least along the path has a rank correlation with L̃ of −{MONOTONE} or less, for every "
            "rank and seed.",
            measure=trend("negative"),
            holds=lambda n: n["highest"] <= -MONOTONE,
            says=_TREND,
        ),
    },
    seconds={"smoke": 3, "small": 110, "paper": 200},
    notes=NOTES,
)
