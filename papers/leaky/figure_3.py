"""Figure 3: what stays bounded as L̃ grows."""

from __future__ import annotations

import pandas as pd

from fathometer.report import depth_table, plot_bounded
from papers.intervals import Interval
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.networks import depth_item, depth_networks
from papers.leaky.trends import over_depths, power

FROM = 5.0  # L̃ from which on a bottleneck stands
ROOT = 0.5  # the power of L̃ up to which a quantity is called relatively constant

COLUMNS = {
    "momenta": "momentum",
    "pushed": "momentum_sigma",
    "length": "length_per_root_n",
    "kernel": "length_kernel",
}


def run(context: RunContext) -> Answers:
    """Measure momenta and path lengths of all networks."""
    sweep = depth_networks(context)
    table = context.table("depths", depth_table(sweep))
    context.figure(plot_bounded(sweep))
    return answers(table)


def answers(table: pd.DataFrame) -> dict[str, Answer]:
    """Decide from a row for each network."""
    powers = {claim: power(table, column, FROM) for claim, column in COLUMNS.items()}
    grow = {claim: powers[claim] for claim in ("momenta", "pushed", "length")}
    names = {"momenta": "‖B‖", "pushed": "‖Bσᵀ‖", "length": "path length"}
    return {
        "bounded": Answer(
            all(each.low <= 0 for each in grow.values()),
            "powers of L̃: " + ", ".join(f"{names[claim]} {each}" for claim, each in grow.items()),
            {claim: each.mean for claim, each in grow.items()},
        ),
        **{claim: _constant(table, COLUMNS[claim], each) for claim, each in powers.items()},
    }


def _constant(table: pd.DataFrame, column: str, found: Interval) -> Answer:
    words = f"as L̃ to the power {found}; {over_depths(table, column)}"
    return Answer(abs(found.mean) < ROOT, words, {"power": found.mean})


_TEST = (
    "{what} is fitted, from L̃ = 5 on and for each seed, by a power of L̃; the mean of the powers is between "
    "−.5 and .5."
)

FIGURE_3 = depth_item(
    name="leaky-figure-3",
    title="Figure 3: what remains bounded as the effective depth grows",
    claims={
        "bounded": Claim(
            "B_p, B_pσ(A_p)ᵀ and the path length remain bounded (caption).",
            "The power of L̃ that each of the three follows from L̃ = 5 on has a 95 % interval over seeds that "
            "is not above 0.",
        ),
        "momenta": Claim(
            "The magnitude of B_p remains relatively constant as L̃ grows.",
            _TEST.format(what="The median of ‖B‖ over p"),
        ),
        "pushed": Claim("So does that of B_pσ(A_p)ᵀ.", _TEST.format(what="The median of ‖Bσ(A)ᵀ‖ over p")),
        "length": Claim("So does the path length ∫‖∂_pA_p‖dp.", _TEST.format(what="Σ‖A_l − A_{l−1}‖/√N")),
        "kernel": Claim(
            "The same, read as the path length ℓ_γ of Theorem 4, in the norm of K + γI.",
            _TEST.format(what="Σ‖A_l − A_{l−1}‖ in K + γI, γ₀ = 1e-3,"),
            ours=True,
        ),
    },
    run=run,
    changes=(
        "At first a ratio below 2 over L̃ was asked for, which could hardly fail over so few L̃; a "
        "power of L̃ took its place after the scale small had been seen, and is stricter.",
    ),
    seconds=Seconds(1, 5, 15),
)
