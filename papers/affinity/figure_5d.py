"""Figure 5 (D): one network trained with and without residual connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fathometer.compare import dip_test, two_modes
from papers.affinity.trained_figures import plot_residual
from papers.images.ensembles import (
    Ensemble,
    Scores,
    ensemble,
    note_accuracy,
    scores_table,
    train_ensembles,
    trained_item,
)
from papers.intervals import mean_interval, pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds

LEVEL = 0.05
LINEAR = 0.9  # a score that is called highly linear


def run(context: RunContext) -> Answers:
    """Train both networks, and a deeper one; measure all on held-out images."""
    residual_kind, plain_kind, deep_kind = context.pick(
        smoke=("resnet8", "plain8", "resnet14"),
        small=("resnet20", "plain20", "resnet56"),
        paper=("resnet20", "plain20", "resnet56"),
    )
    seeds = range(context.pick(smoke=2, small=3, paper=5))
    few = range(context.pick(smoke=1, small=3, paper=3))
    train_ensembles(context, [residual_kind, plain_kind], seeds)
    residual, plain = (ensemble(context, kind, seeds) for kind in (residual_kind, plain_kind))
    deep = ensemble(context, deep_kind, few)
    groups = {
        f"plain, {plain_kind[5:]} layers": plain,
        f"residual, {residual_kind[6:]} layers": residual,
        f"residual, {deep_kind[6:]} layers": deep,
    }
    context.table("signatures", scores_table(groups))
    context.table("modes", modes_table(groups))
    context.figure(plot_residual(groups))
    note_accuracy(context, {plain_kind: seeds, residual_kind: seeds, deep_kind: few})
    context.note(
        "The dip finds two heaps of equal size four standard deviations apart in 24 % of samples of 19 "
        "values, and in 59 % of 55: that it finds nothing among 19 sites does not say that there is one "
        "heap."
    )
    context.note(
        "The paper's bottom row (ResNet-18 and 34, ImageNet) needs weights that were not at hand; networks "
        "are trained here, on "
        + context.pick(smoke="digits", small="digits, at half their width", paper="CIFAR-10, as the paper's")
        + "."
    )
    return {
        "trend": trend(residual.gaps, plain.gaps),
        "bimodal": bimodal(residual.scores, plain.scores),
        "pooled": pooled(residual.scores, plain.scores),
        "linear": linear(residual, deep),
        "deeper": deeper(deep),
    }


def modes_table(groups: Mapping[str, Ensemble]) -> pd.DataFrame:
    """Tabulate for each training the means of both kinds of sites, the dip, and two fitted modes."""
    rows = []
    for name, group in groups.items():
        for seed, scores in zip(group.soundings, group.scores, strict=True):
            modes = two_modes(scores)
            rows.append(
                {
                    "of": name,
                    "seed": seed,
                    "end": scores[group.roles.ends].mean(),
                    "inside": scores[group.roles.inside].mean(),
                    "spread": scores.max() - scores.min(),
                    "dip": modes.dip,
                    "p": modes.p,
                    "low": modes.low,
                    "high": modes.high,
                    "share": modes.share,
                    "ashman": modes.ashman,
                }
            )
    return pd.DataFrame(rows)


def trend(residual: Scores, plain: Scores) -> Answer:
    """Check whether the two kinds of sites are further apart in the residual network. Gaps, by seed."""
    more = mean_interval(residual - plain)
    return Answer(
        more.low > 0,
        f"the ends of blocks score higher by {pm(residual)} with residual connections and {pm(plain)} "
        f"without; paired difference {more} over {more.number} seeds",
        {"residual": residual.mean(), "plain": plain.mean(), "more": more.mean, "low": more.low},
    )


def bimodal(residual: Scores, plain: Scores) -> Answer:
    """Apply the dip test to one network at a time."""
    with_, without = _levels(residual), _levels(plain)
    return Answer(
        max(with_) < LEVEL and min(without) >= LEVEL,
        f"p = {_listed(with_)} with residual connections, {_listed(without)} without",
        {
            "residual_p_max": max(with_),
            "residual_p_min": min(with_),
            "plain_p_min": min(without),
            "plain_p_max": max(without),
        },
    )


def pooled(residual: Scores, plain: Scores) -> Answer:
    """Apply the dip test to all networks together."""
    (with_,), (without,) = _levels(residual.reshape(1, -1)), _levels(plain.reshape(1, -1))
    return Answer(
        with_ < LEVEL <= without,
        f"p = {with_:.3g} with residual connections ({residual.size} scores), {without:.3g} without",
        {"residual_p": with_, "plain_p": without},
    )


def linear(residual: Ensemble, deep: Ensemble) -> Answer:
    """Find where the upper mode is."""
    upper, deeper_upper = ([two_modes(scores).high for scores in group.scores] for group in (residual, deep))
    ends = [group.ends for group in (residual, deep)]
    found = mean_interval(upper)
    return Answer(
        found.low > LINEAR,
        f"upper mode of {residual.title} at {found} (mean score at the ends of blocks {pm(ends[0])}); of "
        f"{deep.title} at {pm(deeper_upper)} ({pm(ends[1])})",
        {
            "upper": found.mean,
            "low": found.low,
            "ends": ends[0].mean(),
            "deep_upper": float(np.mean(deeper_upper)),
            "deep_ends": ends[1].mean(),
        },
    )


def deeper(deep: Ensemble) -> Answer:
    """Apply the dip test to a deeper network."""
    found = _levels(deep.scores)
    gap = f"the ends of blocks score higher by {pm(deep.gaps)}"
    return Answer(max(found) < LEVEL, f"{deep.title}: p = {_listed(found)}; {gap}", {"p_max": max(found)})


def _levels(scores: Scores) -> list[float]:
    return [dip_test(row)[1] for row in scores]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2g}" for value in values)


FIGURE_5D = trained_item(
    name="affinity-figure-5d",
    title="Figure 5 (D): a network trained with and without residual connections",
    claims={
        "trend": Claim(
            "Residual connections introduce a clear trend toward a bimodal distribution of affinity scores.",
            "Read as two kinds of sites that drift apart: the mean score of the ReLUs at the end of a block "
            "less that of those inside, in ResNet-20 less in the plain network of the same seed. The 95 % "
            "interval over seeds lies above 0.",
        ),
        "bimodal": Claim(
            "Residual connections make the distribution of the affinity scores bimodal.",
            f"Hartigan's dip over the 19 sites of a network: p < {LEVEL} for every seed of ResNet-20, and "
            "for none of the plain network.",
        ),
        "pooled": Claim(
            "The same, read as a statement about the scores of several trainings together.",
            f"The dip over the sites of all seeds: p < {LEVEL} for ResNet-20, and not for the plain "
            "network. Sites of several seeds are not independent, which makes p too small.",
            ours=True,
        ),
        "linear": Claim(
            "One such mode is centred around highly linear activation functions.",
            "The upper of two normal distributions fitted to the scores of each ResNet-20: the 95 % "
            f"interval of its mean over seeds lies above {LINEAR}.",
        ),
        "deeper": Claim(
            "The same effect is observed in deeper networks (the paper: ResNet-18 and 34; here: ResNet-56).",
            "ResNet-56, whose 55 sites give the dip more power, stands for these: p < "
            f"{LEVEL} for every seed.",
            ours=True,
        ),
    },
    run=run,
    changes=(
        "The claim on deeper networks named ResNet-18 and 34 alone; the test, by ResNet-56, is as it was.",
    ),
    seconds=Seconds(4, 130, 320),
    small="digits of 16 pixels, networks of half the width, three seeds",
    published="networks trained here on CIFAR-10, ResNet-20 and plain 20, five seeds each, 24 epochs",
)
