"""Figure 13: ResNets of growing depth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from papers.affinity.trained_figures import plot_depth
from papers.images.ensembles import (
    Ensemble,
    Scores,
    ensemble,
    note_accuracy,
    scores_table,
    train_ensembles,
    trained_item,
)
from papers.images.networks import published_files, published_network
from papers.images.trained import measured
from papers.intervals import mean_interval, pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.ranks import spearman

DEPTHS = (20, 32, 44, 56, 110)
NEAR_ONE = 0.95
LEAST = 3  # published networks that a trend needs


def run(context: RunContext) -> Answers:
    """Train several networks of each depth; measure the published ones too."""
    depths = context.pick(smoke=(8, 14), small=DEPTHS[:4], paper=DEPTHS)
    seeds = range(context.pick(smoke=2, small=3, paper=3))
    kinds = [f"resnet{depth}" for depth in depths]
    train_ensembles(context, kinds, seeds)
    groups = {depth: ensemble(context, f"resnet{depth}", seeds) for depth in depths}
    others = published(context)
    named = {group.title: group for group in groups.values()}
    named |= {f"{group.title}, published": group for group in others.values()}
    context.table("signatures", scores_table(named))
    context.table("depths", depth_table(named))
    context.figure(plot_depth(groups, others))
    note_accuracy(context, dict.fromkeys(kinds, seeds))
    context.note(
        "The paper's are ResNet-18, 34, 50, 101 and 152, trained on ImageNet; these are He et al.'s for "
        "small images."
    )
    return {
        "separation": separation(groups),
        "post": post_residual(groups),
        "one": near_one(groups),
        "published": grows_strictly(others),
    }


def published(context: RunContext) -> dict[int, Ensemble]:
    """Measure the networks of `--resnets` on CIFAR-10, by depth; none below the scale `paper`."""
    if context.scale != "paper" or "resnets" not in context.sources:
        return {}
    return {
        depth: Ensemble(
            f"resnet{depth}",
            {
                0: measured(
                    context, f"resnet{depth} published", file.stem, partial(published_network, depth, file)
                )
            },
        )
        for depth, file in published_files(context).items()
    }


def depth_table(groups: Mapping[str, Ensemble]) -> pd.DataFrame:
    """Tabulate the means of both kinds of sites, for each training."""
    rows = [
        {
            "of": name,
            "seed": seed,
            "end": float(scores[group.roles.ends].mean()),
            "inside": float(scores[group.roles.inside].mean()),
            "gap": float(gap),
        }
        for name, group in groups.items()
        for seed, scores, gap in zip(group.soundings, group.scores, group.gaps, strict=True)
    ]
    return pd.DataFrame(rows)


def growth(values: Mapping[int, Scores], what: str) -> Answer:
    """Check whether values (depth → one for each seed) rise with the logarithm of the depth."""
    depths, rows = list(values), np.array(list(values.values()))  # [depths, seeds]
    slopes = mean_interval([float(np.polyfit(np.log2(depths), row, 1)[0]) for row in rows.T])
    ranks = [spearman(depths, row) for row in rows.T]
    words = ", ".join(f"{pm(row)} ({depth} layers)" for depth, row in values.items())
    return Answer(
        slopes.low > 0,
        f"{what} {words}; {slopes} for each doubling of the depth, rank correlation with it {pm(ranks)}",
        {"slope": slopes.mean, "low": slopes.low, "high": slopes.high, "rank": float(np.mean(ranks))},
    )


def separation(groups: Mapping[int, Ensemble]) -> Answer:
    """Check the distance between the two kinds of sites."""
    return growth({depth: group.gaps for depth, group in groups.items()}, "difference of the means")


def post_residual(groups: Mapping[int, Ensemble]) -> Answer:
    """Check the sites after the sum."""
    return growth({depth: group.ends for depth, group in groups.items()}, "mean score after the sum")


def near_one(groups: Mapping[int, Ensemble]) -> Answer:
    """Check the deepest network."""
    deepest = groups[max(groups)]
    found = mean_interval(deepest.ends)
    highest = deepest.scores[:, deepest.roles.ends].max(1)
    return Answer(
        found.low > NEAR_ONE,
        f"{deepest.title}: mean score after the sum {found}; the highest of them {pm(highest)}",
        {"mean": found.mean, "low": found.low, "highest": highest.mean()},
    )


def grows_strictly(groups: Mapping[int, Ensemble]) -> Answer:
    """Check networks of which there is one for each depth."""
    if len(groups) < LEAST:
        return Answer(
            None, f"not decided: needs --resnets with published ResNets of {LEAST} depths, at scale paper"
        )
    gaps = {depth: float(group.gaps.mean()) for depth, group in groups.items()}
    ends = {depth: float(group.ends.mean()) for depth, group in groups.items()}
    both = [list(values.values()) for values in (gaps, ends)]
    words = ", ".join(f"{gaps[depth]:.3f} and {ends[depth]:.3f} ({depth} layers)" for depth in groups)
    return Answer(
        all(first < second for values in both for first, second in pairwise(values)),
        f"difference and mean score after the sum: {words}",
        {f"gap_{depth}": gap for depth, gap in gaps.items()}
        | {f"end_{depth}": end for depth, end in ends.items()},
    )


FIGURE_13 = trained_item(
    name="affinity-figure-13",
    title="Figure 13: the impact of depth on the signature of ResNets",
    claims={
        "separation": Claim(
            "The separation between more linear post-residual activations becomes more distinct for deeper "
            "networks.",
            "The mean score of the ReLUs after the sum less that of those inside blocks, fitted by a line "
            "in the logarithm of the depth (20 to 110 layers) for each seed: the 95 % interval of the slope "
            "over seeds lies above 0.",
        ),
        "post": Claim(
            "Post-residual activations become more linear for deeper networks.",
            "The same for the mean score after the sum alone.",
        ),
        "one": Claim(
            "Post-residual activations approach 1 for deeper networks.",
            "In the deepest network the 95 % interval of the mean score after the sum lies above "
            f"{NEAR_ONE}.",
        ),
        "published": Claim(
            "The first two, in networks that others have trained.",
            "In the published ResNets for CIFAR-10 (--resnets), at least three, the difference and the mean "
            "score after the sum grow from each depth to the next.",
        ),
    },
    run=run,
    seconds=Seconds(3, 100, 330),
    small="digits of 16 pixels, half the width, 20 to 56 layers",
    published="networks trained here on CIFAR-10, ResNet-20 to 110, three seeds each, 24 epochs",
    optional=("resnets",),
)
