"""Sections 1.3 and 1.5, appendix A.2, footnote 1: the Lagrangian, the momenta, the Hamiltonian."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import torch
from torch import Tensor

from fathometer.leaky import Flow, LeakyRun, Phase, Recipe, grid, hamiltonians, in_dimensions, preset
from fathometer.leaky.dynamics import velocities
from fathometer.leaky.energy import hamiltonian
from fathometer.leaky.model import with_ones
from fathometer.leaky.theory import (
    Statement,
    hamiltonian_identity,
    hamiltonian_is_conserved,
    linear_flow,
    middle_term,
    three_terms,
)
from fathometer.leaky.theory.statement import at_least, equal
from papers.item import Item, RunContext
from papers.leaky.figures import plot_statements
from papers.leaky.instances import START_DEPTH, SmoothCurve, followed, solved
from papers.leaky.networks import NOTES, Plan, depth_item, depth_networks, is_critical, train_networks
from papers.leaky.statements import Checked, check_runs, named, of, statement_table, verified

EXACT = 1e-8
DRIFT, FALLS = 1e-5, 0.7  # of H along the flow; of its spread when L is doubled
LAYERS = (20, 40, 80)
DETOURS = (0.0, 0.25, 0.5)
DIFFERENT = 1e-3
QUADRATURE = 1e-6


def run(context: RunContext) -> list[Checked]:
    """Check trained networks, networks that are critical to rounding, and the flow."""
    runs = depth_networks(context).trained
    seeds = range(context.pick(smoke=1, small=3, paper=5))
    tolerance = context.pick(smoke=1e-8, small=1e-9, paper=1e-9)
    flows = [followed(20, seed, tolerance) for seed in seeds]
    checked = check_runs("trained", runs, lambda run: [three_terms(run.path), _gradient(run)])
    critical = [run for run in runs if is_critical(run)]
    checked += check_runs(
        "trained", critical, lambda run: [hamiltonian_identity(run.path), hamiltonian_is_conserved(run.path)]
    )
    for seed, found in zip(seeds, flows, strict=True):
        checked += [
            Checked("flows", f"seed {seed}", START_DEPTH, each) for each in (_drift(found), _equations(found))
        ]
        checked += [Checked("solved", f"seed {seed}", START_DEPTH, each) for each in _of_solved(seed)]
    context.table("sides", statement_table(checked))
    context.figure(plot_statements(checked))
    terms = named(checked, "Section 1.3, three terms")
    deepest = max(terms, key=lambda one: one.depth).statement
    crits = [run.measure(warn=False).summary["crit"] for run in runs]
    context.facts |= {"sides": deepest.left, "printed": deepest.paper, "crit": max(crits)}
    return checked


def _gradient(run: LeakyRun) -> Statement:
    """Check ∂loss/∂W_l = (λ/L̃) ρ_l (W_l − L̃B_lσ(A_{l−1})ᵀ) by autograd: 0 exactly where W = L̃Bσᵀ."""
    net, design, path = run.net, run.design, run.path
    momenta, weights = path.require_momenta()
    loss = (net(run.task.x) - run.task.y).square().mean()
    norms = (net.steps * net.weights.square().sum((1, 2))).sum()
    (found,) = torch.autograd.grad(loss + design.weight_decay / 2 * norms, net.weights)
    off = weights - design.effective_depth * momenta[1:] @ with_ones(path.images[:-1]).mT
    expected = design.weight_decay * path.steps[:, None, None] * off
    scale = design.weight_decay * (path.steps[:, None, None] * weights).norm()
    return _equal("weights", found, expected, (found - expected).norm() / scale)


def _equations(found: Flow) -> Statement:
    """Check ∂A = ∂H/∂B and ∂B = −∂H/∂A by autograd, at all places of a flow."""
    a, b = (
        part.clone().requires_grad_()
        for part in (found.path.representations, found.path.require_momenta()[0])
    )
    energy = hamiltonian(a, b, found.path.sigma, START_DEPTH).sum()
    of_a, of_b = torch.autograd.grad(energy, (a, b))
    forward, backward = velocities(a.detach(), b.detach(), found.path.sigma, START_DEPTH)
    both, expected = torch.stack([of_b, -of_a]), torch.stack([forward, backward])
    return _equal("equations", both, expected, (both - expected).norm() / expected.norm())


def _drift(found: Flow) -> Statement:
    first, last = found.hamiltonian[0], found.hamiltonian[-1]
    return equal(
        "flow",
        "H_p = H_0",
        last.item(),
        first.item(),
        error=found.drift,
        tolerance=DRIFT,
        measure="the largest |H_p − H_0|/|H_0|",
    )


def _equal(name: str, left: Tensor, right: Tensor, error: Tensor) -> Statement:
    sides = left.norm().item(), right.norm().item()
    return equal(name, "", *sides, error=error.item(), tolerance=EXACT, measure="the relative difference")


def _of_solved(seed: int) -> Iterator[Statement]:
    """Check appendix A.2, and how the spread of H falls as the number of layers doubles."""
    yield hamiltonian_identity(solved(LAYERS[0], seed), tolerance=EXACT)
    spreads = [
        in_dimensions(hamiltonians(solved(layers, seed)).staggered, START_DEPTH).std().item()
        for layers in LAYERS
    ]
    for wide, narrow in pairwise(spreads):
        yield equal(
            "layers",
            "",
            narrow,
            wide,
            error=narrow / wide,
            tolerance=FALLS,
            measure="the spread over that with half the layers",
        )


LAGRANGIAN = depth_item(
    name="leaky-lagrangian",
    title="Sections 1.3 and 1.5, appendix A.2: Lagrangian, momenta and Hamiltonian",
    run=run,
    claims={
        "terms": verified(
            "The Lagrangian is the sum of three terms: ‖L̃A + ∂A‖²/(2L̃) = L̃/2 ‖A‖² + ⟨∂A, A⟩ + ‖∂A‖²/(2L̃) "
            "(section 1.3).",
            "With K + γI in the place of K, summed over the layers of every trained network: to 1e-8 of the "
            "terms' sizes.",
            of("Section 1.3, three terms"),
        ),
        "weights": verified(
            "At any critical point W_p = L̃B_pσ(A_p)ᵀ (section 1.5).",
            "In every trained network the gradient of the loss by autograd is (λ/L̃)ρ_l(W_l − "
            f"L̃B_lσ(A_(l−1))ᵀ), to {EXACT:g} of (λ/L̃)ρ‖W‖: it vanishes exactly there.",
            of("weights"),
        ),
        "equations": verified(
            "The joint dynamics of A and B are Hamiltonian: ∂_pA = ∂_BH, −∂_pB = ∂_AH.",
            "Along the flow from random starts (w = 6, N = 10, L̃ = 2), derivatives of H by autograd: to "
            f"{EXACT:g}.",
            of("equations"),
        ),
        "conserved": verified(
            "The Hamiltonian is a conserved quantity, constant in p (section 1.5).",
            f"Along the flow H drifts by {DRIFT:g} at most, relatively.",
            of("flow"),
        ),
        "layers": verified(
            "So it is in a network, up to the step.",
            f"In networks that are critical to rounding the spread of −2H/L̃ over the layers falls to {FALLS} "
            "or less with each doubling of L = 20, 40, 80.",
            of("layers"),
            kind="ours",
        ),
        "trained": verified(
            "So it is in trained networks.",
            "In every network with crit ≤ 0.1 the standard deviation of −2H/L̃ (mean of both ends of a layer) "
            "over the layers with 0.1 ≤ p ≤ 0.9 is 5 % at most of its median.",
            of("Section 1.5, H is conserved"),
            kind="paper",
        ),
        "appendix": verified(
            "−2H/L̃ = ‖A‖² − ‖∂A/L̃ + γB‖² + γ‖B‖², norms in K + γI (appendix A.2).",
            f"In every layer: to {EXACT:g} of ‖A‖² in networks that are critical to rounding (L = 20), to 5 "
            "% in every trained network with crit ≤ 0.1.",
            of("Appendix A.2"),
        ),
    },
    seconds={"smoke": 2, "small": 12, "paper": 60},
    notes=(
        *NOTES,
        "The paper prints the middle term of the Lagrangian as L̃⟨∂A, A⟩, where the factor is 1: at the "
        "largest L̃ the left side is {sides:.4g}, the printed right side {printed:.4g}.",
        "B_1 = 2/(λN)(Y − A_1) belongs to the cost ‖Y − A‖²/N, not to the ½‖Y − A‖² that is printed beside "
        "it. Here the cost is the mean over samples and outputs.",
        "crit, the median of ‖W − L̃Bσᵀ‖/‖W‖ over layers, is {crit:.2g} at most in trained networks.",
    ),
)


def run_footnote(context: RunContext) -> list[Checked]:
    """Check smooth curves with several ways between the same ends, and trained linear networks."""
    seeds = range(context.pick(smoke=2, small=20, paper=50))
    integrals = context.table("integrals", curve_table(seeds))
    checked = [
        Checked("curves", f"seed {seed}", math.nan, middle_term(curve.at, curve.velocity))
        for seed, curve in ((seed, SmoothCurve(seed)) for seed in seeds)
    ]
    checked += check_runs("linear networks", _linear_networks(context), lambda run: [linear_flow(run.path)])
    for (sigma, seed), rows in integrals.groupby(["sigma", "seed"]):
        values = rows["integral"]
        spread = float((values.max() - values.min()) / max(1.0, values.abs().max()))
        checked.append(Checked("pairs of ends", f"seed {seed}", math.nan, _ways(str(sigma), values, spread)))
    context.table("sides", statement_table(checked))
    context.figure(plot_statements(checked))
    return checked


def _ways(sigma: str, values: pd.Series[float], spread: float) -> Statement:
    """Check that three ways have the same integral, or, with ReLU, that they do not."""
    if sigma == "relu":
        return at_least(sigma, "the ways differ", spread, DIFFERENT)
    ends = values.max(), values.min()
    return equal(sigma, "the ways agree", *ends, error=spread, tolerance=QUADRATURE, measure="the difference")


def _linear_networks(context: RunContext) -> tuple[LeakyRun, ...]:
    """Train linear networks, σ = id; with learned maps the rank of A_0 would vanish."""
    quick = preset("quick").design
    design = replace(
        quick, sigma="identity", maps="identity", layers=8, width=30, samples=100, test_samples=0
    )
    designs = grid(design, effective_depth=[1.0, 2.0, 4.0], seeds=context.pick(smoke=1, small=3, paper=5))
    recipe = Recipe((Phase("adam", context.pick(smoke=20, small=1000, paper=1000), 3e-3),))
    return train_networks(
        context, "linear", Plan(designs[: context.pick(smoke=1, small=9, paper=15)], recipe)
    ).runs


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


FOOTNOTE_1 = Item(
    name="leaky-footnote-1",
    title="Footnote 1: the middle term of the Lagrangian in linear networks",
    run=run_footnote,
    claims={
        "integral": verified(
            "In linear networks ∫Tr[∂A σ(A)⁺σ(A)⁺ᵀAᵀ]dp = log|A_1|₊ − log|A_0|₊.",
            f"By quadrature, to {QUADRATURE:g}: along drawn smooth curves of rank 2 (4 × 5), and along the "
            "flow of every trained linear network (w = 30, N = 100, L̃ = 1, 2, 4).",
            of("Footnote 1"),
        ),
        "ends": verified(
            "Its integral only depends on the endpoints.",
            f"Along three curves between the same ends the integrals agree to {QUADRATURE:g}.",
            of("identity"),
        ),
        "nonlinear": verified(
            "In nonlinear networks it cannot be discarded in such a manner.",
            f"With σ = ReLU the integrals along the same curves differ by more than {DIFFERENT:g}, "
            "relatively, for every pair of ends.",
            of("relu"),
        ),
    },
    settings={
        "small": "twenty curves, linear networks of three seeds; the paper has no experiment",
        "paper": "fifty curves, linear networks of five seeds; the paper has no experiment",
    },
    seconds={"smoke": 2, "small": 10, "paper": 30},
)
