"""Trained Leaky ResNets as a page: one network along p, or a sweep and each of its networks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.measures import CLEAR_GAP, CRITICAL
from fathometer.leaky.run import in_threads
from fathometer.leaky.schemes import Projection, project_paths
from fathometer.leaky.theory import Statement
from fathometer.report.leaky_tables import (
    DECADES,
    RUN_PANELS,
    SWEEP_PANELS,
    RunOrSweep,
    bottleneck_intervals,
    default_run,
    leaky_path_table,
    network_row,
    sample_paths,
    statements_of,
)
from fathometer.report.page.document import columns_of, json_value, packed
from fathometer.report.page.items import Facts, Page, Section, View
from fathometer.report.page.leaky_charts import run_charts, scheme_items
from fathometer.report.page.sounding import PROVENANCE, provenance_facts

MAX_SPECTRA = 12
"""So many singular values are shown."""
MAX_SAMPLES = 20
"""So many samples are followed through the plane."""

_STATEMENT = ["name", "claim", "how", "note", "holds", "left", "right", "margin", "error", "paper"]

NAMES = {
    "effective_depth": "effective depth L̃",
    "rank_of_task": "rank of the task k*",
    "layers": "layers L",
    "width": "width",
    "decay": "decay λ₀",
    "samples": "samples",
    "irregularity": "irregularity a",
    "scheme": "steps ρ",
    "steps": "given steps",
    "sigma": "σ",
    "maps": "maps",
    "teacher": "teacher",
    "seed": "seed",
}
"""What networks of a sweep can differ in."""
NUMBERS = ("effective_depth", "rank_of_task", "layers", "width", "decay", "samples", "irregularity")
"""Those that can be an axis."""


def leaky_page(runs: RunOrSweep, title: str | None = None) -> Page:
    """Return the report of one network, or of a sweep; without a title, it says what was trained."""
    every = (runs,) if isinstance(runs, LeakyRun) else runs.runs
    rows = pd.DataFrame(in_threads(_table_row, every))
    statements = in_threads(lambda run: statements_of(run, every), every)
    first = every.index(default_run(runs)) if any(run.diverged is None for run in every) else 0
    view = View("runs", _view_data(every, rows, statements, first), run_charts())
    sections = [Section("", (view,))]
    if isinstance(runs, LeakySweep):
        schemes = scheme_items(runs)
        if schemes:
            sections.append(Section("Step schemes", tuple(schemes)))
        origin = provenance_facts(runs.provenance)
    else:
        origin = Facts("The task", {name: str(value) for name, value in runs.task.description.items()})
    sections.append(Section(PROVENANCE, (origin,)))
    name = f"Leaky ResNet, {name_of(every[0])}" if len(every) == 1 else f"{len(every)} Leaky ResNets"
    return Page(title or name, _lead(every, rows), tuple(sections))


def _view_data(
    runs: Sequence[LeakyRun], rows: pd.DataFrame, statements: Sequence[Sequence[Statement]], first: int
) -> dict[str, Any]:
    varied = _varied(rows)
    return {
        "runs": [run_data(run, found) for run, found in zip(runs, statements, strict=True)],
        "first": first,
        "critical": CRITICAL,
        "names": NAMES,
        "varied": varied,
        "axes": [name for name in varied if name in NUMBERS],
        "table": columns_of(rows),
        "panels": {
            "run": [asdict(panel) for panel in RUN_PANELS],
            "sweep": [asdict(panel) for panel in SWEEP_PANELS],
        },
        "statements": _over_the_sweep(statements) if len(runs) > 1 else [],
    }


def run_data(run: LeakyRun, statements: Sequence[Statement]) -> dict[str, Any]:
    """Return one network: its measures along p, its training, its paths in a plane, the statements."""
    measures, along = run.measure(warn=False), leaky_path_table(run)
    count = min(MAX_SAMPLES, run.path.representations.shape[-1])
    return {
        "name": name_of(run),
        "facts": _facts(run),
        "warnings": " ".join(_warnings(run)),
        "rank": run.task.rank,
        "depth": run.design.effective_depth or None,
        "bands": [{"begin": begin, "end": end} for begin, end in bottleneck_intervals(along)],
        "p": {str(name): packed(values) for name, values in along.items()},
        "epoch": {str(name): packed(values) for name, values in run.history.items()},
        "spectra": _spectra(measures.spectra),
        "weight_spectra": None if measures.weight_spectra is None else _spectra(measures.weight_spectra),
        "path": _plane(project_paths([run])),
        "samples": _plane(sample_paths(run.path, range(count))),
        "theory": [
            {name: _json_with_infinity(getattr(each, name)) for name in _STATEMENT} for each in statements
        ],
    }


def name_of(run: LeakyRun) -> str:
    """Name a network by L̃, k* where it is known, and seed."""
    rank = "" if run.task.rank is None else f", k* = {run.task.rank}"
    return f"L̃ = {run.design.effective_depth:g}{rank}, seed {run.design.seed}"


def _warnings(run: LeakyRun) -> list[str]:
    """Say what limits the meaning of the numbers of a network."""
    found, summary = [], run.measure(warn=False).summary
    if run.diverged is not None:
        found.append(f"The training diverged at epoch {run.diverged}; this is its last state.")
    if run.design.effective_depth <= 0:
        found.append("A plain ResNet (L̃ = 0) has no Hamiltonian, and no L̃/2 to count a bottleneck rank from.")
    elif summary["gap"] < CLEAR_GAP or summary["rank"] == run.design.width:
        found.append("No bottleneck stands out: there is no clear gap after the singular values above L̃/2.")
    if summary["crit"] > CRITICAL:
        found.append(
            f"The weights are not at a critical point (crit above {CRITICAL:g}): −2H/L̃ means little."
        )
    return found


def _table_row(run: LeakyRun) -> dict[str, Any]:
    """Return a network as a row: its design, its errors, whether it diverged, and everything measured."""
    design = asdict(run.design)
    teacher = design.pop("teacher")
    del design["test_samples"]
    if teacher is not None:
        others = [size for size in teacher["dimensions"] if size != run.task.rank]
        teacher = f"{teacher['kind']}, {teacher['latents']}, {others}"
    return {
        **design,
        "steps": None if design["steps"] is None else json.dumps(design["steps"]),
        "teacher": teacher or "own data",
        "diverged": run.diverged is not None,
        "train_error": run.train_error,
        "test_error": run.test_error,
        **network_row(run),
    }


def _varied(rows: pd.DataFrame) -> list[str]:
    """Return what differs between the networks, in the order of `NAMES`."""
    return [name for name in NAMES if name in rows and rows[name].astype(str).nunique() > 1]


def _lead(runs: Sequence[LeakyRun], rows: pd.DataFrame) -> str:
    design = runs[0].design
    parts = []
    for name in _varied(rows) if len(runs) > 1 else ():
        values = rows[name].dropna().unique()
        if name == "seed":
            parts.append(f"{len(values)} seeds")
            continue
        label = NAMES[name].split()[-1] if name in NUMBERS else NAMES[name]
        shown = ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in values[:12])
        parts.append(f"{label}: {shown}{' …' if len(values) > 12 else ''}")
    return "; ".join(parts) or f"{design.layers} layers, width {design.width}, {design.samples} samples"


def _facts(run: LeakyRun) -> list[list[Any]]:
    found = run.measure(warn=False).summary
    chosen = "effective_depth layers width rank_of_task decay scheme sigma maps samples seed".split()
    values = {**asdict(run.design), "rank_of_task": run.task.rank}
    pairs = {
        **{NAMES[name]: values[name] for name in chosen},
        "ridge γ₀": run.gamma0,
        "train error": run.train_error,
        "test error": run.test_error,
        "bottleneck rank": found["rank"],
        "gap": found["gap"],
        "−2H/L̃, median": found["hamiltonian"],
        "lowest COI": found["cost_of_identity"],
        "lowest stable rank": found["stable_rank"],
        "affinity in the bottleneck": found["affinity"],
        "crit": found["crit"],
        "path length per √N": found["length_per_root_n"],
        "path length in K": found["length_kernel"],
    }
    return [[name, _json_with_infinity(value)] for name, value in pairs.items()]


def _spectra(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return the first singular values, `[number][point]`, and where the axis begins."""
    kept = values[:, :MAX_SPECTRA]
    positive = kept[kept > 0]
    least = float(positive.min()) / 2 if len(positive) else 0.0
    low = max((float(values.max()) or 1.0) * 10.0**-DECADES, least)
    return {"values": [packed(line) for line in kept.T], "low": low}


def _plane(plane: Projection) -> dict[str, Any]:
    """Return paths in a plane, by axis, and the shares of the variance that the axes explain."""
    axes = {axis: [packed(path[:, k]) for path in plane.paths] for k, axis in enumerate("xy")}
    return axes | {"explained": list(plane.explained)}


def _over_the_sweep(every: Sequence[Sequence[Statement]]) -> list[dict[str, Any]]:
    """Return for each statement how often it was checked and holds, its lowest margin, its largest error."""
    table = pd.DataFrame([vars(each) for statements in every for each in statements], columns=_STATEMENT)
    groups = table.groupby("name", sort=False)
    found = pd.DataFrame(
        {
            "claim": groups["claim"].first(),
            "networks": groups.size(),
            "holds": groups["holds"].sum(),
            "margin": groups["margin"].min(),
            "error": groups["error"].max(),
        }
    )
    rows = found.reset_index().to_dict("records")
    return [{str(key): _json_with_infinity(value) for key, value in row.items()} for row in rows]


def _json_with_infinity(value: Any) -> Any:
    """Return a value as JSON takes it; infinities are results here, and named."""
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return json_value(value)
