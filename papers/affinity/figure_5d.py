"""Figure 5 (D): one network trained with and without residual connections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fathometer.compare import dip_test, two_modes
from papers.affinity.trained_figures import plot_residual
from papers.images.ensembles import (
    Ensemble,
    Scores,
    accuracies,
    ensemble,
    scores_table,
    trained_item,
)
from papers.intervals import interval_numbers, interval_simulation
from papers.item import Claim, Numbers, RunContext, Simulation

LINEAR = 0.9  # a score that is called highly linear
TWO_MODES = 2.0  # Ashman's D above which two normal distributions of equal width and weight have two modes


class Evidence(NamedTuple):
    """Trainings with and without residual connections, and of a deeper network with them."""

    residual: Ensemble
    plain: Ensemble
    deep: Ensemble


def run(context: RunContext) -> Evidence:
    """Train both networks, and a deeper one; measure all on held-out images."""
    depth, deep_kind = context.pick(smoke=(8, "resnet14"), small=(20, "resnet56"), paper=(20, "resnet56"))
    residual_kind, plain_kind = f"resnet{depth}", f"plain{depth}"
    seeds = context.seeds(smoke=2, small=5, paper=5)
    found = Evidence(
        ensemble(context, residual_kind, seeds),
        ensemble(context, plain_kind, seeds),
        ensemble(context, deep_kind, seeds[:3]),
    )
    groups = {group.title: group for group in found}
    context.table("signatures", scores_table(groups))
    context.figure(plot_residual(groups))
    context.facts |= {
        "accuracy": accuracies(context, {residual_kind: seeds, plain_kind: seeds, deep_kind: seeds[:3]}),
        **{
            f"dip_{name}": [dip_test(row)[1] for row in each.scores] for name, each in found._asdict().items()
        },
    }
    return found


def trend(found: Evidence) -> Numbers:
    """Measure how much further apart the two kinds of sites are in the residual network of the same seed."""
    gaps = {"residual": found.residual.gaps, "plain": found.plain.gaps}
    more = interval_numbers(gaps["residual"] - gaps["plain"])
    return more | {name: gap.mean() for name, gap in gaps.items()}


def separations(group: Ensemble) -> list[float]:
    """Compute Ashman's D of the scores at the ends of blocks and of those inside, for each seed."""
    return ashman(group.scores[:, group.roles.ends], group.scores[:, group.roles.inside])


def ashman(ends: Scores, inside: Scores) -> list[float]:
    """Compute the distance of two means in units of the standard deviation, for each seed."""
    width = np.sqrt((ends.var(1, ddof=1) + inside.var(1, ddof=1)) / 2)
    return (np.abs(ends.mean(1) - inside.mean(1)) / width).tolist()


def bimodal(found: Evidence) -> Numbers:
    """Measure how far apart the two kinds of sites are, with and without residual connections."""
    return interval_numbers(separations(found.residual)) | {"plain": float(np.mean(separations(found.plain)))}


def _draw_modes(generator: np.random.Generator, present: bool, numbers: Numbers) -> Numbers:
    shape = (2, int(numbers["seeds"]), 9)  # type: ignore[arg-type]
    ends, inside = generator.normal(size=shape)
    plain = generator.normal(size=shape)
    apart = 2 * TWO_MODES if present else TWO_MODES
    return interval_numbers(ashman(ends + apart, inside)) | {"plain": float(np.mean(ashman(*plain)))}


_MODES = Simulation(
    "assumed: modes four standard deviations apart with residual connections, one mode without; where it is "
    "just false, two standard deviations",
    _draw_modes,
)
_INTERVAL = "{mean:.3g} ({low:.3g} to {high:.3g}) over {seeds:.0f} seeds"
FIGURE_5D = trained_item(
    name="affinity-figure-5d",
    title="Figure 5 (D): a network trained with and without residual connections",
    run=run,
    claims={
        "trend": Claim(
            words="Residual connections introduce a clear trend toward a bimodal distribution of affinity "
            "scores.",
            test="Read as two kinds of sites that drift apart: the mean score of the ReLUs at the end of a "
            "block less that of those inside, in ResNet-20 less in the plain network of the same seed. The "
            "95 % interval over seeds lies above 0.",
            measure=trend,
            holds=lambda n: n["low"] > 0,
            says="the ends of blocks score higher by {residual:.3f} with residual connections and "
            "{plain:.3f} "
            f"without; paired difference {_INTERVAL}",
            simulation=interval_simulation("a difference of 0.1 (assumed)", effect=0.1),
        ),
        "bimodal": Claim(
            words="Residual connections make the distribution of the affinity scores bimodal.",
            test="The scores at the ends of blocks and those inside are two groups: the distance of their "
            "means, in standard deviations (Ashman's D), is above 2, where two normal distributions of one "
            "width have two modes. Its 95 % interval over seeds lies above 2 in ResNet-20, its mean below 2 "
            "in the plain network.",
            measure=bimodal,
            holds=lambda n: n["low"] > TWO_MODES > n["plain"],
            says=f"D = {_INTERVAL} with residual connections, {{plain:.2f}} without",
            simulation=_MODES,
        ),
        "linear": Claim(
            words="One such mode is centred around highly linear activation functions.",
            test="The upper of two normal distributions fitted to the scores of each ResNet-20: the 95 % "
            f"interval of its mean over seeds lies above {LINEAR}.",
            measure=lambda found: (
                interval_numbers([two_modes(row).high for row in found.residual.scores])
                | {"ends": float(found.residual.ends.mean()), "deep": float(found.deep.ends.mean())}
            ),
            holds=lambda n: n["low"] > LINEAR,
            says=f"upper mode at {_INTERVAL}; mean score at the ends of blocks {{ends:.3f}}, in the deeper "
            "network {deep:.3f}",
            simulation=interval_simulation("a mode at 0.95 (assumed)", effect=0.95, null=LINEAR),
        ),
        "deeper": Claim(
            words="The same effect is observed in deeper networks (the paper: ResNet-18 and 34; here: "
            "ResNet-56).",
            test="The test of two modes for ResNet-56: the 95 % interval of D over seeds lies above 2.",
            measure=lambda found: interval_numbers(separations(found.deep)),
            holds=lambda n: n["low"] > TWO_MODES,
            says=f"D = {_INTERVAL}",
            kind="ours",
            simulation=interval_simulation(
                "modes four standard deviations apart (assumed)", 4.0, null=TWO_MODES
            ),
        ),
    },
    settings={
        "small": "networks of half the width on digits of 16 pixels, five seeds of ResNet-20, three of "
        "ResNet-56; the paper's are trained on CIFAR-10 (20 layers) and on ImageNet (ResNet-18 and 34)",
        "paper": "networks trained here on CIFAR-10 for 24 epochs, five seeds of ResNet-20, three of "
        "ResNet-56; ResNet-18 and 34 of ImageNet are left out",
    },
    seconds={"smoke": 4, "small": 170, "paper": 320},
    notes=(
        "Accuracy in per cent: {accuracy}.",
        "Hartigan's dip, which knows no kinds of sites: p = {dip_residual:.2g} with residual connections, "
        "{dip_plain:.2g} without, {dip_deep:.2g} in the deeper network. It finds two modes of equal size "
        "four standard deviations apart in 24 % of samples of 19 values, and in 59 % of 55.",
    ),
    changes=(
        "Two modes were first tested by Hartigan's dip over the sites of each network, which had to succeed "
        "for every seed and has 24 % power for 19 sites. The test by Ashman's D of the two kinds of sites "
        "took its place after the dips and the differences of the means had been seen; D had not been "
        "computed.",
    ),
)
