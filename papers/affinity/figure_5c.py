"""Figure 5 (C): the distribution of scores in each network."""

from __future__ import annotations

from fathometer.compare import signatures
from fathometer.report import plot_distributions
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
from papers.item import Answer, Answers, Claim, RunContext


def run(context: RunContext) -> Answers:
    """Draw the distributions of the scores."""
    census = take_census(context)
    shown = census.only(census.representatives())
    keep_figure(
        context, census, plot_distributions(signatures(shown.soundings), "affinity", shown.statistics)
    )
    return {
        "wide": judged(census, needs(*EARLY, *LATER, "ViT", *PRIORS), wider),
        "bimodal": judged(census, needs("ResNet"), bimodal),
        "skewed": judged(census, needs("ViT", "DenseNet", "EfficientNet"), skewed),
    }


def wider(census: Census) -> Answer:
    """Check whether most networks have a larger spread than every early convnet."""
    spread = census.statistics["spread"]
    early = spread[census.members(*EARLY)]
    later = spread.drop(early.index)
    count = int((later > early.max()).sum())
    return Answer(
        count > len(later) / 2,
        f"{count} of {len(later)} have a larger spread than {early.idxmax()} ({early.max():.2f})",
        {"wider": count, "later": len(later), "early_max": early.max()},
    )


def bimodal(census: Census) -> Answer:
    """Check whether every ResNet has two modes."""
    table = census.statistics.loc[census.members("ResNet")]
    words = ", ".join(f"{name} p = {p:.3g}" for name, p in table["p"].items())
    return Answer(
        bool(table["bimodal"].all()),
        f"{int(table['bimodal'].sum())} of {len(table)} by Hartigan's dip: {words}",
        {f"p_{name}": p for name, p in table["p"].items()},
    )


def skewed(census: Census) -> Answer:
    """Check that ViTs are skewed to one side, DenseNets and EfficientNets to the other."""
    skewness = census.statistics["skewness"]
    vits = skewness[census.members("ViT")]
    others = skewness[census.members("DenseNet", "EfficientNet")]
    return Answer(
        bool((vits > 0).all() and (others < 0).all()),
        f"skewness {vits.min():.2f} to {vits.max():.2f} in {len(vits)} ViTs, {others.min():.2f} to "
        f"{others.max():.2f} in {len(others)} DenseNets and EfficientNets",
        {
            "vit_min": vits.min(),
            "vit_max": vits.max(),
            "others_min": others.min(),
            "others_max": others.max(),
        },
    )


FIGURE_5C = network_item(
    name="affinity-figure-5c",
    title="Figure 5 (C): distributions of the scores in each network",
    claims={
        "wide": Claim(
            "Most models expand the non-linearity ranges of their activation functions compared to early "
            "convnets.",
            "More than half of all other networks have a larger spread than every AlexNet and VGG.",
        ),
        "bimodal": Claim(
            "ResNets have a bimodal distribution.",
            "Hartigan's dip has p < 0.05 in every trained ResNet that was measured.",
        ),
        "skewed": Claim(
            "ViTs are dominated by highly non-linear activation functions; DenseNets and EfficientNets "
            "have a diametrically skewed distribution.",
            "The skewness of the scores is above 0 in every ViT, and below 0 in every DenseNet and "
            "EfficientNet.",
        ),
    },
    run=run,
)
