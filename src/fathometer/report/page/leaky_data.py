"""What the view `runs` shows of trained Leaky ResNets, as plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.leaky.measures import CRITICAL
from fathometer.leaky.schemes import project_paths
from fathometer.leaky.theory import Statement
from fathometer.report.leaky_tables import DECADES, bottleneck_stretches, network_row, sample_paths
from fathometer.report.page.encoding import packed, short
from fathometer.report.words import name_of, run_words

SPECTRA = 12
"""So many singular values are shown."""
SAMPLES = 20
"""So many samples are followed through the plane."""

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
"""Of what a design can vary."""

NUMBERS = ("effective_depth", "rank_of_task", "layers", "width", "decay", "samples", "irregularity")
"""Those that can be an axis."""


def table_row(run: LeakyRun) -> dict[str, Any]:
    """A network as a row: its design, its errors, whether it diverged, and everything measured."""
    return {
        **design_values(run),
        "diverged": run.diverged is not None,
        "train_error": run.train_error,
        "test_error": run.test_error,
        **network_row(run),
    }


def design_values(run: LeakyRun) -> dict[str, Any]:
    """What was chosen for a network, and can differ within a sweep; the rank stands for itself."""
    plain = asdict(run.design)
    teacher = plain.pop("teacher")
    del plain["test_samples"]
    if teacher is not None:
        others = [size for size in teacher["dimensions"] if size != run.task.rank]
        teacher = f"{teacher['kind']}, {teacher['latents']}, {others}"
    steps = None if plain["steps"] is None else json.dumps(plain["steps"])
    return {**plain, "steps": steps, "teacher": teacher or "own data", "rank_of_task": run.task.rank}


def varied(rows: pd.DataFrame) -> list[str]:
    """What differs between the networks, in the order of `NAMES`."""
    return [name for name in NAMES if name in rows and rows[name].astype(str).nunique() > 1]


def run_data(run: LeakyRun, statements: Sequence[Statement], texts: list[list[str]]) -> dict[str, Any]:
    """One network: its measures along p, its training, its paths in a plane, and what the paper says of it.

    Args:
        run: the network.
        statements: checked on it.
        texts: claims, how each was decided, and notes; new ones are added, and known by their place.
    """
    measures = run.measure(warn=False)
    levels = {"rank": run.task.rank, "depth": run.design.effective_depth or None, "critical": CRITICAL}
    return {
        "name": name_of(run),
        "facts": _facts(run),
        "words": run_words(run, statements),
        "levels": levels,
        "bands": [[short(begin), short(end)] for begin, end in bottleneck_stretches(measures.points)],
        "points": _columns(measures.points),
        "layers": _columns(measures.layers),
        "history": _columns(run.history),
        "spectra": _spectra(measures.spectra),
        "weight_spectra": None if measures.weight_spectra is None else _spectra(measures.weight_spectra),
        "path": _path(run),
        "samples": _samples(run),
        "theory": [_statement(statement, texts) for statement in statements],
    }


def over_the_sweep(every: Sequence[Sequence[Statement]], texts: list[list[str]]) -> list[list[Any]]:
    """Each statement: its name, its text, on how many networks it was checked, holds, and the least slack."""
    found: dict[str, list[Statement]] = {}
    for statements in every:
        for statement in statements:
            found.setdefault(statement.name, []).append(statement)
    return [
        [
            name,
            _place(same[0], texts),
            len(same),
            sum(statement.holds for statement in same),
            _number(min(statement.slack for statement in same)),
        ]
        for name, same in found.items()
    ]


def _facts(run: LeakyRun) -> list[list[Any]]:
    design, found = run.design, run.measure(warn=False).summary
    chosen = "effective_depth layers width rank_of_task decay scheme sigma maps samples seed".split()
    values = {**asdict(design), "rank_of_task": run.task.rank}
    pairs = {
        **{NAMES[name]: values[name] for name in chosen},
        "ridge γ₀": run.gamma0,
        "train error": run.train_error,
        "test error": run.test_error,
        "bottleneck rank": found["rank"],
        "gap": found["gap"],
        "−2H/L̃, median": found["hamiltonian"],
        "least COI": found["cost_of_identity"],
        "least stable rank": found["stable_rank"],
        "affinity in the bottleneck": found["affinity"],
        "crit": found["crit"],
        "path length per √N": found["length_per_root_n"],
        "path length in K": found["length_kernel"],
    }
    return [[name, value] for name, value in zip(pairs, map(_number, pairs.values()), strict=True)]


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    return {str(name): packed(values) for name, values in frame.items()}


def _spectra(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    """The first singular values, `[number][place]`, and where the axis begins."""
    kept = values[:, :SPECTRA]
    top = float(values.max()) or 1.0
    positive = kept[kept > 0]
    least = float(positive.min()) / 2 if len(positive) else 0.0
    return {"values": [packed(line) for line in kept.T], "low": short(max(top * 10.0**-DECADES, least))}


def _path(run: LeakyRun) -> dict[str, Any]:
    plane = project_paths([run])
    (path,) = plane.paths
    return {"x": packed(path[:, 0]), "y": packed(path[:, 1]), "explained": packed(plane.explained)}


def _samples(run: LeakyRun) -> dict[str, Any]:
    count = run.path.representations.shape[-1]
    plane = sample_paths(run.path, range(min(SAMPLES, count)))
    return {
        "x": [packed(line[:, 0]) for line in plane.paths],
        "y": [packed(line[:, 1]) for line in plane.paths],
        "explained": packed(plane.explained),
    }


def _statement(statement: Statement, texts: list[list[str]]) -> list[Any]:
    sides = (statement.left, statement.right, statement.slack)
    return [statement.name, _place(statement, texts), statement.holds, *map(_number, sides)]


def _place(statement: Statement, texts: list[list[str]]) -> int:
    text = [statement.claim, statement.how, statement.note]
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def _number(value: Any) -> Any:
    """Infinities by name: they are results here."""
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return short(value) if isinstance(value, float) else value
