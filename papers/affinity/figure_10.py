"""Figure 10: signatures along depth, from AlexNet to ConvNeXt."""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.affinity.census import Census, judged, keep_signatures, needs, network_item, take_census
from papers.item import Answer, Answers, Claim, RunContext
from papers.roles import block_roles

STABLE = 0.05  # standard deviation over sites
CLOSE = 0.9  # to 1
LOWER = 0.2  # "much"
_TENTH = 0.05  # of a number given with one digit


def run(context: RunContext) -> Answers:
    """Measure the representatives."""
    census = take_census(context)
    more = [name for name in ("googlenet",) if name in census.soundings]
    shown = list(dict.fromkeys([*census.representatives()[:2], *more, *census.representatives()[2:]]))
    keep_signatures(context, census, shown)
    return {
        "alexnet": judged(census, needs(networks=["alexnet"]), stable),
        "vgg": judged(census, needs("VGG", networks=["alexnet"]), vgg_lower),
        "googlenet": judged(census, needs(networks=["googlenet"]), googlenet_range),
        "inception": judged(census, needs(networks=["googlenet", "inception_v3"]), inception_max),
        "sum": judged(census, lacking_blocks, close_to_one),
        "hidden": judged(census, lacking_blocks, much_lower),
        "transitions": judged(census, needs("DenseNet"), linearizers),
    }


def stable(census: Census) -> Answer:
    """Check AlexNet's scores."""
    scores = census.soundings["alexnet"].signature
    return Answer(
        scores.std(ddof=0) <= STABLE,
        f"{scores.min():.2f} to {scores.max():.2f} over {len(scores)} ReLUs, std {scores.std(ddof=0):.3f}",
        {"std": scores.std(ddof=0), "min": scores.min(), "max": scores.max()},
    )


def vgg_lower(census: Census) -> Answer:
    """Compare VGGs with AlexNet."""
    mean = census.statistics["mean"]
    vggs, alexnet = mean[census.members("VGG")], mean["alexnet"]
    words = ", ".join(f"{name} {value:.3f}" for name, value in vggs.items())
    return Answer(
        bool((vggs < alexnet).all()),
        f"mean score {words}; alexnet {alexnet:.3f}",
        {"alexnet": alexnet, "vgg_max": vggs.max()},
    )


def googlenet_range(census: Census) -> Answer:
    """Check the range from 0.6 to 0.9."""
    scores = census.soundings["googlenet"].signature
    low, high = scores.min(), scores.max()
    return Answer(
        abs(low - 0.6) <= _TENTH and abs(high - 0.9) <= _TENTH,
        f"{low:.3f} to {high:.3f}",
        {"min": low, "max": high},
    )


def inception_max(census: Census) -> Answer:
    """Compare Inception v3 with GoogLeNet."""
    largest = census.statistics["max"]
    spread = census.statistics["spread"]
    inception, googlenet = largest["inception_v3"], largest["googlenet"]
    return Answer(
        inception > googlenet and spread["inception_v3"] > spread["googlenet"],
        f"maximum {inception:.3f} (GoogLeNet {googlenet:.3f}), spread {spread['inception_v3']:.3f} "
        f"({spread['googlenet']:.3f})",
        {"inception": inception, "googlenet": googlenet},
    )


def resnets(census: Census) -> pd.DataFrame:
    """Average the scores after the sums and inside the blocks `layerN.M` of every ResNet."""
    rows = {}
    for name in census.members("ResNet"):
        scores = census.soundings[name].signature.to_numpy(float)
        roles = block_roles(census.soundings[name].sites)
        if roles.inside.any():
            rows[name] = {"after": scores[roles.ends].mean(), "inside": scores[roles.inside].mean()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["after", "inside"])


def lacking_blocks(census: Census) -> str:
    """Require a ResNet whose blocks are known from its names."""
    return "" if len(resnets(census)) else "a trained ResNet with blocks layer1.0, layer1.1 …"


def close_to_one(census: Census) -> Answer:
    """Check the scores after the sum."""
    after = resnets(census)["after"]
    words = ", ".join(f"{name} {value:.3f}" for name, value in after.items())
    return Answer(
        bool((after >= CLOSE).all()),
        f"mean score after the sum: {words}",
        dict(zip(after.index, after, strict=True)),
    )


def much_lower(census: Census) -> Answer:
    """Check the scores inside the blocks."""
    table = resnets(census)
    gap = table["after"] - table["inside"]
    words = ", ".join(
        f"{name} {inside:.3f} inside, lower by {lower:.3f}"
        for name, inside, lower in zip(table.index, table["inside"], gap, strict=True)
    )
    return Answer(bool((gap >= LOWER).all()), words, dict(zip(gap.index, gap, strict=True)))


def linearizers(census: Census) -> Answer:
    """Check the transitions of DenseNets."""
    words, numbers = [], {}
    for name in census.members("DenseNet"):
        scores = census.soundings[name].signature.to_numpy()
        there = np.array(["transition" in site.module for site in census.soundings[name].sites])
        if there.any():
            numbers[name] = float(scores[there].mean() - scores[~there].mean())
            words.append(f"{name} {scores[there].mean():.3f} ({scores[~there].mean():.3f} elsewhere)")
    if not numbers:
        return Answer(None, "not decided: these DenseNets have no modules called transition")
    return Answer(
        all(gap > 0 for gap in numbers.values()), "mean in transitions: " + ", ".join(words), numbers
    )


FIGURE_10 = network_item(
    name="affinity-figure-10",
    title="Figure 10: raw signatures of popular networks along depth",
    claims={
        "alexnet": Claim(
            "The non-linearities across ReLU activations in all of AlexNet's 8 layers remain stable.",
            f"The standard deviation of AlexNet's scores over its sites is at most {STABLE}.",
        ),
        "vgg": Claim(
            "VGG networks have slightly lower overall non-linearity values than AlexNet.",
            "Read as lower scores: the mean score of every VGG that was measured is below AlexNet's.",
        ),
        "googlenet": Claim(
            "Affinity scores in GoogLeNet vary between 0.6 and 0.9.",
            "The least score of GoogLeNet is 0.6 and the largest 0.9, both to within 0.05.",
        ),
        "inception": Claim(
            "Inception v3 pushed the spread of the score toward being more linear in some hidden layers.",
            "Its maximum and its spread are above GoogLeNet's.",
        ),
        "sum": Claim(
            "In ResNets the activation after the skip connection exhibits scores close to 1.",
            f"The mean score of the last activations of all blocks is at least {CLOSE} in every trained "
            "ResNet that was measured.",
        ),
        "hidden": Claim(
            "The activations in the hidden layers of ResNets remain much lower.",
            f"The mean score of all other activations in blocks is lower by at least {LOWER}, in every "
            "trained ResNet that was measured.",
        ),
        "transitions": Claim(
            "Transition layers in DenseNets act as linearizers.",
            "The mean score in the transitions is above that of all other sites, in every DenseNet.",
        ),
    },
    run=run,
)
