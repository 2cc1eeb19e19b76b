"""Figure 10: signatures along depth, from AlexNet to ConvNeXt."""

from __future__ import annotations

from papers.affinity.census import DENSENET, RESNET, SEVERAL, Census, Group, network_item
from papers.affinity.network_figures import plot_raw, site_table
from papers.affinity.predicates import below, within
from papers.item import RunContext

STABLE = 0.05  # standard deviation over sites
CLOSE = 0.9  # to 1
LOWER = 0.2  # "much"
SLIGHTLY = 0.1
TENTH = 0.05  # of a number given with one digit
ALEXNET, VGG, RESNET_152 = Group(("alexnet",)), Group(("VGG",)), Group(("resnet152",))
GOOGLENET, INCEPTION = Group(("googlenet",)), Group(("inception_v3",))


def draw(context: RunContext, census: Census) -> None:
    """Draw the signatures of representatives."""
    context.table("signatures", site_table(census.soundings))
    context.figure(plot_raw(census.shown()))


FIGURE_10 = network_item(
    "affinity-figure-10",
    "Figure 10: raw signatures of popular networks along depth",
    draw,
    {
        "alexnet": within(
            "The non-linearities across ReLU activations in all of AlexNet's 8 layers remain stable.",
            f"The standard deviation of AlexNet's scores over its ReLUs is at most {STABLE}; a trunk without "
            "classifier has those of its five convolutions alone.",
            "std",
            ALEXNET,
            high=STABLE,
        ),
        "vgg": below(
            "VGG networks have slightly lower overall non-linearity values than AlexNet.",
            "Read as lower scores: the mean score of every VGG that was measured is below AlexNet's, by at "
            f"most {SLIGHTLY}.",
            "mean",
            VGG,
            ALEXNET,
            at_most=SLIGHTLY,
        ),
        "googlenet_least": within(
            "Affinity scores in GoogLeNet vary between 0.6 and 0.9: the least.",
            f"The least score of GoogLeNet is 0.6 to within {TENTH}.",
            "min",
            GOOGLENET,
            0.6 - TENTH,
            0.6 + TENTH,
        ),
        "googlenet_largest": within(
            "Affinity scores in GoogLeNet vary between 0.6 and 0.9: the largest.",
            f"The largest score of GoogLeNet is 0.9 to within {TENTH}.",
            "max",
            GOOGLENET,
            0.9 - TENTH,
            0.9 + TENTH,
        ),
        "inception": below(
            "Inception v3 pushed the spread of the score toward being more linear in some hidden layers.",
            "Its largest score is above GoogLeNet's.",
            "max",
            GOOGLENET,
            INCEPTION,
        ),
        "sum": within(
            "In ResNets the activation after the skip connection exhibits scores close to 1.",
            f"The mean score of the last activations of all blocks is above {CLOSE} in every ResNet (at "
            f"least {SEVERAL}).",
            "after",
            RESNET,
            low=CLOSE,
        ),
        "hidden": within(
            "The activations in the hidden layers of ResNets remain much lower.",
            f"The mean score of all other activations in blocks is lower by more than {LOWER} in every "
            f"ResNet (at least {SEVERAL}).",
            "gap",
            RESNET,
            low=LOWER,
        ),
        "transitions": within(
            "Transition layers in DenseNets act as linearizers.",
            "The mean score in the transitions is above that of all other sites in every DenseNet (at least "
            f"{SEVERAL}).",
            "linearizes",
            DENSENET,
            low=0,
        ),
        "densenet": below(
            "DenseNet is slightly more non-linear than ResNet-152.",
            f"The mean score of every DenseNet (at least {SEVERAL}) is below that of ResNet-152, by at most "
            f"{SLIGHTLY}.",
            "mean",
            DENSENET,
            RESNET_152,
            at_most=SLIGHTLY,
        ),
    },
    changes=(
        "The claims about ResNets and DenseNets need two networks, after a single ResNet-50 had been seen "
        "(0.867 after the sum, lower by 0.191 inside the blocks); the limits are as before.",
    ),
)
