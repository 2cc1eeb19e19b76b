"""Trained Leaky ResNets as a page: one network along p, or a sweep and each of its networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.threads import in_threads
from fathometer.leaky.theory import Statement
from fathometer.report.leaky_tables import Results, statements_of, usual_run
from fathometer.report.leaky_words import name_of, sweep_words
from fathometer.report.page.encoding import column
from fathometer.report.page.items import Facts, Item, Page, Section, Table, View
from fathometer.report.page.leaky_charts import run_charts
from fathometer.report.page.leaky_data import NAMES, _NUMBERS, run_data, statement_table, table_row, varied
from fathometer.report.page.scheme_charts import scheme_items
from fathometer.report.page.sounding import provenance_facts

PANELS: tuple[dict[str, Any], ...] = (
    {
        "part": "energies",
        "table": "layers",
        "axis": "symlog",
        "x": "p",
        "y": "energies, in dimensions",
        "mark": "rank",
        "series": {
            "potential": "potential (COI)",
            "kinetic": "kinetic",
            "hamiltonian_stable": "stable −2H_γ/L̃, their difference",
        },
    },
    {
        "part": "hamiltonians",
        "table": "layers",
        "axis": "linear",
        "x": "p",
        "y": "−2H/L̃, in dimensions",
        "mark": "rank",
        "series": {
            "hamiltonian": "−2H/L̃, staggered",
            "hamiltonian_averaged": "averaged over both ends",
            "hamiltonian_stable": "stable −2H_γ/L̃",
        },
    },
    {
        "part": "dimensions",
        "table": "points",
        "axis": "log",
        "x": "p",
        "y": "dimensions",
        "mark": "rank",
        "series": {"cost_of_identity": "cost of identity", "stable_rank": "stable rank of A_p"},
    },
    {
        "part": "affinity",
        "table": "points",
        "axis": "linear",
        "x": "p",
        "y": "score, share",
        "mark": None,
        "series": {"affinity": "affinity score of σ", "negative": "‖A₋‖/‖A‖"},
    },
    {
        "part": "losses",
        "table": "history",
        "axis": "log",
        "x": "epoch",
        "y": "loss",
        "mark": None,
        "series": {"error": "mean squared error", "decay": "weight decay"},
    },
    {
        "part": "crit",
        "table": "history",
        "axis": "log",
        "x": "epoch",
        "y": "crit",
        "mark": "critical",
        "series": {"crit": "‖W − L̃Bσᵀ‖/‖W‖, median over layers"},
    },
)
"""Charts of one network: which columns of which table, with which names."""

OVERVIEW: tuple[dict[str, Any], ...] = (
    {
        "part": "against-dimensions",
        "axis": "symlog",
        "y": "dimensions",
        "mark": "rank",
        "series": {
            "cost_of_identity": "least COI",
            "stable_rank": "least stable rank",
            "hamiltonian": "−2H/L̃",
            "hamiltonian_stable": "stable −2H_γ/L̃",
            "rank": "bottleneck rank",
        },
    },
    {
        "part": "against-errors",
        "axis": "log",
        "y": "mean squared error",
        "mark": None,
        "series": {"train_error": "train", "test_error": "test"},
    },
    {
        "part": "against-affinity",
        "axis": "linear",
        "y": "in the bottleneck",
        "mark": None,
        "series": {"affinity": "affinity score of σ", "negative": "least ‖A₋‖/‖A‖"},
    },
    {
        "part": "against-lengths",
        "axis": "linear",
        "y": "path length",
        "mark": None,
        "series": {"length_per_root_n": "Euclidean, per √N", "length_kernel": "in the K norm"},
    },
    {
        "part": "against-momenta",
        "axis": "linear",
        "y": "momenta, median over p",
        "mark": None,
        "series": {"momentum": "‖B_p‖", "momentum_sigma": "‖B_p σ(A_p)ᵀ‖"},
    },
)
"""Charts of a sweep: columns of the table of networks; bars reach from `_min` to `_max` where these are."""


def leaky_page(runs: Results, title: str | None = None, *, theory: bool = True) -> Page:
    """The report of one network, or of a sweep.

    Args:
        runs: what `sweep` or `load_sweep` gave, or one of its runs.
        title: of the page; what was trained, if left out.
        theory: whether to check the paper's statements on every network, which takes longest.
    """
    every = (runs,) if isinstance(runs, LeakyRun) else runs.runs
    rows = pd.DataFrame(in_threads(table_row, every))
    statements = in_threads(lambda run: statements_of(run, every), every) if theory else [[] for _ in every]
    view = View("runs", _view_data(every, rows, statements, every.index(usual_run(runs))), run_charts())
    sections = [Section("", (view,))]
    if len(every) > 1 and theory:
        caption = "Over all networks: in how many each statement holds, and with which slack at least."
        frame = statement_table(statements)
        sections.append(Section("The paper's statements over the sweep", (Table(frame, caption),)))
    if isinstance(runs, LeakySweep):
        schemes = scheme_items(runs)
        if schemes:
            sections.append(Section("Step schemes", tuple(schemes)))
    sections.append(Section("Where it came from", _origin(runs)))
    return Page(title or _title(every), _lead(every, rows), tuple(sections))


def _view_data(
    runs: Sequence[LeakyRun], rows: pd.DataFrame, statements: Sequence[Sequence[Statement]], first: int
) -> dict[str, Any]:
    texts: list[list[str]] = []
    names = varied(rows)
    return {
        "runs": [run_data(run, found, texts) for run, found in zip(runs, statements, strict=True)],
        "first": first,
        "words": sweep_words(rows, statements) if len(runs) > 1 else "",
        "names": NAMES,
        "varied": names,
        "axes": [name for name in names if name in _NUMBERS],
        "table": {str(name): column(rows[name]) for name in rows},
        "panels": PANELS,
        "overview": OVERVIEW,
        "texts": texts,
    }


def _origin(runs: Results) -> tuple[Item, ...]:
    if isinstance(runs, LeakySweep):
        return (provenance_facts(runs.provenance),)
    told = {name: str(value) for name, value in runs.task.description.items()}
    return (Facts("The task", told),)


def _title(runs: Sequence[LeakyRun]) -> str:
    return f"Leaky ResNet, {name_of(runs[0])}" if len(runs) == 1 else f"{len(runs)} Leaky ResNets"


def _lead(runs: Sequence[LeakyRun], rows: pd.DataFrame) -> str:
    design = runs[0].design
    size = f"{design.layers} layers, width {design.width}, {design.samples} samples"
    if len(runs) == 1:
        return size
    parts = []
    for name in varied(rows):
        values = rows[name].dropna().unique()
        label = NAMES[name].split()[-1] if name in _NUMBERS else NAMES[name]
        if name == "seed":
            parts.append(f"{len(values)} seeds")
        else:
            shown = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values[:12])
            parts.append(f"{label}: {shown}{' …' if len(values) > 12 else ''}")
    return "; ".join(parts) or size
