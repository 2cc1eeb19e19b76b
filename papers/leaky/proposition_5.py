"""Proposition 5: where a path is slow, the representation becomes non-negative as L̃ grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.leaky.theory.hamiltonian import FALLING, VANISHED
from fathometer.leaky.theory.statement import ROUNDING
from fathometer.report import DARK, column_figure, for_print, legend_above
from papers.item import Claim, NotDecided, Numbers, RunContext, Simulation
from papers.leaky.figures import draw_lines
from papers.leaky.networks import NOTES, RANK, depth_item, depth_networks, is_critical
from papers.ranks import spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACES = {"at_least_cost": "least COI", "at_half": "$p = 1/2$", "at_least_speed": "least speed"}
SPREAD = 0.3  # of the logarithm of ‖A₋‖/‖A‖ between networks, in the simulation
FROM, CLEAR, VARIES = 5.0, 2.0, 2  # of the rank: L̃ from which on, the gap, and by how much it may vary


def run(context: RunContext) -> pd.DataFrame:
    """Measure the negative part of every network in its slow layers."""
    table = context.table(
        "negative", pd.DataFrame([network_row(run) for run in depth_networks(context).trained])
    )
    context.figure(_plot(table))
    speeds = table.groupby("effective_depth")["speed"].mean()
    context.facts |= {"depths": speeds.index.to_list(), "speeds": speeds.to_list()}
    return table


def network_row(run: LeakyRun) -> dict[str, float]:
    """Measure ‖A₋‖/‖A‖ where the COI is least, at p = 1/2 and where the path is slowest; and the rank."""
    measures, path = run.measure(warn=False), run.path
    points = measures.points[:-1]
    speed = (path.velocities.norm(dim=(1, 2)) / path.representations[:-1].norm(dim=(1, 2))).numpy()
    narrowest = int(points["cost_of_identity"].argmin())
    places = (narrowest, int((points["p"] - 0.5).abs().argmin()), int(speed.argmin()))
    return {
        "seed": run.design.seed,
        "effective_depth": run.design.effective_depth,
        **{name: points["negative"].iloc[place] for name, place in zip(PLACES, places, strict=True)},
        "speed": float(speed[narrowest]),
        "rank": measures.summary["rank"],
        "gap": measures.summary["gap"],
        "critical": float(is_critical(run)),
    }


def vanishes(words: str, test: str, column: str) -> Claim:
    """Claim that in every seed ‖A₋‖/‖A‖ falls with L̃, and is small at the largest."""

    def measure(table: pd.DataFrame) -> Numbers:
        wide = table.pivot_table(index="seed", columns="effective_depth", values=column)
        return numbers_of(wide.to_numpy(), [float(depth) for depth in wide.columns])

    def numbers_of(values: npt.NDArray[np.float64], depths: list[float]) -> dict[str, Any]:
        trends = [spearman(depths, row) for row in values]
        means = values.mean(0).tolist()
        return {"trends": trends, "largest": float(values[:, -1].max()), "depths": depths, "means": means}

    def draw(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
        """Draw courses from 0.3 to 0.01, even in the logarithm, or without a trend, around 0.03."""
        depths, seeds = numbers["depths"], len(numbers["trends"])
        course = np.geomspace(0.3, 0.01, len(depths)) if present else np.full(len(depths), 0.03)
        return numbers_of(course * np.exp(generator.normal(0, SPREAD, (seeds, len(depths)))), depths)

    return Claim(
        words=words,
        test=test,
        measure=measure,
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
            "elsewhere cannot be refuted by this"
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
            "the bottleneck.",
            f"In every seed ‖A₋‖/‖A‖ at the layer of least COI_γ has a rank correlation with L̃ of {FALLING} "
            f"or less, up to rounding, and is at most {VANISHED} at the largest L̃. The limit itself cannot "
            "be measured.",
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
            f"differ from k* = {RANK}, and none by more than {VARIES}. If all are {RANK}, nothing is "
            "decided.",
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
        "That the speed in these layers is bounded was a claim at first, and failed narrowly at scale small; "
        "the paper assumes it, so it became a note.",
    ),
)
