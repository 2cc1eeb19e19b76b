"""Figure 4: what goes with accuracy, the signature or depth, size and GFLOPS."""

from __future__ import annotations

import pandas as pd

from fathometer.compare import best_predictors, predictors
from fathometer.models import torchvision_facts
from fathometer.report import plot_predictors
from papers.affinity.census import (
    Census,
    Lacking,
    has_random_weights,
    judged,
    keep_figure,
    listed,
    network_item,
    take_census,
)
from papers.item import Answer, Answers, Claim, RunContext

GROUPS = {
    "Pre-residual": ("AlexNet", "VGG", "Inception"),
    "Residual": ("ResNet", "DenseNet"),
    "NAS-based": ("EfficientNet", "MNASNet"),
    "ViTs": ("ViT",),
    "Post-ViT": ("Swin", "ConvNeXt"),
}
BEST = {group: ("median", "min") if "ViT" in group else ("spread",) for group in GROUPS}
LEAST = 4  # networks of a group; through three points the best of seven lines is always a good one
SIMILAR = 0.1  # of R²


def run(context: RunContext) -> Answers:
    """Fit lines through the networks of each group."""
    census = with_accuracies(take_census(context))
    groups = groups_of(census)
    if not len(census.trained):
        context.note(
            "Networks with random weights have no accuracy: here their signatures are held against the "
            "accuracy that torchvision states for the trained network of the same architecture."
        )
    if "vit_h_14" in census.soundings:
        context.note(
            "torchvision's default ViT-H/14 was trained on more data than ImageNet (SWAG), and takes larger "
            "images; its accuracy is not due to the architecture alone."
        )
    if there := [group for group in GROUPS if not needs_groups(group)(census)]:
        chosen = {name: group for name, group in groups.items() if group in there}
        context.table("predictors", predictors(census.statistics, census.facts, chosen))
        best = best_predictors(census.statistics, census.facts, chosen)
        context.table("best", best)
        keep_figure(context, census, plot_predictors(best, census.statistics, census.facts, chosen))
    signature = ("Residual", "ViTs", "Post-ViT")
    return {
        "signature": judged(census, needs_groups(*signature), lambda of: better(of, signature, "r2")),
        "left_out": judged(census, needs_groups(*signature), lambda of: better(of, signature, "r2_left_out")),
        "nas": judged(census, needs_groups("NAS-based"), parameters_best),
        "early": judged(census, needs_groups("Pre-residual"), spread_like_depth),
        "shift": judged(census, needs_groups(*GROUPS), shift),
    }


def with_accuracies(census: Census) -> Census:
    """Give networks with random weights the accuracy of torchvision's default weights."""
    facts = census.facts.reindex(columns=list(dict.fromkeys([*census.facts.columns, "accuracy"])))
    for name, sounding in census.soundings.items():
        if has_random_weights(sounding):
            stated = torchvision_facts(f"torchvision:{name}", "default")
            facts.loc[name, "accuracy"] = stated.get("accuracy", float("nan"))
    return Census(census.soundings, facts)


def groups_of(census: Census) -> dict[str, str]:
    """Map networks of known accuracy to their group."""
    known = census.facts.reindex(columns=["accuracy"])["accuracy"].dropna().index
    return {
        name: group
        for group, families in GROUPS.items()
        for name in census.members(*families)
        if name in known
    }


def needs_groups(*groups: str) -> Lacking:
    """Require groups with enough networks of known accuracy."""

    def lacking(census: Census) -> str:
        there = list(groups_of(census).values())
        missing = [f"{group} ({there.count(group)})" for group in groups if there.count(group) < LEAST]
        wanted = f"at least {LEAST} trained networks of known accuracy among {listed(missing)}"
        return wanted if missing else ""

    return lacking


def lines_of(census: Census, group: str) -> pd.DataFrame:
    """Fit all predictors of a group."""
    names = {name: of for name, of in groups_of(census).items() if of == group}
    return predictors(census.statistics, census.facts, names).dropna(subset="r2")


def better(census: Census, groups: tuple[str, ...], by: str) -> Answer:
    """Check in every group whether the best statistic is better than the best characteristic."""
    words: list[str] = []
    numbers: dict[str, float] = {}
    holds = True
    for group in groups:
        lines = lines_of(census, group)
        top = {
            kind: of.iloc[int(of[by].argmax())]
            for kind, of in lines.dropna(subset=by).groupby("kind", sort=False)
        }
        ours, theirs = top["signature"], top["characteristic"]
        holds &= bool(ours[by] > theirs[by])
        words.append(
            f"{group}: {ours['predictor']} {ours[by]:.2f}, {theirs['predictor']} {theirs[by]:.2f} "
            f"({ours['members']:.0f} networks)"
        )
        numbers |= {f"{group}_signature": float(ours[by]), f"{group}_characteristic": float(theirs[by])}
    return Answer(holds, "R² " + "; ".join(words), numbers)


def parameters_best(census: Census) -> Answer:
    """Check whether the number of parameters is the best predictor of NAS-based networks."""
    lines = lines_of(census, "NAS-based").set_index("predictor")
    first, own = str(lines["r2"].idxmax()), lines.T["parameters"]
    best = lines.T[first]
    return Answer(
        first == "parameters",
        f"best: {first}, R² {best['r2']:.2f} (left out {best['r2_left_out']:.2f}); "
        f"parameters: {own['r2']:.2f} ({own['r2_left_out']:.2f})",
        {"best": float(lines["r2"].max()), "parameters": float(own["r2"])},
    )


def spread_like_depth(census: Census) -> Answer:
    """Check whether the spread explains as much as depth."""
    lines = lines_of(census, "Pre-residual").set_index("predictor")
    spread, depth = lines.T["spread"], lines.T["depth"]
    return Answer(
        bool(abs(spread["r2"] - depth["r2"]) <= SIMILAR and spread["slope"] > 0),
        f"R² {spread['r2']:.2f} (left out {spread['r2_left_out']:.2f}) of the spread, {depth['r2']:.2f} "
        f"({depth['r2_left_out']:.2f}) of depth",
        {"spread": float(spread["r2"]), "depth": float(depth["r2"])},
    )


def shift(census: Census) -> Answer:
    """Check whether the best statistic of each group is the published one."""
    best, right = {}, {}
    for group, wanted in BEST.items():
        lines = lines_of(census, group)
        lines = lines[lines["kind"] == "signature"]
        top = lines.iloc[int(lines["r2"].argmax())]
        best[group] = str(top["predictor"])
        right[group] = best[group] in wanted and (best[group] != "spread" or bool(top["slope"] > 0))
    words = ", ".join(f"{group} {name}" for group, name in best.items())
    return Answer(
        all(right.values()),
        f"best statistic: {words}; as said in {sum(right.values())} of {len(right)} groups",
        {group: float(is_right) for group, is_right in right.items()},
    )


FIGURE_4 = network_item(
    name="affinity-figure-4",
    title="Figure 4: statistics of the signature and accuracy on ImageNet",
    claims={
        "signature": Claim(
            "The signature correlates more with the accuracy than depth, size and GFLOPS do, for residual "
            "networks, ViTs and post-ViT networks.",
            "In each of the three groups the best of seven statistics (min, max, mean, median, std, spread, "
            "skewness) has a larger R² in the sample than the best of depth, parameters and GFLOPS. As the "
            "paper did it, though the best of seven has an advantage over the best of three.",
        ),
        "left_out": Claim(
            "The same, read as a statement about networks that the line has not seen.",
            "The same with R² left out: each network is predicted by the line through all others.",
            ours=True,
        ),
        "nas": Claim(
            "For networks from architecture search the number of parameters is the most informative.",
            "Of all ten predictors the number of parameters has the largest R² for EfficientNets and "
            "MNASNets.",
        ),
        "early": Claim(
            "For pre-residual networks the spread explains the accuracy similarly to depth.",
            f"R² of spread and of depth differ by at most {SIMILAR}, and accuracy rises with the spread.",
        ),
        "shift": Claim(
            "All models preceding ViTs were implicitly optimising the spread; after them the median or the "
            "minimum.",
            "The best statistic by R² is the spread, with a rising line, for pre-residual, residual and "
            "NAS-based networks; it is the median or the minimum for ViTs and post-ViT networks.",
        ),
    },
    run=run,
)
