"""Proposition 5: where a path is slow, the representation becomes non-negative as L̃ grows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pandas as pd

from fathometer.leaky.theory import Statement, proposition_5
from fathometer.report import DARK, column_figure, for_print, legend_above
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.figures import draw_lines
from papers.leaky.networks import by_seed, depth_item, depth_networks
from papers.leaky.trends import over_depths
from papers.ranks import spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FALLING, VANISHED = -0.8, 0.05  # rank correlation with L̃, and ‖A₋‖/‖A‖ at the largest L̃
PLACES = {"at_least_cost": "least COI", "at_half": "$p = 1/2$", "at_least_speed": "least speed"}


def run(context: RunContext) -> Answers:
    """Check the networks of each seed, in the order of their L̃."""
    seeds = by_seed(depth_networks(context))
    found = {seed: proposition_5([run.path for run in runs]) for seed, runs in seeds.items()}
    table = context.table("negative", pd.DataFrame(list(chain(*(_rows(s, f) for s, f in found.items())))))
    context.figure(_plot(table))
    speeds = over_depths(table, "boundedness")
    context.note(f"‖∂A‖/‖A‖ at the least COI, which the Proposition assumes to be bounded: {speeds}.")
    return {"slow": non_negative(table, "at_least_cost"), "half": non_negative(table, "at_half")}


def _rows(seed: int, statement: Statement) -> list[dict[str, float]]:
    """Make a row for each L̃ from the statement's details."""
    depths = [name.removeprefix("at_half_") for name in statement.details if name.startswith("at_half_")]
    names = [*PLACES, "boundedness"]
    return [
        {"seed": seed, "effective_depth": float(d), **{n: statement.details[f"{n}_{d}"] for n in names}}
        for d in depths
    ]


def non_negative(table: pd.DataFrame, column: str) -> Answer:
    """Check that in every seed ‖A₋‖/‖A‖ falls with L̃, and is small at the largest."""
    trends = [spearman(group["effective_depth"], group[column]) for _, group in table.groupby("seed")]
    last = table[table["effective_depth"] == table["effective_depth"].max()][column]
    return Answer(
        max(trends) <= FALLING and bool((last < VANISHED).all()),
        f"{over_depths(table, column)}; rank correlations {', '.join(f'{trend:.2g}' for trend in trends)}",
        {"worst_correlation": max(trends), "largest_share": float(last.max())},
    )


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
    claims={
        "slow": Claim(
            "As L̃ grows, A_p becomes non-negative where ‖∂_pA_p‖ stays bounded: in the slow layers, inside "
            "the bottleneck.",
            "In every seed ‖A₋‖/‖A‖ at the layer of least COI_γ has a rank correlation with L̃ of −.8 or "
            "less, and is below .05 at the largest L̃. The limit itself cannot be measured.",
        ),
        "half": Claim(
            "The same at a fixed place, p₀ = 1/2.", "The same test at the layer that begins nearest p = 1/2."
        ),
    },
    run=run,
    changes=(
        "That the speed in these layers is bounded was a claim at first, and failed narrowly at scale "
        "small; the paper assumes it, so it became a note.",
    ),
    seconds=Seconds(1, 7, 60),
)
