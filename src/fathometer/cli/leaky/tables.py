"""Tables of trained networks for the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd
from rich.text import Text

from fathometer.cli.tables import TableView, bar
from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.measures import CLEAR_GAP
from fathometer.leaky.theory import Statement


def network_view(run: LeakyRun, number: int | None = None) -> TableView:
    """Show a row for each point of the path, with the layer that starts there."""
    points, layers = run.measures.points, run.measures.layers
    frame = pd.DataFrame(
        {
            "COI": points["cost_of_identity"],
            "stable rank": points["stable_rank"],
            "negative": points["negative"],
            "affinity": points["affinity"],
            "": [bar(score, 8) for score in points["affinity"]],
        }
    )
    headings = {
        "hamiltonian": "−2H/L̃",
        "crit": "crit",
        "hamiltonian_stable": "stable −2H/L̃",
        "kinetic": "kinetic",
    }
    for name, heading in headings.items():
        values = [*layers[name], *[""] * (len(points) - len(layers))]
        frame[heading] = pd.Series(values, frame.index, dtype=object)
    return TableView(
        frame.set_index(pd.Index([f"{p:.3f}" for p in points["p"]], name="p")),
        f"{name_network(run, number)}: train {run.train_error:.4g}, test {run.test_error:.4g}, "
        f"crit {run.measures.summary['crit']:.2g}{_divergence(run)}",
        "COI with ridge; negative is ‖A₋‖/‖A‖; the bar is the affinity score of σ; columns after it are "
        "those of the layer that starts at p",
        number=".4g",
        optional=["stable rank", "kinetic", "stable −2H/L̃"],
    )


def sweep_view(sweep: LeakySweep) -> TableView:
    """Show a row for each combination of designs, with medians over seeds."""
    table = sweep.table
    keys = {
        "effective_depth": "L̃",
        "layers": "L",
        "scheme": "scheme",
        "rank_of_task": "k*",
        "decay": "λ₀",
    }
    keys = {k: heading for k, heading in keys.items() if table[k].nunique() > 1} or {"effective_depth": "L̃"}
    medians = {
        "train_error": "train",
        "test_error": "test",
        "hamiltonian": "−2H/L̃",
        "cost_of_identity": "COI",
        "stable_rank": "stable rank",
        "affinity": "affinity",
        "crit": "crit",
    }
    rows = []
    for values, group in table[~table["diverged"]].groupby(list(keys), sort=False, dropna=False):
        row = {
            heading: f"{v:g}" if isinstance(v, float) else v
            for heading, v in zip(keys.values(), values, strict=True)
        }
        row |= {"networks": len(group), **{medians[name]: group[name].median() for name in medians}}
        rows.append({**row, "rank": _ranks(group["rank"])})
    first, *rest = keys.values()
    columns = [first, *rest, "networks", *medians.values(), "rank"]
    return TableView(
        pd.DataFrame(rows, columns=columns).set_index(first),
        caption="medians over seeds; COI and stable rank are the least along the path",
        number=".4g",
        optional=["affinity", "stable rank"],
    )


def statements_view(
    run: LeakyRun, number: int | None, statements: Sequence[Statement], details: bool
) -> TableView:
    """Show both sides of every statement, and how it was decided."""
    rows = {}
    for statement in statements:
        words = [statement.name, statement.claim]
        words += [f"{statement.how}. {statement.note}"] if details else []
        holds = Text("yes", "green") if statement.holds else Text("no", "red")
        numbers = (statement.margin, statement.error, statement.paper)
        rows["\n".join(words)] = (holds, statement.left, statement.right, *numbers)
    columns = ["holds", "left", "right", "margin", "error", "paper"]
    frame = pd.DataFrame.from_dict(rows, "index", columns=columns)
    last = "" if run.diverged is None else ", last finite weights"
    return TableView(
        frame.rename_axis("statement"),
        name_network(run, number) + _divergence(run) + last,
        "margin: of an inequality, negative where it is violated; error: of an equation; paper: the right "
        "side as the paper prints it, where we correct it",
        number=".4g",
        show_lines=details,
    )


def rank_lines(runs: Sequence[LeakyRun]) -> list[str]:
    """Write `bottleneck rank: K (gap G)` as the last line, or one such line for each rank k* of the tasks."""
    tasks = list(dict.fromkeys(run.task.rank for run in runs))
    lines = []
    for task in tasks:
        group = [run for run in runs if run.task.rank == task]
        of_task = "" if len(tasks) == 1 else f", k* = {task}" if task else ", k* not known"
        lines.append(f"bottleneck rank{of_task}: {_most_frequent_rank(group)}")
    unclear = sum(_is_unclear(run) for run in runs)
    if unclear:
        which = f"in {unclear} of {len(runs)} networks" if len(runs) > 1 else "here"
        lines.insert(0, f"no clear bottleneck {which}; longer training or a larger depth may show one")
    diverged = sum(run.diverged is not None for run in runs)
    if diverged:
        note = "they are not in the table" if len(runs) > 1 else "these are its last finite weights"
        lines.insert(0, f"{diverged} of {len(runs)} networks diverged: {note}")
    return lines


def _most_frequent_rank(runs: Sequence[LeakyRun]) -> str:
    summaries = [run.measures.summary for run in runs]
    found = [(int(s["rank"]), float(s["gap"])) for s in summaries if not math.isnan(s["rank"])]
    if not found:
        return "none (in a plain ResNet, L̃ = 0, there is no L̃/2 to count from)"
    rank, count = Counter(rank for rank, _ in found).most_common(1)[0]
    gap = min(gap for other, gap in found if other == rank)
    if len(runs) == 1:
        return f"{rank} (gap {gap:.1f})"
    return f"{rank} in {count} of {len(runs)} networks (gap at least {gap:.1f})"


def _is_unclear(run: LeakyRun) -> bool:
    summary = run.measures.summary
    return bool(summary["gap"] < CLEAR_GAP or summary["rank"] == run.design.width)


def _ranks(ranks: pd.Series[float]) -> str:
    """Write `3`, or `3 (4), 2 (1)` with the number of networks of each rank."""
    counts = Counter("–" if math.isnan(rank) else f"{rank:.0f}" for rank in ranks)
    return ", ".join(f"{rank} ({count})" if len(counts) > 1 else rank for rank, count in counts.items())


def name_network(run: LeakyRun, number: int | None = None) -> str:
    """Name a network by its number in a sweep, its design, and the rank of its task."""
    design = run.design
    before = "" if number is None else f"network {number}: "
    rank = "" if run.task.rank is None else f", k* = {run.task.rank}"
    others = {design.scheme: design.scheme != "equidistant", f"σ = {design.sigma}": design.sigma != "relu"}
    unusual = "".join(f", {words}" for words, shown in others.items() if shown)
    sizes = f"L̃ = {design.effective_depth:g}, L = {design.layers}, width {design.width}"
    return f"{before}{sizes}{rank}, seed {design.seed}{unusual}"


def _divergence(run: LeakyRun) -> str:
    return "" if run.diverged is None else f", diverged at epoch {run.diverged}"
