"""Propositions 1 to 3: the cost of identity of one representation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from fathometer.leaky import LeakySweep, exact_cost, gamma_of
from fathometer.leaky.theory import (
    Statement,
    added_neuron,
    constant_cost_path,
    cost_of,
    path_to_a_saddle,
    stable_rank_bound,
)
from fathometer.leaky.theory.statement import equal
from papers.item import Claim, RunContext
from papers.leaky.figures import plot_statements
from papers.leaky.instances import cost_and_gradient, drawn, drawn_matrices
from papers.leaky.networks import NOTES, depth_item, depth_networks
from papers.leaky.statements import Checked, name_of, of, statement_table, verified

SHAPES_1 = ((8, 3), (30, 5), (20, 12))  # w × N of drawn matrices
FEW_1 = 8  # samples of a trained representation for which the exact cost is finite
RANK_ERROR = 1e-6
SHAPES_2 = ((8, 2), (16, 3), (30, 5))
FEW_2 = 3  # with more samples than dimensions, rounding has its say
WHOLE, VANISHED = 0.05, 0.05  # how near a whole number, and how small ‖A₋‖/‖A‖, after descent
NEARBY = 1e-3
SHAPES_3 = ((9, 2), (20, 3), (40, 3))  # w > N(N + 1)
SAME = 1e-8


def run_1(context: RunContext) -> list[Checked]:
    """Check drawn matrices, and every representation of trained networks."""
    draws = context.pick(smoke=5, small=200, paper=1000)
    checked = [
        Checked("drawn", where, math.nan, stable_rank_bound(a))
        for where, a in drawn_matrices(SHAPES_1, draws)
    ]
    checked += _trained_1(depth_networks(context))
    checked += [
        Checked("non-negative", f"rank {k}", math.nan, _rank(k, seed))
        for k in (1, 2, 3, 5)
        for seed in range(draws)
    ]
    context.table("sides", statement_table(checked))
    context.figure(plot_statements(checked))
    context.facts |= {
        "minus_one": stable_rank_bound(-torch.ones(1, 1)).details["paper_left"],
        "with_bias": [_with_bias(-torch.full((1, 1), size, dtype=torch.float64)) for size in (1.0, 0.1)],
    }
    return checked


def _trained_1(sweep: LeakySweep) -> Iterator[Checked]:
    """Check all samples with γ_p, and the first few without."""
    for run in sweep.trained:
        depth = run.design.effective_depth
        for place, a in enumerate(run.path.representations):
            where = f"{name_of(run)}, A_{place}"
            gamma = gamma_of(a.relu()).item()
            if gamma > 0:
                yield Checked("trained (with γ)", where, depth, stable_rank_bound(a, gamma))
            yield Checked(f"trained ({FEW_1} samples)", where, depth, stable_rank_bound(a[:, :FEW_1]))


def _rank(rank: int, seed: int) -> Statement:
    """Check COI = rank of a product of non-negative factors."""
    a = drawn(2 * seed, 20, rank).abs() @ drawn(2 * seed + 1, rank, 12).abs()
    cost = exact_cost(a, a).item()
    return equal(
        "rank", "COI = rank", cost, rank, error=abs(cost - rank), tolerance=RANK_ERROR, measure="|COI − rank|"
    )


def _with_bias(a: Tensor) -> float:
    return exact_cost(a, torch.cat([a.relu(), torch.ones_like(a[:1])])).item()


PROPOSITION_1 = depth_item(
    name="leaky-proposition-1",
    title="Proposition 1: the cost of identity is at least the stable rank",
    run=run_1,
    claims={
        "bound": verified(
            "‖Aσ(A)⁺‖² ≥ ‖A‖*²/‖A‖², with the convention of section 1.3 that the COI is infinite where A "
            "lies outside the image of σ(A)ᵀ.",
            "No counterexample among drawn A (8 × 3, 30 × 5, 20 × 12), the first eight samples of every A_p "
            "of every network, and all samples with γ: COI_γ ≥ ‖A‖*²/(‖σ(A)‖² + γN).",
            of("Proposition 1", "Proposition 1 with γ"),
            more=lambda chosen: {"finite": sum(math.isfinite(one.statement.left) for one in chosen)},
            says="the cost is finite for {finite:.0f} of {statements:.0f}",
        ),
        "rank": verified(
            "For non-negative representations the COI equals the rank.",
            f"Of drawn non-negative 20 × 12 matrices of rank 1, 2, 3, 5 it does, to {RANK_ERROR:g}.",
            of("rank"),
        ),
    },
    seconds={"smoke": 1, "small": 8, "paper": 90},
    notes=(
        *NOTES,
        "Without the convention, with the pseudo-inverse alone, the bound is violated: A = −1 gives "
        "{minus_one:g} against 1.",
        "With σ as section 1.1 defines it, which appends a 1, it is violated too: A = −1 and A = −0.1, one "
        "neuron and one sample, cost {with_bias:.3g}, and the stable rank of both is 1. The proof is about σ "
        "without the 1.",
    ),
)


class Evidence2(NamedTuple):
    """Decreases by a new neuron, and where descents end."""

    checked: list[Checked]
    minima: pd.DataFrame


def run_2(context: RunContext) -> Evidence2:
    """Add a neuron to drawn and trained representations; descend on the cost itself."""
    draws = context.pick(smoke=3, small=20, paper=50)
    matrices = [(where, a) for where, a in drawn_matrices(SHAPES_2, draws) if math.isfinite(cost_of(a))]
    checked = [Checked("drawn", where, math.nan, added_neuron(a)) for where, a in matrices]
    checked += _trained_2(depth_networks(context), context.pick(smoke=4, small=3, paper=5))
    context.table("sides", statement_table(checked))
    shapes = context.pick(smoke=SHAPES_2[:1], small=SHAPES_2, paper=SHAPES_2)
    steps = context.pick(smoke=100, small=3000, paper=3000)
    seeds = range(context.pick(smoke=2, small=6, paper=10))
    parts = []
    for width, samples in shapes:
        costs, negative = descend(torch.stack([drawn(seed, width, samples) for seed in seeds]), steps)
        parts.append(pd.DataFrame({"w": width, "N": samples, "cost": costs, "negative": negative}))
    context.figure(plot_statements(checked))
    a = torch.tensor([[-1.0], [0.0]], dtype=torch.float64)
    tries = context.pick(smoke=100, small=10_000, paper=10_000)
    near = a + NEARBY * drawn(0, tries, 2, 1)
    context.facts |= {"literal": _literal(a[None])[0].item(), "literal_near": _literal(near).min().item()}
    return Evidence2(checked, context.table("minima", pd.concat(parts, ignore_index=True)))


def _trained_2(sweep: LeakySweep, every_so_many: int) -> Iterator[Checked]:
    """Check some places along each path: the first few samples, if these have a finite cost."""
    for run in sweep.trained:
        for place in range(0, len(run.path.representations), every_so_many):
            a = run.path.representations[place][:, :FEW_2]
            if bool((a < 0).any()) and math.isfinite(cost_of(a)):
                where = f"{name_of(run)}, A_{place}"
                yield Checked("trained", where, run.design.effective_depth, added_neuron(a))


def descend(starts: Tensor, steps: int, rate: float = 0.01) -> tuple[Tensor, Tensor]:
    """Minimise the COI of matrices, `[matrices, width, samples]`; return it and ‖A₋‖/‖A‖ at the end."""
    a = starts.clone().requires_grad_()
    adam = torch.optim.Adam([a], rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for _ in range(steps):
        a.grad = cost_and_gradient(a.detach())[1]
        adam.step()
        schedule.step()
    end = a.detach()
    return cost_and_gradient(end)[0], end.clamp(max=0).norm(dim=(1, 2)) / end.norm(dim=(1, 2))


def _literal(a: Tensor) -> Tensor:
    return (a @ torch.linalg.pinv(a.relu())).square().sum((1, 2))


PROPOSITION_2 = depth_item(
    name="leaky-proposition-2",
    title="Proposition 2: stable minima of the cost of identity are non-negative",
    run=run_2,
    claims={
        "minima": Claim(
            words="In experiments with full population gradient descent only stable, non-negative minima are "
            "observed, with the COI equal to the rank of A (section 1.4).",
            test=f"Descent on the COI from drawn A (3000 steps of Adam) ends, each time, within {WHOLE} of a "
            f"whole number and with ‖A₋‖/‖A‖ of {VANISHED} at most.",
            measure=lambda found: {
                "descents": len(found.minima),
                "costs": sorted(set(found.minima["cost"].round())),
                "off": float((found.minima["cost"] - found.minima["cost"].round()).abs().max()),
                "negative": float(found.minima["negative"].max()),
            },
            holds=lambda n: n["off"] <= WHOLE and n["negative"] <= VANISHED,
            says="{descents:.0f} descents end at COI = {costs:.0f}, off by {off:.2g} at most; ‖A₋‖/‖A‖ is "
            "{negative:.2g} at most",
        ),
        "decrease": verified(
            "Where A has a negative entry, a new neuron εz with z = σ(A)ᵀσ(A_i) lowers the COI by ε²(‖A_i‖² "
            "− ‖σ(A_i)‖²) + O(ε⁴) (proof), so that stable minima are non-negative.",
            "At drawn A (8 × 2, 16 × 3, 30 × 5) and at three samples of trained A_p: the decrease at ε²k = "
            "0.1, 0.01, 0.001, k = ‖σ(A_i)‖², agrees with −ε²(‖A_i‖² − k)/(1 + ε²k) to 1e-5, and its limit "
            "with the claim.",
            lambda found: found.checked,  # type: ignore[attr-defined]
            more=lambda chosen: {"falls": sum(one.statement.details["decreases"] for one in chosen)},
            says="the COI falls for {falls:.0f} of {statements:.0f}",
        ),
    },
    seconds={"smoke": 2, "small": 8, "paper": 60},
    notes=(
        *NOTES,
        "Of ‖Aσ(A)⁺‖² as it is written, with no convention outside the image of σ(A)ᵀ, A = −1 with a zero "
        "row is a stable minimum that is negative: the value is {literal:g} there, and {literal_near:g} at "
        "the lowest of many points within about 0.001.",
    ),
    changes=(
        "Trained representations are those of 3 samples: with 8, two of 150 failed at scale small, by "
        "rounding as far as could be seen.",
    ),
)


def run_3(context: RunContext) -> list[Checked]:
    """Check drawn matrices, and a few samples of trained representations."""
    draws = context.pick(smoke=2, small=30, paper=100)
    starts = [("drawn", where, math.nan, a) for where, a in drawn_matrices(SHAPES_3, draws)]
    starts += _trained_3(depth_networks(context))
    checked = [
        Checked(kind, where, depth, statement)
        for kind, where, depth, a in starts
        for statement in [*path_to_a_saddle(a), same_gradient(a)]
    ]
    context.table("sides", statement_table(checked))
    context.figure(plot_statements(checked))
    return checked


def _trained_3(sweep: LeakySweep) -> Iterator[tuple[str, str, float, Tensor]]:
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
    return equal(
        "Proposition 3, gradient",
        "∇COI(A_1) has the rows √a_i ∇COI(Â)_i",
        end.norm().item(),
        expected.norm().item(),
        error=((end - expected).norm() / expected.norm().clamp(min=1e-300)).item(),
        tolerance=SAME,
        measure="the relative difference",
    )


PROPOSITION_3 = depth_item(
    name="leaky-proposition-3",
    title="Proposition 3: a path of constant cost from a negative minimum to a saddle",
    run=run_3,
    claims={
        "level": verified(
            "If w > N(N + 1), there is a continuous path A_t of constant COI from Â.",
            "Along A_t with the rows √((1 − t) + t a_i) Â_i, at eleven t, K, K^σ and the COI change by "
            f"{SAME:g} at most, relatively: for drawn Â (9 × 2, 20 × 3, 40 × 3) and a few samples of every "
            "network half-way.",
            of("Proposition 3, constant cost"),
        ),
        "saddle": verified(
            "Its end A_1 is no local minimum.",
            "For the same: at least w − N(N + 1) rows of A_1 are zero, and a neuron εz in the place of one "
            "of them lowers the COI to order ε².",
            of("Proposition 3, zero rows", "Proposition 3, no minimum"),
        ),
        "critical": verified(
            "A_1 is a saddle: critical if Â is.",
            f"For the same: the rows of ∇COI(A_1) are √a_i times those of ∇COI(Â), to {SAME:g}.",
            of("Proposition 3, gradient"),
        ),
    },
    seconds={"smoke": 1, "small": 6, "paper": 40},
    notes=(
        *NOTES,
        "The path is shown from any A with a negative entry: no local minimum with one was found to begin at "
        "(see Proposition 2).",
    ),
)
