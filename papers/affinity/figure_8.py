"""Figure 8: VGG-16 with other batch sizes, and trained from other seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from papers.affinity.trained_figures import plot_robustness
from papers.images.ensembles import Scores, accuracies, ensemble, scores_table, trained_item
from papers.item import Claim, Numbers, RunContext, Simulation

SIZES = (128, 256, 384, 512, 640, 768, 896, 1024)
STEADY = 0.02  # standard deviation over seeds at a site
SHARE = 0.1  # of the standard deviation over sites
MOVED = 0.05  # by the batch size, at a site
LEVEL = 0.05
SITES = 14


class Evidence(NamedTuple):
    """Scores of nine trainings, `[seeds, sites]`, and of three of them by batch size."""

    seeds: Scores
    by_size: Mapping[int, Scores]


def run(context: RunContext) -> Evidence:
    """Train nine networks; measure three of them with all batch sizes."""
    seeds = context.seeds(smoke=2, small=9, paper=9)
    sizes = context.pick(smoke=(125, 250), small=(62, 125, 250, 500), paper=SIZES)
    trainings = ensemble(context, "vgg16", seeds)
    by_size = {size: ensemble(context, "vgg16", seeds[:3], samples=size, gauges="affinity") for size in sizes}
    context.table("seeds", scores_table({"vgg16": trainings}))
    context.table("sizes", scores_table({str(size): group for size, group in by_size.items()}))
    found = Evidence(trainings.scores, {size: group.scores for size, group in by_size.items()})
    context.figure(plot_robustness(found.by_size, found.seeds))
    context.facts |= {"accuracy": accuracies(context, {"vgg16": seeds}), "sizes": list(sizes)}
    return found


def over_seeds(found: Evidence) -> Numbers:
    """Measure the standard deviation over trainings at each site, and that over sites."""
    means = found.seeds.mean(0)
    return {
        "std": found.seeds.std(0, ddof=1).tolist(),
        "over_sites": means.std(ddof=1),
        "least": means.min(),
        "largest": means.max(),
        "seeds": len(found.seeds),
    }


def over_sizes(found: Evidence) -> Numbers:
    """Measure by how much a site moves between two batch sizes, at most, in each training."""
    stacked = np.array(list(found.by_size.values()))  # [sizes, seeds, sites]
    return {"moved": np.ptp(stacked, axis=0).max(1).tolist(), "sizes": len(stacked)}


def by_size(found: Evidence) -> Numbers:
    """Count the sites that fall from the smallest batch to the largest, in each training."""
    change = found.by_size[max(found.by_size)] - found.by_size[min(found.by_size)]
    return {
        "falling": (change < 0).sum(1).tolist(),
        "sites": change.shape[1],
        "change": change.mean(1).tolist(),
    }


def no_trend(n: Mapping[str, list[float]]) -> bool:
    """Whether sites do not move the same way in every training, more often than by chance."""
    sites, falling = int(n["sites"]), [int(each) for each in n["falling"]]  # type: ignore[call-overload]
    chance = all(binomtest(each, sites).pvalue < LEVEL for each in falling)
    return not (chance and len({each > sites / 2 for each in falling}) == 1)


def _draw_seeds(generator: np.random.Generator, steady: bool, numbers: Numbers) -> Numbers:
    seeds = int(numbers["seeds"])  # type: ignore[arg-type]
    sites = generator.normal(0.7, 0.08, SITES)
    return over_seeds(Evidence(generator.normal(sites, 0.005 if steady else STEADY, (seeds, SITES)), {}))


def _draw_sizes(generator: np.random.Generator, steady: bool, numbers: Numbers) -> Numbers:
    shape = (int(numbers["sizes"]), 3, SITES)  # type: ignore[arg-type]
    drawn = generator.normal(0.7, 0.005 if steady else MOVED / 2, shape)
    return over_sizes(Evidence(drawn[0], dict(enumerate(drawn))))


def _draw_trend(generator: np.random.Generator, steady: bool, numbers: Numbers) -> Numbers:
    chance = 0.5 if steady else 0.95
    return {"falling": generator.binomial(SITES, chance, len(numbers["falling"])).tolist(), "sites": SITES}  # type: ignore[arg-type]


FIGURE_8 = trained_item(
    name="affinity-figure-8",
    title="Figure 8: VGG-16 with varying batch sizes, and retrained from nine seeds",
    run=run,
    claims={
        "seeds": Claim(
            words="The affinity score is robust to the random seed used for training.",
            test=f"Over nine trainings the standard deviation is below {STEADY} at every site, and its mean "
            "over sites is below a tenth of the standard deviation over sites.",
            measure=over_seeds,
            holds=lambda n: max(n["std"]) < STEADY and np.mean(n["std"]) < SHARE * n["over_sites"],
            says="std over {seeds:.0f} trainings, by site: {std:.3f}; over sites {over_sites:.3f}, scores "
            "from {least:.2f} to {largest:.2f}",
            simulation=Simulation(
                "assumed: a std of 0.005 over trainings at every site and of 0.08 over sites; without it, of "
                f"{STEADY} over trainings",
                _draw_seeds,
            ),
        ),
        "size": Claim(
            words="The affinity score is robust to the batch size.",
            test=f"In each of three trainings no site moves by {MOVED} or more between any two of the batch "
            "sizes (128 to 1024 in steps of 128).",
            measure=over_sizes,
            holds=lambda n: max(n["moved"]) < MOVED,
            says="of {sizes:.0f} sizes two differ at a site by at most {moved:.3f} in these trainings",
            simulation=Simulation(
                "assumed: a std of 0.005 over batch sizes at every site; without it, of 0.025", _draw_sizes
            ),
        ),
        "trend": Claim(
            words="The same, read strictly: the score does not depend on the batch size.",
            test="It does if from the smallest to the largest batch the sites move the same way more often "
            f"than by chance (sign test over sites, p < {LEVEL}) in every one of these trainings, and all in "
            "one direction.",
            measure=by_size,
            holds=no_trend,
            says="from the smallest batch to the largest {falling:.0f} of {sites:.0f} sites fall, in the "
            "three trainings; mean change {change:+.3f}",
            kind="ours",
            simulation=Simulation("no dependence; without it, 95 % of the sites fall", _draw_trend),
        ),
    },
    settings={
        "small": "digits of 16 pixels and an eighth of the width in place of CIFAR-10; 62, 125, 250, 500 "
        "samples in a batch",
        "paper": "nine networks trained here on CIFAR-10 for 24 epochs; the paper does not state its "
        "training",
    },
    seconds={"smoke": 3, "small": 50, "paper": 360},
    notes=(
        "Accuracy in per cent: {accuracy}.",
        "All batch sizes ({sizes:.0f}) see the same images, up to those that do not fill the last batch. "
        "With few samples for many features the covariances are shrunk more, which moves the score.",
    ),
)
