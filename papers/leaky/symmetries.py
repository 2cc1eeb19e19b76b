"""The two symmetries of section 1.2: the range of integration, and the scale of the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fathometer.leaky.theory import integration_range, output_scaling
from papers.item import Answers, Claim, RunContext, Seconds
from papers.leaky.figures import Points, plot_differences
from papers.leaky.networks import depth_item, depth_networks
from papers.leaky.statements import (
    CheckedStatement,
    every,
    largest_error,
    named,
    statement_table,
    statements_about,
)

EXACT = 1e-10  # tolerance of these statements
STRETCH = 3.0  # c, of the range
SHIFT = 0.5  # c, of L̃


def run_range(context: RunContext) -> Answers:
    """Stretch every network to [0, 3], and those of one seed to [0, L̃]."""
    runs = depth_networks(context).trained
    first_seed = min(run.design.seed for run in runs)
    checked = statements_about("c = 3", runs, lambda run: integration_range(run.path, STRETCH))
    unit = statements_about(
        "c = L̃",
        [run for run in runs if run.design.seed == first_seed],
        lambda run: integration_range(run.path, run.design.effective_depth),
    )
    context.table("sides", statement_table([*checked, *unit]))
    kinds = {"network": "network", "flow": "flow", "norm": "parameter norm"}
    found = {label: _of(checked, "integration range", kind) for kind, label in kinds.items()}
    context.figure(plot_differences(_points(found), EXACT))
    activations = [*found["network"], *found["flow"]]
    return {
        "activations": every(activations, f"to {largest_error(activations):.0e}"),
        "norm": every(found["parameter norm"], f"to {largest_error(found['parameter norm']):.0e}"),
        "depth": every(unit, f"to {largest_error(unit):.0e}"),
    }


def run_scaling(context: RunContext) -> Answers:
    """Check every network with L̃ + 0.5, and as a plain ResNet; and one with its biases, without symmetry."""
    runs = depth_networks(context).trained
    shifted = statements_about("c = .5", runs, lambda run: output_scaling(run.path, SHIFT))
    plain = statements_about(
        "c = −L̃", runs, lambda run: output_scaling(run.path, -run.design.effective_depth)
    )
    first_seed = min(run.design.seed for run in runs)
    biased = statements_about(
        "with biases",
        [run for run in runs if run.design.seed == first_seed],
        lambda run: output_scaling(run.path, SHIFT, bias=True),
    )
    context.table("sides", statement_table([*shifted, *plain, *biased]))
    flow, down, kept = (_of(checked, "output scaling", "flow") for checked in (shifted, plain, biased))
    network = _of(shifted, "output scaling", "network")
    found = {
        r"flow, $\tilde{L}+1/2$": flow,
        r"flow, $\tilde{L}\to 0$": down,
        r"network, $\kappa$ for $e^{-cp}$": network,
        "flow, biases kept": kept,
    }
    context.figure(plot_differences(_points(found), EXACT))
    away = max(one.statement.details["kappa_from_exponential"] for one in network)
    context.note(
        "The symmetry is one of the differential equation. In a network of section 3, e^{−cp} is replaced by "
        f"κ_l = Π(1 − ρ(L̃ + c))/(1 − ρL̃), up to {away:.0%} away from it, and then exact to "
        f"{largest_error(network):.0e} with weights scaled by the factors of κ."
    )
    context.note(
        "It needs the assumption of no biases: with them the activations differ by up to "
        f"{largest_error(kept):.0%} (c = .5, one seed)."
    )
    return {
        "scaled": every(flow, f"to {largest_error(flow):.0e}"),
        "plain": every(down, f"to {largest_error(down):.0e}"),
    }


def _of(checked: Sequence[CheckedStatement], symmetry: str, kind: str) -> list[CheckedStatement]:
    return named(checked, f"Section 1.2, {symmetry}, {kind}")


def _points(found: Mapping[str, Sequence[CheckedStatement]]) -> Points:
    return {
        name: ([one.depth for one in checked], [one.statement.details["error"] for one in checked])
        for name, checked in found.items()
    }


INTEGRATION_RANGE = depth_item(
    name="leaky-integration-range",
    title="Section 1.2: stretching the range of integration is changing the effective depth",
    claims={
        "activations": Claim(
            "Stretching the weights to [0, c] by W'_q = W_{q/c}/c, and dividing the leakage by c, stretches "
            "the activations: α'_q = α_{q/c}.",
            "For every trained network, as a network and as the flow with weights constant within a layer, c "
            "= 3: the same activations at the ends of all layers to 1e-10, relatively.",
        ),
        "norm": Claim(
            "The parameter norm is divided by c: ∫‖W'‖²dq = (1/c)∫‖W‖²dp.", "For the same, to 1e-10."
        ),
        "depth": Claim(
            "A path on [0, c] with L̃ = 1 is equivalent to one on [0, 1] with L̃ = c, up to that factor.",
            "Both of the above with c = L̃, for the networks of one seed.",
        ),
    },
    run=run_range,
    seconds=Seconds(2, 12, 60),
)
OUTPUT_SCALING = depth_item(
    name="leaky-output-scaling",
    title="Section 1.2: scaling the outputs is changing the effective depth",
    claims={
        "scaled": Claim(
            "Without biases, L̃ → L̃ + c leads to a scaled down path α'_p = e^{−cp}α_p.",
            "For the flow with the weights of every trained network, biases left out, c = .5: the same "
            "activations at the ends of all layers to 1e-10, relatively.",
        ),
        "plain": Claim(
            "A non-leaky ResNet, L̃ = 0, is equivalent to a leaky one with outputs scaled down by e^{−L̃}.",
            "The same with c = −L̃.",
        ),
    },
    run=run_scaling,
    seconds=Seconds(2, 18, 90),
)
