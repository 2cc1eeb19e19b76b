"""Proposition 1: the cost of identity bounds the stable rank from above."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from fathometer.leaky import LeakySweep
from fathometer.leaky.energy import exact_cost, gamma_of
from fathometer.leaky.model import with_ones
from fathometer.leaky.theory import stable_rank_bound
from fathometer.report import trained
from papers.claim import Answer, Claim
from papers.item import Seconds
from papers.leaky.figures import plot_sides
from papers.leaky.instances import drawn, drawn_matrices
from papers.leaky.networks import depth_item, depth_networks, name_of
from papers.leaky.statements import Seen, every, sides_of, statement_table
from papers.workshop import Workshop

SHAPES = ((8, 3), (30, 5), (20, 12))  # w × N of drawn matrices
FEW = 8  # samples of a trained representation for which the exact cost is finite
RANK_ERROR = 1e-6


def run(workshop: Workshop) -> Mapping[str, Answer]:
    """Matrices that are drawn, and every representation of trained networks."""
    draws = workshop.pick(smoke=5, small=200, paper=1000)
    matrices = drawn_matrices(SHAPES, draws)
    seen = [Seen("drawn", where, math.nan, stable_rank_bound(a)) for where, a in matrices]
    seen += _of_networks(depth_networks(workshop))
    workshop.table("sides", statement_table(seen))
    finite = [one for one in seen if math.isfinite(one.statement.left)]
    workshop.figure(plot_sides(sides_of(finite), "stable rank: the bound", "cost of identity"))
    least = min(one.statement.left / one.statement.right for one in finite if one.statement.right > 0)
    return {
        "bound": every(
            seen,
            f"finite cost in {len(finite)} of {len(seen)}, and then {least:.3g} times the bound or more",
            {"finite": len(finite), "least_ratio": least},
        ),
        "rank": _rank(draws),
        "letter": _letter(draws),
        "ones": _ones(),
    }


def _of_networks(sweep: LeakySweep) -> Iterator[Seen]:
    """All samples with γ_p, and the first few without."""
    for run in trained(sweep):
        depth = run.design.effective_depth
        for place, a in enumerate(run.path.representations):
            where = f"{name_of(run)}, A_{place}"
            gamma = gamma_of(a.relu()).item()
            if gamma > 0:
                yield Seen("trained (with γ)", where, depth, stable_rank_bound(a, gamma))
            yield Seen(f"trained ({FEW} samples)", where, depth, stable_rank_bound(a[:, :FEW]))


def _rank(draws: int) -> Answer:
    """COI = rank of non-negative matrices, products of non-negative factors."""
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


def _letter(draws: int) -> Answer:
    """‖Aσ(A)⁺‖² with the pseudo-inverse alone, at A = −1 and where there are more samples than neurons."""
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
    """With the row of ones of section 1.1: A = −ε, one neuron and one sample, costs about ε²."""
    costs = [_with_bias(-torch.full((1, 1), size, dtype=torch.float64)) for size in (1.0, 0.1)]
    return Answer(
        min(costs) >= 1,
        f"A = −1 costs {costs[0]:.3g}, A = −.1 {costs[1]:.3g}; the stable rank of both is 1",
        {"at_1": costs[0], "at_0.1": costs[1]},
    )


def _with_bias(a: Tensor) -> float:
    return exact_cost(a, with_ones(a.relu())).item()


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
