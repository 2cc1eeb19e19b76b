"""A finding of our own: the affinity score where the theory says that A becomes non-negative, and what foretells it."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fathometer.reproduce.claim import Answer
from fathometer.reproduce.item import Item
from fathometer.reproduce.joined import rivals, where
from fathometer.reproduce.joined.figures import plot_finding
from fathometer.reproduce.joined.networks import SMALL, joined_layers
from fathometer.reproduce.joined.prediction import DIMENSIONS, along_path, inner, left_out, over_seeds
from fathometer.reproduce.scales import Seconds
from fathometer.reproduce.workshop import Workshop


def run(workshop: Workshop) -> Mapping[str, Answer]:
    """All tests on the same layers."""
    layers = workshop.table("layers", joined_layers(workshop))
    errors = workshop.table("held-out", left_out(layers, DIMENSIONS))
    workshop.table("along", _correlations(layers))
    shown = {rivals.NAMES[name]: over_seeds(errors, errors[name]) for name in DIMENSIONS}
    workshop.figure("figure", plot_finding(layers, rivals.along_by_depth(layers), shown, errors["none"].mean()))
    workshop.note(
        "ReLU is affine on a sample where every neuron keeps its sign, so that a non-negative representation is "
        "enough, but not needed. The cost of identity knows σ(A), a stable rank does not: the ridge rank, "
        "Tr A(AᵀA + γI)⁻¹Aᵀ, which is the cost of identity with A in place of σ(A), shows how much of an advantage "
        "comes from that."
    )
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


def _correlations(layers: pd.DataFrame) -> pd.DataFrame:
    """Along every path, all layers and inner ones, of all that was measured."""
    names = [*DIMENSIONS, "negative", "mixed", "mixed_neurons", "speed"]
    return pd.concat(
        [along_path(layers, names).assign(layers="all"), along_path(inner(layers), names).assign(layers="inner")]
    )


ITEM = Item(
    name="joined-finding",
    title="Does the affinity score approach 1 exactly where A becomes non-negative, and what foretells it?",
    claims={**where.CLAIMS, **rivals.CLAIMS},
    run=run,
    seconds=Seconds(3, 10, 30),
    small=SMALL,
    device="cuda",
)
ITEMS = (ITEM,)
"""Both papers joined."""
