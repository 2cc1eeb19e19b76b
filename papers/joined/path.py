"""The affinity score of ReLU along the path of a Leaky ResNet: near 1 inside the bottleneck."""

from __future__ import annotations

import pandas as pd

from papers.intervals import pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.joined.figures import plot_layers
from papers.joined.networks import joined_item, joined_layers
from papers.joined.prediction import NETWORK
from papers.ranks import spearman

LEAST, BEST = 0.95, 0.98  # inside the bottleneck: of every layer, and of the best one
LOWER = 0.05  # how far below the layers outside are
MONOTONE = 0.8


def run(context: RunContext) -> Answers:
    """Measure affinity, negative part and cost of identity along the path."""
    shown = [*NETWORK, "point", "p", "affinity", "negative", "cost_of_identity", "inside"]
    layers = context.table("layers", joined_layers(context)[shown])
    networks = context.table("networks", by_network(layers))
    ranks = sorted(layers["rank"].unique())
    context.figure(plot_layers(layers, int(ranks[len(ranks) // 2])))
    deepest = networks[networks["effective_depth"] == networks["effective_depth"].max()]
    return {
        "inside": answer_inside(deepest),
        "outside": answer_outside(deepest),
        "depth": answer_trend(networks, "best", 1),
        "negative": answer_trend(networks, "negative", -1),
    }


def by_network(layers: pd.DataFrame) -> pd.DataFrame:
    """Make a row for each network: scores inside and outside the bottleneck, least negative part."""
    rows = []
    for key, of in layers.groupby(NETWORK):
        inside, outside = of.loc[of["inside"], "affinity"], of.loc[~of["inside"], "affinity"]
        found = {"layers_inside": len(inside), "inside": inside.mean(), "outside": outside.mean()}
        found |= {"least": inside.min(), "best": inside.max(), "negative": of["negative"].min()}
        rows.append(dict(zip(NETWORK, key, strict=True)) | found)
    return pd.DataFrame(rows)


def answer_inside(deepest: pd.DataFrame) -> Answer:
    """Check that every layer inside is near 1, the best one nearer."""
    least, best = deepest["least"], deepest["best"]
    return Answer(
        bool((least >= LEAST).all() and (best >= BEST).all()),
        f"L̃ = {deepest['effective_depth'].iloc[0]:g}, {len(deepest)} networks with "
        f"{deepest['layers_inside'].min()} to {deepest['layers_inside'].max()} layers inside: lowest score "
        f"inside {pm(least)} (least {least.min():.3f}), highest {pm(best)} "
        f"(least {best.min():.3f})",
        {"lowest": least.min(), "lowest_mean": least.mean(), "best": best.min(), "best_mean": best.mean()},
    )


def answer_outside(deepest: pd.DataFrame) -> Answer:
    """Check that scores outside are lower than inside, in every network that has both."""
    both = deepest.dropna(subset=["inside", "outside"])
    if both.empty:
        return Answer(None, "no network has layers both inside and outside the bottleneck")
    difference = both["inside"] - both["outside"]
    return Answer(
        bool((difference >= LOWER).all()),
        f"mean inside {pm(both['inside'])}, outside {pm(both['outside'])}; difference "
        f"{difference.min():.3f} to {difference.max():.3f} over {len(both)} networks",
        {"difference_least": difference.min(), "difference_mean": difference.mean()},
    )


def answer_trend(networks: pd.DataFrame, name: str, sign: int) -> Answer:
    """Check the rank correlation with L̃ for each rank and seed."""
    found = [spearman(of["effective_depth"], of[name]) for _, of in networks.groupby(["rank", "seed"])]
    means = networks.groupby("effective_depth")[name]
    words = ", ".join(f"{pm(of)} (L̃ = {depth:g})" for depth, of in means)
    return Answer(
        min(sign * value for value in found) >= MONOTONE,
        f"{words}; rank correlations {min(found):.2f} to {max(found):.2f}",
        {"correlation_least": min(found), "correlation_largest": max(found)}
        | {f"mean_{depth:g}": of.mean() for depth, of in means},
    )


PATH = joined_item(
    name="joined-path",
    title="The affinity score of ReLU along a Leaky ResNet's path",
    claims={
        "inside": Claim(
            "In the slow layers, inside the bottleneck, the representation becomes non-negative (Leaky "
            "ResNets, Proposition 5), so that ReLU acts as the identity: its affinity score is near 1.",
            f"At the largest L̃, for every rank and seed: every layer inside (cost of identity within half a "
            f"dimension of its least) scores {LEAST} or more, and one of them {BEST} or more.",
        ),
        "outside": Claim(
            "Outside the bottleneck ReLU is not affine.",
            "At the largest L̃, for every rank and seed: the mean score outside is lower than that inside "
            f"by {LOWER} or more.",
        ),
        "depth": Claim(
            "The deeper the network, the nearer to 1.",
            f"The highest score inside the bottleneck has a rank correlation with L̃ of {MONOTONE} or more, "
            "for every rank and seed.",
        ),
        "negative": Claim(
            "The negative part ‖A₋‖/‖A‖ vanishes likewise.",
            f"Its least along the path has a rank correlation with L̃ of −{MONOTONE} or less, for every "
            "rank and seed.",
        ),
    },
    run=run,
    seconds=Seconds(3, 110, 200),
)
