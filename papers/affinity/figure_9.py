"""Figure 9: VGG-16 before and after training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from papers.affinity.trained_figures import plot_training
from papers.images.ensembles import Scores, accuracies, ensemble, scores_table, trained_item
from papers.intervals import interval_numbers, interval_simulation
from papers.item import Claim, Numbers, RunContext
from papers.ranks import spearman

RISING = 0.5  # rank correlation with depth
LINEAR = 0.95
LAST = 3  # sites that are called the last layers
_INTERVAL = "{mean:.3f} ({low:.3f} to {high:.3f}) over {seeds:.0f} seeds"


class Evidence(NamedTuple):
    """Scores, `[seeds, sites]`."""

    before: Scores
    after: Scores


def run(context: RunContext) -> Evidence:
    """Compare nine trainings, each with its own initialisation."""
    seeds = context.seeds(smoke=2, small=9, paper=9)
    after = ensemble(context, "vgg16", seeds)
    before = ensemble(context, "vgg16", seeds, state="initial", gauges="affinity")
    context.table("signatures", scores_table({"initial": before, "trained": after}))
    context.figure(plot_training(before.scores, after.scores))
    context.facts["accuracy"] = accuracies(context, {"vgg16": seeds})
    return Evidence(before.scores, after.scores)


def rising(found: Evidence) -> Numbers:
    """Correlate score and depth at initialisation, for each seed."""
    correlations = [spearman(np.arange(len(row)), row) for row in found.before]
    means = found.before.mean(0)
    return interval_numbers(correlations) | {"first": means[0], "last": means[-1]}


def change(found: Evidence) -> Numbers:
    """Compute the change of the mean score, and the share of sites that fall in the seed with the fewest."""
    difference = found.after - found.before
    return interval_numbers(difference.mean(1)) | {"falling": (difference < 0).mean(1).min()}


FIGURE_9 = trained_item(
    name="affinity-figure-9",
    title="Figure 9: VGG-16 at the beginning and at the end of training",
    run=run,
    claims={
        "rising": Claim(
            words="At initialisation the non-linearity signature is increasing.",
            test="The rank correlation of score and depth at initialisation: its 95 % interval over nine seeds "
            f"lies above {RISING}.",
            measure=rising,
            holds=lambda n: n["low"] > RISING,
            says=f"rank correlation {_INTERVAL}; from {{first:.2f}} at the first site to {{last:.2f}} at the last",
            simulation=interval_simulation("a correlation of 0.9", effect=0.9, spread=0.1, null=RISING),
        ),
        "last": Claim(
            words="It reaches an almost perfectly linear pattern in the last layers.",
            test=f"The mean score of the last {LAST} sites at initialisation: its 95 % interval over seeds lies "
            f"above {LINEAR}.",
            measure=lambda found: interval_numbers(found.before[:, -LAST:].mean(1)),
            holds=lambda n: n["low"] > LINEAR,
            says=f"mean score of the last {LAST} sites {_INTERVAL}",
            simulation=interval_simulation("a score of 0.99", effect=0.99, spread=0.01, null=LINEAR),
        ),
        "training": Claim(
            words="Training the network enhances the non-linearity.",
            test="The change of the mean score: its 95 % interval over seeds lies below 0, and in every seed "
            "more than half of the sites fall.",
            measure=change,
            holds=lambda n: n["high"] < 0 and n["falling"] > 0.5,
            says=f"mean change {_INTERVAL}; in the seed with the fewest, {{falling:.0%}} of the sites fall",
        ),
    },
    seconds={"smoke": 2, "small": 3, "paper": 45},
    settings={
        "small": "digits of 16 pixels, an eighth of the width, He et al.'s initialisation without biases",
        "paper": "networks trained here on CIFAR-10, nine seeds, 24 epochs; the paper's was trained on ImageNet",
    },
    notes=("Accuracy in per cent: {accuracy}.",),
)
