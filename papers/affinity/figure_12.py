"""Figure 12: signatures of VGGs along depth."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fathometer.compare import signatures
from fathometer.report import plot_overlay, relative_depth
from papers.affinity.census import Census, judged, keep_figure, needs, network_item, site_rows, take_census
from papers.item import Answer, Answers, Claim, RunContext

SAME = 0.05  # mean difference between two signatures that are called one


def run(context: RunContext) -> Answers:
    """Draw the VGGs over each other."""
    census = take_census(context)
    shown = census.members("VGG") or census.representatives()
    context.table("signatures", site_rows(census, shown))
    keep_figure(context, census, plot_overlay({name: census.soundings[name] for name in shown}))
    return {
        "depth": judged(census, needs("VGG", least=3), unchanged),
        "resnets": judged(census, needs("VGG", "ResNet", least=3), less_than_resnets),
    }


def differences(series: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Compute the mean difference of each pair of signatures at the same relative depth.

    Example:
        >>> differences({"a": np.array([0.5, 0.6]), "b": np.array([0.5, 0.6, 0.7])})
        {'a – b': 0.05}
    """
    grid = np.linspace(0, 1, 101)
    curves = {name: np.interp(grid, relative_depth(len(of)), of) for name, of in series.items()}
    return {
        f"{a} – {b}": round(float(abs(curves[a] - curves[b]).mean()), 9) for a, b in combinations(curves, 2)
    }


def unchanged(census: Census) -> Answer:
    """Check the differences between VGGs."""
    found = differences(signatures(census.only(census.members("VGG")).soundings))
    worst = max(found, key=lambda pair: found[pair])
    return Answer(
        found[worst] <= SAME,
        f"mean difference at the same relative depth {min(found.values()):.3f} to {found[worst]:.3f} "
        f"({worst})",
        {"largest": found[worst], "mean": float(np.mean(list(found.values())))},
    )


def less_than_resnets(census: Census) -> Answer:
    """Check that VGGs differ less from each other than ResNets."""
    vggs, others = (
        float(np.mean(list(differences(signatures(census.only(census.members(family)).soundings)).values())))
        for family in ("VGG", "ResNet")
    )
    return Answer(
        vggs < others,
        f"mean difference {vggs:.3f} between VGGs, {others:.3f} between ResNets",
        {"vgg": vggs, "resnet": others},
    )


FIGURE_12 = network_item(
    name="affinity-figure-12",
    title="Figure 12: the impact of depth on the signature of VGGs",
    claims={
        "depth": Claim(
            "VGGs do not change their non-linearity signature with increasing depth.",
            "Between any two VGGs the mean absolute difference of the scores at the same relative depth is "
            f"at most {SAME}.",
        ),
        "resnets": Claim(
            "In contrast to ResNets, which do.",
            "The mean of that difference over all pairs of VGGs is below the one over all pairs of ResNets.",
            ours=True,
        ),
    },
    run=run,
)
