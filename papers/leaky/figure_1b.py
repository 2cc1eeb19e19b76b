"""Figure 1b: the bottleneck in the spectra of A_p and W_p."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.report import plot_spectra
from papers.intervals import pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.networks import RANK, depth_item, depth_networks, usual_depth

APART, FIRST = 3.0, 10  # s_k/s_{k+1} that stands apart, and the largest of the first so many
WIDER = 1.0  # dimensions


def run(context: RunContext) -> Answers:
    """Measure the networks with L̃ nearest 7, every seed."""
    sweep = depth_networks(context)
    runs = usual_depth(sweep)
    table = context.table("spectra", pd.DataFrame([spectrum_row(run) for run in runs]))
    context.figure(plot_spectra(sweep))
    return answers(table, runs[0].design.effective_depth)


def answers(table: pd.DataFrame, depth: float) -> dict[str, Answer]:
    """Decide from a `spectrum_row` of each seed."""
    names = ("weights_gap", "gap", "share", "dimension_first", "dimension_last", "dimension_least")
    weights, gap, share, first, last, least = (table[name].to_numpy(float) for name in names)
    ranks = table["rank"].to_numpy(int)
    return {
        "weights": Answer(
            bool((ranks == RANK).all() and (weights >= APART).all() and table["weights_largest"].all()),
            f"L̃ = {depth:g}: rank {', '.join(map(str, ranks))} by seed; s₃/s₄ of W is {pm(weights)}, at "
            f"least {weights.min():.3g}",
            {"gap_least": weights.min(), "seeds": len(table), "right_ranks": (ranks == RANK).sum()},
        ),
        "representations": Answer(
            bool((gap >= APART).all() and table["largest"].all()),
            f"L̃ = {depth:g}: s₃/s₄ of A is {pm(gap)}, at least {gap.min():.3g}",
            {"gap_least": gap.min()},
        ),
        "most": Answer(
            bool((share > 0.5).all()),
            f"{pm(100 * share)} % of the layers, at least {100 * share.min():.0f} %",
            {"share_least": share.min()},
        ),
        "ends": Answer(
            bool((first >= least + WIDER).all() and (last >= least + WIDER).all()),
            f"‖W‖*²/‖W‖² is {pm(first)} in the first layer, {pm(least)} in the narrowest, {pm(last)} in the "
            "last",
            {"first": first.mean(), "least": least.mean(), "last": last.mean()},
        ),
    }


def spectrum_row(run: LeakyRun) -> dict[str, Any]:
    """Measure what Figure 1b shows, at the narrowest layer, where ‖W‖*²/‖W‖² is least."""
    measures = run.measure(warn=False)
    spectra = measures.weight_spectra
    assert spectra is not None
    layer = int(measures.summary["rank_layer"])
    weights, representation = ratios(spectra[layer - 1]), ratios(measures.spectra[layer - 1])
    dimensions = measures.layers["weight_stable_rank"]
    return {
        "seed": run.design.seed,
        "layer": layer,
        "rank": int(measures.summary["rank"]),
        "weights_gap": weights[RANK - 1],
        "weights_largest": bool(weights[:FIRST].argmax() == RANK - 1),
        "gap": representation[RANK - 1],
        "largest": bool(representation[:FIRST].argmax() == RANK - 1),
        "share": float(((spectra > run.design.effective_depth / 2).sum(1) == RANK).mean()),
        "dimension_first": dimensions.iloc[0],
        "dimension_least": dimensions.min(),
        "dimension_last": dimensions.iloc[-1],
    }


def ratios(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute s_k / s_{k+1} of singular values.

    Example:
        >>> ratios(np.array([8.0, 4.0, 1.0])).tolist()
        [2.0, 4.0]
    """
    return values[:-1] / np.maximum(values[1:], np.finfo(float).tiny)


FIGURE_1B = depth_item(
    name="leaky-figure-1b",
    title="Figure 1b: bottleneck structure in the spectra, L̃ = 7",
    claims={
        "weights": Claim(
            "The spectra reveal a clear separation between k* = 3 large singular values of W_p and the rest.",
            "In every seed: where ‖W‖*²/‖W‖² is least, exactly 3 singular values exceed L̃/2, s₃/s₄ ≥ 3, and "
            "no other of the first ten ratios s_k/s_(k+1) is as large.",
        ),
        "representations": Claim(
            "The same of the representations A_p.",
            "In every seed, at the start of that layer: s₃/s₄ of A ≥ 3, the largest of the first ten ratios.",
        ),
        "most": Claim(
            "Almost all layers are of this dimension, consistently.",
            "In every seed more than half of the layers have exactly 3 singular values of W above L̃/2.",
        ),
        "ends": Claim(
            "Towards the beginning and the end of the network the weights are higher dimensional.",
            "In every seed ‖W‖*²/‖W‖² of the first and of the last layer is above its least by one or more.",
        ),
    },
    run=run,
    seconds=Seconds(1, 5, 15),
)
