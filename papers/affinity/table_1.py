"""Table 1: does anything else go with the affinity score along depth, by family?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare import family_table
from papers.affinity.census import PAPER, Census, network_item
from papers.affinity.network_figures import plot_correlations
from papers.affinity.printed_tables import METRICS, ROUNDING, table_1, table_2, table_2_families
from papers.affinity.table_2 import FAMILIES, SUBMISSION, measured_correlations
from papers.item import Claim, NotDecided, Numbers, RunContext, Simulation

ROWS = {family: f"{family}s" for family in PAPER} | {"ConvNeXt": "Convnexts"}
"""What families are called in the printed table, where they are there."""
ONE = "VGGs"  # a row with one largest metric


def draw(context: RunContext, census: Census) -> None:
    """Average over families."""
    ours = family_table(measured_correlations(census), census.families, overall="Average")
    context.table("families", _means(ours).reset_index())
    context.table("from-table-2", _means(from_table_2()).reset_index())
    context.figure(
        plot_correlations(
            {
                "printed": _means(table_1()),
                "from the printed Table 2": _means(from_table_2()),
                "measured": _means(ours),
            }
        )
    )


def _means(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(table.xs("mean", axis=1, level=1))


def from_table_2() -> pd.DataFrame:
    """Compute the rows of Table 1 from the printed Table 2, with the population standard deviation."""
    return family_table(table_2(), table_2_families(), overall="Average")


def follows(ours: pd.DataFrame, printed: pd.DataFrame) -> Numbers:
    """Compare the printed Table 1 with what Table 2 gives; the averages are over other networks."""
    rows = [row for row in printed.index if row in ours.index and row != "Average"]
    off = (ours.loc[rows, printed.columns] - printed.loc[rows]).abs()
    agree = off <= ROUNDING + 1e-9
    broken = [
        f"{row} ({agree.loc[row].sum()} of {agree.shape[1]})" for row in rows if not agree.loc[row].all()
    ]
    return {
        "agree": agree.to_numpy().sum(),
        "numbers": agree.size,
        "largest": off.to_numpy().max(),
        "broken": ", ".join(broken) or "none",
    }


def by_family(census: Census) -> Numbers:
    """Return the mean correlations of each family, in the order of the metrics; 0 where there are none."""
    table = _means(family_table(measured_correlations(census), census.families)).drop("all")
    if len(table) < FAMILIES:
        raise NotDecided(f"needs trained networks of {FAMILIES} families or more; there are {len(table)}")
    return rows_of(table.fillna(0))


def rows_of(table: pd.DataFrame) -> dict[str, list[float]]:
    """Return a list for each row."""
    return {str(row): table.loc[row].to_list() for row in table.index}


def tops(numbers: Any) -> dict[str, str]:
    """Return for each family the metric with the largest |r|."""
    return {family: list(METRICS)[int(np.argmax(np.abs(row)))] for family, row in numbers.items()}


def is_different(numbers: Any) -> bool:
    """Say whether no metric has the largest |r| in more than half of the families."""
    found = list(tops(numbers).values())
    return max(found.count(metric) for metric in METRICS) <= len(found) / 2


def largest(numbers: Any) -> str:
    """Say which metric has the largest |r| in which family."""
    places = list(METRICS)
    return ", ".join(
        f"{family}: {metric} {numbers[family][places.index(metric)]:.2f}"
        for family, metric in tops(numbers).items()
    )


def _drawn(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
    """Draw families from the printed table; without the effect all are like one of them."""
    means, stds = (table_1().xs(of, axis=1, level=1) for of in ("mean", "std"))
    rows = [ROWS.get(family, "Average") if present else ONE for family in numbers]
    index = list(means.index)
    places = [index.index(row if row in index else "Average") for row in rows]
    found = generator.normal(means.to_numpy()[places], stds.to_numpy()[places])
    return dict(zip(numbers, found.tolist(), strict=True))


TABLE_1 = network_item(
    "affinity-table-1",
    "Table 1: correlations between the score and other metrics, by family",
    draw,
    {
        "measured": Claim(
            words="For different models the non-linearity correlates with different metrics.",
            test="No metric has the largest |mean r| in more than half of the families that were measured "
            f"(at least {FAMILIES}).",
            measure=by_family,
            holds=is_different,
            says=largest,
            simulation=Simulation(
                "families drawn from the printed table, AlexNet and Inception from its last row; by chance: "
                f"all families like {ONE}",
                _drawn,
            ),
        ),
        "printed": Claim(
            words=f"The same in the table of {SUBMISSION}.",
            test="In the printed Table 1 no metric has the largest |r| in more than half of the families.",
            kind="ours",
            measure=lambda _: rows_of(_means(table_1()).drop("Average")),
            holds=is_different,
            says=largest,
        ),
        "follows": Claim(
            words=f"In {SUBMISSION}, Table 1 summarises, family by family, the correlations that Table 2 "
            "lists.",
            test="Every printed mean and standard deviation of the families that Table 2 has is what the "
            f"printed Table 2 gives (population std), to {ROUNDING}: half a digit in either table. The "
            "averages are left out, as the MNASNets of Table 1 are not in Table 2.",
            kind="ours",
            measure=lambda _: follows(from_table_2(), table_1()),
            holds=lambda n: n["agree"] == n["numbers"],
            says="{agree:.0f} of {numbers:.0f} numbers agree; not all of {broken}; largest difference "
            "{largest:.3f}",
        ),
    },
    also=("measured",),
    changes=(
        "That Table 1 follows from Table 2 was first asked of the averages, too, which are over other "
        "networks; without them the answer is the same.",
    ),
)
