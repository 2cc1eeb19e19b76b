"""A finding of our own: where the affinity score approaches 1, and what predicts it."""

from __future__ import annotations

import pandas as pd

from papers.intervals import pm
from papers.item import Answers, RunContext, Seconds
from papers.joined import rivals, where
from papers.joined.figures import plot_finding
from papers.joined.networks import RIDGES, joined_item, joined_layers
from papers.joined.prediction import along_path, inner, left_out, over_seeds, same_place

_MANY, _HIGH = 0.25, 0.9  # layers with many negative entries that score high nevertheless


def run(context: RunContext) -> Answers:
    """Apply all tests to the same layers."""
    layers = context.table("layers", joined_layers(context))
    errors = context.table("held-out", left_out(layers, rivals.COMPARED))
    context.table("along", _correlations(layers))
    shown = {name: over_seeds(errors, errors[name]) for name in rivals.COMPARED}
    context.figure(plot_finding(layers, rivals.along_by_depth(layers), shown, errors["none"].mean()))
    context.note(
        "The cost of identity knows σ(A), a stable rank does not. Two others are measured beside them: the "
        "ridge rank Tr A(AᵀA + γI)⁻¹Aᵀ, the cost of identity with A in place of σ(A), which says what the "
        "ridge does without the sight of signs; and ‖A₋‖/‖A‖ itself, what ReLU cuts off."
    )
    context.note(_words_of_mixing(layers))
    context.note(_words_of_ridges(context.table("ridges", ridges(layers))))
    return {
        "where": where.answer_where(layers),
        "limits": where.answer_limits(layers),
        "exactly": where.answer_exactly(layers),
        "theory": where.answer_theory(layers),
        "along": rivals.answer_along(layers),
        "held_out": rivals.answer_held_out(layers),
        "across": rivals.answer_across(layers),
        "beyond": rivals.answer_beyond(layers),
    }


def ridges(layers: pd.DataFrame) -> pd.DataFrame:
    """Compute by γ₀ the rank correlation of the cost of identity with the gap, and its held-out error."""
    names = {1e-3: rivals.COST} | {gamma: f"{rivals.COST}_{gamma:g}" for gamma in RIDGES}
    chosen = list(names.values())
    found = {
        "inner": along_path(inner(layers), chosen)[chosen].mean(),
        "error": left_out(layers, chosen)[chosen].mean(),
        "seeds": same_place(layers, chosen)[chosen].mean(),
    }
    table = pd.DataFrame(found).loc[chosen]
    table.insert(0, "gamma", list(names))
    return table.sort_values("gamma", ascending=False).reset_index(drop=True)


def _words_of_ridges(table: pd.DataFrame) -> str:
    parts = [
        f"{row.inner:.2f}, {row.error:.3f}, {row.seeds:.2f} (γ₀ = {row.gamma:g})"
        for row in table.itertuples()
    ]
    return (
        "The ridge of the cost of identity is γ₀ = 0.001 in all tests. Its rank correlation along inner "
        "layers, its held-out error and its rank correlation over seeds with other ones: "
        f"{', '.join(parts)}."
    )


def _words_of_mixing(layers: pd.DataFrame) -> str:
    """Describe layers that are affine in spite of their signs."""
    off = layers[(layers["negative"] > _MANY) & (layers["affinity"] > _HIGH)]
    words = (
        "A non-negative representation is enough for a score of 1, but not needed: a neuron that is always "
        "negative becomes a constant, and the affine map may mix neurons."
    )
    if off.empty:
        return words
    alone = (1 - off["gap_alone"]).to_list()
    return (
        f"{words} {len(off)} layers with ‖A₋‖/‖A‖ > {_MANY} score above {_HIGH}, "
        f"{pm(off['affinity'])}; with a map of each neuron alone they would score {pm(alone)}. "
        f"They are at p = {off['p'].min():.2f} to {off['p'].max():.2f}, {off['inside'].sum()} of them "
        "inside the bottleneck."
    )


def _correlations(layers: pd.DataFrame) -> pd.DataFrame:
    """Correlate all measures along every path, over all layers and inner ones."""
    names = [*rivals.COMPARED, "mixed", "mixed_neurons", "speed", "gap_alone"]
    return pd.concat(
        [
            along_path(layers, names).assign(layers="all"),
            along_path(inner(layers), names).assign(layers="inner"),
        ]
    )


FINDING = joined_item(
    name="joined-finding",
    title="Does the affinity score approach 1 exactly where A becomes non-negative, and what foretells it?",
    claims={**where.CLAIMS, **rivals.CLAIMS},
    run=run,
    seconds=Seconds(3, 10, 60),
)
