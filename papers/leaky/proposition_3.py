"""Proposition 3: from a minimum of the cost of identity with negative entries, level ground to a saddle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fathometer.leaky import LeakySweep
from fathometer.leaky.theory import Statement, constant_cost_path, cost_of, path_to_a_saddle
from fathometer.report import column_figure, for_print
from papers.item import Answers, Claim, RunContext, Seconds
from papers.leaky.figures import draw_lines
from papers.leaky.instances import cost_and_gradient, drawn_matrices
from papers.leaky.networks import depth_item, depth_networks, name_of
from papers.leaky.statements import CheckedStatement, every, largest_error, named, statement_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPES = ((9, 2), (20, 3), (40, 3))  # w > N(N + 1)
SAME = 1e-8
SHOWN = 5  # lines in the figure


def run(context: RunContext) -> Answers:
    """Check drawn matrices, and a few samples of trained representations."""
    draws = context.pick(smoke=2, small=30, paper=100)
    starts = [("drawn", where, math.nan, a) for where, a in drawn_matrices(SHAPES, draws)]
    starts += _of_networks(depth_networks(context))
    checked = [
        CheckedStatement(kind, where, depth, statement)
        for kind, where, depth, a in starts
        for statement in [*path_to_a_saddle(a), same_gradient(a)]
    ]
    context.table("sides", statement_table(checked))
    context.figure(_plot([a for *_, a in starts[: draws * len(SHAPES) : max(draws // 2, 1)]][:SHOWN]))
    level = named(checked, "Proposition 3, constant cost")
    zero, falls = named(checked, "Proposition 3, zero rows"), named(checked, "Proposition 3, no minimum")
    gradient = named(checked, "Proposition 3, gradient")
    context.note(
        "The path is shown from any A with a negative entry: no local minimum with one was found to begin at "
        "(see Proposition 2)."
    )
    return {
        "level": every(level, f"K, K^σ and the COI change by {largest_error(level):.0e} at most"),
        "saddle": every(
            [*zero, *falls],
            f"{min(one.statement.left for one in zero):g} zero rows or more at the end, where the COI falls "
            f"by {min(one.statement.left for one in falls):.2g} ε² or more",
        ),
        "critical": every(gradient, f"to {largest_error(gradient):.0e}"),
    }


def _of_networks(sweep: LeakySweep) -> Iterator[tuple[str, str, float, Tensor]]:
    """Take the middle representation, as many samples as its width allows, if their cost is finite."""
    for run in sweep.trained:
        a = run.path.representations[len(run.path.representations) // 2]
        few = a[:, : 3 if len(a) > 12 else 2]
        if bool((few < 0).any()) and math.isfinite(cost_of(few)):
            yield "trained", name_of(run), run.design.effective_depth, few


def same_gradient(a: Tensor) -> Statement:
    """Check that rows of the gradient at the end of the path are √a_i times those at its beginning."""
    path = constant_cost_path(a)
    _, end = cost_and_gradient(path.at(1.0))
    expected = path.coefficients.sqrt()[:, None] * cost_and_gradient(path.start)[1]
    error = ((end - expected).norm() / expected.norm().clamp(min=1e-300)).item()
    return Statement(
        "Proposition 3, gradient",
        "∇COI(A_1) has the rows √a_i ∇COI(Â)_i",
        left=end.norm().item(),
        right=expected.norm().item(),
        slack=SAME - error,
        holds=error <= SAME,
        how=f"the relative difference ≤ {SAME:g}",
        details={"error": error},
    )


@for_print
def _plot(starts: list[Tensor]) -> Figure:
    """Draw the COI along the path, and along εz from its end."""
    figure = column_figure(2, 2.4)
    left, right = figure.subplots(1, 2, sharey=True)
    times, sizes = torch.linspace(0, 1, 21), torch.linspace(0, 2, 21)
    level, falling = [], []
    for a in starts:
        path, before = constant_cost_path(a), cost_of(a)
        level.append([cost_of(path.at(t)) / before for t in times.tolist()])
        end = path.at(1.0)
        end = end[end.abs().amax(1) > 0]
        i = int(end.clamp(max=0).square().sum(0).argmax())
        z = end.relu().mT @ end.relu()[:, i]
        k = end.relu()[:, i].square().sum()
        falling.append([cost_of(torch.cat([end, x / k.sqrt() * z[None]])) / before for x in sizes])
    draw_lines(left, times, level, "", 0)
    draw_lines(right, sizes, falling, "", 1)
    left.set(xlabel="$t$ along the path", ylabel="COI over that of $\\hat{A}$", ylim=(0, 1.1))
    right.set(xlabel=r"$\epsilon\,\|\sigma(A_i)\|$, a new neuron $\epsilon z$ at its end")
    return figure


PROPOSITION_3 = depth_item(
    name="leaky-proposition-3",
    title="Proposition 3: a path of constant cost from a negative minimum to a saddle",
    claims={
        "level": Claim(
            "If w > N(N + 1), there is a continuous path A_t of constant COI from Â.",
            "Along A_t with the rows √((1 − t) + t a_i) Â_i, at eleven t, K, K^σ and the COI change by 1e-8 "
            "at most, relatively: for drawn Â (9 × 2, 20 × 3, 40 × 3) and a few samples of every network "
            "half-way.",
        ),
        "saddle": Claim(
            "Its end A_1 is no local minimum.",
            "For the same: at least w − N(N + 1) rows of A_1 are zero, and a neuron εz in the place of one "
            "of them lowers the COI to order ε².",
        ),
        "critical": Claim(
            "A_1 is a saddle: critical if Â is.",
            "For the same: the rows of ∇COI(A_1) are √a_i times those of ∇COI(Â), to 1e-8.",
        ),
    },
    run=run,
    seconds=Seconds(1, 6, 40),
)
