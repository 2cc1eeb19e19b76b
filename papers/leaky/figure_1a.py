"""Figure 1a: the Hamiltonian, the stable one and the cost of identity against L̃."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import pandas as pd

from fathometer.report import depth_table, plot_dimensions
from papers.intervals import mean_interval
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.networks import RANK, depth_item, depth_networks
from papers.leaky.trends import over_depths

FROM, NEAR = 3.0, 0.3  # L̃ from which on, and how near k* at the largest


def run(context: RunContext) -> Answers:
    """Check both Hamiltonians from below, the cost from above; from L̃ = 3 on, and over the whole range."""
    sweep = depth_networks(context)
    table = context.table("depths", depth_table(sweep))
    context.figure(plot_dimensions(sweep))
    whole = [approach(table, "hamiltonian", "below"), approach(table, "cost_of_identity", "above")]
    return {
        "hamiltonian": approach(table, "hamiltonian", "below", FROM),
        "stable": approach(table, "hamiltonian_stable", "below", FROM),
        "cost": approach(table, "cost_of_identity", "above", FROM),
        "whole": Answer(
            all(answer.holds for answer in whole),
            f"−2H/L̃: {whole[0].measured}; COI: {whole[1].measured}",
            {**whole[0].numbers, **whole[1].numbers},
        ),
    }


def approach(table: pd.DataFrame, column: str, side: Literal["below", "above"], start: float = 0.0) -> Answer:
    """Check whether a column approaches k* from one side: its intervals on that side, nearer and nearer."""
    rows = table[table["effective_depth"] >= start]
    groups = rows.groupby("effective_depth")[column]
    intervals = [mean_interval(values) for _, values in groups]
    inside = [i.low > RANK if side == "above" else i.high < RANK for i in intervals]
    gaps = ((1 if side == "above" else -1) * (groups.median() - RANK)).to_list()
    wrong = [] if all(inside) else [f"not {side} {RANK} at {inside.count(False)} of {len(inside)} L̃"]
    if not all(later < earlier for earlier, later in pairwise(gaps)):
        wrong.append("the distance does not always fall")
    if gaps[-1] > NEAR:
        wrong.append(f"{gaps[-1]:.2g} away at the largest L̃")
    return Answer(
        not wrong,
        over_depths(rows, column) + (f": {', '.join(wrong)}" if wrong else ""),
        {f"{column}_{depth:g}": float(values.mean()) for depth, values in groups},
    )


_TEST = (
    "At every L̃ ≥ 3 the 95 % interval of the mean over seeds is {side} 3; the distance of the median to 3 "
    "falls from each L̃ to the next, and is .3 at most at the largest."
)

FIGURE_1A = depth_item(
    name="leaky-figure-1a",
    title="Figure 1a: Hamiltonian and cost of identity against the effective depth",
    claims={
        "hamiltonian": Claim(
            "The Hamiltonian −2H/L̃ approaches the rank k* = 3 from below.",
            f"{_TEST.format(side='below')} Of a network the median of H(A_{{l−1}}, B_l) over its layers.",
        ),
        "stable": Claim(
            "So do the stable Hamiltonians H_γ.",
            f"{_TEST.format(side='below')} Of a network the median of −2H_γ/L̃ over its layers, γ₀ = 1e-3.",
        ),
        "cost": Claim(
            "The minimal COI approaches it from above.",
            f"{_TEST.format(side='above')} Of a network the least COI_γ over p, without the bias.",
        ),
        "whole": Claim(
            "Both, read as a statement about all effective depths.",
            "The same test of −2H/L̃ and of the COI over all L̃ that were trained, from the least on.",
            ours=True,
        ),
    },
    run=run,
    seconds=Seconds(3, 55, 140),
)
