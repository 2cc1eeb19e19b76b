"""Figure 12: signatures of VGGs along depth."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from fathometer.report import plot_overlay, relative_depth
from papers.affinity.census import RESNET, SEVERAL, Census, Group, network_item
from papers.affinity.network_figures import site_table
from papers.item import Claim, Numbers, RunContext

SAME = 0.05  # mean difference between two signatures that are called one
VGG = Group(("VGG",), SEVERAL)


def draw(context: RunContext, census: Census) -> None:
    """Draw VGGs and ResNets over each other."""
    shown = census.only(census.group(Group(("VGG", "ResNet"), families=1))).soundings
    context.table("signatures", site_table(shown))
    context.figure(plot_overlay(shown))


def differences(census: Census, group: Group) -> list[float]:
    """Compute the mean difference at the same relative depth of each pair of a family."""
    grid = np.linspace(0, 1, 101)
    scores = [census.scores[name] for name in census.group(group)]
    curves = [np.interp(grid, relative_depth(len(of)), of) for of in scores]
    return [float(abs(a - b).mean()) for a, b in combinations(curves, 2)]


def both(census: Census) -> Numbers:
    """Compare VGGs and ResNets."""
    return {
        "vgg": float(np.mean(differences(census, VGG))),
        "resnet": float(np.mean(differences(census, RESNET))),
    }


FIGURE_12 = network_item(
    "affinity-figure-12",
    "Figure 12: the impact of depth on the signature of VGGs",
    draw,
    {
        "depth": Claim(
            words="VGGs do not change their non-linearity signature with increasing depth.",
            test="Between any two VGGs the mean absolute difference of the scores at the same relative depth "
            f"is at most {SAME}.",
            measure=lambda census: {"pairs": differences(census, VGG)},
            holds=lambda n: max(n["pairs"]) <= SAME,
            says="mean differences {pairs:.3f}",
        ),
        "resnets": Claim(
            words="In contrast to ResNets, which do.",
            test="The mean of that difference over all pairs of VGGs is below the one over all pairs of "
            "ResNets.",
            kind="ours",
            measure=both,
            holds=lambda n: n["vgg"] < n["resnet"],
            says="mean difference {vgg:.3f} between VGGs, {resnet:.3f} between ResNets",
        ),
    },
)
