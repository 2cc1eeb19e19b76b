"""Measures every number of docs/leaky-theory.md: five trained networks, two solved ones, one flow.

    python -m examples.leaky_theory

The networks are those of the preset `quick` at L̃ = 2, 4, 6, 8 and 11, seed 0. Where one number is given
for all of them, it is that of L̃ = 8.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence

import torch
from rich.console import Console
from scipy.integrate import solve_ivp
from torch import Tensor

from fathometer.leaky import grid, preset, sweep
from fathometer.leaky.energy import criticality
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory import (
    Statement,
    added_neuron,
    check_all,
    hamiltonian_identity,
    middle_term,
    norm_growth,
    output_scaling,
    path_to_a_saddle,
    proposition_5,
    stable_rank_bound,
    theorem_4,
)
from fathometer.leaky.theory.balance import balancedness
from fathometer.leaky.theory.symmetries import through_layer
from fathometer.progress import progress_bar
from papers.leaky.instances import SmoothCurve, drawn, followed, growth_factor, solved

DEPTHS = (2.0, 4.0, 6.0, 8.0, 11.0)
USUAL = 8.0

Paths = dict[float, RepresentationPath]
Statements = dict[float, dict[str, Statement]]


def train() -> Paths:
    """The path of each network by its L̃."""
    quick = preset("quick")
    with progress_bar("training") as show:
        found = sweep(grid(quick.design, effective_depth=DEPTHS), quick.recipe, progress=show)
    return {run.design.effective_depth: run.path for run in found.runs}


def listed(values: Iterable[float]) -> str:
    """Three digits each."""
    return ", ".join(f"{value:.3g}" for value in values)


def networks(paths: Paths, found: Statements) -> list[str]:
    """How critical they are, and what does not hold."""
    failing = [f"L̃ = {d:g}: {s}" for d, of in found.items() for s in of.values() if not s.holds]
    return [
        "L̃: " + listed(paths),
        "median crit: " + listed(criticality(path).median().item() for path in paths.values()),
        f"statements for each: {listed(len(of) for of in found.values())}; failing: {failing or 'none'}",
    ]


def one_representation(found: Statements) -> list[str]:
    """Propositions 1 to 3."""
    bounds = [of["Proposition 1 with γ"] for of in found.values()]
    exact = [of["Proposition 1"].left for of in found.values()]
    minus = stable_rank_bound(-torch.ones(1, 1))
    neuron = added_neuron(drawn(0, 30, 5))
    saddle = path_to_a_saddle(drawn(0, 40, 3))
    rates = [of["Proposition 2 with γ"].right for of in found.values()]
    return [
        "Proposition 1 with γ: " + ", ".join(f"{s.left:.3g} ≥ {s.right:.3g}" for s in bounds),
        "Proposition 1, exact COI: " + listed(exact),
        f"A = −1: paper's cost {minus.details['paper_left']:g}, bound {minus.right:g}",
        f"Proposition 2, random 30 × 5: {neuron.left:.6g} against {neuron.right:.6g}, "
        f"closed form to {neuron.details['off_closed_form']:.0e}",
        "Proposition 2 with γ, predicted decrease: " + listed(rates),
        f"Proposition 3, random 40 × 3: constant to {saddle[0].error:.0e}, "
        f"{saddle[1].left:g} rows zero, rate {saddle[2].left:.3g}",
    ]


def symmetries(paths: Paths, found: Statements) -> list[str]:
    """Section 1.2, worst of the networks."""
    names = [name for name in found[USUAL] if name.startswith("Section 1.2")]
    lines = [
        f"{name}: worst of {sum(name in of for of in found.values())}: "
        f"{max(of[name].error for of in found.values() if name in of):.0e}"
        for name in names
    ]
    kappa = output_scaling(paths[USUAL], 0.5)[0].details["kappa_from_exponential"]
    return [
        *lines,
        f"κ from e^{{−cp}}, c = .5: {kappa:.2g}",
        f"DOP853 at 1e-12, largest relative error in a layer: {general_error(paths[USUAL]):.0e}",
    ]


def general_error(path: RepresentationPath, samples: int = 8) -> float:
    """How far a general integrator is from the exact one, in the worst layer and sample."""
    _, weights = path.require_momenta()
    worst = 0.0
    for a, weight, step in zip(path.representations, weights, path.steps.tolist(), strict=False):
        starts = a[:, :samples]
        exact = through_layer(starts, weight, step, path.effective_depth, path.sigma)
        for n in range(samples):
            end = integrated(starts[:, n], weight, step, path.effective_depth)
            worst = max(worst, float((end - exact[:, n]).norm() / exact[:, n].norm()))
    return worst


def integrated(start: Tensor, weight: Tensor, step: float, depth: float) -> Tensor:
    """The flow of one sample through a layer, by SciPy."""
    matrix, bias = weight[:, :-1].numpy(), weight[:, -1].numpy()
    found = solve_ivp(
        lambda _, a: matrix @ a.clip(0) + bias - depth * a, (0, step), start, "DOP853", rtol=1e-12, atol=1e-12
    )
    return torch.as_tensor(found.y[:, -1])


def energies(found: Statements) -> list[str]:
    """The Lagrangian, the Hamiltonian, footnote 1, and the sum of irregular steps."""
    terms = found[USUAL]["Section 1.3, three terms"]
    curve = SmoothCurve()
    linear, nonlinear = (middle_term(curve.at, curve.velocity, sigma=sigma) for sigma in ("identity", "relu"))
    conserved = [of["Section 1.5, H is conserved"] for of in found.values()]
    spreads = [s.details["cost_std"] for s in conserved]
    total = sum(1 / 5 + 0.5 / 5 * (1 / 4 - abs(layer / 5 - 1 / 2)) for layer in range(1, 6))
    return [
        f"three terms: {terms.left:.4g}, {terms.right:.4g}; the paper's: {terms.paper:.4g}",
        f"footnote 1: {linear.left:.4g}, to {linear.error:.0e}; with ReLU {nonlinear.left:.3g}",
        "appendix A.2, worst layer: " + listed(of["Appendix A.2"].error for of in found.values()),
        f"the same, solved, L = 400: {hamiltonian_identity(solved(400)).error:.0e}",
        "std/|median| of −2H/L̃, inner layers: " + listed(s.error for s in conserved),
        "std of −2H/L̃, inner layers: " + listed(s.details["std"] for s in conserved),
        "std/|median| of −2H/L̃, all layers: " + listed(s.details["all_layers"] for s in conserved),
        f"std of COI_γ: {min(spreads):.3g} to {max(spreads):.3g}",
        f"irregular steps, L = 5, a = .5: sum {total:.4g}",
    ]


def bounds(paths: Paths) -> list[str]:
    """Theorem 4."""
    lines = []
    for depth, path in paths.items():
        low, high, below, above = theorem_4(path)
        numbers = low.details
        lines += [
            f"L̃ = {depth:g}: {low.right:.3g} ≤ {low.left:.3g} ≤ {high.left:.3g} | {below.right:.2g} ≤ "
            f"{below.left:.2g}, {above.right:.2g} ≤ {above.left:.2g} | −2H/L̃ {numbers['hamiltonian']:.3g}, "
            f"min COI_γ {numbers['cost_min']:.3g}",
            f"    ℓ {numbers['length']:.3g}, sup ‖B‖² {numbers['momentum2_max']:.2g}, the paper's bound "
            f"{low.paper:.3g} (margin {numbers['paper_margin']:.3g}), second display above: margin "
            f"{above.margin:.2g}, with each layer's own H {above.details['own_margin']:.3g}",
        ]
    return lines


def non_negative(paths: Paths) -> list[str]:
    """Proposition 5."""
    found = proposition_5(list(paths.values()))
    rows = [
        f"{name}: {listed(found.details[f'{name}_{depth:g}'] for depth in paths)}"
        for name in ("at_least_cost", "at_half", "at_least_speed", "boundedness")
    ]
    return [*rows, f"rank correlation {found.details['rank_correlation']:.2g}, holds: {found.holds}"]


def growth(paths: Paths) -> list[str]:
    """Proposition 9: first equation, second, the factor, and that of the norms alone."""
    rows = [f"flow: factor {growth_factor(followed(4000)):.4f}"]
    kinds = {f"solved, L = {layers}": solved(layers) for layers in (400, 40)}
    kinds |= {f"trained, L̃ = {depth:g}": path for depth, path in paths.items()}
    for name, path in kinds.items():
        biases, norms, _ = (s.error for s in balancedness(path))
        numbers = norm_growth(path).details
        rows.append(
            f"{name}: ρL̃ {numbers['largest_leak']:.2g}, {biases:.2g}, {norms:.2g}, factor "
            f"{numbers['factor']:.4f}, alone {numbers['factor_with_drift']:.3f}"
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, measure, print."""
    argparse.ArgumentParser(description="The figures of docs/leaky-theory.md.").parse_args(arguments)
    console, started = Console(highlight=False, soft_wrap=True), time.perf_counter()
    paths = train()
    found = {depth: {s.name: s for s in check_all(path)} for depth, path in paths.items()}
    parts: dict[str, Callable[[], list[str]]] = {
        "Networks": lambda: networks(paths, found),
        "One representation": lambda: one_representation(found),
        "Symmetries": lambda: symmetries(paths, found),
        "Lagrangian and Hamiltonian": lambda: energies(found),
        "Theorem 4": lambda: bounds(paths),
        "Proposition 5": lambda: non_negative(paths),
        "Proposition 9": lambda: growth(paths),
    }
    for title, measure in parts.items():
        console.print(f"\n[bold]{title}[/bold]")
        for line in measure():
            console.print(line, markup=False)
    console.print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
