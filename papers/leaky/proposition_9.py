"""Proposition 9: balancedness, and how biases make the norm of the weights grow along the path."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from fathometer.leaky import Design, Flow, LeakyRun, Phase, Recipe, Teacher, grid, sweep
from fathometer.leaky.theory import TRAINED, Statement, balancedness
from fathometer.leaky.theory.statement import equal
from fathometer.report import DARK, PALETTE, column_figure, for_print, legend_above
from papers.item import Claim, Numbers, RunContext
from papers.leaky.instances import START_DEPTH, bias_growth, followed, growth_factor, solved
from papers.leaky.networks import NOTES, depth_item, depth_networks, is_critical
from papers.leaky.statements import Checked, check_runs, named, statement_table, verified

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS = (40, 400)  # of solved networks
EXACT = 1e-8
CONNECTED = 1e-4  # balance of fully connected networks after L-BFGS
FLOW_ERROR = 1e-3  # of the factor
STEPS = 400  # places along the flow


class Evidence(NamedTuple):
    """Statements about solved, trained and fully connected networks, and fitted factors."""

    checked: list[Checked]
    flows: list[float]  # factors of L̃∫‖b‖² along flows
    solved: list[float]  # the same in solved networks, without the drift of H
    trained: list[float]  # and in trained ones


def run(context: RunContext) -> Evidence:
    """Check the flow, solved networks, trained networks that are critical, and fully connected ones."""
    seeds = range(context.pick(smoke=1, small=3, paper=5))
    flows = [followed(STEPS, seed, context.pick(smoke=1e-5, small=1e-8, paper=1e-8)) for seed in seeds]
    networks = depth_networks(context).trained
    critical = [run for run in networks if is_critical(run)]
    checked = [
        *_of_solved(seeds, context.pick(smoke=LAYERS[:1], small=LAYERS, paper=LAYERS)),
        *check_runs("trained", critical, lambda run: balancedness(run.path)),
        *_fully_connected(len(seeds), context.pick(smoke=300, small=2000, paper=2000)),
    ]
    context.table("sides", statement_table(checked))
    factors = [growth_factor(found) for found in flows]
    table = context.table("factors", factor_table(factors, checked))
    context.figure(_plot(flows[0]))
    norms = [run.path.require_momenta()[1].square().sum((1, 2)) for run in networks]
    context.facts |= {
        "falls": sum(int((each.diff() < 0).sum()) for each in norms),
        "pairs": sum(len(each) - 1 for each in norms),
    }
    by_kind = table.dropna().groupby("kind")["factor"].agg(list)
    return Evidence(checked, factors, by_kind["solved"], by_kind.get("trained", []))


def _of_solved(seeds: Sequence[int], layers: Sequence[int]) -> Iterator[Checked]:
    for seed in seeds:
        for count in layers:
            for statement in balancedness(solved(count, seed), EXACT):
                yield Checked("solved", f"L = {count}, seed {seed}", START_DEPTH, statement)


def _fully_connected(seeds: int, evaluations: int) -> list[Checked]:
    """Train linear networks with ρL̃ = 1, which have no kinks, to a critical point."""
    design = Design(4.0, 4, 4, 0.05, sigma="identity", teacher=Teacher((3, 2, 3)), samples=30, test_samples=0)
    recipe = Recipe((Phase("adam", 500, 3e-3), Phase("lbfgs", evaluations)), precision="float64")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of ρL̃ = 1, which is meant
        runs = sweep(grid(design, seeds=seeds), recipe).runs
    return check_runs("fully connected", runs, lambda run: [_connected(run)])


def _connected(run: LeakyRun) -> Statement:
    """Check ‖V_(l+1)‖² = ‖V_l‖² + ‖b_l‖² in every layer but the last."""
    weights = run.net.weights.detach()
    left, right = weights[1:, :, :-1].square().sum((1, 2)), weights[:-1].square().sum((1, 2))
    return equal(
        "fully connected",
        "‖V_(l+1)‖² = ‖V_l‖² + ‖b_l‖²",
        left.mean().item(),
        right.mean().item(),
        error=((left - right).abs().max() / right.max()).item(),
        tolerance=CONNECTED,
        measure="the largest difference of a layer over the largest right side",
    )


def as_printed(found: Evidence) -> Numbers:
    """Collect the factors of the flow, and of solved networks."""
    return {
        "flow": found.flows,
        "lowest": min(found.solved),
        "highest": max(found.solved),
        "trained": [min(found.trained), max(found.trained)] if found.trained else [],
    }


def factor_table(factors: Sequence[float], checked: Sequence[Checked]) -> pd.DataFrame:
    """Tabulate the fitted factors, with and without the drift of H."""
    rows: list[tuple[str, str, float, float, float]] = [
        ("flow", f"seed {seed}", 0.0, factor, factor) for seed, factor in enumerate(factors)
    ]
    for one in named(checked, "Proposition 9"):
        details, unknown = one.statement.details, float("nan")
        drift = details.get("factor_with_drift", unknown)
        rows.append((one.kind, one.where, details["largest_leak"], details.get("factor", unknown), drift))
    return pd.DataFrame(rows, columns=["kind", "where", "largest_leak", "factor", "factor_with_drift"])


@for_print
def _plot(found: Flow) -> Figure:
    """Draw ‖W_p‖² along the flow, with both formulas."""
    figure = column_figure(1, 2.6)
    axes = figure.subplots()
    norms, grown, places = found.weights.square().sum((1, 2)), bias_growth(found), found.path.places
    axes.plot(places, norms, color=PALETTE[0], linewidth=2.5, alpha=0.5, label=r"flow: $\|W_p\|^2$")
    corrected, printed = r"$\|W_0\|^2+2\tilde{L}\int\|b\|^2$", r"the paper's $\|W_0\|^2+\tilde{L}\int\|b\|^2$"
    axes.plot(places, norms[0] + 2 * grown, color=DARK, linewidth=0.8, label=corrected)
    axes.plot(places, norms[0] + grown, color=PALETTE[1], linestyle="--", label=printed)
    axes.set(xlabel="$p$", ylabel=r"$\|W_p\|^2$")
    legend_above(figure, axes.get_lines())
    return figure


_FACTORS = (
    "factors {flow:.4f} along the flow, {lowest:.4f} to {highest:.4f} in solved networks; smallest and "
    "largest in trained ones, which suffer from training that has not quite converged: {trained:.3g}"
)
PROPOSITION_9 = depth_item(
    name="leaky-proposition-9",
    title="Proposition 9: balancedness",
    run=run,
    claims={
        "letter": Claim(
            words="At any critical W_p, ‖W_p‖² = ‖W_0‖² + L̃∫‖b_q‖²dq, as it is printed and derived.",
            test=f"The factor of L̃∫‖b‖² is 1, to {TRAINED:.0%}, along the flow from random starts (w = 6, N "
            "= 10, L̃ = 2) and in networks that are critical to rounding (L = 40, 400; the drift of H over "
            "the layers taken out).",
            measure=as_printed,
            holds=lambda n: max(abs(f - 1) for f in (*n["flow"], n["lowest"], n["highest"])) <= TRAINED,
            says=_FACTORS,
        ),
        "growth": Claim(
            words="The same with the factor 2: ‖W_p‖² = ‖W_0‖² + 2L̃∫‖b_q‖²dq, as the conserved H demands.",
            test=f"For the same: the factor is 2 to {FLOW_ERROR:.1%}.",
            measure=as_printed,
            holds=lambda n: (
                max(abs(f / 2 - 1) for f in (*n["flow"], n["lowest"], n["highest"])) <= FLOW_ERROR
            ),
            says=_FACTORS,
            kind="ours",
        ),
        "connected": verified(
            "In fully connected networks ‖V_l‖² + ‖b_l‖² = ‖V_(l+1)‖², V without the bias, so that the norm "
            "of the weights is increasing throughout the layers.",
            f"To {CONNECTED:g} in linear networks with ρL̃ = 1 (w = 4, L = 4) after L-BFGS.",
            lambda found: named(found.checked, "fully connected"),  # type: ignore[attr-defined]
        ),
        "layers": verified(
            "What is exact of it in a leaky network: Tr[B_lA_lᵀ] − Tr[B_(l−1)A_(l−1)ᵀ] = ρ_l‖b_l‖²/L̃, and (1 "
            "+ ρ_lL̃)‖W_l‖² = 2L̃²Tr[B_lA_lᵀ] + 2L̃(1 − ρ_lL̃)H_l.",
            f"In every layer, to {EXACT:g} in networks that are critical to rounding, to {TRAINED:.0%} of "
            "the largest in every trained network with crit ≤ 0.1.",
            lambda found: named(found.checked, "Proposition 9, biases", "Proposition 9, norms"),  # type: ignore[attr-defined]
        ),
    },
    seconds={"smoke": 2, "small": 15, "paper": 60},
    notes=(
        *NOTES,
        "The factor is 2 also in the paper's proof, once it is taken into account that V_r and b_r change "
        "with r. Later versions of the paper may have corrected it.",
        "In a leaky network of few layers the norm need not grow from each layer to the next, since H "
        "drifts: it falls {falls:.0f} times of {pairs:.0f} in trained networks.",
    ),
    changes=(
        "That the norm of the weights is increasing was tested on Leaky ResNets at first; the sentence is "
        "about fully connected networks.",
    ),
)
