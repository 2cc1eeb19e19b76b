"""Trained networks in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fathometer.cli.tables import bar
from fathometer.leaky import LeakyRun, LeakySweep

_WIDE = 100  # columns of a terminal that has room for everything
_POINTS = {
    "cost_of_identity": "COI",
    "stable_rank": "stable rank",
    "negative": "negative",
    "affinity": "affinity",
}
_LAYERS = {"hamiltonian": "−2H/L̃", "hamiltonian_stable": "stable", "kinetic": "kinetic", "crit": "crit"}


def network_view(run: LeakyRun, console: Console) -> Table:
    """A row for each point of the path, and the layer that starts there."""
    measures = run.measures
    view = Table(
        title=Text(_title(run)),
        caption="COI with ridge; negative is ‖A₋‖/‖A‖; the bar is the affinity score of σ; H, kinetic and "
        "crit are those of the layer that starts at p",
    )
    points, layers = dict(_POINTS), dict(_LAYERS)
    if console.width < _WIDE:
        del points["stable_rank"], layers["hamiltonian_stable"], layers["kinetic"]
    view.add_column("p", justify="right")
    for name in points.values():
        view.add_column(name, justify="right")
    view.add_column("", width=8, no_wrap=True)
    for name in layers.values():
        view.add_column(name, justify="right")
    for number, (_, row) in enumerate(measures.points.iterrows()):
        cells = [f"{row[name]:.4g}" for name in points]
        rest = ["" for _ in layers]
        if number < len(measures.layers):
            rest = [f"{measures.layers.iloc[number][name]:.3g}" for name in layers]
        view.add_row(f"{row.p:.3f}", *cells, bar(float(row.affinity), 8), *rest)
    return view


def sweep_view(sweep: LeakySweep, console: Console) -> Table:
    """A row for each combination of designs, the median over seeds."""
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
    if console.width < _WIDE:
        del shown["stable_rank"], shown["affinity"]
    heads = {"effective_depth": "L̃", "layers": "L", "rank_of_task": "k*", "decay": "λ₀"}
    view = Table(caption="medians over seeds; COI and stable rank are the least along the path")
    for key in keys:
        view.add_column(heads.get(key, key), justify="left" if key == "scheme" else "right", no_wrap=True)
    for name in ("networks", *shown.values(), "rank"):
        view.add_column(name, justify="right")
    for values, group in table.groupby(keys, sort=False, dropna=False):
        counts = Counter(int(rank) for rank in group["rank"])
        ranks = ", ".join(
            f"{rank} ({count})" if len(counts) > 1 else f"{rank}" for rank, count in counts.items()
        )
        cells = (f"{group[name].median():.4g}" for name in shown)
        view.add_row(
            *(f"{v:g}" if isinstance(v, float) else str(v) for v in values), str(len(group)), *cells, ranks
        )
    return view


def rank_lines(runs: Sequence[LeakyRun]) -> list[str]:
    """`bottleneck rank: K (gap G)` as the last line: of most networks, and the least gap among these."""
    found = [(int(run.measures.summary["rank"]), float(run.measures.summary["gap"])) for run in runs]
    rank, count = Counter(rank for rank, _ in found).most_common(1)[0]
    gap = min(gap for other, gap in found if other == rank)
    lines = [f"bottleneck rank: {rank} (gap {gap:.1f})"]
    if len(found) > 1:
        lines.insert(0, f"{count} of {len(found)} networks have this rank, and at least this gap:")
    diverged = sum(run.diverged is not None for run in runs)
    if diverged and len(runs) > 1:
        lines.insert(0, f"{diverged} of {len(runs)} networks diverged; their last good weights are measured")
    return lines


def _title(run: LeakyRun) -> str:
    design, errors = run.design, f"train {run.train_error:.4g}, test {run.test_error:.4g}"
    known = "" if run.task.rank is None else f", k* = {run.task.rank}"
    fate = "" if run.diverged is None else f", diverged at epoch {run.diverged}"
    return (
        f"L̃ = {design.effective_depth:g}, L = {design.layers}, width {design.width}{known}, "
        f"seed {design.seed}: {errors}, crit {run.measures.summary['crit']:.2g}{fate}"
    )
