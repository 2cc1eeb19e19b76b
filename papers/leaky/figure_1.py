"""Figure 1: the Hamiltonian and the cost of identity against L̃, the spectra, the energies along the path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.report import depth_table, plot_dimensions, plot_energies, plot_spectra
from papers.intervals import bounded_interval
from papers.item import Claim, NotDecided, Numbers, RunContext, Simulation
from papers.leaky.networks import NOTES, RANK, depth_item, depth_networks, usual_depth
from papers.ranks import spearman

Side = Literal["below", "above"]

FROM = 3.0  # L̃ from which on a bottleneck stands, in our reading
NEAR, FALLING = 0.3, -0.9  # how near k* at the largest L̃; rank correlation of the distance with L̃
APART, FIRST = 3.0, 10  # s_k/s_{k+1} that stands apart, and the largest of the first so many
WIDER = 1.0  # dimensions
MUCH_LESS = 0.1  # of a spread
SLOPES, ALIKE = (0.8, 1.25), 0.95  # of logarithms, what counts as proportional
LARGE = 5.0  # times the middle third


def run_1a(context: RunContext) -> pd.DataFrame:
    """Tabulate every network by L̃ and seed."""
    sweep = depth_networks(context)
    context.figure(plot_dimensions(sweep))
    return context.table("depths", depth_table(sweep))


def approach_numbers(values: Mapping[float, npt.ArrayLike], side: Side) -> dict[str, Any]:
    """Measure at each L̃ the mean with its interval, and how the distance of the median to k* falls."""
    found = [bounded_interval(each) for each in values.values()]
    sign = 1 if side == "above" else -1
    distances = [sign * (float(np.median(np.asarray(each))) - RANK) for each in values.values()]
    return {
        "depths": list(values),
        "means": [each.mean for each in found],
        "spreads": [float(np.std(np.asarray(each), ddof=1)) for each in values.values()],
        "bounds": [each.low if side == "above" else each.high for each in found],
        "trend": spearman(list(values), distances),
        "last": distances[-1],
        "seeds": min(each.number for each in found),
    }


def approach(words: str, column: str, side: Side, start: float = 0.0) -> Claim:
    """Claim that a column approaches k* = 3 from one side."""

    def measure(table: pd.DataFrame) -> Numbers:
        rows = table[table["effective_depth"] >= start]
        groups = {float(depth): of[column].to_numpy() for depth, of in rows.groupby("effective_depth")}  # type: ignore[arg-type]
        if min(map(len, groups.values())) < 2 or len(groups) < 3:
            raise NotDecided("it takes two seeds or more at three effective depths or more")
        return approach_numbers(groups, side)

    def holds(n: Any) -> bool:
        inside = [bound > RANK if side == "above" else bound < RANK for bound in n["bounds"]]
        return all(inside) and n["trend"] <= FALLING and n["last"] <= NEAR

    def draw(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
        """Draw seeds around a course that falls evenly, or that stays at 3."""
        depths, spreads = numbers["depths"], numbers["spreads"]
        ends = (100.0, 0.1) if side == "above" else (2.0, 0.1)
        even = np.geomspace(*ends, len(depths)) if side == "above" else np.linspace(*ends, len(depths))
        sign = 1 if side == "above" else -1
        middle = RANK + sign * even * present
        values = {
            depth: generator.normal(centre, spread, int(numbers["seeds"]))
            for depth, centre, spread in zip(depths, middle, spreads, strict=True)
        }
        return approach_numbers(values, side)

    limit = f"L̃ ≥ {start:g}" if start else "L̃"
    shown = "100 to 0.1 in equal ratios" if side == "above" else "2 to 0.1 in equal steps"
    return Claim(
        words=words,
        test=f"At every {limit} the 95 % interval of the mean over seeds is {side} {RANK}; the distance of "
        f"the median to {RANK} has a rank correlation with L̃ of {FALLING} or less, and is at most {NEAR} at "
        "the largest L̃.",
        measure=measure,
        holds=holds,
        says=f"{{means:.3g}} at L̃ = {{depths:g}}; interval ends nearer {RANK}: {{bounds:.3g}}; rank "
        "correlation "
        "of the distance with L̃ {trend:.2f}, {last:.2g} at the largest",
        kind="ours" if start else "paper",
        simulation=Simulation(f"the distance falls from {shown}, with the measured spreads", draw),
    )


_STAGGERED = "The Hamiltonian −2H/L̃ approaches the rank k* = 3 from below"
_COST = "The minimal COI approaches it from above"
FIGURE_1A = depth_item(
    name="leaky-figure-1a",
    title="Figure 1a: Hamiltonian and cost of identity against the effective depth",
    run=run_1a,
    claims={
        "hamiltonian": approach(
            f"{_STAGGERED} (median of H(A_(l−1), B_l) over the layers).", "hamiltonian", "below"
        ),
        "stable": approach("So do the stable Hamiltonians H_γ (γ₀ = 0.001).", "hamiltonian_stable", "below"),
        "cost": approach(f"{_COST} (COI_γ over p, without the bias).", "cost_of_identity", "above"),
        "hamiltonian_3": approach(f"{_STAGGERED}, from L̃ = 3 on.", "hamiltonian", "below", FROM),
        "stable_3": approach("So do the stable ones, from L̃ = 3 on.", "hamiltonian_stable", "below", FROM),
        "cost_3": approach(f"{_COST}, from L̃ = 3 on.", "cost_of_identity", "above", FROM),
    },
    seconds={"smoke": 3, "small": 55, "paper": 140},
    notes=(
        *NOTES,
        "The paper's text gives one value to compare with, k* = 3; those of its figure are not in it.",
    ),
    changes=(
        "The restriction to L̃ ≥ 3 came after numbers had been seen. It is ours; the paper's claim is about "
        "all L̃.",
        "A fall of the distance from each L̃ to the next was asked for at first, which had little power at "
        "small L̃; a rank correlation took its place.",
    ),
)


def spectrum_row(run: LeakyRun) -> dict[str, Any]:
    """Measure what Figure 1b shows, at the narrowest layer, where ‖W‖*²/‖W‖² is least."""
    measures = run.measure(warn=False)
    spectra = measures.weight_spectra
    assert spectra is not None
    layer = int(measures.summary["rank_layer"])
    weights, representation = ratios(spectra[layer - 1]), ratios(measures.spectra[layer - 1])
    dimensions = measures.layers["weight_stable_rank"]
    return {
        "seed": run.design.seed,
        "depth": run.design.effective_depth,
        "layer": layer,
        "rank": int(measures.summary["rank"]),
        "weights_gap": weights[RANK - 1],
        "weights_largest": int(weights[:FIRST].argmax()) + 1,
        "gap": representation[RANK - 1],
        "largest": int(representation[:FIRST].argmax()) + 1,
        "share": float(((spectra > run.design.effective_depth / 2).sum(1) == RANK).mean()),
        "first": dimensions.iloc[0],
        "least": dimensions.min(),
        "last": dimensions.iloc[-1],
    }


def ratios(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute s_k / s_{k+1} of singular values.

    Example:
        >>> ratios(np.array([8.0, 4.0, 1.0])).tolist()
        [2.0, 4.0]
    """
    return values[:-1] / np.maximum(values[1:], np.finfo(float).tiny)


def run_1b(context: RunContext) -> pd.DataFrame:
    """Measure the networks with L̃ nearest 7, every seed."""
    sweep = depth_networks(context)
    context.figure(plot_spectra(sweep))
    return context.table("spectra", pd.DataFrame([spectrum_row(run) for run in usual_depth(sweep)]))


def columns(*names: str) -> Callable[[pd.DataFrame], Numbers]:
    """Record columns of a table with a row for each seed."""
    return lambda table: {name: table[name].astype(float).to_list() for name in names}


FIGURE_1B = depth_item(
    name="leaky-figure-1b",
    title="Figure 1b: bottleneck structure in the spectra, L̃ = 7",
    run=run_1b,
    claims={
        "weights": Claim(
            words=f"The spectra reveal a clear separation between k* = {RANK} large singular values of W_p "
            "and the rest.",
            test=f"In every seed: where ‖W‖*²/‖W‖² is least, exactly {RANK} singular values exceed L̃/2, "
            f"s₃/s₄ ≥ {APART:g}, and no other of the first ten ratios s_k/s_(k+1) is as large.",
            measure=columns("depth", "rank", "weights_gap", "weights_largest"),
            holds=lambda n: (
                set(n["rank"]) | set(n["weights_largest"]) == {RANK} and min(n["weights_gap"]) >= APART
            ),
            says="rank {rank:.0f} by seed at L̃ = {depth:g}; s₃/s₄ of W is {weights_gap:.3g}",
        ),
        "representations": Claim(
            words="The same of the representations A_p.",
            test=f"In every seed, at the start of that layer: s₃/s₄ of A ≥ {APART:g}, the largest of the "
            "first ten ratios.",
            measure=columns("gap", "largest"),
            holds=lambda n: set(n["largest"]) == {RANK} and min(n["gap"]) >= APART,
            says="s₃/s₄ of A is {gap:.3g} by seed",
        ),
        "most": Claim(
            words="Almost all layers are of this dimension, consistently.",
            test=f"In every seed more than half of the layers have exactly {RANK} singular values of W above "
            "L̃/2.",
            measure=columns("share"),
            holds=lambda n: min(n["share"]) > 0.5,
            says="{share:.0%} of the layers, by seed",
        ),
        "ends": Claim(
            words="Towards the beginning and the end of the network the weights are higher dimensional.",
            test="In every seed ‖W‖*²/‖W‖² of the first and of the last layer is above its least by "
            f"{WIDER:g} or more.",
            measure=columns("first", "least", "last"),
            holds=lambda n: all(
                min(first, last) >= least + WIDER
                for first, least, last in zip(n["first"], n["least"], n["last"], strict=True)
            ),
            says="‖W‖*²/‖W‖² by seed: first layer {first:.3g}; narrowest {least:.3g}; last {last:.3g}",
        ),
    },
    seconds={"smoke": 1, "small": 5, "paper": 15},
    notes=NOTES,
)


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
    }
    for name, values in (("kinetic", kinetic), ("extra", extra)):
        usual = values[middle].median()
        row |= {f"{name}_first": values.iloc[0] / usual, f"{name}_last": values.iloc[-1] / usual}
    return row


def run_1c(context: RunContext) -> pd.DataFrame:
    """Measure the networks with L̃ nearest 7, every seed."""
    sweep = depth_networks(context)
    context.figure(plot_energies(sweep))
    return context.table("energies", pd.DataFrame([energy_row(run) for run in usual_depth(sweep)]))


_ENDS = ("kinetic_first", "kinetic_last", "extra_first", "extra_last")
FIGURE_1C = depth_item(
    name="leaky-figure-1c",
    title="Figure 1c: Hamiltonian dynamics along the path, L̃ = 7",
    run=run_1c,
    claims={
        "varies": Claim(
            words="The (stable) Hamiltonians are not exactly constant, but vary much less than their "
            "components, the kinetic and potential energies.",
            test="In every seed the standard deviations over the layers of −2H/L̃ and of −2H_γ/L̃ are a tenth "
            "at most of the smaller one of ‖∂A‖²/L̃² and COI_γ.",
            measure=columns("spread", "spread_stable"),
            holds=lambda n: max(*n["spread"], *n["spread_stable"]) <= MUCH_LESS,
            says="std over the smaller of both, by seed: −2H/L̃ {spread:.2g}; −2H_γ/L̃ {spread_stable:.2g}",
        ),
        "proportional": Claim(
            words="The kinetic energy is proportional to the extra COI.",
            test="In every seed log ‖∂A‖²/L̃² and log(COI_γ + 2H/L̃) over the layers have a correlation of "
            f"{ALIKE} or more, and a slope from {SLOPES[0]} to {SLOPES[1]}. H is the median over the layers; "
            "layers where a logarithm does not exist are left out.",
            measure=columns("alike", "slope"),
            holds=lambda n: (
                min(n["alike"]) >= ALIKE and SLOPES[0] <= min(n["slope"]) <= max(n["slope"]) <= SLOPES[1]
            ),
            says="by seed: correlation {alike:.3f}; slope {slope:.3f}",
        ),
        "ends": Claim(
            words="Both are large towards the beginning and end of the network.",
            test="In every seed each of the two is, in the first layer and in the last, five times its "
            "median over the middle third of p or more.",
            measure=columns(*_ENDS),
            holds=lambda n: min(min(n[name]) for name in _ENDS) >= LARGE,
            says="in medians of the middle third, by seed: kinetic energy in the first layer "
            "{kinetic_first:.3g}, in the last {kinetic_last:.3g}; extra COI {extra_first:.3g} and "
            "{extra_last:.3g}",
        ),
    },
    seconds={"smoke": 2, "small": 5, "paper": 15},
    notes=(*NOTES, "That H is conserved along the flow is verified in the item on sections 1.3 and 1.5."),
)
