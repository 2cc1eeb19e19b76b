"""Proposition 1: the cost of identity bounds the stable rank from above."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from fathometer.leaky import LeakySweep, exact_cost, gamma_of
from fathometer.leaky.theory import stable_rank_bound
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.figures import plot_sides
from papers.leaky.instances import drawn, drawn_matrices
from papers.leaky.networks import depth_item, depth_networks, name_of
from papers.leaky.statements import CheckedStatement, every, sides_of, statement_table

SHAPES = ((8, 3), (30, 5), (20, 12))  # w × N of drawn matrices
FEW = 8  # samples of a trained representation for which the exact cost is finite
RANK_ERROR = 1e-6


def run(context: RunContext) -> Answers:
    """Check drawn matrices, and every representation of trained networks."""
    draws = context.pick(smoke=5, small=200, paper=1000)
    matrices = drawn_matrices(SHAPES, draws)
    checked = [CheckedStatement("drawn", where, math.nan, stable_rank_bound(a)) for where, a in matrices]
    checked += _of_networks(depth_networks(context))
    context.table("sides", statement_table(checked))
    finite = [one for one in checked if math.isfinite(one.statement.left)]
    context.figure(plot_sides(sides_of(finite), "stable rank: the bound", "cost of identity"))
    least = min(one.statement.left / one.statement.right for one in finite if one.statement.right > 0)
    return {
        "bound": every(
            checked,
            f"finite cost in {len(finite)} of {len(checked)}, and then {least:.3g} times the bound or more",
            {"finite": len(finite), "least_ratio": least},
        ),
        "rank": _rank(draws),
        "letter": _as_printed(draws),
        "ones": _ones(),
    }


def _of_networks(sweep: LeakySweep) -> Iterator[CheckedStatement]:
    """Check all samples with γ_p, and the first few without."""
    for run in sweep.trained:
        depth = run.design.effective_depth
        for place, a in enumerate(run.path.representations):
            where = f"{name_of(run)}, A_{place}"
            gamma = gamma_of(a.relu()).item()
            if gamma > 0:
                yield CheckedStatement("trained (with γ)", where, depth, stable_rank_bound(a, gamma))
            yield CheckedStatement(f"trained ({FEW} samples)", where, depth, stable_rank_bound(a[:, :FEW]))


def _rank(draws: int) -> Answer:
    """Check COI = rank of non-negative matrices, products of non-negative factors."""
    worst = 0.0
    for rank in (1, 2, 3, 5):
        for seed in range(draws):
            a = drawn(2 * seed, 20, rank).abs() @ drawn(2 * seed + 1, rank, 12).abs()
            worst = max(worst, abs(exact_cost(a, a).item() - rank))
    return Answer(
        worst <= RANK_ERROR,
        f"{4 * draws} matrices of rank 1, 2, 3, 5: off by {worst:.0e} at most",
        {"off": worst},
    )


def _as_printed(draws: int) -> Answer:
    """Compute ‖Aσ(A)⁺‖² with the pseudo-inverse alone, at A = −1 and for more samples than neurons."""
    minus = stable_rank_bound(-torch.ones(1, 1))
    wide = [stable_rank_bound(drawn(seed, 5, 30)) for seed in range(draws)]
    below = [s for s in wide if s.details["paper_left"] < s.right]
    return Answer(
        minus.details["paper_left"] >= minus.right and not below,
        f"A = −1: {minus.details['paper_left']:g} against {minus.right:g}; drawn, 5 × 30: below the bound in "
        f"{len(below)} of {len(wide)}",
        {"minus_one": minus.details["paper_left"], "share_below": len(below) / len(wide)},
    )


def _ones() -> Answer:
    """Check the row of ones of section 1.1: A = −ε, one neuron and one sample, costs about ε²."""
    costs = [_with_bias(-torch.full((1, 1), size, dtype=torch.float64)) for size in (1.0, 0.1)]
    return Answer(
        min(costs) >= 1,
        f"A = −1 costs {costs[0]:.3g}, A = −.1 {costs[1]:.3g}; the stable rank of both is 1",
        {"at_1": costs[0], "at_0.1": costs[1]},
    )


def _with_bias(a: Tensor) -> float:
    return exact_cost(a, torch.cat([a.relu(), torch.ones_like(a[:1])])).item()


PROPOSITION_1 = depth_item(
    name="leaky-proposition-1",
    title="Proposition 1: the cost of identity is at least the stable rank",
    claims={
        "bound": Claim(
            "‖Aσ(A)⁺‖² ≥ ‖A‖*²/‖A‖², with the convention of section 1.3 that the COI is infinite where A "
            "lies outside the image of σ(A)ᵀ.",
            "No counterexample among drawn A (8 × 3, 30 × 5, 20 × 12), the first eight samples of every A_p "
            "of every network, and all samples with γ: COI_γ ≥ ‖A‖*²/(‖σ(A)‖² + γN).",
        ),
        "rank": Claim(
            "For non-negative representations the COI equals the rank.",
            "Of drawn non-negative 20 × 12 matrices of rank 1, 2, 3, 5 it does, to 1e-6.",
        ),
        "letter": Claim(
            "The inequality as it is written, with the pseudo-inverse and no convention.",
            "No counterexample: not A = −1, nor any drawn A with more samples than neurons (5 × 30).",
            ours=True,
        ),
        "ones": Claim(
            "The inequality with σ as section 1.1 defines it, which appends a 1.",
            "No counterexample: neither A = −1 nor A = −.1, one neuron and one sample.",
            ours=True,
        ),
    },
    run=run,
    seconds=Seconds(1, 8, 90),
)
