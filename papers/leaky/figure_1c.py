"""Figure 1c: kinetic and potential energy along p, and the Hamiltonian, which is conserved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from fathometer.leaky import LeakyRun, hamiltonians, in_dimensions
from fathometer.report import plot_energies
from papers.intervals import pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.instances import START_DEPTH, followed, solved
from papers.leaky.networks import depth_item, depth_networks, usual_depth

MUCH_LESS = 0.1  # of a spread
SLOPES, ALIKE = (0.8, 1.25), 0.95  # of logarithms, what counts as proportional
LARGE = 5.0  # times the middle third
DRIFT, FALLS = 1e-5, 0.7  # of H along the flow; of its spread when L is doubled
LAYERS = (20, 40, 80)


def run(context: RunContext) -> Answers:
    """Measure the networks with L̃ nearest 7, every seed; the flow, and solved networks."""
    sweep = depth_networks(context)
    runs = usual_depth(sweep)
    table = context.table("energies", pd.DataFrame([energy_row(run) for run in runs]))
    context.figure(plot_energies(sweep))
    seeds = range(context.pick(smoke=1, small=3, paper=5))
    tolerance = context.pick(smoke=1e-6, small=1e-9, paper=1e-9)
    drifts = [followed(20, seed, tolerance).drift for seed in seeds]
    spreads = [[spread(layers, seed) for layers in LAYERS] for seed in seeds]
    flat = [(seed, layers, s) for seed in seeds for layers, s in zip(LAYERS, spreads[seed], strict=True)]
    context.table("conserved", pd.DataFrame(flat, columns=["seed", "layers", "std"]))
    return {**answers(table, runs[0].design.effective_depth), "constant": conserved(drifts, spreads)}


def answers(table: pd.DataFrame, depth: float) -> dict[str, Answer]:
    """Decide from an `energy_row` of each seed."""
    names = ("spread", "spread_stable", "alike", "slope")
    spread, stable, alike, slope = (table[name].to_numpy(float) for name in names)
    energies = {"kinetic": "kinetic energy", "extra": "extra COI"}
    ends = {
        f"{e}_{end}": f"{words}, {end} layer," for e, words in energies.items() for end in ("first", "last")
    }
    low, high = SLOPES
    return {
        "varies": Answer(
            bool((spread <= MUCH_LESS).all() and (stable <= MUCH_LESS).all()),
            f"L̃ = {depth:g}: std of −2H/L̃ over the smaller of both is {pm(spread)}, of −2H_γ/L̃ {pm(stable)}",
            {"spread": spread.max(), "spread_stable": stable.max()},
        ),
        "proportional": Answer(
            bool((alike >= ALIKE).all() and (low <= slope).all() and (slope <= high).all()),
            f"logarithms: correlation {pm(alike)}, slope {pm(slope)}",
            {"correlation_least": alike.min(), "slope_least": slope.min(), "slope_largest": slope.max()},
        ),
        "ends": Answer(
            bool((table[list(ends)] >= LARGE).all(axis=None)),
            "in medians of the middle third: "
            + ", ".join(f"{words} {pm(table[name])}" for name, words in ends.items()),
            {name: table[name].min() for name in ends},
        ),
    }


def energy_row(run: LeakyRun) -> dict[str, float]:
    """Compute spreads over the layers, how kinetic energy and extra COI go together, and both at the ends.

    The extra COI is COI_γ + 2H/L̃ with the median of H. Spreads are in those of the smaller component.
    """
    layers = run.measure(warn=False).layers
    kinetic, potential = layers["kinetic"], layers["potential"]
    extra = potential - layers["hamiltonian"].median()
    smaller = min(kinetic.std(), potential.std())
    middle = layers["p"].between(1 / 3, 2 / 3)
    both = (kinetic > 0) & (extra > 0)
    x, y = np.log(extra[both].to_numpy()), np.log(kinetic[both].to_numpy())
    row = {
        "seed": run.design.seed,
        "spread": layers["hamiltonian"].std() / smaller,
        "spread_stable": layers["hamiltonian_stable"].std() / smaller,
        "alike": float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 else np.nan,
        "slope": float(np.polyfit(x, y, 1)[0]) if len(x) > 2 else np.nan,
        "layers_left_out": float((~both).sum()),
    }
    for name, values in (("kinetic", kinetic), ("extra", extra)):
        usual = values[middle].median()
        row |= {f"{name}_first": values.iloc[0] / usual, f"{name}_last": values.iloc[-1] / usual}
    return row


def spread(layers: int, seed: int) -> float:
    """Compute the standard deviation over the layers of −2H/L̃, staggered, in a solved network."""
    return in_dimensions(hamiltonians(solved(layers, seed)).staggered, START_DEPTH).std().item()


def conserved(drifts: Sequence[float], spreads: Sequence[Sequence[float]]) -> Answer:
    """Check whether H is constant along the flow, and its spread in a network falls as L doubles."""
    shares = [later / earlier for row in spreads for earlier, later in pairwise(row)]
    return Answer(
        max(drifts) <= DRIFT and max(shares) <= FALLS,
        f"flow: drift {max(drifts):.0e} at most; L = {', '.join(map(str, LAYERS))}: std "
        + ", ".join(pm(column) for column in zip(*spreads, strict=True)),
        {"drift": max(drifts), "share_largest": max(shares)},
    )


FIGURE_1C = depth_item(
    name="leaky-figure-1c",
    title="Figure 1c: Hamiltonian dynamics along the path, L̃ = 7",
    claims={
        "varies": Claim(
            "The (stable) Hamiltonians are not exactly constant, but vary much less than their components, "
            "the kinetic and potential energies.",
            "In every seed the standard deviations over the layers of −2H/L̃ and of −2H_γ/L̃ are a tenth at "
            "most of the smaller one of ‖∂A‖²/L̃² and COI_γ.",
        ),
        "proportional": Claim(
            "The kinetic energy is proportional to the extra COI.",
            "In every seed log ‖∂A‖²/L̃² and log(COI_γ + 2H/L̃) over the layers have a correlation of .95 or "
            "more, and a slope from .8 to 1.25. H is the median over the layers; layers where a logarithm "
            "does not exist are left out.",
        ),
        "ends": Claim(
            "Both are large towards the beginning and end of the network.",
            "In every seed each of the two is, in the first layer and in the last, five times its median "
            "over the middle third of p or more.",
        ),
        "constant": Claim(
            "The Hamiltonian is a conserved quantity, constant in p (section 1.5).",
            "From random starts (w = 6, N = 10, L̃ = 2): along the flow H drifts by 1e-5 at most, relatively; "
            "in networks that are critical to rounding the spread of −2H/L̃ over the layers falls to .7 or "
            "less with each doubling of L = 20, 40, 80.",
        ),
    },
    run=run,
    seconds=Seconds(2, 10, 40),
)
