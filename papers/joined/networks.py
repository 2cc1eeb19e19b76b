"""The Leaky ResNets of the items that join both papers, and what is measured in their layers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import torch
from torch import Tensor

from fathometer.gauges import cost_of_identity
from fathometer.leaky import BOTTLENECK, CRITICAL, LeakyRun, Phase, Recipe, grid, preset
from fathometer.threads import pool_of_single_threads
from papers.item import Item, RunContext
from papers.leaky.networks import Plan, depth_plan, is_critical, train_networks

joined_item = partial(
    Item,
    settings={
        "small": "our question; networks of the preset quick (w = 50, N = 300, L = 12, λ₀ = 0.1), ranks 2 "
        "and 4, L̃ = 3, 5, 8, 11, five seeds",
        "paper": "our question; networks of the size of the paper on Leaky ResNets (w = 100, N = 1000, L = "
        "20, λ₀ = 0.03), ranks 2, 3 and 5, L̃ = 3 to 19, five seeds",
    },
    device="cuda",
)
"""An item about these networks."""
NOTES = (
    "{networks:.0f} networks: k = {ranks:.0f}; L̃ = {depths:g}; seeds, of teacher and weights, {seeds:.0f}. "
    "{loose:.0f} of them "
    f"are not at a critical point (median ‖W − L̃Bσᵀ‖/‖W‖ above {CRITICAL:g}); none is left out.",
)
RIDGES = (1e-1, 1e-2, 1e-4)
"""γ₀ other than the usual 10⁻³, to see what depends on it."""


def joined_layers(context: RunContext) -> pd.DataFrame:
    """Measure the layers of networks of several ranks, depths and seeds, trained once for all items."""
    runs = train_networks(context, "joined", _plan(context)).runs
    with pool_of_single_threads() as pool:
        layers = pd.concat(pool.map(layers_of, runs), ignore_index=True)
    context.facts |= {
        "networks": len(runs),
        "ranks": sorted(layers["rank"].unique().tolist()),
        "depths": sorted(layers["effective_depth"].unique().tolist()),
        "loose": sum(not is_critical(run) for run in runs),
    }
    return layers


def _plan(context: RunContext) -> Plan:
    quick = preset("quick")
    if context.scale == "paper":
        depths = [3.0, 5.0, 7.0, 10.0, 14.0, 19.0]
        plan = depth_plan("paper")
        return Plan(grid(plan.designs[0], rank=[2, 3, 5], effective_depth=depths, seeds=5), plan.recipe)
    if context.scale == "small":
        depths = [3.0, 5.0, 8.0, 11.0]
        return Plan(grid(quick.design, rank=[2, 4], effective_depth=depths, seeds=5), quick.recipe)
    tiny = replace(quick.design, width=31, samples=60, test_samples=60)
    few = grid(tiny, rank=[2], effective_depth=[4.0, 11.0], seeds=3)
    return Plan(few, Recipe((Phase("adam", 150, 3e-3),)))


def layers_of(run: LeakyRun) -> pd.DataFrame:
    """Make a row for each representation of a network on which ReLU acts, A_0 … A_{L−1}.

    `gap` is 1 − affinity, `gap_alone` as in `gap_of_neurons`; `negative` is ‖A₋‖/‖A‖. Dimensions:
    `cost_of_identity` (`cost_of_identity_0.01`: with that γ₀), `stable_rank` (‖A‖*²/‖A‖²), `stable_rank_op`
    (‖A‖²/‖A‖²_op) and `ridge_rank` (Tr A(AᵀA + γI)⁻¹Aᵀ, the cost of identity of a network without ReLU).
    `extra` is the cost of identity above its least, `inside` the bottleneck; `speed` is ‖∂A‖/‖A‖.
    """
    measures, path = run.measure(warn=False), run.path
    a = path.representations[:-1]
    points = measures.points.iloc[:-1]
    squares = torch.from_numpy(measures.spectra[:-1]).square()
    top = squares.amax(1)
    extra = points["cost_of_identity"] - points["cost_of_identity"].min()
    table = points[["point", "p", "affinity", "negative", "cost_of_identity", "stable_rank"]].assign(
        gap=1 - points["affinity"],
        gap_alone=gap_of_neurons(a).cpu().numpy(),
        stable_rank_op=(squares.sum(1) / top).numpy(),
        ridge_rank=(squares / (squares + measures.gamma0 * top[:, None])).sum(1).numpy(),
        extra=extra,
        inside=extra <= BOTTLENECK,
        speed=(path.velocities.norm(dim=(1, 2)) / a.norm(dim=(1, 2))).cpu().numpy(),
        **{
            f"cost_of_identity_{gamma:g}": cost_of_identity(a.mT, a.relu().mT, gamma=gamma).cpu().numpy()
            for gamma in RIDGES
        },
    )
    design = {"rank": run.task.rank, "effective_depth": run.design.effective_depth, "seed": run.design.seed}
    for place, (name, value) in enumerate(design.items()):
        table.insert(place, name, value)
    return table


def gap_of_neurons(a: Tensor) -> Tensor:
    """Compute 1 − affinity of ReLU with an affine map of each neuron alone, `[layers, width, samples]`.

    It is √(Σᵢ v(yᵢ)(1 − corr(xᵢ, yᵢ)) / Σᵢ v(yᵢ)) with variances v, by the closed form of one dimension.

    Example:
        >>> x = torch.linspace(-2, 2, 1000, dtype=torch.float64)
        >>> round(1 - gap_of_neurons(x[None, None]).item(), 3)  # as in Figure 2
        0.675
    """
    x, y = (side - side.mean(-1, keepdim=True) for side in (a, a.relu()))
    of_x, of_y = x.square().sum(-1), y.square().sum(-1)
    tiny = torch.finfo(a.dtype).tiny
    correlation = (x * y).sum(-1) / (of_x * of_y).clamp_min(tiny).sqrt()
    return ((of_y * (1 - correlation)).sum(-1) / of_y.sum(-1).clamp_min(tiny)).clamp_min(0).sqrt()
