"""Proposition 9: balancedness, and how biases make the norm of the weights grow along the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from fathometer.leaky import CRITICAL, Flow, LeakyRun
from fathometer.leaky.theory import TRAINED, Statement, balancedness
from fathometer.report import DARK, PALETTE, column_figure, for_print, legend_above
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.instances import START_DEPTH, bias_growth, followed, growth_factor, solved
from papers.leaky.networks import depth_item, depth_networks
from papers.leaky.statements import (
    CheckedStatement,
    every,
    largest_error,
    named,
    statement_table,
    statements_about,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS = (40, 400)  # of solved networks
EXACT = 1e-8
FLOW_ERROR = 1e-3  # of the factor
STEPS = 400  # places along the flow


def run(context: RunContext) -> Answers:
    """Check the flow, solved networks, and trained networks that are critical."""
    seeds = range(context.pick(smoke=1, small=3, paper=5))
    flows = [followed(STEPS, seed, context.pick(smoke=1e-5, small=1e-8, paper=1e-8)) for seed in seeds]
    critical = [
        run for run in depth_networks(context).trained if run.measure(warn=False).summary["crit"] <= CRITICAL
    ]
    checked = [
        *_of_solved(seeds, context.pick(smoke=LAYERS[:1], small=LAYERS, paper=LAYERS)),
        *statements_about("trained", critical, lambda run: balancedness(run.path)),
    ]
    context.table("sides", statement_table(checked))
    factors = [growth_factor(found) for found in flows]
    context.table("factors", factor_table(factors, checked))
    context.figure(_plot(flows[0], checked))
    context.note(
        "The factor is fitted to ‖W‖² and suffers most from training that has not quite converged: it is "
        "exact along the flow and in networks that are critical to rounding."
    )
    growth, layers = (
        named(checked, "Proposition 9"),
        named(checked, "Proposition 9, biases", "Proposition 9, norms"),
    )
    return {
        "letter": as_printed(factors, growth),
        "growth": _growth(factors, growth),
        "layers": every(layers, _errors(layers)),
        "increasing": increasing(flows, critical),
    }


def _of_solved(seeds: Sequence[int], layers: Sequence[int]) -> Iterator[CheckedStatement]:
    for seed in seeds:
        for count in layers:
            found = balancedness(solved(count, seed), EXACT)
            yield from (
                CheckedStatement("solved", f"L = {count}, seed {seed}", START_DEPTH, s) for s in found
            )


def as_printed(factors: Sequence[float], growth: Sequence[CheckedStatement]) -> Answer:
    """Check the paper's factor 1: in the flow, and in solved networks without the drift of H."""
    found = [*factors, *(_factor(one.statement) for one in growth if one.kind == "solved")]
    return Answer(
        all(abs(factor - 1) <= TRAINED for factor in found),
        f"flow: {', '.join(f'{factor:.4f}' for factor in factors)}; solved: "
        f"{min(found[len(factors) :]):.4f} to {max(found[len(factors) :]):.4f}",
        {"least": min(found), "largest": max(found)},
    )


def _growth(factors: Sequence[float], growth: Sequence[CheckedStatement]) -> Answer:
    found = every(growth, _errors(growth))
    off = max(abs(factor / 2 - 1) for factor in factors)
    fitted = [_factor(one.statement) for one in growth if one.kind == "trained"]
    words = (
        f"factors {min(fitted):.3g} to {max(fitted):.3g} in trained networks"
        if fitted
        else "no network is critical"
    )
    return Answer(
        bool(found.holds) and off <= FLOW_ERROR,
        f"flow: the factor 2 to {off:.0e}; {found.measured}; {words}",
        {**found.numbers, "flow_error": off},
    )


def increasing(flows: Sequence[Flow], runs: Sequence[LeakyRun]) -> Answer:
    """Check whether ‖W‖ never falls: along the flow, and from layer to layer of a trained network."""
    along = all(bool((found.weights.square().sum((1, 2)).diff() >= 0).all()) for found in flows)
    falls = [int((run.path.require_momenta()[1].square().sum((1, 2)).diff() < 0).sum()) for run in runs]
    layers = sum(run.design.layers - 1 for run in runs)
    return Answer(
        along and not any(falls),
        f"flow: {'never falls' if along else 'falls'}; trained networks: falls in {sum(map(bool, falls))} of "
        f"{len(runs)}, from a layer to the next {sum(falls)} times of {layers}",
        {"flow": float(along), "networks_falling": float(sum(map(bool, falls))), "falls": float(sum(falls))},
    )


def factor_table(factors: Sequence[float], checked: Sequence[CheckedStatement]) -> pd.DataFrame:
    """Tabulate the fitted factors, with and without the drift of H."""
    rows: list[tuple[str, str, float, float, float]] = [
        ("flow", f"seed {seed}", 0.0, factor, factor) for seed, factor in enumerate(factors)
    ]
    for one in named(checked, "Proposition 9"):
        details = one.statement.details
        drift = details.get("factor_with_drift", float("nan"))
        rows.append((one.kind, one.where, details["largest_leak"], _factor(one.statement), drift))
    return pd.DataFrame(rows, columns=["kind", "where", "largest_leak", "factor", "factor_with_drift"])


def _factor(statement: Statement) -> float:
    return statement.details.get("factor", float("nan"))


def _errors(checked: Sequence[CheckedStatement]) -> str:
    kinds = dict.fromkeys(one.kind for one in checked)
    return "errors up to " + ", ".join(f"{largest_error(checked, kind):.1e} ({kind})" for kind in kinds)


@for_print
def _plot(found: Flow, checked: Sequence[CheckedStatement]) -> Figure:
    """Draw the flow with both formulas, and the factors of networks by ρL̃."""
    figure = column_figure(2, 2.6)
    left, right = figure.subplots(1, 2)
    norms, grown = found.weights.square().sum((1, 2)), bias_growth(found)
    places = found.path.places
    left.plot(places, norms, color=PALETTE[0], linewidth=2.5, alpha=0.5, label=r"flow: $\|W_p\|^2$")
    left.plot(
        places, norms[0] + 2 * grown, color=DARK, linewidth=0.8, label=r"$\|W_0\|^2+2\tilde{L}\int\|b\|^2$"
    )
    left.plot(
        places,
        norms[0] + grown,
        color=PALETTE[1],
        linestyle="--",
        label=r"the paper's $\|W_0\|^2+\tilde{L}\int\|b\|^2$",
    )
    left.set(xlabel="$p$", ylabel=r"$\|W_p\|^2$")
    table = factor_table([], checked)
    for number, (kind, rows) in enumerate(table.groupby("kind")):
        for column, filled in (("factor", True), ("factor_with_drift", False)):
            colour = PALETTE[2 + number]
            right.scatter(
                rows["largest_leak"],
                rows[column],
                s=11,
                edgecolors=colour,
                facecolors=colour if filled else "white",
                linewidths=0.7,
                label=f"{kind}, {'drift of H taken out' if filled else 'as it is'}",
            )
    for value, line in ((2.0, "-"), (1.0, "--")):
        right.axhline(
            value, color=DARK if value == 2 else PALETTE[1], linewidth=0.8, linestyle=line, zorder=0
        )
    right.set(xlabel=r"$\rho\tilde{L}$, the largest", ylabel="factor fitted", ylim=(0, 2.6))
    legend_above(figure, [*left.get_lines(), *right.collections])
    return figure


PROPOSITION_9 = depth_item(
    name="leaky-proposition-9",
    title="Proposition 9: balancedness",
    claims={
        "letter": Claim(
            "At any critical W_p, ‖W_p‖² = ‖W_0‖² + L̃∫‖b_q‖²dq, as it is printed.",
            "The factor of L̃∫‖b‖² is 1, to 5 %, along the flow from random starts (w = 6, N = 10, L̃ = 2) and "
            "in networks that are critical to rounding (L = 40, 400; the drift of H over the layers taken "
            "out).",
        ),
        "growth": Claim(
            "The same with the factor 2: ‖W_p‖² = ‖W_0‖² + 2L̃∫‖b_q‖²dq, as the conserved H demands.",
            "The factor is 2 to .1 % along the flow, to 1e-8 in networks that are critical to rounding, to 5 "
            "% in every trained network with crit ≤ .1 (fitted over its layers, the drift of H taken out).",
            ours=True,
        ),
        "layers": Claim(
            "What is exact of it in a network: Tr[B_lA_lᵀ] − Tr[B_{l−1}A_{l−1}ᵀ] = ρ_l‖b_l‖²/L̃, and "
            "(1 + ρ_lL̃)‖W_l‖² = 2L̃²Tr[B_lA_lᵀ] + 2L̃(1 − ρ_lL̃)H_l.",
            "In every layer, to 1e-8 in networks that are critical to rounding, to 5 % of the largest in "
            "every trained network with crit ≤ .1.",
            ours=True,
        ),
        "increasing": Claim(
            "The norm of the weights is increasing throughout the layers.",
            "‖W‖ does not fall between any two neighbouring places along the flow, nor layers of a trained "
            "network with crit ≤ .1.",
        ),
    },
    run=run,
    seconds=Seconds(2, 10, 60),
)
