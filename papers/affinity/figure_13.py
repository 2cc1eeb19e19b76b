"""Figure 13: ResNets of growing depth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from papers.affinity.trained_figures import plot_depth
from papers.images.ensembles import (
    Ensemble,
    accuracies,
    ensemble,
    scores_table,
    trained_item,
)
from papers.images.networks import published_files, published_network
from papers.images.trained import measured
from papers.intervals import interval_numbers, interval_simulation
from papers.item import Claim, NotDecided, Numbers, RunContext

DEPTHS = (20, 32, 44, 56, 110)
NEAR_ONE = 0.95
LEAST = 3  # published networks that a trend needs


class Evidence(NamedTuple):
    """ResNets by depth: those trained here, and those of `--resnets`, of which there is one of each depth."""

    groups: Mapping[int, Ensemble]
    published: Mapping[int, Ensemble]


def run(context: RunContext) -> Evidence:
    """Train several networks of each depth; measure the published ones too."""
    depths = context.pick(smoke=(8, 14), small=DEPTHS[:4], paper=DEPTHS)
    seeds = context.seeds(smoke=2, small=3, paper=3)
    kinds = [f"resnet{depth}" for depth in depths]
    found = Evidence(
        {depth: ensemble(context, f"resnet{depth}", seeds) for depth in depths}, published(context)
    )
    named = {group.title: group for group in found.groups.values()}
    named |= {f"{group.title}, published": group for group in found.published.values()}
    context.table("signatures", scores_table(named))
    context.figure(plot_depth(*found))
    context.facts["accuracy"] = accuracies(context, dict.fromkeys(kinds, seeds))
    return found


def published(context: RunContext) -> dict[int, Ensemble]:
    """Measure the networks of `--resnets` on CIFAR-10, by depth; none below the scale `paper`."""
    if context.scale != "paper" or "resnets" not in context.sources:
        return {}
    networks = {
        depth: partial(published_network, depth, file) for depth, file in published_files(context).items()
    }
    return {
        depth: Ensemble(f"resnet{depth}", {0: measured(context, f"resnet{depth}", "published", network)})
        for depth, network in networks.items()
    }


def growth(found: Evidence, what: str) -> Numbers:
    """Fit `gaps` or `ends` of each seed by a line in the logarithm of the depth."""
    rows = np.array([getattr(group, what) for group in found.groups.values()])  # [depths, seeds]
    slopes = [float(np.polyfit(np.log2(list(found.groups)), row, 1)[0]) for row in rows.T]
    return interval_numbers(slopes) | {"depths": list(found.groups), "values": rows.mean(1).tolist()}


def strictly(found: Evidence) -> Numbers:
    """List what should grow with depth in published networks."""
    if len(found.published) < LEAST:
        raise NotDecided(f"needs --resnets with published ResNets of {LEAST} depths, at scale paper")
    return {
        "depths": list(found.published),
        "gaps": [float(group.gaps.mean()) for group in found.published.values()],
        "ends": [float(group.ends.mean()) for group in found.published.values()],
    }


_SLOPE = (
    "{values:.3f} at {depths:.0f} layers: {mean:.3f} ({low:.3f} to {high:.3f}) for each doubling of the "
    "depth, over {seeds:.0f} seeds"
)
FIGURE_13 = trained_item(
    name="affinity-figure-13",
    title="Figure 13: the impact of depth on the signature of ResNets",
    run=run,
    claims={
        "separation": Claim(
            words="The separation between more linear post-residual activations becomes more distinct for "
            "deeper networks.",
            test="The mean score of the ReLUs after the sum less that of those inside blocks, fitted by a "
            "line in the logarithm of the depth (20 to 110 layers) for each seed: the 95 % interval of the "
            "slope over seeds lies above 0.",
            measure=partial(growth, what="gaps"),
            holds=lambda n: n["low"] > 0,
            says=f"difference of the means {_SLOPE}",
            simulation=interval_simulation("0.05 for each doubling (assumed)", effect=0.05),
        ),
        "post": Claim(
            words="Post-residual activations become more linear for deeper networks.",
            test="The same for the mean score after the sum alone: the 95 % interval of its slope lies above "
            "0.",
            measure=partial(growth, what="ends"),
            holds=lambda n: n["low"] > 0,
            says=f"mean score after the sum {_SLOPE}",
            simulation=interval_simulation("0.04 for each doubling: 0.87 to 0.97 (assumed)", effect=0.04),
        ),
        "one": Claim(
            words="Post-residual activations approach 1 for deeper networks.",
            test="In the deepest network the 95 % interval of the mean score after the sum lies above "
            f"{NEAR_ONE}.",
            measure=lambda found: interval_numbers(found.groups[max(found.groups)].ends),
            holds=lambda n: n["low"] > NEAR_ONE,
            says="{mean:.3f} ({low:.3f} to {high:.3f}) over {seeds:.0f} seeds",
            simulation=interval_simulation(
                "0.98 (assumed; the paper says near 1)", effect=0.98, null=NEAR_ONE
            ),
        ),
        "published": Claim(
            words="The first two, in networks that others have trained.",
            test="In the published ResNets for CIFAR-10 (--resnets), at least three, the difference and the "
            "mean score after the sum grow from each depth to the next.",
            measure=strictly,
            holds=lambda n: all(a < b for of in (n["gaps"], n["ends"]) for a, b in pairwise(of)),
            says="{depths:.0f} layers: difference {gaps:.3f}; mean score after the sum {ends:.3f}",
            kind="ours",
        ),
    },
    settings={
        "small": "He et al.'s ResNets for small images with 20 to 56 layers, half as wide, trained here on "
        "digits of 16 pixels; the paper's are ResNet-18 to 152, of ImageNet",
        "paper": "He et al.'s ResNets for small images with 20 to 110 layers, trained here on CIFAR-10 for "
        "24 epochs, three seeds each; the paper's are ResNet-18 to 152, of ImageNet",
    },
    seconds={"smoke": 3, "small": 100, "paper": 330},
    notes=("Accuracy in per cent: {accuracy}.",),
)
