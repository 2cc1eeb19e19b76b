"""The Leaky ResNets that items share: networks of growing effective depth, and of three step schemes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from fathometer.leaky import (
    CRITICAL,
    Design,
    LeakyRun,
    LeakySweep,
    Phase,
    Preset,
    Recipe,
    Scheme,
    Teacher,
    grid,
    preset,
    sweep,
)
from fathometer.progress import progress_bar
from fathometer.report import default_run
from fathometer.threads import pool_of_single_threads
from papers.item import Item, RunContext, Scale

SCHEMES: tuple[Scheme, ...] = ("equidistant", "irregular", "adaptive")
RANK = 3  # k* of all tasks here
SHOWN_LAYERS = 18  # L of Figures 2b and 2c
NOTES = (
    "{loose:.0f} of {networks:.0f} networks are not at a critical point: crit, the median of ‖W − L̃Bσᵀ‖/‖W‖ "
    f"over layers, is above {CRITICAL:g}.",
    "{warnings}",
)

_SIZES = "w = 100, N = 1000 and the teacher's dimensions are the published ones"
_RECIPE = (
    "our own are Adam alone at a rate that grows with L̃ and falls along a cosine, weights that start at L̃·I, "
    "and a teacher whose latents pass through ReLU (published: Adam for 5000 epochs, then SGD for 1000, "
    "rates and start not stated, which led to no critical point here)"
)
_QUICK = (
    "w = 50, N = 300, 1500 epochs, λ₀ = {decay}, {what} (published: w = 100, N = 1000, 6000 epochs, λ₀ = "
    "0.001)"
)

depth_item = partial(
    Item,
    settings={
        "small": _QUICK.format(decay="0.1", what="L = 12, L̃ = 2 to 11, five seeds"),
        "paper": f"{_SIZES}, as is L = 20; λ₀ = 0.03 (published: 0.001), 16,000 epochs, L̃ = 1 to 19, five "
        f"seeds (published: not stated); {_RECIPE}",
    },
    device="cuda",
)
"""An item about `depth_networks`."""
scheme_item = partial(
    Item,
    settings={
        "small": _QUICK.format(decay="0.03", what="L = 4, 6, 10, 18, L̃ = 3, eight seeds"),
        "paper": f"{_SIZES}, as is L̃ = 3; λ₀ = 0.03 (published: 0.001), 4000 epochs, L = 4 to 24, sixteen "
        f"seeds (published: not stated), a = 0.5, adaptive steps with a damped update; {_RECIPE}",
    },
    device="cuda",
)
"""An item about `scheme_networks`."""


class Plan(NamedTuple):
    """What to train, and how."""

    designs: list[Design]
    recipe: Recipe


def depth_plan(scale: Scale) -> Plan:
    """Plan Figures 1 and 3: equidistant networks over a range of L̃, k* = 3."""
    if scale == "paper":
        depths = [1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 14.0, 19.0]
        design = replace(preset("paper").design, decay=0.03)
        return Plan(grid(design, effective_depth=depths, seeds=5), Recipe((Phase("adam", 16_000, 5e-4),)))
    quick = preset("quick")
    if scale == "small":
        return Plan(
            grid(quick.design, effective_depth=[2.0, 3.0, 4.0, 6.0, 8.0, 11.0], seeds=5), quick.recipe
        )
    tiny = replace(quick.design, layers=8, width=12, samples=30, test_samples=10)
    return Plan(grid(tiny, effective_depth=[2.0, 5.0, 7.0], seeds=2), Recipe((Phase("adam", 60, 3e-3),)))


def scheme_plan(scale: Scale) -> Plan:
    """Plan Figure 2: L̃ = 3 over a range of L with three kinds of steps, f* of dimensions 30, 6, 3, 30."""
    size = preset("paper" if scale == "paper" else "quick")
    design = scheme_design(size)
    if scale == "paper":
        layers, seeds, recipe = [4, 6, 10, 14, 18, 24], 16, size.recipe
    elif scale == "small":
        layers, seeds, recipe = [4, 6, 10, 18], 8, size.recipe
    else:
        design = replace(design, width=12, samples=30, test_samples=20)
        layers, seeds, recipe = [4, 6], 2, Recipe((Phase("adam", 60, 3e-3),))
    return Plan(grid(design, layers=layers, scheme=SCHEMES, seeds=seeds), recipe)


def scheme_design(size: Preset) -> Design:
    """Design a network of Figure 2, of some size."""
    return replace(size.design, effective_depth=3.0, decay=0.03, teacher=Teacher((30, 6, 3, 30), "resnet"))


def depth_networks(context: RunContext) -> LeakySweep:
    """Train and measure the networks of `depth_plan`."""
    return _measured(context, train_networks(context, "depths", depth_plan(context.scale)))


def scheme_networks(context: RunContext) -> LeakySweep:
    """Train the networks of `scheme_plan`."""
    return train_networks(context, "schemes", scheme_plan(context.scale))


def shown_schemes(context: RunContext) -> LeakySweep:
    """Train and measure those of Figures 2b and 2c: L = 18, or the most layers if there are none."""
    networks = scheme_networks(context)
    layers = {run.design.layers for run in networks.runs}
    return _measured(context, networks.only(layers=SHOWN_LAYERS if SHOWN_LAYERS in layers else max(layers)))


def usual_depth(networks: LeakySweep) -> list[LeakyRun]:
    """Select the networks of Figures 1b and 1c: L̃ nearest 7, every seed."""
    depth = default_run(networks).design.effective_depth
    found = [run for run in networks.trained if run.design.effective_depth == depth]
    return sorted(found, key=lambda run: run.design.seed)


def is_critical(run: LeakyRun) -> bool:
    """Say whether crit is small enough for a Hamiltonian to mean something."""
    return run.measure(warn=False).summary["crit"] <= CRITICAL


def train_networks(context: RunContext, name: str, plan: Plan) -> LeakySweep:
    """Train, resume or load networks of one name. A warning becomes a note."""
    folder = context.shared / "leaky" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(record=True) as said, progress_bar(f"training {name}") as show:
        warnings.simplefilter("always", UserWarning)
        found = sweep(*plan, device=context.device, out=folder, resume=True, progress=show)
    words = [f"{each.message}." for each in said if issubclass(each.category, UserWarning)]
    context.facts["warnings"] = " ".join(words) or "No network diverged."
    context.facts["seeds"] = sorted({run.design.seed for run in found.runs})
    return found


def _measured(context: RunContext, networks: LeakySweep) -> LeakySweep:
    """Measure once, in threads, and record how many networks are not critical."""
    with pool_of_single_threads() as pool:
        list(pool.map(lambda run: run.measure(warn=False), networks.trained))
    loose = sum(not is_critical(run) for run in networks.trained)
    context.facts |= {"loose": loose, "networks": len(networks.trained)}
    return networks
