"""Predicates over the table of trained networks: limits, comparisons, and simulated statistical tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from fathometer.compare import adjusted_rand
from papers.affinity.census import Census, Group
from papers.item import Claim, NotDecided, Numbers, Simulation
from papers.ranks import auc, pair_chance, rank_trend

TREND_LEVEL = 0.05
FAMILY_LEVEL = 0.01
TREND = 0.9  # correlation
APART = 100  # distance between families over that within them

LABELS = {
    "std": "standard deviation",
    "mean": "mean score",
    "after": "mean score after the sums",
    "gap": "mean score after the sums minus that inside the blocks",
    "linearizes": "mean score in transitions minus that elsewhere",
    "rise": "rank correlation of score and depth",
    "plateau": "standard deviations of the last score above those between",
    "to_early": "mean DTW distance from AlexNet and VGGs",
    "nearer_early": "mean DTW distance from ViTs minus that from AlexNet and VGGs",
}
"""Columns of the table in words."""


def within(
    words: str, test: str, column: str, group: Group, low: float = -np.inf, high: float = np.inf
) -> Claim:
    """Claim that a column of the table lies above `low` and is at most `high` in every network of a group."""

    def measure(census: Census) -> Numbers:
        names = census.group(group)
        return {"values": census.table.loc[names, column].to_list(), "networks": ", ".join(names)}

    return Claim(
        words=words,
        test=test,
        measure=measure,
        holds=lambda n: all(low < value <= high for value in n["values"]),
        says=f"{LABELS.get(column, column)} {{values:.3f}} ({{networks}})",
    )


def below(
    words: str,
    test: str,
    column: str,
    group: Group,
    others: Group,
    *,
    at_most: float = np.inf,
    share: float = 1.0,
    mean: bool = False,
) -> Claim:
    """Claim that every network of a group is below all others in a column.

    Args:
        words: the claim.
        test: the rule in words.
        column: of the table.
        group: networks that should be below.
        others: networks that should be above.
        at_most: the largest difference.
        share: of the others, that must be above the whole group.
        mean: compare the means of both groups instead.
    """

    def measure(census: Census) -> Numbers:
        lower = census.group(group)
        upper = [name for name in census.group(others) if name not in lower]
        return {
            "lower": census.table.loc[lower, column].to_list(),
            "upper": census.table.loc[upper, column].to_list(),
            "lower_names": ", ".join(lower),
            "upper_names": ", ".join(upper),
        }

    def holds(n: Any) -> bool:
        lower, upper = ([np.mean(n[side])] if mean else n[side] for side in ("lower", "upper"))
        above = np.mean([max(lower) < value for value in upper])
        return bool(above >= share and max(upper) - min(lower) <= at_most)

    return Claim(
        words=words,
        test=test,
        measure=measure,
        holds=holds,
        says=f"{LABELS.get(column, column)} {{lower:.3f}} ({{lower_names}}); {{upper:.3f}} ({{upper_names}})",
    )


def rises(words: str, test: str, measure: Callable[[Census], pd.DataFrame]) -> Claim:
    """Claim that something rises with the year; `measure` returns `family`, `year` and `value`."""
    return Claim(
        words=words,
        test=f"{test} (a family of one year counts once, by the mean of its networks): the rank correlation "
        f"with the year is positive with p < {TREND_LEVEL} over orders of the years.",
        measure=lambda census: trend_numbers(measure(census)),
        holds=lambda n: n["correlation"] > 0 and n["p"] < TREND_LEVEL,
        says="rank correlation with the year {correlation:.2f} (p = {p:.2g}): {families}",
        simulation=Simulation(
            f"a clear trend, read as a correlation of {TREND} with the year; the text has no numbers", _trend
        ),
    )


def trend_numbers(table: pd.DataFrame) -> Numbers:
    """Correlate `value` with `year`; a row for each architecture."""
    if len(table) < 3:
        raise NotDecided(f"needs trained networks of three architectures or more; there are {len(table)}")
    years, values = table["year"].to_list(), table["value"].to_list()
    found = rank_trend(years, values)
    rows = zip(table["family"], years, values, strict=True)
    named = ", ".join(f"{family} ({year:.0f}) {value:.2f}" for family, year, value in rows)
    return {"correlation": found.value, "p": found.p, "years": years, "families": named}


def _trend(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
    years = np.array(numbers["years"])
    noise = generator.normal(size=len(years))
    values = (
        TREND * (years - years.mean()) / years.std() + np.sqrt(1 - TREND**2) * noise if present else noise
    )
    found = rank_trend(numbers["years"], values.tolist())
    return {"correlation": found.value, "p": found.p}


def need_relatives(census: Census) -> dict[str, list[str]]:
    """Return the families of two networks or more; there must be two of them."""
    names = pd.Series(list(census.families), index=list(census.families.values()), dtype=object)
    members = {str(family): of.to_list() for family, of in names.groupby(level=0) if len(of) > 1}
    if len(members) < 2:
        raise NotDecided(
            "needs two families of two trained networks or more; there is " + (", ".join(members) or "none")
        )
    return members


class Finder(NamedTuple):
    """A statistic of condensed distances that families explain: a weight, summed over pairs of one family."""

    weights: Callable[[NDArray[Any], int], NDArray[Any]]  # distances, number of families → a weight per pair
    value: Callable[[NDArray[Any], Sequence[str]], float]  # distances, families → what is reported


def _cut(near: NDArray[Any], count: int) -> NDArray[Any]:
    return np.asarray(fcluster(linkage(near, "average"), count, "maxclust"))


def equal_pairs(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which pairs have equal labels, in the order of condensed distances."""
    first, second = np.triu_indices(len(labels), 1)
    return np.asarray(labels[first] == labels[second])


AGREEMENT = Finder(
    weights=lambda near, count: equal_pairs(_cut(near, count)),
    value=lambda near, families: adjusted_rand(families, _cut(near, len(set(families))).tolist()),
)
"""The tree, cut into as many clusters as families: the adjusted Rand index; 0 by chance."""
SEPARATION = Finder(
    weights=lambda near, _: np.argsort(np.argsort(-near)),
    value=lambda near, families: auc(-near, equal_pairs(np.array(families))),
)
"""How often two networks of one family are nearer to each other than two of different ones; ½ by chance."""


def finds_families(words: str, test: str, finder: Finder, says: str) -> Claim:
    """Claim that the distances find the families; `says` has the `value` of the finder."""

    def measure(census: Census) -> Numbers:
        need_relatives(census)
        near = census.distances.condensed
        families = list(census.families.values())
        chance = pair_chance(families, finder.weights(near, len(set(families))))
        codes = pd.factorize(np.array(families))[0].tolist()
        return {"value": finder.value(near, families), "p": chance.p, "families": codes}

    def draw(generator: np.random.Generator, present: bool, numbers: Any) -> Numbers:
        codes = [int(code) for code in numbers["families"]]
        points = generator.normal(size=(len(codes), 2))
        if present:
            points += APART * generator.normal(size=(max(codes) + 1, 2))[codes]
        return {"p": pair_chance(codes, finder.weights(pdist(points), max(codes) + 1)).p}

    return Claim(
        words=words,
        test=f"{test}, with p < {FAMILY_LEVEL} over orders of the families; at least two families of two "
        "networks.",
        measure=measure,
        holds=lambda n: n["p"] < FAMILY_LEVEL,
        says=lambda n: f"{says.format(**n)} (p = {n['p']:.2g}) over {len(n['families'])} networks",
        simulation=Simulation("every family far from all others, as the paper says of all of them", draw),
    )
