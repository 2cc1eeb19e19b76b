"""Figure 5 (B): how far the later networks are from the early convnets."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from fathometer.compare import distances
from papers.affinity.census import EARLY, Census, judged, keep_figure, needs, network_item, take_census
from papers.affinity.network_figures import plot_matrix
from papers.item import Answer, Answers, Claim, RunContext
from papers.ranks import rank_trend

TREND_LEVEL = 0.05
SEVERAL = 5  # architectures after the early ones, until ViT


def run(context: RunContext) -> Answers:
    """Measure distances from the early convnets, over the years."""
    census = take_census(context)
    near = distances(census.soundings)
    shown = census.representatives()
    context.table("distances", near.frame.rename_axis("network").reset_index())
    families = {name: census.families.get(name, name) for name in shown}
    keep_figure(context, census, plot_matrix(near.frame.loc[shown, shown], families))
    found = from_early(census) if census.members(*EARLY) else pd.DataFrame()
    if len(found):
        context.table("from-early", found.reset_index())
        context.note(
            "DTW sums along the alignment, and so grows with the number of sites; from-early.csv has W₁ "
            "beside it, which does not."
        )
    return {
        "falls": judged(census, lacking_years, moving_away),
        "back": judged(census, needs(*EARLY, "ViT", "Swin"), coming_back),
    }


def from_early(census: Census) -> pd.DataFrame:
    """Average the distance of each later architecture (a family of one year) from AlexNet and the VGGs."""
    early = census.members(*EARLY)
    later = [name for name in census.soundings if name not in early and name in census.families]
    metrics: tuple[Literal["dtw", "wasserstein"], ...] = ("dtw", "wasserstein")
    frames = {metric: distances(census.soundings, metric=metric).frame for metric in metrics}
    far = {metric: frame.loc[later, early].mean(axis=1) for metric, frame in frames.items()}
    return census.by_architecture(pd.DataFrame(far))


def lacking_years(census: Census) -> str:
    """Require early convnets, and enough later architectures, until ViT."""
    if missing := needs(*EARLY, "ViT")(census):
        return missing
    there = int((from_early(census)["year"] <= 2020).sum())
    return (
        "" if there >= SEVERAL else f"trained networks of {SEVERAL} architectures up to 2020 (here {there})"
    )


def moving_away(census: Census) -> Answer:
    """Check whether the distance from the early convnets grows with the year."""
    table = from_early(census)
    table = table[table["year"] <= 2020]
    found = rank_trend(table["year"].to_list(), table["dtw"].to_list())
    words = ", ".join(f"{name} {value:.2f}" for name, value in table["dtw"].items())
    return Answer(
        found.value > 0 and found.p < TREND_LEVEL,
        f"rank correlation of the mean DTW distance with the year {found.value:.2f} (p = {found.p:.3g}): "
        f"{words}",
        {"correlation": found.value, "p": found.p},
    )


def coming_back(census: Census) -> Answer:
    """Check whether the Swins are nearer to the early convnets than the ViTs are."""
    frame = distances(census.soundings).frame
    early = census.members(*EARLY)
    swin, vit = (frame.loc[census.members(family), early].to_numpy().mean() for family in ("Swin", "ViT"))
    return Answer(
        swin < vit,
        f"mean DTW distance from AlexNet and VGGs: Swins {swin:.2f}, ViTs {vit:.2f}",
        {"swin": swin, "vit": vit},
    )


FIGURE_5B = network_item(
    name="affinity-figure-5b",
    title="Figure 5 (B): distances between representatives of the families",
    claims={
        "falls": Claim(
            "The similarity between early convnets and other models is decreasing with time.",
            "Mean DTW distance of each later architecture (a family of one year) from AlexNet and the "
            f"VGGs: its rank correlation with the year is positive up to ViT (2020), with p < {TREND_LEVEL} "
            "over orders of the years.",
        ),
        "back": Claim(
            "That lasts until computer vision priors are introduced into Swin transformers in 2021.",
            "The mean DTW distance of the Swins from AlexNet and the VGGs is below that of the ViTs.",
        ),
    },
    run=run,
)
