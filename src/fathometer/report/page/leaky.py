"""Trained Leaky ResNets as a page: one network along p, or a sweep and each of its networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.run import in_threads
from fathometer.leaky.theory import Statement
from fathometer.report.leaky_tables import Results, statements_of, usual_run
from fathometer.report.page.encoding import table
from fathometer.report.page.items import Facts, Item, Page, Section, View
from fathometer.report.page.leaky_charts import run_charts
from fathometer.report.page.leaky_data import NAMES, NUMBERS, over_the_sweep, run_data, table_row, varied
from fathometer.report.page.leaky_panels import BOTTLENECK, ENERGIES, OVERVIEW, TRAINING
from fathometer.report.page.scheme_charts import scheme_items
from fathometer.report.page.sounding import provenance_facts
from fathometer.report.words import name_of, sweep_words


def leaky_page(runs: Results, title: str | None = None) -> Page:
    """The report of one network, or of a sweep; its title says what was trained, if none is given."""
    every = (runs,) if isinstance(runs, LeakyRun) else runs.runs
    rows = pd.DataFrame(in_threads(table_row, every))
    statements = in_threads(lambda run: statements_of(run, every), every)
    first = every.index(usual_run(runs)) if any(run.diverged is None for run in every) else 0
    view = View("runs", _view_data(every, rows, statements, first), run_charts())
    sections = [Section("", (view,))]
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
        "axes": [name for name in names if name in NUMBERS],
        "table": table(rows),
        "panels": {
            "energies": [asdict(panel) for panel in ENERGIES],
            "bottleneck": [asdict(panel) for panel in BOTTLENECK],
            "training": [asdict(panel) for panel in TRAINING],
            "overview": [asdict(panel) for panel in OVERVIEW],
        },
        "statements": over_the_sweep(statements, texts) if len(runs) > 1 else [],
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
        label = NAMES[name].split()[-1] if name in NUMBERS else NAMES[name]
        if name == "seed":
            parts.append(f"{len(values)} seeds")
        else:
            shown = ", ".join(
                f"{value:g}" if isinstance(value, float) else str(value) for value in values[:12]
            )
            parts.append(f"{label}: {shown}{' …' if len(values) > 12 else ''}")
    return "; ".join(parts) or size
