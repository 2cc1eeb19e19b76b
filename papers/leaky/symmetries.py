"""The two symmetries of section 1.2: the range of integration, and the scale of the outputs."""

from __future__ import annotations

from fathometer.leaky.theory import integration_range, output_scaling
from papers.item import RunContext
from papers.leaky.figures import plot_statements
from papers.leaky.networks import NOTES, depth_item, depth_networks
from papers.leaky.statements import Checked, check_runs, named, statement_table, verified

EXACT = 1e-10  # tolerance of these statements
STRETCH = 3.0  # c, of the range
SHIFT = 0.5  # c, of L̃
RANGE, SCALING = "Section 1.2, integration range", "Section 1.2, output scaling"


def run_range(context: RunContext) -> list[Checked]:
    """Stretch the flow of every network to [0, 3], and those of one seed to [0, L̃]."""
    runs = depth_networks(context).trained
    first = [run for run in runs if run.design.seed == min(run.design.seed for run in runs)]
    checked = check_runs("networks, c = 3", runs, lambda run: integration_range(run.path, STRETCH))
    checked += check_runs(
        "networks, c = L̃", first, lambda run: integration_range(run.path, run.design.effective_depth)
    )
    context.table("sides", statement_table(checked))
    context.figure(plot_statements(checked))
    return checked


INTEGRATION_RANGE = depth_item(
    name="leaky-integration-range",
    title="Section 1.2: stretching the range of integration is changing the effective depth",
    run=run_range,
    claims={
        "activations": verified(
            "Stretching the weights to [0, c] by W'_q = W_(q/c)/c, and dividing the leakage by c, stretches "
            "the activations: α'_q = α_(q/c).",
            "For the flow with the weights of every trained network, constant within a layer, c = 3, and c "
            f"= L̃ for those of one seed: the same activations at the ends of all layers to {EXACT:g}, "
            "relatively.",
            lambda checked: named(checked, f"{RANGE}, flow"),
        ),
        "norm": verified(
            "The parameter norm is divided by c: ∫‖W'‖²dq = (1/c)∫‖W‖²dp.",
            f"For the same, to {EXACT:g}.",
            lambda checked: named(checked, f"{RANGE}, norm"),
        ),
    },
    seconds={"smoke": 2, "small": 8, "paper": 60},
    notes=(*NOTES, "Both are a change of variables, so this shows the integrator and not the paper."),
    changes=(
        "The discrete networks were compared too at first; with ρ' = cρ their layers are the same "
        "expressions, and the comparison could not fail.",
    ),
)


def run_scaling(context: RunContext) -> list[Checked]:
    """Check every network with L̃ + 0.5, and as a plain ResNet; and one with its biases, without symmetry."""
    runs = depth_networks(context).trained
    first = [run for run in runs if run.design.seed == min(run.design.seed for run in runs)]
    checked = check_runs("networks, c = 0.5", runs, lambda run: output_scaling(run.path, SHIFT))
    checked += check_runs(
        "networks, c = −L̃", runs, lambda run: output_scaling(run.path, -run.design.effective_depth)
    )
    biased = check_runs("with biases", first, lambda run: output_scaling(run.path, SHIFT, bias=True))
    context.table("sides", statement_table([*checked, *biased]))
    flow, network = (named(checked, f"{SCALING}, {kind}") for kind in ("flow", "network"))
    kept = named(biased, f"{SCALING}, flow")
    context.figure(plot_statements(checked))
    context.facts |= {
        "away": max(
            one.statement.details["kappa_from_exponential"]
            for one in network
            if one.kind == "networks, c = 0.5"
        ),
        "exact": max(one.statement.error for one in network),
        "biased": max(one.statement.error for one in kept),
    }
    return flow


OUTPUT_SCALING = depth_item(
    name="leaky-output-scaling",
    title="Section 1.2: scaling the outputs is changing the effective depth",
    run=run_scaling,
    claims={
        "scaled": verified(
            "Without biases, L̃ → L̃ + c leads to a scaled down path α'_p = e^(−cp)α_p.",
            "For the flow with the weights of every trained network, biases left out, c = 0.5: the same "
            f"activations at the ends of all layers to {EXACT:g}, relatively.",
            lambda checked: [one for one in checked if one.kind == "networks, c = 0.5"],
        ),
        "plain": verified(
            "A non-leaky ResNet, L̃ = 0, is equivalent to a leaky one with outputs scaled down by e^(−L̃).",
            "The same with c = −L̃.",
            lambda checked: [one for one in checked if one.kind == "networks, c = −L̃"],
        ),
    },
    seconds={"smoke": 2, "small": 18, "paper": 90},
    notes=(
        *NOTES,
        "The symmetry is one of the differential equation. In a network of section 3, e^(−cp) is replaced by "
        "κ_l = Π(1 − ρ(L̃ + c))/(1 − ρL̃), up to {away:.0%} away from it, and then exact to {exact:.0e} with "
        "weights scaled by the factors of κ.",
        "It needs the assumption of no biases: with them the activations differ by up to {biased:.0%} (c = "
        "0.5, one seed).",
    ),
)
