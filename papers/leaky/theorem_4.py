"""Theorem 4: the Hamiltonian is close to the least cost of identity; layers of high cost are fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
import torch

from fathometer.leaky import LeakySweep, RepresentationPath
from fathometer.leaky.theory import Statement, solved_path, theorem_4
from fathometer.report import DARK, PALETTE, column_figure, for_print, legend_above
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.instances import START_DEPTH, solved
from papers.leaky.networks import depth_item, depth_networks, name_of
from papers.leaky.statements import CheckedStatement, every, named, statement_table
from papers.leaky.trends import over_depths, power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIDGES = (0.01, 0.1, 1.0, 10.0)  # γ, for solved networks
NEAR = 0.5  # dimensions between −2H/L̃ and the least cost at the largest L̃
SLOW, FAST = 0.2, (0.8, 1.2)  # powers of L̃
ROUNDING = 1e-9
FIRST = ("Theorem 4, first display, below", "Theorem 4, first display, above")
SECOND = ("Theorem 4, second display, below", "Theorem 4, second display, above")


def run(context: RunContext) -> Answers:
    """Check both displays for trained and solved networks, and one counterexample to the printed bound."""
    sweep = depth_networks(context)
    checked = [*_of_networks(sweep), *_of_solved(context.pick(smoke=1, small=5, paper=20))]
    table = context.table("sides", statement_table(checked))
    own = [one._replace(statement=_with_own(one.statement)) for one in checked]
    speeds = context.table("speeds", speed_table(sweep))
    context.figure(_plot(table[table["kind"] == "trained"]))
    paper = [one.statement.details["paper_slack"] for one in named(checked, FIRST[0])]
    return {
        "first": every(named(own, *FIRST), _words(checked, FIRST)),
        "second": every(named(own, *SECOND), _words(checked, SECOND)),
        "letter": as_printed(counterexample(), min(paper)),
        "close": close(speeds),
        "timescales": timescales(speeds),
    }


def _of_networks(sweep: LeakySweep) -> Iterator[CheckedStatement]:
    """Check networks with γ_p, and with the largest of them as one γ for all p."""
    for run in sweep.trained:
        statements = theorem_4(run.path)
        largest = statements[0].details["gamma_max"]
        for kind, found in (("trained", statements), ("trained (one γ)", theorem_4(run.path, gamma=largest))):
            yield from (CheckedStatement(kind, name_of(run), run.design.effective_depth, s) for s in found)


def _of_solved(seeds: int) -> Iterator[CheckedStatement]:
    for seed in range(seeds):
        path = solved(40, seed)
        for gamma in RIDGES:
            where = f"seed {seed}, γ = {gamma:g}"
            yield from (
                CheckedStatement("solved", where, START_DEPTH, s) for s in theorem_4(path, gamma=gamma)
            )


def _with_own(statement: Statement) -> Statement:
    """Take each layer's own H, for which the statement is exact in a network."""
    slack = statement.details["own_slack"]
    scale = max(abs(statement.left), abs(statement.right))
    return replace(statement, slack=slack, holds=slack >= -ROUNDING * scale)


def _words(checked: list[CheckedStatement], names: tuple[str, str]) -> str:
    """Write the result with the median of H over the layers."""
    rows = named(checked, *names)
    good = sum(one.statement.holds for one in rows)
    return f"with the median of H over the layers in the place of each layer's own, {good} of {len(rows)}"


def counterexample() -> RepresentationPath:
    """Make a critical network with −2H/L̃ below the printed bound: one neuron, two samples, L̃ = 0.1.

    Both entries of A stay negative: σ(A) is 0 but for the 1, and along (1, −1) the path A = a e^{−L̃p},
    B = b e^{L̃p} is exact. With b small, √γ·c is smaller than √(γc), which alone would do.
    """
    constant, alternating = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64) / 2**0.5
    start, momentum = -1.5 * constant + alternating, -0.1 * alternating
    return solved_path(start[None], momentum[None], 0.1, 50)


def as_printed(path: RepresentationPath, least: float) -> Answer:
    """Check the first display below as printed, with √γ·c; γ = 1."""
    found = theorem_4(path, gamma=1.0)[0]
    literal = found.details["paper_right"]
    return Answer(
        found.left >= literal and least >= 0,
        f"the network has {found.left:.4f}, the bound with √γ·c is {literal:.4f}, with √(γc) "
        f"{found.right:.4f} (L̃ = .1, c = {found.details['momentum2_max']:.2g}, γ = 1); the others have slack "
        f"{least:.3g} or more",
        {"left": found.left, "paper": literal, "corrected": found.right, "least_slack": least},
    )


def speed_table(sweep: LeakySweep) -> pd.DataFrame:
    """Tabulate ‖∂A‖ in K + γI where COI_γ is least and in the first layer; −2H/L̃ − min COI_γ."""
    rows = []
    for run in sweep.trained:
        layers, depth = run.measure(warn=False).layers, run.design.effective_depth
        speed, cost = depth * layers["kinetic"] ** 0.5, layers["potential"]
        gap = layers["hamiltonian"].median() - cost.min()
        rows.append((depth, run.design.seed, speed.iloc[int(cost.argmin())], speed.iloc[0], gap))
    return pd.DataFrame(rows, columns=["effective_depth", "seed", "slow", "fast", "gap"])


def close(table: pd.DataFrame) -> Answer:
    """Check whether −2H/L̃ − min COI_γ tends to 0."""
    rows = table.assign(distance=table["gap"].abs())
    medians = rows.groupby("effective_depth")["distance"].median()
    falls = bool((medians.diff().dropna() < 0).all())
    last = float(medians.iloc[-1])
    return Answer(
        falls and last <= NEAR, f"distance {over_depths(rows, 'distance')}", {"largest_depth": last}
    )


def timescales(table: pd.DataFrame) -> Answer:
    """Fit the powers of L̃ that slow and fast layers follow."""
    slow, fast = power(table, "slow"), power(table, "fast")
    return Answer(
        slow.mean <= SLOW and FAST[0] <= fast.mean <= FAST[1],
        f"‖∂A‖ grows as L̃ to the power {slow} where the COI is least, {fast} in the first layer",
        {"slow": slow.mean, "fast": fast.mean},
    )


@for_print
def _plot(table: pd.DataFrame) -> Figure:
    """Draw the bounded values as points, and their bounds as lines, against L̃."""
    from matplotlib.lines import Line2D

    figure = column_figure(2, 2.9)
    left, right = figure.subplots(1, 2)
    _draw(left, table, FIRST)
    _draw(right, table, SECOND)
    left.set_ylabel(r"$-2\mathcal{H}/\tilde{L}-\min\,\mathrm{COI}_\gamma$")
    right.set_ylabel(r"$\|\partial A\|-\tilde{L}\sqrt{\mathrm{COI}_\gamma+2\mathcal{H}/\tilde{L}}$")
    measured = "measured (right: least and largest over layers)"
    dots = Line2D([], [], color=PALETTE[0], marker="o", linestyle="", label=measured)
    legend_above(figure, [dots, Line2D([], [], color=PALETTE[1], label="bounds (median over seeds)")])
    return figure


def _draw(axes: Axes, table: pd.DataFrame, names: tuple[str, str]) -> None:
    below, above = (table[table["statement"] == name] for name in names)
    for rows, value, bound in ((below, "left", "right"), (above, "right", "left")):
        axes.scatter(rows["depth"], rows[value], s=9, color=PALETTE[0], zorder=3)
        medians = rows.groupby("depth")[bound].median()
        axes.plot(medians.index, medians, color=PALETTE[1])
    axes.axhline(0, color=DARK, linewidth=0.4, zorder=0)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_xlabel(r"effective depth $\tilde{L}$")


THEOREM_4 = depth_item(
    name="leaky-theorem-4",
    title="Theorem 4: the Hamiltonian, the least cost of identity, and two timescales",
    claims={
        "first": Claim(
            "−(ℓ_γ/L̃ + √(γc))² ≤ −2H/L̃ − min_p COI_γ ≤ γc, with √(γc) as in its proof.",
            "Holds for every trained network, with γ_p = γ₀‖K_p‖ (γc is then sup γ_p‖B_p‖²) and with one γ, "
            "and for networks that are critical to rounding (w = 6, N = 10, L̃ = 2, L = 40) with γ = .01, .1, "
            "1, 10; with each layer's own H.",
            ours=True,
        ),
        "second": Claim(
            "−L̃√(γc) ≤ ‖∂A_p‖ − L̃√(COI_γ + 2H/L̃) ≤ 2L̃√(γc) for all p.",
            "The same; the root's argument, which can be negative by γ‖B‖², is clipped at 0.",
        ),
        "letter": Claim(
            "The first display as it is printed, with √γ·c.",
            "Holds for the same networks, and for one of one neuron and two samples that is critical to "
            "rounding, with L̃ = .1, γ = 1.",
        ),
        "close": Claim(
            "For large L̃ the Hamiltonian is close to the minimal COI along the path.",
            "The median over seeds of |−2H/L̃ − min COI_γ| falls from each L̃ to the next, and is .5 at most "
            "at the largest (bias included, γ₀ = 1e-3).",
        ),
        "timescales": Claim(
            "Dynamics are slow (~1) where the COI is almost optimal and fast (~L̃) where it is far from it.",
            "‖∂A‖ in K + γI is fitted by a power of L̃, for each seed: where the COI is least the mean power "
            "is .2 at most, in the first layer from .8 to 1.2.",
        ),
    },
    run=run,
    seconds=Seconds(1, 8, 60),
)
