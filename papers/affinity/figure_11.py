"""Figure 11: signatures of ViTs along depth, by the size of their patches."""

from __future__ import annotations

import numpy as np

from papers.affinity.census import (
    EARLY,
    LATER,
    Census,
    judged,
    keep_signatures,
    needs,
    network_item,
    take_census,
)
from papers.item import Answer, Answers, Claim, RunContext
from papers.ranks import rank_trend

LEVEL = 0.05
VITS = ("vit_l_16", "vit_l_32", "vit_h_14")


def run(context: RunContext) -> Answers:
    """Measure three ViTs."""
    census = take_census(context)
    keep_signatures(
        context, census, [name for name in VITS if name in census.soundings] or census.representatives()
    )
    return {
        "unseen": judged(census, needs(*EARLY, *LATER, networks=VITS), unseen),
        "rising": judged(census, needs(networks=["vit_l_16"]), rising),
        "plateau": judged(census, needs(networks=["vit_l_32"]), plateau),
    }


def unseen(census: Census) -> Answer:
    """Compare three ViTs with all earlier convnets."""
    median = census.statistics["median"]
    before = median[census.members(*EARLY, *LATER)]
    words = ", ".join(f"{name} {median[name]:.3f}" for name in VITS)
    return Answer(
        bool((median[list(VITS)] < before.min()).all()),
        f"median {words}; the lowest convnet before: {before.idxmin()} {before.min():.3f}",
        {**{name: median[name] for name in VITS}, "before_min": before.min()},
    )


def rising(census: Census) -> Answer:
    """Check the scores of ViT-L/16 along depth."""
    scores = census.soundings["vit_l_16"].signature.to_numpy()
    found = rank_trend(range(len(scores)), scores.tolist())
    third = len(scores) // 3
    early, late = scores[:third].mean(), scores[-third:].mean()
    return Answer(
        found.value > 0 and found.p < LEVEL and early < late,
        f"rank correlation with depth {found.value:.2f} (p = {found.p:.3g}); mean of the first third "
        f"{early:.3f}, of the last {late:.3f}",
        {"correlation": found.value, "p": found.p, "first": early, "last": late},
    )


def plateau(census: Census) -> Answer:
    """Compare the last score of ViT-L/32 with those between."""
    scores = census.soundings["vit_l_32"].signature.to_numpy()
    between = scores[1:-1]
    steps = np.diff(scores)
    return Answer(
        scores[-1] >= between.mean() + 3 * between.std() and steps.argmax() == len(steps) - 1,
        f"last site {scores[-1]:.3f}, those between {between.mean():.3f} ± {between.std():.3f}; steps to the "
        f"last {steps[-1]:.3f}, largest before {steps[:-1].max():.3f}",
        {"last": scores[-1], "between": between.mean(), "std": between.std(), "step": steps[-1]},
    )


FIGURE_11 = network_item(
    name="affinity-figure-11",
    title="Figure 11: ViTs with patches of 16, 32 and 14 pixels",
    claims={
        "unseen": Claim(
            "ViTs (Large with 16 × 16 and 32 × 32 patches, Huge with 14 × 14) are all highly non-linear, "
            "to a degree yet unseen.",
            "The median score of each is below that of every convnet of the families before.",
        ),
        "rising": Claim(
            "With patches of 16 × 16 a model is more non-linear in the early layers, and becomes more and "
            "more linear later.",
            f"ViT-L/16: the rank correlation of score and depth is positive (p < {LEVEL} over orders), and "
            "the mean of the first third of the sites is below that of the last third.",
        ),
        "plateau": Claim(
            "Patches of 32 × 32 lead to a plateau in the hidden layers of MLP blocks, with a steep change "
            "toward linearity only in the final layer.",
            "ViT-L/32: the last score lies above the mean of all between the first and the last by at "
            "least 3 of their standard deviations, and the step to it is the largest of all.",
        ),
    },
    run=run,
)
