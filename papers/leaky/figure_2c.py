"""Figure 2c: how evenly the layers are spread along the path."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.leaky import LeakySweep, project_paths
from fathometer.report import plot_plane
from papers.intervals import mean_interval, pm
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.networks import scheme_item, shown_schemes


def run(context: RunContext) -> Answers:
    """Project the paths with L = 18 of all schemes, every seed."""
    sweep = shown_schemes(context)
    table = context.table("unevenness", unevenness_table(sweep))
    context.figure(plot_plane(sweep))
    return {"distances": better_spread(table, "distances"), "plane": better_spread(table, "plane")}


def unevenness_table(sweep: LeakySweep) -> pd.DataFrame:
    """Tabulate the unevenness of ‖A_l − A_{l−1}‖/‖A_l‖, `distances`, and of the picture, `plane`."""
    rows = []
    for seed in sorted({run.design.seed for run in sweep.runs}):
        runs = [run for run in sweep.trained if run.design.seed == seed]
        for run, path in zip(runs, project_paths(runs).paths, strict=True):
            moves = run.measure(warn=False).layers["move"].to_numpy(float)
            checked = np.linalg.norm(np.diff(path, axis=0), axis=1)
            rows.append((run.design.scheme, seed, unevenness(moves), unevenness(checked)))
    return pd.DataFrame(rows, columns=["scheme", "seed", "distances", "plane"])


def unevenness(distances: npt.NDArray[np.float64]) -> float:
    """Compute standard deviation over mean: 0 if all are equal.

    Example:
        >>> unevenness(np.array([1.0, 3.0]))
        0.5
    """
    return float(distances.std() / distances.mean())


def better_spread(table: pd.DataFrame, column: str) -> Answer:
    """Compare adaptive with equidistant steps, within seeds."""
    wide = table.pivot_table(index="seed", columns="scheme", values=column)
    change = mean_interval((wide["adaptive"] - wide["equidistant"]).dropna())
    words = ", ".join(f"{name} {pm(wide[name].dropna())}" for name in wide.columns)
    return Answer(
        change.high < 0,
        f"{words}; adaptive less equidistant {change}",
        {**{str(name): wide[name].mean() for name in wide.columns}, "difference": change.mean},
    )


FIGURE_2C = scheme_item(
    name="leaky-figure-2c",
    title="Figure 2c: the representation paths of three kinds of steps, L = 18",
    claims={
        "distances": Claim(
            "Adaptive ρ make the distances ‖A_l − A_{l−1}‖/‖A_l‖ approximately the same for all layers.",
            "Their standard deviation over their mean, adaptive less equidistant with the same seed: the "
            "mean over seeds has a 95 % interval below 0.",
        ),
        "plane": Claim(
            "Adaptive ρ appear to better spread out the steps (in a 2D projection of the paths).",
            "The same test of the distances between neighbours in the plane of the first two principal "
            "components of all paths of a seed.",
        ),
    },
    run=run,
    seconds=Seconds(1, 6, 30),
)
