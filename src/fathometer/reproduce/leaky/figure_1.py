"""Figure 1: the Hamiltonian and the cost of identity against L̃, the bottleneck, and the energies along p."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd

from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.energy import hamiltonians, in_dimensions
from fathometer.report.figures.leaky import plot_dimensions, plot_energies, plot_spectra
from fathometer.report.leaky_tables import depth_table, usual_run
from fathometer.reproduce.claim import Answer, Claim
from fathometer.reproduce.intervals import mean_interval, pm
from fathometer.reproduce.item import Item
from fathometer.reproduce.leaky.instances import START_DEPTH, followed, solved
from fathometer.reproduce.leaky.networks import SMALL_DEPTHS, by_depth, depth_networks
from fathometer.reproduce.scales import Seconds
from fathometer.reproduce.workshop import Workshop

RANK = 3  # k*
FROM, NEAR = 3.0, 0.3  # L̃ from which, and how near k* at the largest
APART, FIRST = 3.0, 10  # s_k/s_{k+1} that stands apart, and is the largest among so many
MUCH_LESS = 0.1  # a spread that is called much less than another
SLOPES, ALIKE = (0.8, 1.25), 0.95  # of logarithms: what is called proportional
LARGE = 5.0  # times the middle third
DRIFT, FALLS = 1e-5, 0.7  # of H along the flow; of its spread when L doubles
LAYERS = (20, 40, 80)

Side = Literal["below", "above"]


def run_a(workshop: Workshop) -> Mapping[str, Answer]:
    """−2H/L̃, the stable one and the least COI against L̃."""
    sweep = depth_networks(workshop)
    table = workshop.table("depths", depth_table(sweep))
    workshop.figure("figure", plot_dimensions(sweep))
    hamiltonian = approach(table, "hamiltonian", "below", FROM)
    cost = approach(table, "cost_of_identity", "above", FROM)
    whole = [approach(table, "hamiltonian", "below"), approach(table, "cost_of_identity", "above")]
    return {
        "hamiltonian": hamiltonian,
        "stable": approach(table, "hamiltonian_stable", "below", FROM),
        "cost": cost,
        "whole": Answer(
            all(answer.holds for answer in whole),
            f"−2H/L̃: {whole[0].measured}; COI: {whole[1].measured}",
            whole[0].numbers,
        ),
    }


def approach(table: pd.DataFrame, column: str, side: Side, start: float = 0.0, rank: int = RANK) -> Answer:
    """Whether a column comes to k* from one side: there in the 95 % interval, nearer and nearer, near."""
    groups = table[table["effective_depth"] >= start].groupby("effective_depth")[column]
    sign = 1.0 if side == "above" else -1.0
    intervals = [mean_interval(values.to_numpy()) for _, values in groups]
    inside = [i.low > rank if side == "above" else i.high < rank for i in intervals]
    gaps = (sign * (groups.median() - rank)).to_list()
    falls = all(later < earlier for earlier, later in pairwise(gaps))
    words = ", ".join(f"{pm(values.to_numpy())} (L̃ = {depth:g})" for depth, values in groups)
    wrong = [] if all(inside) else [f"not {side} {rank} at {sum(not i for i in inside)} L̃"]
    wrong += [] if falls else ["the distance does not always fall"]
    wrong += [] if gaps[-1] <= NEAR else [f"{gaps[-1]:.2g} away at the largest L̃"]
    return Answer(
        not wrong,
        words + (f": {'; '.join(wrong)}" if wrong else ""),
        {f"{column}_{depth:g}": float(values.mean()) for depth, values in groups},
    )


def shown(sweep: LeakySweep) -> list[LeakyRun]:
    """The networks of Figures 1b and 1c: L̃ nearest 7, every seed."""
    return by_depth(sweep)[usual_run(sweep).design.effective_depth]


def run_b(workshop: Workshop) -> Mapping[str, Answer]:
    """The spectra of A_p and W_p."""
    sweep = depth_networks(workshop)
    runs = shown(sweep)
    table = workshop.table("spectra", pd.DataFrame([spectrum_row(run) for run in runs]))
    workshop.figure("figure", plot_spectra(sweep))
    depth, seeds = runs[0].design.effective_depth, len(runs)
    first, last, least = (table[f"dimension_{at}"] for at in ("first", "last", "least"))
    return {
        "weights": Answer(
            bool((table["rank"] == RANK).all() and (table["weights_gap"] >= APART).all())
            and bool(table["weights_largest"].all()),
            f"L̃ = {depth:g}: ranks {', '.join(map(str, table['rank']))} in {seeds} seeds, s₃/s₄ = "
            f"{pm(table['weights_gap'])}, at least {table['weights_gap'].min():.3g}",
            {"gap_min": table["weights_gap"].min(), "ranks_right": float((table["rank"] == RANK).sum())},
        ),
        "representations": Answer(
            bool((table["gap"] >= APART).all() and table["largest"].all()),
            f"L̃ = {depth:g}: s₃/s₄ = {pm(table['gap'])}, at least {table['gap'].min():.3g}",
            {"gap_min": table["gap"].min()},
        ),
        "most": Answer(
            bool((table["share"] > 0.5).all()),
            f"{pm(100 * table['share'])} % of the layers, at least {100 * table['share'].min():.0f} %",
            {"share_min": table["share"].min()},
        ),
        "ends": Answer(
            bool(((first >= least + 1) & (last >= least + 1)).all()),
            f"‖W‖*²/‖W‖² is {pm(first)} in the first layer, {pm(least)} in the narrowest, {pm(last)} in the "
            "last",
            {"first": first.mean(), "least": least.mean(), "last": last.mean()},
        ),
    }


def spectrum_row(run: LeakyRun) -> dict[str, float]:
    """What Figure 1b shows of a network, in the layer where ‖W‖*²/‖W‖² is least."""
    measures, spectra = run.measure(warn=False), run.measure(warn=False).weight_spectra
    assert spectra is not None
    rank, _, layer = (int(measures.summary[name]) for name in ("rank", "gap", "rank_layer"))
    counts = (spectra > run.design.effective_depth / 2).sum(1)
    weights, images = ratios(spectra[layer - 1]), ratios(measures.spectra[layer - 1])
    dimensions = measures.layers["weight_stable_rank"]
    return {
        "seed": run.design.seed,
        "layer": layer,
        "rank": rank,
        "weights_gap": weights[RANK - 1],
        "weights_largest": bool(weights[:FIRST].argmax() == RANK - 1),
        "gap": images[RANK - 1],
        "largest": bool(images[:FIRST].argmax() == RANK - 1),
        "share": float((counts == RANK).mean()),
        "dimension_first": dimensions.iloc[0],
        "dimension_least": dimensions.min(),
        "dimension_last": dimensions.iloc[-1],
    }


def ratios(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """s_k / s_{k+1}.

    Example:
        >>> ratios(np.array([8.0, 4.0, 1.0])).tolist()
        [2.0, 4.0]
    """
    return values[:-1] / np.maximum(values[1:], np.finfo(float).tiny)
