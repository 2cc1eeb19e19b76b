"""Proposition 5: where a path is slow, the representation becomes non-negative as L̃ grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.leaky.theory import Statement, proposition_5
from fathometer.leaky.theory.hamiltonian import FALLING, VANISHED
from fathometer.leaky.theory.statement import ROUNDING
from fathometer.report import DARK, column_figure, for_print, legend_above
from papers.item import Claim, NotDecided, Numbers, RunContext, Simulation
from papers.leaky.figures import draw_lines
from papers.leaky.networks import NOTES, RANK, by_seed, depth_item, depth_networks, is_critical
from papers.ranks import spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACES = {"at_least_cost": "least COI", "at_half": "$p = 1/2$", "at_least_speed": "least speed"}
SPREAD = 0.3  # of the logarithm of ‖A₋‖/‖A‖ between networks, in the simulation
FROM, CLEAR, VARIES = 5.0, 2.0, 2  # of the rank: L̃ from which on, the gap, and by how much it may vary


def run(context: RunContext) -> pd.DataFrame:
    """Check the networks of each seed, in the order of their L̃."""
    rows = []
    for seed, runs in by_seed(depth_networks(context)).items():
        found = proposition_5([run.path for run in runs])
        summaries = {run.design.effective_depth: run.measure(warn=False).summary for run in runs}
        good = {run.design.effective_depth: float(is_critical(run)) for run in runs}
        for row in _rows(seed, found):
            summary = summaries[row["effective_depth"]]
            rows.append(
                row
                | {"rank": summary["rank"], "gap": summary["gap"], "critical": good[row["effective_depth"]]}
            )
    table = context.table("negative", pd.DataFrame(rows))
    context.figure(_plot(table))
    speeds = table.groupby("effective_depth")["boundedness"].mean()
    context.facts |= {"depths": speeds.index.to_list(), "speeds": speeds.to_list()}
    return table


def _rows(seed: int, statement: Statement) -> list[dict[str, float]]:
    """Make a row for each L̃ from the statement's details."""
    depths = [name.removeprefix("at_half_") for name in statement.details if name.startswith("at_half_")]
    names = [*PLACES, "boundedness"]
    return [
        {"seed": seed, "effective_depth": float(d), **{n: statement.details[f"{n}_{d}"] for n in names}}
        for d in depths
    ]


def vanishes(words: str, test: str, column: str) -> Claim:
    """Claim that in every seed ‖A₋‖/‖A‖ falls with L̃, and is small at the largest."""

    def numbers_of(table: pd.DataFrame) -> dict[str, Any]:
        last = table[table["effective_depth"] == table["effective_depth"].max()][column]
        means = table.groupby("effective_depth")[column].mean()
        return {
            "trends": [
                spearman(group["effective_depth"], group[column]) for _, group in table.groupby("seed")
            ],
            "largest": float(last.max()),
            "depths": means.index.to_list(),
            "means": means.to_list(),
        }

    def draw(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
        """Draw courses from 0.3 to 0.01, even in the logarithm, or without a trend, around 0.03."""
        depths, seeds = numbers["depths"], len(numbers["trends"])
        course = np.geomspace(0.3, 0.01, len(depths)) if present else np.full(len(depths), 0.03)
        values = course * np.exp(generator.normal(0, SPREAD, (seeds, len(depths))))
        rows = [(seed, d, v) for seed, of in enumerate(values) for d, v in zip(depths, of, strict=True)]
        return numbers_of(pd.DataFrame(rows, columns=["seed", "effective_depth", column]))

    return Claim(
        words=words,
        test=test,
        measure=numbers_of,
        holds=lambda n: max(n["trends"]) <= FALLING + ROUNDING and n["largest"] <= VANISHED,
        says="{means:.3g} at L̃ = {depths:g}; rank correlations by seed {trends:.2g}; at most {largest:.2g} "
        "at the largest",
        simulation=Simulation("from 0.3 to 0.01, networks differ by 30 %; against no trend", draw),
    )


def ranks(table: pd.DataFrame) -> Numbers:
    """Count ranks of networks with a clear bottleneck."""
    rows = table[(table["effective_depth"] >= FROM) & (table["gap"] >= CLEAR) & (table["critical"] > 0)]
    found = rows["rank"].value_counts().sort_index()
    if len(rows) == 0:
        raise NotDecided("no network has a clear bottleneck at a critical point")
    if set(found.index) == {RANK}:
        raise NotDecided(
            f"all {len(rows)} networks with a clear bottleneck have rank {RANK}; that others were seen "
            "elsewhere cannot "
            "be refuted by this"
        )
    return {"networks": len(rows), "ranks": found.index.to_list(), "counts": found.to_list()}


@for_print
def _plot(table: pd.DataFrame) -> Figure:
    figure = column_figure(1, 2.6)
    axes = figure.subplots()
    for number, (column, label) in enumerate(PLACES.items()):
        wide = table.pivot_table(index="effective_depth", columns="seed", values=column)
        draw_lines(axes, wide.index, [wide[seed] for seed in wide.columns], label, number)
    axes.axhline(VANISHED, color=DARK, linewidth=0.5, linestyle=":")
    axes.set(yscale="log", xlabel=r"effective depth $\tilde{L}$", ylabel=r"$\|A_-\|/\|A\|$")
    legend_above(figure, [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")])
    return figure


PROPOSITION_5 = depth_item(
    name="leaky-proposition-5",
    title="Proposition 5: inside the bottleneck the representation becomes non-negative",
    run=run,
    claims={
        "slow": vanishes(
            "As L̃ grows, A_p becomes non-negative where ‖∂_pA_p‖ stays bounded: in the slow layers, inside "
            "the "
            "bottleneck.",
            "In every seed ‖A₋‖/‖A‖ at the layer of least COI_γ has a rank correlation with L̃ of "
            f"{FALLING} or less, up "
            f"to rounding, and is at most {VANISHED} at the largest L̃. The limit itself cannot be measured.",
            "at_least_cost",
        ),
        "half": vanishes(
            "The same at a fixed place, p₀ = 1/2.",
            "The same test at the layer that begins nearest p = 1/2.",
            "at_half",
        ),
        "ranks": Claim(
            words="The number of dimensions that are kept inside the bottleneck can vary by 1 or 2 (end of "
            "section 2.1).",
            test=f"Among networks with L̃ ≥ {FROM:g}, crit ≤ 0.1 and a gap of {CLEAR:g} or more, some ranks "
            "differ from k* = "
            f"{RANK}, and none by more than {VARIES}. If all are {RANK}, nothing is decided.",
            measure=ranks,
            holds=lambda n: max(abs(rank - RANK) for rank in n["ranks"]) <= VARIES,
            says="ranks {ranks:.0f} of {counts:.0f} networks",
        ),
    },
    seconds={"smoke": 1, "small": 7, "paper": 60},
    notes=(
        *NOTES,
        "‖∂A‖/‖A‖ at the least COI, which the Proposition assumes to be bounded: {speeds:.2g} at L̃ = "
        "{depths:g}.",
    ),
    changes=(
        "That the speed in these layers is bounded was a claim at first, and failed narrowly at scale "
        "small; the paper "
        "assumes it, so it became a note.",
    ),
)
