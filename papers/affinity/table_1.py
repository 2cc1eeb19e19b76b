"""Table 1: does anything else go with the affinity score along depth, by family?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fathometer.compare import family_table
from papers.affinity.census import Census, judged, listed, network_item, take_census
from papers.affinity.network_figures import plot_family_means
from papers.affinity.printed_tables import ROUNDING, table_1, table_2, table_2_families
from papers.affinity.table_2 import (
    LEAST,
    NEAR,
    has_published_weights,
    lacking_families,
    measured_correlations,
)
from papers.item import Answer, Answers, Claim, RunContext

_MEMBERS = {
    "VGG": 4,
    "ResNet": 5,
    "DenseNet": 4,
    "MNASNet": 4,
    "EfficientNet": 4,
    "ViT": 5,
    "Swin": 3,
    "ConvNeXt": 4,
}
_ROWS = {family: f"{family}s" for family in _MEMBERS} | {"ConvNeXt": "Convnexts"}  # as they are printed


def run(context: RunContext) -> Answers:
    """Average over families."""
    census = take_census(context)
    context.note("MNASNets are in the printed Table 1, and not in Table 2.")
    ours, again = family_means(census), from_table_2()
    context.table("families", _flat(ours))
    context.table("from-table-2", _flat(again))
    measured = "measured" if len(census.trained) else "measured, random weights"
    shown = {"printed": table_1(), "from the printed Table 2": again, measured: ours.rename(index=_ROWS)}
    context.figure(plot_family_means(shown))
    return {
        "follows": follows(again, table_1()),
        "printed": different(_means_of(table_1())),
        "measured": judged(census, lacking_families, lambda of: different(_means(of))),
        "numbers": judged(census, lacking_rows, near_rows),
    }


def family_means(census: Census) -> pd.DataFrame:
    """Compute mean ± population std by family, and over all networks."""
    return family_table(measured_correlations(census), census.families, overall="Average")


def from_table_2() -> pd.DataFrame:
    """Compute the rows of Table 1 from the printed Table 2, with the population standard deviation."""
    return family_table(table_2(), table_2_families(), overall="Average")


def follows(ours: pd.DataFrame, printed: pd.DataFrame) -> Answer:
    """Check whether every number of Table 1 follows from Table 2. The averages are over other networks."""
    rows = [row for row in printed.index if row in ours.index and row != "Average"]
    off = (ours.loc[rows, printed.columns] - printed.loc[rows]).abs()
    agree = off <= ROUNDING + 1e-9
    whole = [str(row) for row in rows if agree.loc[row].all()]
    broken = [
        f"{row} ({int(agree.loc[row].sum())} of {agree.shape[1]})" for row in rows if str(row) not in whole
    ]
    words = f"{int(agree.to_numpy().sum())} of {agree.size} numbers: all of {listed(whole) or 'no row'}"
    words += f"; not all of {listed(broken)}" if broken else ""
    return Answer(
        not broken,
        f"{words}; largest difference {off.to_numpy().max():.3f}",
        {"agree": agree.to_numpy().sum(), "numbers": agree.size, "largest": off.to_numpy().max()},
    )


def different(means: pd.DataFrame) -> Answer:
    """Check whether the metric with the largest |r| differs between families."""
    known = means.dropna(how="all").abs()
    top = known.idxmax(axis=1)
    counts = top.value_counts()
    cells = means.to_dict("index")
    words = ", ".join(f"{family} {metric} {cells[family][metric]:.2f}" for family, metric in top.items())
    return Answer(
        bool(counts.max() <= len(top) / 2),
        f"{counts.index[0]} in {counts.max()} of {len(top)} families: {words}",
        {"most": counts.max(), "families": len(top)},
    )


def lacking_rows(census: Census) -> str:
    """Require a family with as many networks as in the paper."""
    return (
        "" if _whole(census) else "all networks of a family of the printed table, with torchvision's weights"
    )


def near_rows(census: Census) -> Answer:
    """Compare our family means with the printed ones."""
    ours = family_means(census).xs("mean", axis=1, level=1)
    printed = table_1().xs("mean", axis=1, level=1)
    off = {
        family: (ours.loc[family] - printed.loc[_ROWS[family]]).abs().to_numpy() for family in _whole(census)
    }
    every = np.concatenate(list(off.values()))
    words = ", ".join(f"{family} {np.median(of):.2f}" for family, of in off.items())
    return Answer(
        float(np.median(every)) <= NEAR,
        f"median difference {np.median(every):.2f} over {len(every)} means; by family {words}",
        {"median": np.median(every), "families": len(off)},
    )


def _whole(census: Census) -> list[str]:
    """Select families with all networks of the paper, and torchvision's own weights."""
    found = []
    for family, count in _MEMBERS.items():
        members = census.members(family)
        if len(members) == count and all(has_published_weights(census, name) for name in members):
            found.append(family)
    return found


def _means(census: Census) -> pd.DataFrame:
    return _means_of(family_means(census))


def _means_of(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(table.drop("Average").xs("mean", axis=1, level=1))


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    flat = table.copy()
    flat.columns = pd.Index(["_".join(column) for column in table.columns])
    return flat.reset_index()


TABLE_1 = network_item(
    name="affinity-table-1",
    title="Table 1: correlations between the score and other metrics, by family",
    claims={
        "follows": Claim(
            "Table 1 summarises, family by family, the correlations that Table 2 lists.",
            "Every printed mean and standard deviation of the families that Table 2 has is what the printed "
            f"Table 2 gives (population std), to {ROUNDING}: half a digit in either table. The averages are "
            "left out, as the MNASNets of Table 1 are not in Table 2.",
            ours=True,
        ),
        "printed": Claim(
            "For different models the non-linearity correlates with different metrics.",
            "In the printed Table 1 no metric has the largest |r| in more than half of the families.",
            ours=True,
        ),
        "measured": Claim(
            "The same of networks that were measured here.",
            "No metric has the largest |mean r| in more than half of the families of trained networks (at "
            f"least {LEAST}).",
        ),
        "numbers": Claim(
            "The numbers of Table 1.",
            "For families of which all of the paper's networks were measured, trained by torchvision: the "
            f"median difference between our means and the printed ones is at most {NEAR}.",
        ),
    },
    run=run,
    changes=(
        "That Table 1 follows from Table 2 was first asked of the averages, too, which are over other "
        "networks; without them the answer is the same.",
    ),
)
