"""Figure 9: VGG-16 before and after training."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from papers.affinity.trained_figures import plot_training
from papers.images.ensembles import Scores, ensemble, note_accuracy, scores_table, trained_item
from papers.images.networks import CifarVGG16
from papers.images.pictures import size_of
from papers.images.trained import measured, width_of
from papers.intervals import mean_interval, pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.ranks import spearman

SEEDS = 9
RISING = 0.5  # rank correlation with depth
LINEAR = 0.95
LAST = 3  # sites that are called the last layers


def run(context: RunContext) -> Answers:
    """Compare nine trainings, each with its own initialisation."""
    seeds = range(context.pick(smoke=2, small=SEEDS, paper=SEEDS))
    after = ensemble(context, "vgg16", seeds)
    before = ensemble(context, "vgg16", seeds, state="initial", gauges="affinity")
    context.table("signatures", scores_table({"initial": before, "trained": after}))
    context.figure(plot_training(before.scores, after.scores))
    note_accuracy(context, {"vgg16": seeds})
    _note_initialisation(context, seeds[: context.pick(smoke=1, small=3, paper=3)])
    context.note(
        "The paper's VGG-16 was trained on ImageNet and measured on CIFAR-10; this one was trained on the "
        "images that it is measured on. Its batch norms are the identity before training, in eval mode."
    )
    return {
        "rising": rising(before.scores),
        "last": last_layers(before.scores),
        "training": more_nonlinear(before.scores, after.scores),
        "monotone": not_monotone(before.scores, after.scores),
    }


def rank_correlations(scores: Scores) -> list[float]:
    """Correlate score and depth, for each seed."""
    return [spearman(np.arange(len(row)), row) for row in scores]


def rising(before: Scores) -> Answer:
    """Check whether the score rises along depth at initialisation."""
    found = mean_interval(rank_correlations(before))
    means = before.mean(0)
    return Answer(
        found.low > RISING,
        f"rank correlation of score and depth {found} over {found.number} seeds; from {means[0]:.2f} at the "
        f"first site and {means[1]:.2f} at the second to {means[-1]:.2f} at the last",
        {"correlation": found.mean, "low": found.low, "high": found.high},
    )


def last_layers(before: Scores) -> Answer:
    """Check whether the last sites are nearly linear at initialisation."""
    found = mean_interval(before[:, -LAST:].mean(1))
    return Answer(
        found.low > LINEAR,
        f"mean score of the last {LAST} sites {found}; largest mean at any site {before.mean(0).max():.3f}",
        {"last": found.mean, "low": found.low, "largest": before.mean(0).max()},
    )


def more_nonlinear(before: Scores, after: Scores) -> Answer:
    """Check whether training lowers the scores."""
    change = after - before
    found = mean_interval(change.mean(1))
    falling = (change < 0).mean(1)
    always = int((change < 0).all(0).sum())
    return Answer(
        found.high < 0 and falling.min() > 0.5,
        f"mean score {pm(before.mean(1))} before and {pm(after.mean(1))} after, change {found}; {always} of "
        f"{change.shape[1]} sites fall in every seed, {int((change > 0).all(0).sum())} rise in every seed",
        {"change": found.mean, "low": found.low, "high": found.high, "least_falling": falling.min()},
    )


def not_monotone(before: Scores, after: Scores) -> Answer:
    """Check whether the change goes up and down along depth, in the same way in every seed."""
    change = after - before
    steps = np.diff(change, axis=1)
    down, up = (steps < 0).all(0), (steps > 0).all(0)
    most, least = int(change.mean(0).argmin()), int(change.mean(0).argmax())
    return Answer(
        bool(down.any() and up.any()),
        f"from site to site the change falls {int(down.sum())} times and rises {int(up.sum())} times in "
        f"every seed; it is largest at site {most} ({pm(change[:, most])}), least at site {least} "
        f"({pm(change[:, least])})",
        {"falls": down.sum(), "rises": up.sum(), "most": change.mean(0).min(), "least": change.mean(0).max()},
    )


def _note_initialisation(context: RunContext, seeds: range) -> None:
    """Note the same for PyTorch's default initialisation."""

    def network(seed: int) -> torch.nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return CifarVGG16(round(64 * width_of(context, "vgg16")), size_of(context))

    found = [
        measured(context, f"vgg16 default {seed}", "initial", partial(network, seed), gauges="affinity")
        for seed in seeds
    ]
    scores = np.array([each.signature.to_numpy(float) for each in found])
    context.note(
        "The paper does not name its initialisation; this is He et al.'s, without biases. With that of "
        "PyTorch's layers, whose biases are not 0, the rank correlation is "
        f"{pm(rank_correlations(scores))}, and the mean score of the last {LAST} sites "
        f"{pm(scores[:, -LAST:].mean(1))} ({len(scores)} seeds)."
    )


FIGURE_9 = trained_item(
    name="affinity-figure-9",
    title="Figure 9: VGG-16 at the beginning and at the end of training",
    claims={
        "rising": Claim(
            "At initialisation the non-linearity signature is increasing.",
            "The rank correlation of score and depth at initialisation: its 95 % interval over nine seeds "
            f"lies above {RISING}.",
        ),
        "last": Claim(
            "It reaches an almost perfectly linear pattern in the last layers.",
            f"The mean score of the last {LAST} sites at initialisation: its 95 % interval over seeds lies "
            f"above {LINEAR}.",
        ),
        "training": Claim(
            "Training the network enhances the non-linearity.",
            "The change of the mean score: its 95 % interval over seeds lies below 0, and in every seed "
            "more than half of the sites fall.",
        ),
        "monotone": Claim(
            "It does so in a non-monotone way.",
            "Read along depth: there are neighbouring sites between which the change falls in every seed, "
            "and others between which it rises in every seed.",
        ),
    },
    run=run,
    changes=(
        "The words of the last test said less than the code, which asks for the same places in every "
        "seed; the code is as it was.",
    ),
    seconds=Seconds(2, 3, 45),
    small="digits of 16 pixels, an eighth of the width",
    published="networks trained here on CIFAR-10, VGG-16, nine seeds, 24 epochs",
)
