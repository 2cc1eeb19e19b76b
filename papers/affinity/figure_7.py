"""Figure 7: what the score owes to the reduction, and to the estimate of the covariance (appendix E)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from fathometer import measure
from fathometer.capture import Reduction
from fathometer.errors import InputError
from fathometer.gauges import affinity_score
from fathometer.report import column_figure, for_print, legend_above, note_below, series_style
from papers.images.networks import published_files, published_network
from papers.images.pictures import pictures
from papers.images.trained import trained
from papers.intervals import interval_numbers, interval_simulation, seeds_simulation
from papers.item import Claim, Item, Numbers, RunContext, Simulation
from papers.ranks import spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EQUAL, CONSTANT, LACK = 1e-6, 0.05, 0.2
ORDER = 0.8
PAPER_REGIME = 4  # d / n, beyond the widths of the paper's networks at batches of 512
COVARIANCES: tuple[Literal["sample", "ledoit-wolf"], ...] = ("sample", "ledoit-wolf")
REDUCTIONS = {
    "mean": Reduction("mean"),
    "sum": Reduction("sum"),
    "flatten": Reduction("flatten"),
    "mean, pooled first": Reduction("mean", pool_first=True),
}


class Evidence(NamedTuple):
    """Scores of a network by reduction, and scores of ReLU on normal samples by width."""

    sites: pd.DataFrame  # a row for each repetition and ReLU, a column for each reduction
    widths: pd.DataFrame  # a row for each seed, width and covariance


def run(context: RunContext) -> Evidence:
    """Compare reductions on a convolutional network, and covariances on normal samples."""
    seeds = context.seeds(smoke=2, small=5, paper=5)
    found = Evidence(_reductions(context, seeds), _widths(context, seeds))
    context.table("reductions", found.sites)
    context.table("widths", found.widths)
    context.figure(plot(*found))
    pooled_first = (found.sites["flatten"] - found.sites["mean, pooled first"]).abs().mean()
    context.facts |= {"pooled_first": pooled_first, "samples": int(found.widths["samples"].iloc[0])}
    return found


def _reductions(context: RunContext, seeds: Sequence[int]) -> pd.DataFrame:
    rows = []
    for seed, (network, images) in enumerate(_networks(context, seeds)):
        signatures = {
            name: measure(
                network, images, samples=len(images), batch_size=100, gauges="affinity", reduction=reduction
            ).signature
            for name, reduction in REDUCTIONS.items()
        }
        table = pd.DataFrame(signatures).rename_axis("site").reset_index()
        rows.append(table.assign(seed=seed, number=range(1, len(table) + 1)))
    return pd.concat(rows, ignore_index=True)


def _networks(context: RunContext, seeds: Sequence[int]) -> Iterator[tuple[nn.Module, Tensor]]:
    """Yield trained networks, each with the images that it is measured on."""
    images = pictures(context, "test").normalised().to(context.device)
    images = images[: context.pick(smoke=100, small=None, paper=None)]
    if context.scale == "paper":
        files = published_files(context)
        if 20 not in files:
            raise InputError(f"--resnets {context.source('resnets')}: expected a file resnet20-….th")
        network = published_network(20, files[20]).eval().to(context.device)
        yield from ((network, part) for part in images.split(500)[: len(seeds)])
        return
    kind = context.pick(smoke="plain8", small="plain20", paper="")
    for seed in seeds[: context.pick(smoke=2, small=3, paper=5)]:
        yield trained(context, kind, seed).module, images


def _widths(context: RunContext, seeds: Sequence[int]) -> pd.DataFrame:
    samples = context.pick(smoke=16, small=64, paper=256)
    widths = [samples // 8 << place for place in range(100) if samples // 8 << place <= 2 * samples**2]
    rows = []
    for width in widths:
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            x = torch.randn(samples, width, generator=generator, dtype=torch.float64).to(context.device)
            for covariance in COVARIANCES:
                score = float(affinity_score(x, x.relu(), covariance=covariance))
                row = {"samples": samples, "features": width, "ratio": width / samples, "seed": seed}
                rows.append(row | {"covariance": covariance, "score": score})
    return pd.DataFrame(rows)


def flatten(found: Evidence) -> Numbers:
    """Measure the absolute difference between flattened and averaged, mean over sites."""
    difference = found.sites["flatten"] - found.sites["mean"]
    by_seed = difference.abs().groupby(found.sites["seed"]).mean()
    return interval_numbers(by_seed) | {"least": difference.min(), "largest": difference.max()}


def order(found: Evidence) -> Numbers:
    """Correlate the averaged and the flattened signature."""
    return {"ranks": [spearman(of["mean"], of["flatten"]) for _, of in found.sites.groupby("seed")]}


def by_ratio(widths: pd.DataFrame, covariance: str) -> pd.DataFrame:
    """Return scores, seed × d / n."""
    return widths[widths["covariance"] == covariance].pivot_table("score", "seed", "ratio")


def sample(found: Evidence) -> Numbers:
    """Measure how far scores with the sample covariance move from d = n/4 to d = 4n, for each seed."""
    of = by_ratio(found.widths, "sample")
    apart = (of[float(PAPER_REGIME)] - of[0.25]).abs()
    return {"apart": apart.to_list(), "narrow": of[0.25].to_list(), "wide": of[float(PAPER_REGIME)].to_list()}


def course(found: Evidence, most: float) -> Numbers:
    """Average scores with the shrunk covariance over seeds, for d up to `most` times n."""
    of = by_ratio(found.widths, "ledoit-wolf")
    kept = of.loc[:, of.columns.to_numpy(float) <= most]
    return {
        "means": kept.mean().to_list(),
        "ratios": [float(ratio) for ratio in kept.columns],
        "error": float(kept.std().mean() / np.sqrt(len(kept))),
    }


def _spread(n: dict[str, list[float]]) -> float:
    return max(n["means"]) - min(n["means"])


def _draw_course(generator: np.random.Generator, present: bool, numbers: Numbers) -> Numbers:
    slope = 0.0 if present else 2 * CONSTANT
    means = 0.6 + slope * np.linspace(0, 1, len(numbers["means"]))  # type: ignore[arg-type]
    return {"means": generator.normal(means, float(numbers["error"])).tolist()}  # type: ignore[arg-type]


_STEADY = Simulation("scores that do not depend on d; without it, scores that rise by 0.1", _draw_course)


def _says_course(n: dict[str, list[float]]) -> str:
    course = ", ".join(
        f"{mean:.3f} (d = {ratio:g} n)" for mean, ratio in zip(n["means"], n["ratios"], strict=True)
    )
    return f"{course}; spread over d {_spread(n):.3f}"


@for_print
def plot(sites: pd.DataFrame, widths: pd.DataFrame) -> Figure:
    """Draw the signature by reduction, and the score by width for both covariances."""
    figure = column_figure(2, 2.4)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    lines = [(left, name, sites.groupby("number")[name]) for name in ("mean", "sum", "flatten")]
    for name in COVARIANCES:
        own = widths[widths["covariance"] == name]
        lines.append((right, f"{name} covariance", own.groupby("ratio")["score"]))
    for place, (axes, label, groups) in enumerate(lines):
        style = series_style(place) | ({"linestyle": ":", "mfc": "none", "ms": 6} if label == "sum" else {})
        mean = groups.mean()
        axes.errorbar(mean.index, mean, groups.std(), label=label, capsize=2, **style)
    left.set(xlabel="ReLU of the network", ylabel="affinity score", title="dimensionality reduction")
    right.axvline(1, color="0.7", linewidth=0.8)
    right.set_xscale("log", base=2)
    right.set(xlabel=f"features / samples (n = {widths['samples'].iloc[0]})", title="ReLU on N(0, I)")
    legend_above(figure, [artist for axes in (left, right) for artist in axes.get_legend_handles_labels()[0]])
    repetitions = f"left {sites['seed'].nunique()} repetitions, right {widths['seed'].nunique()} seeds"
    note_below(figure, [f"mean ± std; {repetitions}"])
    return figure


FIGURE_7 = Item(
    name="affinity-figure-7",
    title="Figure 7: robustness to the reduction of dimensions, and the need of shrinkage",
    run=run,
    claims={
        "flatten": Claim(
            words="With averaging it maintains the same values as its flattened counterpart.",
            test="The absolute difference between scores of averaged and of flattened activations, mean over "
            f"sites: the 95 % interval (over repetitions) lies below {CONSTANT}.",
            measure=flatten,
            holds=lambda n: n["high"] <= CONSTANT,
            says="{mean:.3f} ({low:.3f} to {high:.3f}) over {seeds:.0f} repetitions; at a site, flattened "
            "less averaged is {least:+.3f} to {largest:+.3f}",
            simulation=interval_simulation("a difference of 0.01 (assumed)", effect=0.01, null=CONSTANT),
        ),
        "order": Claim(
            words="The same, read as: the signature keeps its shape.",
            test="The rank correlation over sites of the averaged and the flattened signature is, in the "
            f"mean over repetitions, {ORDER} or more.",
            measure=order,
            holds=lambda n: np.mean(n["ranks"]) >= ORDER,
            says="rank correlation {ranks:.2f}",
            kind="ours",
            simulation=seeds_simulation("a correlation of 0.95 (assumed)", {"ranks": 0.95}, {"ranks": 0.5}),
        ),
        "sample": Claim(
            words="When d > n, the sample covariance leads to a lack of robustness.",
            test="ReLU on n samples of N(0, I) in d dimensions: with the sample covariance, the scores at d "
            f"= n/4 and at d = {PAPER_REGIME}n differ by {LACK} or more, in every seed.",
            measure=sample,
            holds=lambda n: min(n["apart"]) >= LACK,
            says="differences {apart:.3f}: from {narrow:.3f} to {wide:.3f}",
            simulation=seeds_simulation("a difference of 0.3 (assumed)", {"apart": 0.3}, {"apart": 0.1}),
        ),
        "shrunk": Claim(
            words="Shrinkage of the covariance leads to constant values with increasing d.",
            test=f"The same with the Ledoit-Wolf covariance, d = n/8, n/4, … {PAPER_REGIME}n: mean scores "
            f"(over seeds) differ by {CONSTANT} at most.",
            measure=partial(course, most=PAPER_REGIME),
            holds=lambda n: _spread(n) <= CONSTANT,
            says=_says_course,
            simulation=_STEADY,
        ),
        "regimes": Claim(
            words="They remain constant in all regimes.",
            test=f"The same for d = n/8, n/4, … 2n²: mean scores (over seeds) differ by {CONSTANT} at most.",
            measure=partial(course, most=float("inf")),
            holds=lambda n: _spread(n) <= CONSTANT,
            says=_says_course,
            simulation=_STEADY,
        ),
        "sum": Claim(
            words="The score is robust to the reduction both when using averaging and summation over the "
            "spatial dimensions. (A sum is a mean times a constant, which no score sees.)",
            test="At every ReLU of a trained convolutional network and in every repetition, the scores with "
            f"sums and with means differ by {EQUAL:g} at most.",
            measure=lambda found: {
                "largest": float((found.sites["sum"] - found.sites["mean"]).abs().max()),
                "sites": len(found.sites),
            },
            holds=lambda n: n["largest"] <= EQUAL,
            says="largest difference over {sites:.0f} sites of all repetitions: {largest:.1e}",
            kind="numerical",
        ),
    },
    settings={
        "small": "three networks of 20 layers without shortcuts, half as wide, trained here on digits, in "
        "place of a network that the paper does not name; n = 64",
        "paper": "a published ResNet-20 on five times 500 images of CIFAR-10, as the paper does not name its "
        "network; n = 256",
    },
    seconds={"smoke": 4, "small": 30, "paper": 180},
    sources=("cifar10", "resnets"),
    notes=(
        "Where σ is applied after averaging (Definition 3.1), the absolute difference to flattened scores is "
        "{pooled_first:.3f} in the mean over sites.",
        "Covariances: n = {samples:.0f}.",
    ),
    changes=(
        "The network was changed after a first run, from one of digits at every scale to the published "
        "ResNet-20 at scale paper; the limits are as they were.",
    ),
)
