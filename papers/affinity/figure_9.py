"""Figure 9: VGG-16 before and after training."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from fathometer.models import ensure_torchvision_operators
from papers.affinity.trained_figures import plot_training
from papers.images.ensembles import Ensemble, Scores, accuracies, ensemble, scores_table, trained_item
from papers.images.other_pictures import photographs
from papers.images.pictures import pictures
from papers.images.trained import Pixels, measured
from papers.intervals import interval_numbers, interval_simulation
from papers.item import Claim, Numbers, RunContext, Simulation
from papers.ranks import spearman

RISING = 0.5  # rank correlation with depth
LINEAR = 0.95
LAST = 3  # sites that are called the last layers
_INTERVAL = "{mean:.3f} ({low:.3f} to {high:.3f}) over {seeds:.0f} seeds"


class Evidence(NamedTuple):
    """Scores, `[seeds, sites]`: of torchvision's VGG-16, and of that for small images."""

    initial: Scores
    before: Scores
    after: Scores


def run(context: RunContext) -> Evidence:
    """Measure torchvision's network at its initialisation, and trainings of a smaller one."""
    seeds = context.seeds(smoke=2, small=9, paper=9)
    initial = initialised(context, seeds[: context.pick(smoke=1, small=9, paper=9)])
    after = ensemble(context, "vgg16", seeds)
    before = ensemble(context, "vgg16", seeds, state="initial", gauges="affinity")
    groups = {"torchvision, initial": initial, "initial": before, "trained": after}
    context.table("signatures", scores_table(groups))
    context.figure(plot_training(initial.scores, before.scores, after.scores))
    context.facts |= {
        "accuracy": accuracies(context, {"vgg16": seeds}),
        "correlation": correlations(before.scores),
        "last": before.scores[:, -LAST:].mean(1).tolist(),
    }
    return Evidence(initial.scores, before.scores, after.scores)


def initialised(context: RunContext, seeds: range) -> Ensemble:
    """Measure torchvision's VGG-16 with random weights: on CIFAR-10 enlarged, or on pieces of photographs."""
    size, count = context.pick(smoke=(32, 60), small=(64, 200), paper=(64, 500))
    if context.scale == "paper":
        images = pictures(context, "test").normalised()[:count]
        data = Pixels(f"test at {size} pixels", F.interpolate(images, size=(size, size), mode="bilinear"))
    else:
        data = Pixels(f"photographs at {size} pixels", photographs(count, size))

    def network(seed: int) -> nn.Module:
        ensure_torchvision_operators()
        from torchvision.models import vgg16

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return vgg16(weights=None)

    return Ensemble(
        "vgg16",
        {
            seed: measured(
                context,
                f"torchvision vgg16 {seed}",
                "initial",
                partial(network, seed),
                data=data,
                samples=count,
                gauges="affinity",
            )
            for seed in seeds
        },
    )


def correlations(scores: Scores) -> list[float]:
    """Correlate score and depth, for each seed."""
    return [spearman(np.arange(len(row)), row) for row in scores]


def rising(found: Evidence) -> Numbers:
    """Correlate score and depth at initialisation."""
    means = found.initial.mean(0)
    return interval_numbers(correlations(found.initial), "correlation") | {
        "first": means[0],
        "last": means[-1],
    }


def change(found: Evidence) -> Numbers:
    """Compute the change of the mean score, and the share of sites that fall in the seed with the fewest."""
    difference = found.after - found.before
    return interval_numbers(difference.mean(1)) | {"falling": (difference < 0).mean(1).min()}


def _draw(generator: np.random.Generator, present: bool, numbers: Numbers) -> Numbers:
    after = generator.normal(-0.1 if present else 0.0, 0.1, (int(numbers["seeds"]), 14))  # type: ignore[arg-type]
    return change(Evidence(after, np.zeros_like(after), after))


FIGURE_9 = trained_item(
    name="affinity-figure-9",
    title="Figure 9: VGG-16 at the beginning and at the end of training",
    run=run,
    claims={
        "rising": Claim(
            words="At initialisation the non-linearity signature is increasing.",
            test="The rank correlation of score and depth in torchvision's VGG-16 at its own initialisation: "
            f"its 95 % interval over nine seeds lies above {RISING}.",
            measure=rising,
            holds=lambda n: n["low"] > RISING,
            says=f"rank correlation {_INTERVAL}; from {{first:.2f}} at the first site to {{last:.2f}} at the "
            "last",
            simulation=interval_simulation(
                "a correlation of 0.9 (assumed)", effect=0.9, null=RISING, within="correlation"
            ),
        ),
        "last": Claim(
            words="It reaches an almost perfectly linear pattern in the last layers.",
            test=f"The mean score of the last {LAST} sites of these networks: its 95 % interval over seeds "
            f"lies above {LINEAR}.",
            measure=lambda found: interval_numbers(found.initial[:, -LAST:].mean(1), "share"),
            holds=lambda n: n["low"] > LINEAR,
            says=f"mean score of the last {LAST} sites {_INTERVAL}",
            simulation=interval_simulation(
                "a score of 0.99 (assumed)", effect=0.99, null=LINEAR, within="share"
            ),
        ),
        "training": Claim(
            words="Training the network enhances the non-linearity.",
            test="The change of the mean score of a VGG-16 for small images by its training here: its 95 % "
            "interval over seeds lies below 0, and in every seed more than half of the sites fall.",
            measure=change,
            holds=lambda n: n["high"] < 0 and n["falling"] > 0.5,
            says=f"mean change {_INTERVAL}; in the seed with the fewest, {{falling:.0%}} of the sites fall",
            simulation=Simulation("assumed: a fall by 0.1, with a std of 0.1 over sites", _draw),
        ),
    },
    seconds={"smoke": 5, "small": 80, "paper": 90},
    settings={
        "small": "initialisation: torchvision's, 200 pieces (64 pixels) of the two photographs that come "
        "with scikit-learn. Training: digits of 16 pixels, an eighth of the width, with batch norm; the "
        "paper's was trained on ImageNet and measured on CIFAR-10",
        "paper": "initialisation: torchvision's, 500 images of CIFAR-10 enlarged to 64 pixels. Training: a "
        "VGG-16 with batch norm, trained here on CIFAR-10 for 24 epochs; the paper's was trained on ImageNet",
    },
    notes=(
        "Accuracy in per cent: {accuracy}.",
        "The VGG-16 for small images, with He et al.'s initialisation: rank correlations of score and depth "
        f"{{correlation:.2f}}, mean scores of the last {LAST} sites {{last:.2f}}.",
    ),
    changes=(
        "Initialisation was first measured in the VGG-16 for small images, with batch norm and He et al.'s "
        "initialisation, which the notes report; torchvision's network took its place.",
        "That training has a non-monotone effect was tested by changes that fall between some sites and rise "
        "between others, which nearly anything does; that claim is left out.",
    ),
)
