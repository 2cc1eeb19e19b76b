"""Figure 15: how far signatures on other data are from those on the data of the training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from fathometer.compare import signature_distances
from papers.affinity.trained_figures import plot_deviation
from papers.images.ensembles import accuracies, title_of, trained_item
from papers.images.other_pictures import noise_like, photographs, printed_digits, uniform_pixels
from papers.images.pictures import pictures, size_of
from papers.images.trained import Data, Pixels, samples_of, sounding
from papers.intervals import seeds_simulation
from papers.item import Claim, Numbers, RunContext

CONTROL, OTHER, NOISES = "training images", "other images", ("Gaussian noise", "uniform noise")
Metric: TypeAlias = Literal["euclidean", "paper"]
METRICS: tuple[Metric, ...] = ("euclidean", "paper")


def run(context: RunContext) -> pd.DataFrame:
    """Measure networks trained here: a row for each training, data and metric."""
    kinds = ("vgg16", context.pick(smoke="resnet8", small="resnet20", paper="resnet20"))
    seeds = context.seeds(smoke=2, small=3, paper=3)
    table = context.table("deviations", deviations(context, kinds, seeds))
    context.figure(plot_deviation(table))
    context.facts["accuracy"] = accuracies(context, dict.fromkeys(kinds, seeds))
    return table


def deviations(context: RunContext, kinds: Sequence[str], seeds: Sequence[int]) -> pd.DataFrame:
    """Measure how far the signature on other data is from that on held-out images."""
    size, batches = size_of(context), context.pick(smoke=1, small=4, paper=4)
    count = batches * samples_of(context)
    other = photographs if context.scale == "paper" else printed_digits
    data: dict[str, Data] = {
        CONTROL: "train",
        OTHER: Pixels(other.__name__, other(count, size)),
        NOISES[0]: Pixels("gaussian", noise_like(pictures(context, "test"), count)),
        NOISES[1]: Pixels("uniform", uniform_pixels(count, size)),
    }
    rows = []
    for kind in kinds:
        for seed in seeds:
            found = {"": sounding(context, kind, seed)} | {
                name: sounding(context, kind, seed, data=of, batches=batches, gauges="affinity")
                for name, of in data.items()
            }
            series = {name: np.asarray(each.signature, np.float64) for name, each in found.items()}
            for metric in METRICS:
                far = signature_distances(series, metric).frame[""]
                row = {"network": title_of(kind), "seed": seed, "metric": metric}
                rows += [row | {"data": name, "distance": float(far[name])} for name in data]
    return pd.DataFrame(rows)


def nearness(table: pd.DataFrame, metric: Metric) -> Numbers:
    """Measure mean distances, and for each training that of other images by that of the nearer noise."""
    wide = table[table["metric"] == metric].pivot(
        index=["network", "seed"], columns="data", values="distance"
    )
    ratios = wide[OTHER] / wide[list(NOISES)].min(axis=1)
    means = wide.groupby(level="network", sort=False).mean()
    return {"ratios": ratios.to_list()} | {
        f"{network}, {name}": float(means.loc[network, name])
        for network in means.index
        for name in (CONTROL, OTHER, *NOISES)
    }


def _says(numbers: dict[str, list[float]]) -> str:
    ratios = numbers["ratios"]
    distances = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items() if name != "ratios")
    return (
        f"nearer than both noises in {sum(ratio < 1 for ratio in ratios)} of {len(ratios)} trainings, at "
        f"{', '.join(f'{ratio:.2f}' for ratio in ratios)} of the distance of the nearer; {distances}"
    )


_HALF = seeds_simulation("assumed: half the distance of the nearer noise", {"ratios": 0.5}, {"ratios": 1.0})
FIGURE_15 = trained_item(
    name="affinity-figure-15",
    title="Figure 15: deviation of the signature on other data",
    run=run,
    claims={
        "images": Claim(
            words="The overall deviation of the signature for other images remains lower than for random "
            "data.",
            test="In networks trained here, VGG-16 and ResNet-20: the Euclidean distance from the signature "
            "on held-out images to that on other real images of the same kind is less than to that on "
            "Gaussian noise (mean and std of each channel those of the images) and on uniform noise, in "
            "every training.",
            measure=partial(nearness, metric="euclidean"),
            holds=lambda n: max(n["ratios"]) < 1,
            says=_says,
            simulation=_HALF,
        ),
        "dtw": Claim(
            words="The same by DTW, which the text names in place of the caption's Euclidean distance.",
            test="The same with the DTW distance.",
            measure=partial(nearness, metric="paper"),
            holds=lambda n: max(n["ratios"]) < 1,
            says=_says,
            simulation=_HALF,
        ),
    },
    settings={
        "small": "narrow networks of written digits, 16 pixels; other images: printed digits in the fonts of "
        "matplotlib. The paper has 33 networks of ImageNet, measured on CIFAR-10 and CIFAR-100",
        "paper": "networks trained here on CIFAR-10 for 24 epochs; other images: pieces of the two "
        "photographs that come with scikit-learn. The paper has 33 networks of ImageNet, measured on "
        "CIFAR-10 and CIFAR-100",
    },
    seconds={"smoke": 3, "small": 6, "paper": 90},
    notes=(
        "Accuracy in per cent: {accuracy}.",
        "There are as many images of each kind of noise as other images, and as many training images as a "
        "control.",
    ),
    changes=(
        "At scale small the other images were pieces of photographs at first, which are nothing like digits, "
        "and which were not nearer than noise; printed digits took their place. In the paper both kinds of "
        "images are photographs.",
    ),
)
