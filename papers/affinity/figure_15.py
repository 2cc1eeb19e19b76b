"""Figure 15: how far signatures on other data are from those on the data of the training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from fathometer import Sounding
from fathometer.compare import signature_distances
from fathometer.errors import InputError
from papers.affinity.census import has_random_weights
from papers.affinity.trained_figures import plot_deviation
from papers.affinity.zoo import network_soundings
from papers.images.ensembles import note_accuracy, title_of, train_ensembles, trained_item
from papers.images.other_pictures import noise_like, photographs, shrunk_images, uniform_pixels
from papers.images.pictures import pictures, size_of
from papers.images.trained import Data, Pixels, samples_of, sounding
from papers.intervals import mean_interval
from papers.item import Answer, Answers, Claim, RunContext, Seconds

CONTROL, GAUSSIAN, UNIFORM = "training images", "Gaussian noise", "uniform noise"
NOISES = (GAUSSIAN, UNIFORM)
Metric: TypeAlias = Literal["euclidean", "dtw"]
METRICS: tuple[Metric, ...] = ("euclidean", "dtw")
_COLUMNS = ["network", "seed", "data", "metric", "distance"]


def run(context: RunContext) -> Answers:
    """Measure networks trained here, and networks of ImageNet if there are any."""
    kinds = context.pick(smoke=("vgg16", "resnet8"), small=("vgg16", "resnet20"), paper=("vgg16", "resnet20"))
    seeds = range(context.pick(smoke=2, small=3, paper=3))
    train_ensembles(context, kinds, seeds)
    table = context.table("deviations", trained_deviations(context, kinds, seeds))
    zoo, why = zoo_deviations(context)
    if len(zoo):
        context.table("imagenet", zoo)
    context.figure(plot_deviation(table, zoo))
    note_accuracy(context, dict.fromkeys(kinds, seeds))
    return {
        "images": nearer_than_noise(table, "euclidean"),
        "dtw": nearer_than_noise(table, "dtw"),
        "imagenet": zoo_nearer(zoo) if len(zoo) else Answer(None, f"not decided: {why}"),
    }


def trained_deviations(context: RunContext, kinds: Sequence[str], seeds: Sequence[int]) -> pd.DataFrame:
    """Measure how far the signature on other data is from that on held-out images, for each training."""
    others = other_data(context)
    samples = samples_of(context)
    batches = len(next(iter(others.values())).tensor) // samples
    data: dict[str, Data] = {CONTROL: "train", **others}
    rows = []
    for kind in kinds:
        for seed in seeds:
            held_out = sounding(context, kind, seed)
            found = {
                name: sounding(context, kind, seed, data=of, batches=batches, gauges="affinity")
                for name, of in data.items()
            }
            rows += [{"network": title_of(kind), "seed": seed, **row} for row in deviations(held_out, found)]
    return pd.DataFrame(rows)[_COLUMNS]


def other_data(context: RunContext) -> dict[str, Pixels]:
    """Collect other images, and as many samples of two kinds of noise."""
    size, samples = size_of(context), samples_of(context)
    count = samples * context.pick(smoke=1, small=4, paper=4)
    if context.scale == "paper" and "imagenet" in context.sources:
        name, images = "ImageNet", shrunk_images(context.source("imagenet"), count, size)
        if len(images) < samples:
            raise InputError(f"--imagenet: expected at least {samples} images, got {len(images)}")
        words = f"{len(images)} images of ImageNet, made small"
    else:
        name, images = "photographs", photographs(count, size)
        words = f"{count} pieces of the two photographs that come with scikit-learn"
    count = len(images) // samples * samples
    if context.scale != "paper":
        context.note(
            "Networks of digits have never seen a photograph; in the paper the images of the training are "
            "photographs, as the others are."
        )
    context.note(
        f"Other images: {words}. As many of each kind of noise, and of training images as a control."
    )
    return {
        name: Pixels(name, images[:count]),
        GAUSSIAN: Pixels("gaussian", noise_like(pictures(context, "test"), count)),
        UNIFORM: Pixels("uniform", uniform_pixels(count, size)),
    }


def deviations(reference: Sounding, others: Mapping[str, Sounding]) -> Iterable[dict[str, object]]:
    """Compute distances from the reference, by data and metric."""
    series = {
        name: np.asarray(each.signature, np.float64) for name, each in {"": reference, **others}.items()
    }
    for metric in METRICS:
        row = signature_distances(series, metric).frame[""].to_dict()
        yield from ({"data": name, "metric": metric, "distance": float(row[name])} for name in others)


def nearer_than_noise(table: pd.DataFrame, metric: Metric) -> Answer:
    """Check in every training whether other images are nearer than both kinds of noise."""
    wide = table[table["metric"] == metric].pivot(
        index=["network", "seed"], columns="data", values="distance"
    )
    (other,) = [name for name in wide.columns if name not in (CONTROL, *NOISES)]
    nearer = wide[other] < wide[list(NOISES)].min(axis=1)
    parts, numbers = [], {"nearer": float(nearer.sum()), "trainings": float(len(nearer))}
    for network, own in wide.groupby(level="network", sort=False):
        words = ", ".join(f"{own[name].mean():.3f} ({name})" for name in (CONTROL, other, *NOISES))
        ratios = [mean_interval(own[other] / own[noise]) for noise in NOISES]
        parts.append(f"{network}: {words}, ratio to the noises {ratios[0]} and {ratios[1]}")
        numbers |= {
            f"{network}_ratio_{noise.split()[0].lower()}": ratio.mean
            for noise, ratio in zip(NOISES, ratios, strict=True)
        }
    return Answer(
        bool(nearer.all()),
        f"{other} nearer than both noises in {int(nearer.sum())} of {len(nearer)} trainings; "
        + "; ".join(parts),
        numbers,
    )


def zoo_deviations(context: RunContext) -> tuple[pd.DataFrame, str]:
    """Measure how far CIFAR-10 and noise are from ImageNet in trained networks; or say why not."""
    nothing = pd.DataFrame(columns=_COLUMNS)
    if context.scale != "paper" or not {"imagenet", "plan"} & set(context.sources):
        return nothing, "needs trained networks of ImageNet: scale paper with --imagenet or --plan"
    try:
        reference = {
            name: each
            for name, each in network_soundings(context, "imagenet").items()
            if not has_random_weights(each)
        }
        others = {
            "CIFAR-10": network_soundings(context, "cifar10"),
            "noise": network_soundings(context, "noise"),
        }
    except InputError as error:
        return nothing, f"needs trained networks of ImageNet ({error})"
    rows = [
        {"network": name, "seed": 0, **row}
        for name, each in reference.items()
        for row in deviations(each, {data: found[name] for data, found in others.items()})
    ]
    return (
        (pd.DataFrame(rows)[_COLUMNS], "") if rows else (nothing, "needs networks whose weights are trained")
    )


def zoo_nearer(table: pd.DataFrame) -> Answer:
    """Check in every network whether CIFAR-10 is nearer than noise."""
    wide = table.pivot(index="network", columns=["metric", "data"], values="distance")
    nearer = wide["euclidean", "CIFAR-10"] < wide["euclidean", "noise"]
    by_dtw = wide["dtw", "CIFAR-10"] < wide["dtw", "noise"]
    words = ", ".join(
        f"{name} {row['euclidean', 'CIFAR-10']:.2f} against {row['euclidean', 'noise']:.2f}"
        for name, row in wide.iterrows()
    )
    return Answer(
        bool(nearer.all()),
        f"CIFAR-10 nearer than noise in {int(nearer.sum())} of {len(wide)} networks (by DTW in "
        f"{int(by_dtw.sum())}): {words}",
        {"nearer": nearer.sum(), "nearer_dtw": by_dtw.sum(), "networks": len(wide)},
    )


FIGURE_15 = trained_item(
    name="affinity-figure-15",
    title="Figure 15: deviation of the signature on other data",
    claims={
        "images": Claim(
            "The overall deviation of the signature for other images remains lower than for random data.",
            "In networks trained here, VGG-16 and ResNet-20: the Euclidean distance from the signature on "
            "held-out images to that on other real images is less than to that on Gaussian noise (mean and "
            "std of each channel those of the images) and on uniform noise, in every training.",
        ),
        "dtw": Claim(
            "The same by DTW, which the text names in place of the caption's Euclidean distance.",
            "The same with the DTW distance.",
        ),
        "imagenet": Claim(
            "CIFAR-10 deviates less from ImageNet than random data does, in networks trained on ImageNet.",
            "The Euclidean distance from the signature on ImageNet to that on CIFAR-10 is less than to that "
            "on noise, in every trained network of ImageNet that was measured.",
        ),
    },
    run=run,
    seconds=Seconds(3, 6, 90),
    small="digits of 16 pixels, narrow networks, pieces of two photographs as other images",
    published="networks trained here on CIFAR-10, VGG-16 and ResNet-20, three seeds each, 24 epochs",
    optional=("imagenet", "plan"),
)
