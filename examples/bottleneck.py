"""Shows the bottleneck of Leaky ResNets: the dimension is that of the task, and ReLU is affine.

    python -m examples.bottleneck --out demo

Four networks learn tasks that go through 2, 3, 4 and 5 dimensions. Along the path of each, the cost of
identity falls to that number (Figure 1 of the second paper), and the affinity score of ReLU rises to 1 at
the same place (the gauge of the first paper): where the representation is non-negative, ReLU is the
identity.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from fathometer import write_report
from fathometer.leaky import LeakySweep, grid, preset, sweep
from fathometer.progress import progress_bar
from fathometer.report import (
    column_figure,
    for_print,
    legend_above,
    note_below,
    save_figure,
    series_style,
)

RANKS = (2, 3, 4, 5)


def train(seed: int) -> LeakySweep:
    """A network for each rank, all of them together."""
    quick = preset("quick")
    with progress_bar("training") as show:
        return sweep(grid(quick.design, rank=RANKS, seeds=[seed]), quick.recipe, progress=show)


def table(found: LeakySweep) -> Table:
    """What the theory says should be k, the gap after the k-th singular value, and the affinity score."""
    view = Table("task", "rank", "−2H/L̃", "COI", "gap", "affinity of ReLU", "‖A₋‖/‖A‖")
    view.title = "Inside the bottleneck: rank, −2H/L̃ and cost of identity should all be k"
    for _, row in found.table.iterrows():
        view.add_row(
            f"k = {row['rank_of_task']}",
            f"{row['rank']:.0f}",
            f"{row['hamiltonian']:.2f}",
            f"{row['cost_of_identity']:.2f}",
            f"{row['gap']:.0f}",
            f"{row['affinity']:.3f}",
            f"{row['negative']:.3f}",
        )
    return view


@for_print
def picture(found: LeakySweep) -> Figure:
    """Left the cost of identity along p, right the affinity score of ReLU."""
    figure = column_figure(2, 2.7)
    left, right = figure.subplots(1, 2)
    for number, run in enumerate(found.runs):
        points, looks = run.measures.points, series_style(number)
        left.plot(points.p, points["cost_of_identity"], label=f"k* = {run.task.rank}", **looks)
        right.plot(points.p, points["affinity"], **looks)
        left.axhline(run.task.rank or 0, color=looks["color"], linestyle=":", linewidth=0.8)
    left.set(yscale="log", ylabel="cost of identity (dimensions, log scale)")
    left.set_yticks([2, 3, 4, 5, 10, 100, 1000], ["2", "3", "4", "5", "10", "100", "1000"])
    left.minorticks_off()
    right.set(ylabel="affinity score of ReLU", ylim=(None, 1.01))
    for axes in (left, right):
        axes.set_xlabel("position p along the path")
    legend_above(figure, left.get_legend_handles_labels()[0])
    parts = ["k*: rank of the task, dotted", "p: from 0, the input of the first layer, to 1, the output"]
    note_below(figure, parts, "; ")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, show, save."""
    parser = argparse.ArgumentParser(description="Four Leaky ResNets and their bottlenecks.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    found = train(options.seed)
    save_figure(picture(found), options.out / "bottleneck.png")
    write_report(found, options.out / "bottleneck.html", title="Four Leaky ResNets and their bottlenecks")
    console = Console(highlight=False)
    console.print(table(found))
    console.print(
        f"{len(found.runs)} Leaky ResNets of 12 layers, L̃ = 8, trained in {found.provenance.seconds:.0f} s. "
        f"In {options.out}: bottleneck.png, and bottleneck.html to open in a browser"
    )


if __name__ == "__main__":
    main()
