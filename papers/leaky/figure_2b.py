"""Figure 2b: where adaptive steps stand, and how many dimensions the weights have there."""

from __future__ import annotations

import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.report import plot_steps
from papers.intervals import mean_interval
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.networks import scheme_item, shown_schemes

PLACE = 0.3  # p where W is said to be 6-dimensional
SIX = (5.0, 7.0)  # what is roughly 6


def run(context: RunContext) -> Answers:
    """Measure the adaptive networks with L = 18, every seed."""
    sweep = shown_schemes(context)
    runs = [run for run in sweep.trained if run.design.scheme == "adaptive"]
    table = context.table("steps", pd.DataFrame([steps_row(run) for run in runs]))
    context.figure(plot_steps(sweep))
    return answers(table)


def steps_row(run: LeakyRun) -> dict[str, float]:
    """Count layers in each third of p; the last step, and the dimensions of W at p = 0.3 and half-way."""
    measures = run.measure(warn=False)
    p, step = measures.layers["p"].to_numpy(), measures.layers["step"].to_numpy()
    spectra = measures.weight_spectra
    assert spectra is not None
    counts = (spectra > run.design.effective_depth / 2).sum(1)
    place, half = (int((p <= at).sum()) - 1 for at in (PLACE, 0.5))
    return {
        "seed": run.design.seed,
        "layers": len(p),
        "first": float((p < 1 / 3).sum()),
        "middle": float(((p >= 1 / 3) & (p < 2 / 3)).sum()),
        "last": float((p >= 2 / 3).sum()),
        "last_step": step[-1] * len(p),
        "longest_step": step.max() * len(p),
        "dimension": float(counts[place]),
        "dimension_half": float(counts[half]),
        "stable": measures.layers["weight_stable_rank"].iloc[place],
    }


def answers(table: pd.DataFrame) -> dict[str, Answer]:
    """Decide from a `steps_row` of each seed."""
    first, middle, last = (table[name] for name in ("first", "middle", "last"))
    thirds = ", ".join(f"{table[name].mean():.3g}" for name in ("first", "middle", "last"))
    where = f"{thirds} layers in the three thirds of p ({table['layers'].iloc[0]} in all)"
    beginning, end, more = (mean_interval(a - b) for a, b in ((first, middle), (last, middle), (first, last)))
    dimension = mean_interval(table["dimension"])
    return {
        "beginning": Answer(
            beginning.low > 0 and more.low > 0,
            f"{where}; first less middle {beginning}, first less last {more}",
            {"first": first.mean(), "middle": middle.mean(), "last": last.mean()},
        ),
        "end": Answer(
            end.low > 0,
            f"{where}; last less middle {end}; the last step is {table['last_step'].mean():.2f}, the longest "
            f"{table['longest_step'].mean():.2f} equidistant ones long",
            {"last_less_middle": end.mean, "last_step": table["last_step"].mean()},
        ),
        "six": Answer(
            SIX[0] <= dimension.mean <= SIX[1],
            f"{dimension} singular values above L̃/2 at p = .3 ({table['dimension_half'].mean():.3g} at p = "
            f".5); ‖W‖*²/‖W‖² is {table['stable'].mean():.3g} there",
            {"dimension": dimension.mean, "stable": table["stable"].mean()},
        ),
    }


FIGURE_2B = scheme_item(
    name="leaky-figure-2b",
    title="Figure 2b: weight spectra and adaptive steps, L = 18",
    claims={
        "beginning": Claim(
            "The adaptive ρ result in more steps especially in the beginning of the network.",
            "Layers that begin in the first third of p, less those in the middle one and less those in the "
            "last one: both means over seeds have a 95 % interval above 0.",
        ),
        "end": Claim(
            "But also at the end.",
            "Layers that begin in the last third of p, less those in the middle one: the mean over seeds has "
            "a 95 % interval above 0.",
        ),
        "six": Claim(
            "One can almost see that the weight matrices are roughly 6-dimensional around p = .3.",
            "The number of singular values of W above L̃/2 in the layer at p = .3, mean over seeds, is from 5 "
            "to 7.",
        ),
    },
    run=run,
    seconds=Seconds(1, 6, 20),
)
