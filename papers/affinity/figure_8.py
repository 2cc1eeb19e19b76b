"""Figure 8: VGG-16 with other batch sizes, and trained from other seeds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import binomtest

from fathometer.compare import robustness
from papers.affinity.trained_figures import plot_robustness
from papers.images.ensembles import Scores, ensemble, note_accuracy, scores_table, trained_item
from papers.intervals import mean_interval
from papers.item import Answer, Answers, Claim, RunContext, Seconds

SIZES = (128, 256, 384, 512, 640, 768, 896, 1024)
SEEDS = 9
STEADY = 0.02  # standard deviation over seeds at a site
SHARE = 0.1  # of the standard deviation over sites
MOVED = 0.05  # by the batch size, at a site
LEVEL = 0.05


def run(context: RunContext) -> Answers:
    """Train nine networks; measure three of them with all batch sizes."""
    seeds = range(context.pick(smoke=2, small=SEEDS, paper=SEEDS))
    few = seeds[: context.pick(smoke=2, small=3, paper=3)]
    sizes = context.pick(smoke=(125, 250), small=(62, 125, 250, 500), paper=SIZES)
    trainings = ensemble(context, "vgg16", seeds)
    by_size = {size: ensemble(context, "vgg16", few, samples=size, gauges="affinity") for size in sizes}
    context.table("seeds", scores_table({"vgg16": trainings}))
    context.table("sizes", scores_table({str(size): group for size, group in by_size.items()}))
    every = [sounding for group in by_size.values() for sounding in group.soundings.values()]
    context.table("robustness", robustness(every, "samples").reset_index())
    scores = {size: group.scores for size, group in by_size.items()}
    context.figure(plot_robustness(scores, trainings.scores))
    note_accuracy(context, {"vgg16": seeds})
    context.note(
        "All batch sizes see the same images, up to those that do not fill the last batch. With few samples "
        "for many features the covariances are shrunk more, which moves the score."
    )
    return {
        "seeds": steady_over_seeds(trainings.scores),
        "size": steady_over_sizes(scores),
        "trend": no_trend(scores),
    }


def steady_over_seeds(scores: Scores) -> Answer:
    """Check the standard deviation over trainings at each site, compared with that over sites."""
    std = scores.std(0, ddof=1)
    over_sites = float(scores.mean(0).std(ddof=1))
    return Answer(
        std.max() < STEADY and std.mean() < SHARE * over_sites,
        f"std over {len(scores)} trainings {std.min():.4f} to {std.max():.4f} at a site, {std.mean():.4f} "
        f"in the mean; {std.mean() / over_sites:.0%} of the std over sites ({over_sites:.3f}); scores from "
        f"{scores.mean(0).min():.2f} to {scores.mean(0).max():.2f}",
        {"largest": std.max(), "mean": std.mean(), "over_sites": over_sites},
    )


def steady_over_sizes(by_size: Mapping[int, Scores]) -> Answer:
    """Check the largest difference between two batch sizes at a site."""
    stacked = np.array(list(by_size.values()))  # [sizes, seeds, sites]
    moved = stacked.max(0) - stacked.min(0)
    words = ", ".join(f"{row.max():.3f}" for row in moved)
    return Answer(
        moved.max() < MOVED,
        f"between {min(by_size)} and {max(by_size)} samples a site moves by at most {words} in {len(moved)} "
        f"trainings, by {moved.mean():.3f} in the mean",
        {"largest": moved.max(), "mean": moved.mean()},
    )


def no_trend(by_size: Mapping[int, Scores]) -> Answer:
    """Check whether sites move the same way from the smallest batch to the largest."""
    change = by_size[max(by_size)] - by_size[min(by_size)]
    falling = (change < 0).sum(1)
    levels = [binomtest(int(fall), change.shape[1]).pvalue for fall in falling]
    one_way = (falling > change.shape[1] / 2).all() or (falling < change.shape[1] / 2).all()
    mean = mean_interval(change.mean(1))
    return Answer(
        not (one_way and max(levels) < LEVEL),
        f"from {min(by_size)} to {max(by_size)} samples the score falls at "
        f"{', '.join(map(str, falling))} of {change.shape[1]} sites (sign test p = "
        f"{', '.join(f'{level:.2g}' for level in levels)}), by {mean} in the mean over sites",
        {"change": mean.mean, "low": mean.low, "high": mean.high, "p_max": max(levels)},
    )


FIGURE_8 = trained_item(
    name="affinity-figure-8",
    title="Figure 8: VGG-16 with varying batch sizes, and retrained from nine seeds",
    claims={
        "seeds": Claim(
            "The affinity score is robust to the random seed used for training.",
            f"Over nine trainings the standard deviation is below {STEADY} at every site, and its mean over "
            "sites is below a tenth of the standard deviation over sites.",
        ),
        "size": Claim(
            "The affinity score is robust to the batch size.",
            f"In each of three trainings no site moves by {MOVED} or more between any two of the batch "
            "sizes (128 to 1024 in steps of 128).",
        ),
        "trend": Claim(
            "The same, read strictly: the score does not depend on the batch size.",
            "It does if from the smallest to the largest batch the sites move the same way more often than "
            f"by chance (sign test over sites, p < {LEVEL}) in every one of these trainings, and all in one "
            "direction.",
            ours=True,
        ),
    },
    run=run,
    seconds=Seconds(3, 50, 360),
    small="digits of 16 pixels, an eighth of the width; 62, 125, 250, 500 samples in a batch",
    published="networks trained here on CIFAR-10, VGG-16, nine seeds, 24 epochs",
)
