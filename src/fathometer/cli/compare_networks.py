"""The tables and pictures of `fathometer compare networks`."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fathometer.cli.outputs import ResultFolder
from fathometer.compare import (
    Clustering,
    adjusted_rand,
    best_predictors,
    correlations,
    family_agreement,
    family_table,
    predictors,
    signatures,
    stability,
    statistics,
)
from fathometer.errors import InputError
from fathometer.report import plot_dendrogram, plot_distributions, plot_predictors
from fathometer.report.tables import families_of
from fathometer.results.sounding import Sounding

_MAX_MATRIX = 8  # networks whose distance matrix fits a terminal
_SHOWN = ["sites", "min", "median", "max", "spread", "skewness", "dip", "p", "bimodal"]


def compare_networks(
    named: dict[str, Sounding],
    tree: Clustering,
    facts: pd.DataFrame,
    clusters: int | None,
    draws: int,
    results: ResultFolder,
) -> None:
    """Show statistics in the order of the tree, families, stability, correlations and predictors."""
    gauge, metric = tree.distances.gauge, tree.distances.metric
    members = families_of(facts)
    count = clusters or min(max(2, len(set(members.values()))), len(named))
    numbers = statistics(named, gauge).loc[list(tree.names)]
    cut = tree.cut(count)
    results.add("distances", tree.distances.frame.rename_axis("network"))
    results.add("statistics", numbers.assign(cluster=cut))
    if len(named) <= _MAX_MATRIX:
        results.show(tree.ordered.rename_axis("network"), f"{metric} distances of {gauge}")
    shown = numbers[_SHOWN].copy()
    shown["bimodal"] = shown["bimodal"].astype(object).where(shown["p"].notna(), None)
    shown.insert(0, "cluster", cut)
    if members:
        shown.insert(1, "family", [members.get(name) for name in shown.index])
    note = "p: how often values with one mode (uniform) have such a dip by chance; bimodal: p < 0.05"
    results.show(shown, f"{gauge}, in the order of the tree ({metric}, {tree.method})", note)
    if not math.isnan(tree.cophenetic):
        results.say(f"cophenetic correlation {tree.cophenetic:.3f}")
    if len(set(members.values())) > 1:
        agreement = family_agreement(tree.distances, members)
        results.add("families", agreement.set_index("network"))
        _print_agreement(agreement, cut, members, results)
    returns = _stability(named, tree, count, draws, results) if draws else None
    _show_correlations(named, gauge, members, results)
    _show_predictors(numbers, facts, members, gauge, results)
    results.draw("dendrogram", lambda: plot_dendrogram(tree, members, returns))
    results.draw("distributions", lambda: plot_distributions(signatures(named, gauge), gauge, numbers))


def _print_agreement(
    agreement: pd.DataFrame, cut: pd.Series[int], members: dict[str, str], results: ResultFolder
) -> None:
    with_family = agreement[agreement["same"].notna()]
    elsewhere = with_family[with_family["same"] == False]  # noqa: E712 - the column also holds None
    known = [name for name in cut.index if name in members]
    rand = adjusted_rand([members[name] for name in known], cut.loc[known].to_list())
    results.say(
        f"nearest neighbour in the same family: {len(with_family) - len(elsewhere)} of {len(with_family)} "
        f"networks; mean silhouette {with_family['silhouette'].mean():.2f}; "
        f"{cut.nunique()} clusters and the families: adjusted Rand index {rand:.2f}"
    )
    for row in elsewhere.itertuples():
        results.say(f"  {row.network} ({row.family}) is nearest to {row.nearest} ({row.nearest_family})")


def _stability(
    named: dict[str, Sounding], tree: Clustering, count: int, draws: int, results: ResultFolder
) -> list[float]:
    """Return the share of draws in which each merge returns."""
    found = stability(tree, named, clusters=count, draws=draws)
    results.add("merges", found.merges.set_index("members"))
    results.add("pairs", found.pairs.rename_axis("network"))
    returns = found.merges["returns"]
    results.say(
        f"batches resampled {draws} times: {(returns >= 0.95).sum()} of {len(returns)} clusters return "
        f"in 95 % of the draws, the weakest in {100 * returns.min():.0f} %",
    )
    if found.single_batch:
        results.say(f"with one batch, and so never resampled: {', '.join(found.single_batch)}")
    return [float(share) for share in returns]


def _show_correlations(
    named: dict[str, Sounding], gauge: str, members: dict[str, str], results: ResultFolder
) -> None:
    try:
        table = correlations(named, gauge)
    except InputError:
        return  # no companion was measured
    results.add("correlations", table)
    by_family = family_table(table, members)
    flat = by_family.set_axis(["_".join(column) for column in by_family.columns], axis=1)
    results.add("correlations_by_family", flat)
    title = f"Pearson correlation with {gauge} over sites"
    note = "Table 2; –: not measured, or the same at every site" if table.isna().any(axis=None) else "Table 2"
    results.show(table, title, note, ".2f")
    if members:
        note = "mean ± population std (Table 1)"
        results.show(mean_and_std(by_family), title, note)


def _show_predictors(
    numbers: pd.DataFrame, facts: pd.DataFrame, members: dict[str, str], gauge: str, results: ResultFolder
) -> None:
    if "accuracy" not in facts or not facts["accuracy"].notna().any():
        results.say(
            "no predictor of accuracy: no accuracy is known; give it with --families FILE, a CSV with the "
            "columns network, family and accuracy"
        )
        return
    try:
        lines = predictors(numbers, facts, members)
        best = best_predictors(numbers, facts, members)
    except InputError as error:
        results.say(f"no predictor of accuracy: {error}")
        return
    results.add("predictors", lines.set_index("family"))
    results.add("best_predictors", best.set_index("family"))
    note = "left out: for networks that the line has not seen; p: how often shuffled accuracies do as well"
    title = "Best single predictor of accuracy (Figure 4)"
    results.show(best.set_index("family"), title, note)
    for row in lines[lines["r2"].isna()].itertuples():
        results.say(f"{row.family}: {row.predictor} left out, known for {row.members} networks")
    results.draw("predictors", lambda: plot_predictors(best, numbers, facts, members, gauge=gauge))


def mean_and_std(table: pd.DataFrame, digits: int = 2) -> pd.DataFrame:
    """Write the means of `family_table` as the paper prints them: `0.53 ± 0.04`; one network has no ±."""

    def word(mean: float, std: float, count: int) -> str:
        if np.isnan(mean):
            return "–"
        return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if count > 1 else "")

    words = {
        quantity: list(map(word, *(table[quantity, part] for part in ("mean", "std", "count"))))
        for quantity in dict.fromkeys(table.columns.get_level_values(0))
    }
    return pd.DataFrame(words, index=table.index)
