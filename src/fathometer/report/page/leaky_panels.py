"""Which charts the view `runs` draws: columns of tables, with the names that stand in the legend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fathometer.report.page.leaky_charts import Axis


@dataclass(frozen=True)
class Panel:
    """A chart of some columns.

    Attributes:
        part: its name on the page.
        axis: of the values.
        y: what they are.
        series: column and name of each line.
        mark: a level to compare with: the rank k* of the task, or the limit of `crit`.
        table: `points`, `layers` or `history` of a network; that of all networks, if left out.
        x: the column to draw against; what the networks differ in, if left out.
    """

    part: str
    axis: Axis
    y: str
    series: Mapping[str, str]
    mark: Literal["rank", "critical"] | None = None
    table: Literal["points", "layers", "history"] | None = None
    x: Literal["p", "epoch"] | None = None


ENERGIES = (
    Panel(
        "energies",
        "symlog",
        "energies, in dimensions",
        {
            "potential": "potential (COI)",
            "kinetic": "kinetic",
            "hamiltonian_stable": "difference, stable −2H_γ/L̃",
        },
        "rank",
        "layers",
        "p",
    ),
    Panel(
        "hamiltonians",
        "linear",
        "−2H/L̃, in dimensions",
        {
            "hamiltonian": "staggered",
            "hamiltonian_averaged": "averaged over both ends",
            "hamiltonian_stable": "stable (H_γ)",
        },
        "rank",
        "layers",
        "p",
    ),
)
BOTTLENECK = (
    Panel(
        "dimensions",
        "log",
        "dimensions",
        {"cost_of_identity": "cost of identity", "stable_rank": "stable rank of A_p"},
        "rank",
        "points",
        "p",
    ),
    Panel(
        "affinity",
        "unit",
        "score, share",
        {"affinity": "affinity score of σ", "negative": "‖A₋‖/‖A‖"},
        None,
        "points",
        "p",
    ),
)
TRAINING = (
    Panel(
        "losses",
        "log",
        "loss",
        {"error": "mean squared error", "decay": "weight decay"},
        None,
        "history",
        "epoch",
    ),
    Panel(
        "crit",
        "log",
        "crit",
        {"crit": "‖W − L̃Bσᵀ‖/‖W‖, median over layers"},
        "critical",
        "history",
        "epoch",
    ),
)
OVERVIEW = (
    Panel(
        "against-dimensions",
        "symlog",
        "dimensions",
        {
            "cost_of_identity": "least COI",
            "stable_rank": "least stable rank",
            "hamiltonian": "−2H/L̃",
            "hamiltonian_stable": "stable −2H_γ/L̃",
            "rank": "bottleneck rank",
        },
        "rank",
    ),
    Panel("against-errors", "log", "mean squared error", {"train_error": "train", "test_error": "test"}),
    Panel(
        "against-affinity",
        "unit",
        "in the bottleneck",
        {"affinity": "affinity score of σ", "negative": "least ‖A₋‖/‖A‖"},
    ),
    Panel(
        "against-lengths",
        "linear",
        "path length",
        {"length_per_root_n": "Euclidean, per √N", "length_kernel": "in the K norm"},
    ),
    Panel(
        "against-momenta",
        "linear",
        "momenta, median over p",
        {"momentum": "‖B_p‖", "momentum_sigma": "‖B_p σ(A_p)ᵀ‖"},
    ),
)
"""Of the networks of a sweep; bars reach from the column's `_min` to its `_max`, where there are such."""
