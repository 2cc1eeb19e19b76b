"""Figure 3: ten years of networks, by the least, median and largest of their scores."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fathometer.compare import distances
from fathometer.report import plot_years
from papers.affinity.census import (
    EARLY,
    LATER,
    PRIORS,
    Census,
    judged,
    keep_figure,
    needs,
    network_item,
    take_census,
)
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.ranks import rank_trend

VIT_YEAR = 2020
LEAST = 5  # architectures, of which the order is one of 120
LEVEL = 0.05


def run(context: RunContext) -> Answers:
    """Draw all networks by year."""
    census = take_census(context)
    if len(dated := context.table("architectures", architectures(census).reset_index())):
        keep_figure(context, census, plot_years(census.soundings, census.facts))
    if dated["year"].nunique() < 2:
        context.note("Years of publication are known for torchvision's networks, or from [facts] in a plan.")
    return {
        "spread": judged(census, lacking_years, lambda of: trend(of, ("max", "spread"))),
        "median": judged(census, lacking_years, lambda of: trend(of, ("median",))),
        "early": judged(census, needs(*EARLY, *LATER), early_spread),
        "vit": judged(census, needs(*EARLY, *LATER, "ViT"), vit_median),
        "priors": judged(census, needs(*EARLY, "ViT", *PRIORS), near_early),
    }


def architectures(census: Census) -> pd.DataFrame:
    """Compute statistics of the signatures, by architecture."""
    return census.by_architecture(census.statistics[["min", "median", "max", "spread"]])


def lacking_years(census: Census) -> str:
    """Require enough architectures before ViT for a trend."""
    there = int((architectures(census)["year"] < VIT_YEAR).sum()) if len(census) else 0
    wanted = f"trained networks of {LEAST} architectures from before {VIT_YEAR} (here {there})"
    return "" if there >= LEAST else wanted


def trend(census: Census, columns: tuple[str, ...]) -> Answer:
    """Check whether values rise with the year, before ViT."""
    table = architectures(census)
    table = table[table["year"] < VIT_YEAR]
    found = {column: rank_trend(table["year"].to_list(), table[column].to_list()) for column in columns}
    words = "; ".join(
        f"{column}: rank correlation with the year {of.value:.2f} (p = {of.p:.3g})"
        for column, of in found.items()
    )
    numbers = {f"{column}_correlation": of.value for column, of in found.items()}
    numbers |= {f"{column}_p": of.p for column, of in found.items()}
    holds = all(of.value > 0 and of.p < LEVEL for of in found.values())
    return Answer(holds, f"over {len(table)} architectures, {words}", numbers)


def early_spread(census: Census) -> Answer:
    """Check whether every early convnet has a smaller spread than every later one."""
    spread = census.statistics["spread"]
    early, later = spread[census.members(*EARLY)], spread[census.members(*LATER)]
    return Answer(
        early.max() < later.min(),
        f"spread {early.min():.2f} to {early.max():.2f} in AlexNet and VGGs, {later.min():.2f} "
        f"({later.idxmin()}) to {later.max():.2f} in {len(later)} later networks",
        {"early_max": early.max(), "later_min": later.min()},
    )


def vit_median(census: Census) -> Answer:
    """Check whether every ViT is below every earlier convnet."""
    median = census.statistics["median"]
    vits, before = median[census.members("ViT")], median[census.members(*EARLY, *LATER)]
    return Answer(
        vits.max() < before.min(),
        f"median {vits.min():.2f} to {vits.max():.2f} in {len(vits)} ViTs, {before.min():.2f} "
        f"({before.idxmin()}) to {before.max():.2f} in {len(before)} convnets before them",
        {"vit_max": vits.max(), "before_min": before.min()},
    )


def near_early(census: Census) -> Answer:
    """Check whether Swins and ConvNeXts are nearer to the early convnets than to ViTs."""
    frame = distances(census.soundings).frame
    new = census.members(*PRIORS)
    to_early = frame.loc[new, census.members(*EARLY)].mean(axis=1)
    to_vit = frame.loc[new, census.members("ViT")].mean(axis=1)
    nearer = to_early < to_vit
    return Answer(
        bool(nearer.all()),
        f"{int(nearer.sum())} of {len(new)} are: mean DTW distance {np.mean(to_early):.2f} to AlexNet and "
        f"VGGs, {np.mean(to_vit):.2f} to ViTs",
        {"nearer": nearer.sum(), "to_early": to_early.mean(), "to_vit": to_vit.mean()},
    )


FIGURE_3 = network_item(
    name="affinity-figure-3",
    title="Figure 3: median, minimum and maximum scores of networks from 2012 to 2022",
    claims={
        "spread": Claim(
            "A clear trend toward the increase of the spread and of the maximum values of the linearity, "
            "lasting until the arrival of transformers in 2020.",
            "Over the architectures published before 2020 (a family of one year counts once, by the mean "
            f"of its networks; at least {LEAST}), the rank correlation with the year is positive for the "
            f"maximum and for the spread, each with p < {LEVEL} over orders of the years.",
        ),
        "median": Claim(
            "Until the arrival of transformers, the trend of the landmark models was to decrease their "
            "non-linearity.",
            "The same for the median of the scores. (The text also speaks of a trend toward increasing the "
            "maximum and average non-linearity, which is read as linearity, as the caption has it.)",
        ),
        "early": Claim(
            "AlexNet and VGGs have a very low spread of the score; that changes with GoogLeNet.",
            "The largest spread of AlexNet and VGGs is below the least of all Inceptions, ResNets, "
            "DenseNets, MNASNets and EfficientNets.",
        ),
        "vit": Claim(
            "ViTs break the trend, and have a distinct pattern of maximising the non-linearity.",
            "Every ViT has a lower median score than every convnet of the families before it.",
        ),
        "priors": Claim(
            "Swin transformers and ConvNeXts look more similar to the pure convolutional networks of the "
            "early 2010s.",
            "Every Swin and ConvNeXt has a smaller mean DTW distance to AlexNet and the VGGs than to the "
            "ViTs.",
        ),
    },
    run=run,
    seconds=Seconds(5, 290, 40_000),
)
