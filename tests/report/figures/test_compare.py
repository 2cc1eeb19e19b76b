from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError
from fathometer.compare import best_predictors, cluster, signature_distances, signature_statistics
from fathometer.report.figures.networks import plot_dendrogram, plot_distributions, plot_predictors

RNG = np.random.default_rng(6)


def test_tree_and_matrix_show_the_clustering() -> None:
    tree = cluster(signature_distances({"a": np.zeros(3), "$b_0$": np.ones(3), "c": np.full(3, 0.1)}))
    figure = plot_dendrogram(tree, {"a": "A", "c": "A"})
    branches, matrix = figure.axes[:2]
    labels = [label.get_text() for label in matrix.get_yticklabels()]
    assert labels == [name.replace("$", r"\$") for name in tree.names]
    assert np.array_equal(np.asarray(matrix.images[0].get_array()), tree.ordered.to_numpy())
    # The first leaf is on top in both, and the cells hold the distances.
    assert branches.yaxis_inverted()
    assert matrix.yaxis_inverted()
    assert matrix.texts[1].get_text() == f"{tree.ordered.to_numpy()[0, 1]:.2f}"
    colours = {label.get_text(): label.get_color() for label in matrix.get_yticklabels()}
    assert colours["a"] == colours["c"] != colours[r"\$b_0\$"]
    assert branches.get_xlabel().startswith("distance at merge\naverage linkage\ncophenetic 0.")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A"]
    alone = plot_dendrogram(tree, {"a": "A", "c": "C"})  # families of one network
    assert not alone.legends
    assert len({label.get_color() for label in alone.axes[1].get_yticklabels()}) == 1


def test_modes_are_marked_where_there_are_two() -> None:
    two = np.concatenate([RNG.normal(0.5, 0.02, 20), RNG.normal(0.9, 0.02, 20)])
    one = RNG.normal(0.7, 0.02, 40)
    numbers = pd.DataFrame({"two": signature_statistics(two), "one": signature_statistics(one)}).T
    figure = plot_distributions({"two": two, "one": one}, "affinity", numbers)
    marks = {axes.get_title(): [line.get_xdata()[0] for line in axes.lines] for axes in figure.axes}  # type: ignore[index]
    assert marks["one"] == []
    assert marks["two"] == pytest.approx([0.5, 0.9], abs=0.02)
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes]  # type: ignore[attr-defined]
    assert heights == [40, 40]
    with pytest.raises(InputError, match="at least one"):
        plot_distributions({})


def test_a_panel_for_each_family_and_kind() -> None:
    names = [f"{family}{i}" for family in "ab" for i in range(4)]
    numbers = pd.DataFrame.from_dict({n: signature_statistics(RNG.random(9)) for n in names}, orient="index")
    facts = pd.DataFrame({"accuracy": RNG.random(8), "depth": RNG.random(8)}, index=names)
    families = {name: name[0] for name in names}
    best = best_predictors(numbers, facts, families)
    figure = plot_predictors(best, numbers, facts, families)
    assert len(figure.axes) == 4
    assert all(axes.get_visible() and len(axes.lines) == 2 for axes in figure.axes)
    assert figure.axes[1].get_xlabel() == "depth"
    assert figure.axes[0].get_xlabel() == f"{best['predictor'].iloc[0]} affinity score"
    assert f"R² {best['r2'].iloc[0]:.2f}" in figure.axes[0].get_title()
    facts.loc["a0", "depth"] = np.nan  # the others are drawn
    best = best_predictors(numbers, facts, families)
    drawn = plot_predictors(best, numbers, facts, families).axes[1].lines[0]
    assert len(np.asarray(drawn.get_xdata())) == 3
