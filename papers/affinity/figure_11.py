"""Figure 11: signatures of ViTs along depth, by the size of their patches."""

from __future__ import annotations

from dataclasses import replace

from papers.affinity.census import VIT, Census, Group, network_item
from papers.affinity.figure_3 import LOW_MEDIAN
from papers.affinity.network_figures import plot_raw, site_table
from papers.affinity.predicates import within
from papers.item import RunContext

RISING = 0.5  # rank correlation with depth
STEEP = 3  # standard deviations of the plateau
PATCHES_16 = Group(("vit_b_16", "vit_l_16", "clip_vit_b16"), families=1)
PATCHES_32 = Group(("vit_b_32", "vit_l_32"), families=1)


def draw(context: RunContext, census: Census) -> None:
    """Draw the ViTs; other networks if there are none."""
    vits = {name: of for name, of in census.soundings.items() if census.families[name] in VIT.members}
    context.table("signatures", site_table(vits or census.shown()))
    context.figure(plot_raw(vits or census.shown()))


FIGURE_11 = network_item(
    "affinity-figure-11",
    "Figure 11: ViTs with patches of 16, 32 and 14 pixels",
    draw,
    {
        "unseen": replace(
            LOW_MEDIAN,
            words="ViTs (Large with 16 × 16 and 32 × 32 patches, Huge with 14 × 14) are all highly "
            "non-linear, to a degree yet unseen.",
        ),
        "rising": within(
            "With patches of 16 × 16 a model is more non-linear in the early layers, and becomes more and "
            "more linear later.",
            "In every ViT with patches of 16 pixels (the paper shows one) the rank correlation of score and "
            f"depth is above {RISING}.",
            "rise",
            PATCHES_16,
            low=RISING,
        ),
        "plateau": within(
            "Patches of 32 × 32 lead to a plateau in the hidden layers of MLP blocks, with a steep change "
            "toward linearity only in the final layer.",
            "In every ViT with patches of 32 pixels the last score lies above the mean of all between the "
            f"first and the last by more than {STEEP} of their standard deviations, and the step to it is "
            "the largest.",
            "plateau",
            PATCHES_32,
            low=STEEP,
        ),
    },
    changes=(
        "That scores rise with depth was tested by orders of the sites, which neighbouring sites do not "
        "allow; a least correlation replaces it. No trained ViT had been measured then.",
    ),
)
