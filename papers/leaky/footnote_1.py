"""Footnote 1: in linear networks the middle term of the Lagrangian depends on the ends of a path alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from fathometer.leaky import Phase, Recipe, grid, preset
from fathometer.leaky.theory import linear_flow, middle_term
from fathometer.report import DARK, PALETTE, column_figure, for_print, legend_above
from papers.item import Answer, Answers, Claim, Item, RunContext, Seconds
from papers.leaky.instances import SmoothCurve
from papers.leaky.networks import Plan, train_networks
from papers.leaky.statements import CheckedStatement, every, largest_error, statement_table, statements_about

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DETOURS = (0.0, 0.25, 0.5)
DIFFERENT = 1e-3
QUADRATURE = 1e-6  # tolerance of the statement


def run(context: RunContext) -> Answers:
    """Check smooth curves with several ways between the same ends, and trained linear networks."""
    seeds = range(context.pick(smoke=2, small=20, paper=50))
    integrals = context.table("integrals", curve_table(seeds))
    checked = [*_of_curves(seeds), *_of_networks(context)]
    context.table("sides", statement_table(checked))
    context.figure(_plot(integrals))
    linear, nonlinear = (_spread(integrals, sigma) for sigma in ("identity", "relu"))
    return {
        "integral": every(checked, f"to {largest_error(checked):.0e}"),
        "ends": Answer(
            max(linear) <= QUADRATURE,
            f"{len(linear)} pairs of ends, three ways each: the integrals differ by {max(linear):.0e} at "
            "most",
            {"largest": max(linear)},
        ),
        "nonlinear": Answer(
            min(nonlinear) > DIFFERENT,
            f"with ReLU the three ways differ by {min(nonlinear):.2g} or more",
            {"least": min(nonlinear)},
        ),
    }


def _of_curves(seeds: range) -> list[CheckedStatement]:
    curves = {seed: SmoothCurve(seed) for seed in seeds}
    return [
        CheckedStatement("curves", f"seed {seed}", math.nan, middle_term(curve.at, curve.velocity))
        for seed, curve in curves.items()
    ]


def _of_networks(context: RunContext) -> list[CheckedStatement]:
    """Train linear networks, σ = id; with learned maps the rank of A_0 would vanish."""
    quick = preset("quick").design
    design = replace(
        quick, sigma="identity", maps="identity", layers=8, width=30, samples=100, test_samples=0
    )
    designs = grid(design, effective_depth=[1.0, 2.0, 4.0], seeds=context.pick(smoke=1, small=3, paper=5))
    recipe = Recipe((Phase("adam", context.pick(smoke=20, small=1000, paper=1000), 3e-3),))
    plan = Plan(designs[: context.pick(smoke=1, small=9, paper=15)], recipe)
    runs = train_networks(context, "linear", plan).runs
    return statements_about("linear networks", runs, lambda run: [linear_flow(run.path)])


def curve_table(seeds: range) -> pd.DataFrame:
    """Tabulate the integral along each way, for σ = id and ReLU, and log|A_1|₊ − log|A_0|₊."""
    rows = []
    for seed in seeds:
        for sigma in ("identity", "relu"):
            for detour in DETOURS:
                curve = SmoothCurve(seed, detour)
                found = middle_term(curve.at, curve.velocity, sigma=sigma)
                rows.append((seed, sigma, detour, found.left, found.right))
    return pd.DataFrame(rows, columns=["seed", "sigma", "detour", "integral", "ends"])


def _spread(table: pd.DataFrame, sigma: str) -> list[float]:
    """Compute the largest difference between ways, over max(1, |integral|), for each pair of ends."""
    groups = table[table["sigma"] == sigma].groupby("seed")["integral"]
    return [float((v.max() - v.min()) / max(1.0, v.abs().max())) for _, v in groups]


@for_print
def _plot(table: pd.DataFrame) -> Figure:
    """Draw integrals against the values from the ends."""
    from matplotlib.ticker import SymmetricalLogLocator

    figure = column_figure(1, 2.8)
    axes = figure.subplots()
    span = [table["ends"].min(), table["ends"].max()]
    axes.plot(span, span, color=DARK, linewidth=0.6)
    for number, (sigma, label) in enumerate((("identity", "linear"), ("relu", "with ReLU"))):
        rows = table[table["sigma"] == sigma]
        axes.scatter(
            rows["ends"], rows["integral"], s=10, color=PALETTE[number], linewidths=0, alpha=0.7, label=label
        )
    axes.set_yscale("symlog", linthresh=10)
    ticks = SymmetricalLogLocator(base=10, linthresh=10)
    ticks.set_params(numticks=7)
    axes.yaxis.set_major_locator(ticks)
    axes.set(xlabel=r"$\log|A_1|_+-\log|A_0|_+$", ylabel="integral, three ways for each")
    legend_above(figure, axes.collections)
    return figure


FOOTNOTE_1 = Item(
    name="leaky-footnote-1",
    title="Footnote 1: the middle term of the Lagrangian in linear networks",
    claims={
        "integral": Claim(
            "In linear networks ∫Tr[∂A σ(A)⁺σ(A)⁺ᵀAᵀ]dp = log|A_1|₊ − log|A_0|₊.",
            "By quadrature, to 1e-6: along drawn smooth curves of rank 2 (4 × 5), and along the flow of "
            "every trained linear network (w = 30, N = 100, L̃ = 1, 2, 4).",
        ),
        "ends": Claim(
            "Its integral only depends on the endpoints.",
            "Along three curves between the same ends the integrals agree to 1e-6.",
        ),
        "nonlinear": Claim(
            "In nonlinear networks it cannot be discarded in such a manner.",
            "With σ = ReLU the integrals along the same curves differ by more than 1e-3, relatively, for "
            "every pair of ends.",
        ),
    },
    run=run,
    seconds=Seconds(2, 10, 30),
    small="twenty curves, linear networks of three seeds",
)
