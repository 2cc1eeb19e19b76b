"""Tables of trained networks for the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fathometer.cli.tables import bar
from fathometer.leaky import LeakyRun, LeakySweep

CLEAR = 2.0  # least gap of a clear bottleneck
_WIDE = 100  # columns of a terminal with room for all columns
_POINTS = {
    "cost_of_identity": "COI",
    "stable_rank": "stable rank",
    "negative": "negative",
    "affinity": "affinity",
}
_LAYERS = {"hamiltonian": "−2H/L̃", "hamiltonian_stable": "stable −2H/L̃", "kinetic": "kinetic", "crit": "crit"}


def network_view(run: LeakyRun, console: Console) -> Table:
    """Make a row for each point of the path, with the layer that starts there."""
    measures = run.measures
    view = Table(
        title=Text(_title(run)),
        caption="COI with ridge; negative is ‖A₋‖/‖A‖; the bar is the affinity score of σ; columns "
        "after it are those of the layer that starts at p",
    )
    points, layers = dict(_POINTS), dict(_LAYERS)
    if console.width < _WIDE:
        del points["stable_rank"], layers["hamiltonian_stable"], layers["kinetic"]
        view.caption = f"{view.caption}; a wider terminal or --out shows more"
    view.add_column("p", justify="right")
    for name in points.values():
        view.add_column(name, justify="right")
    view.add_column("", width=8, no_wrap=True)
    for name in layers.values():
        view.add_column(name, justify="right")
    for number, (_, row) in enumerate(measures.points.iterrows()):
        cells = [_number(row[name]) for name in points]
        rest = ["" for _ in layers]
        if number < len(measures.layers):
            rest = [_number(measures.layers.iloc[number][name]) for name in layers]
        view.add_row(f"{row.p:.3f}", *cells, bar(float(row.affinity), 8), *rest)
    return view


def sweep_view(sweep: LeakySweep, console: Console) -> Table:
    """Make a row for each combination of designs, with medians over seeds."""
    table = sweep.table
    keys = [
        k for k in ("effective_depth", "layers", "scheme", "rank_of_task", "decay") if table[k].nunique() > 1
    ]
    keys = keys or ["effective_depth"]
    shown = {
        "train_error": "train",
        "test_error": "test",
        "hamiltonian": "−2H/L̃",
        "cost_of_identity": "COI",
        "stable_rank": "stable rank",
        "affinity": "affinity",
        "crit": "crit",
    }
    least = "COI is" if console.width < _WIDE else "COI and stable rank are"
    if console.width < _WIDE:
        del shown["stable_rank"], shown["affinity"]
    heads = {"effective_depth": "L̃", "layers": "L", "rank_of_task": "k*", "decay": "λ₀"}
    view = Table(caption=f"medians over seeds; {least} the least along the path")
    for key in keys:
        view.add_column(heads.get(key, key), justify="left" if key == "scheme" else "right", no_wrap=True)
    for name in ("networks", *shown.values(), "rank"):
        view.add_column(name, justify="right")
    for values, group in table[~table["diverged"]].groupby(keys, sort=False, dropna=False):
        heads_of_row = (Text(f"{v:g}" if isinstance(v, float) else str(v)) for v in values)
        cells = (_number(group[name].median()) for name in shown)
        view.add_row(*heads_of_row, str(len(group)), *cells, _ranks(group["rank"]))
    return view


def rank_lines(runs: Sequence[LeakyRun]) -> list[str]:
    """Write `bottleneck rank: K (gap G)` as the last line: the most frequent rank, and its least gap."""
    summaries = [run.measures.summary for run in runs]
    found = [(int(s["rank"]), float(s["gap"])) for s in summaries if not math.isnan(s["rank"])]
    lines = ["bottleneck rank: none (in a plain ResNet, L̃ = 0, there is no L̃/2 to count from)"]
    if found:
        rank, count = Counter(rank for rank, _ in found).most_common(1)[0]
        gap = min(gap for other, gap in found if other == rank)
        lines = [f"bottleneck rank: {rank} (gap {gap:.1f})"]
        if len(runs) > 1:
            lines.insert(0, f"{count} of {len(runs)} networks have this rank, and at least this gap:")
        if gap < CLEAR or rank in {run.design.width for run in runs}:
            lines.insert(0, "no clear bottleneck; longer training or a larger depth may show one:")
    diverged = sum(run.diverged is not None for run in runs)
    if diverged:
        fate = "they are not in the table" if len(runs) > 1 else "these are its last finite weights"
        lines.insert(0, f"{diverged} of {len(runs)} networks diverged: {fate}")
    return lines


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"


def _ranks(ranks: pd.Series[float]) -> str:
    """Write `3`, or `3 (4), 2 (1)` with the number of networks of each rank."""
    counts = Counter("–" if math.isnan(rank) else f"{rank:.0f}" for rank in ranks)
    return ", ".join(f"{rank} ({count})" if len(counts) > 1 else rank for rank, count in counts.items())


def _title(run: LeakyRun) -> str:
    design, errors = run.design, f"train {run.train_error:.4g}, test {run.test_error:.4g}"
    known = "" if run.task.rank is None else f", k* = {run.task.rank}"
    fate = "" if run.diverged is None else f", diverged at epoch {run.diverged}"
    return (
        f"L̃ = {design.effective_depth:g}, L = {design.layers}, width {design.width}{known}, "
        f"seed {design.seed}: {errors}, crit {run.measures.summary['crit']:.2g}{fate}"
    )
