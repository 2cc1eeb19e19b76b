from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError
from fathometer.compare import best_predictors, cluster, signature_distances, signature_statistics
from fathometer.report.figures.compare import plot_dendrogram, plot_distributions, plot_predictors

RNG = np.random.default_rng(6)


def test_the_tree_stands_beside_its_matrix() -> None:
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
    assert branches.get_xlabel().startswith("average linkage\ncophenetic 0.")


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
    assert f"R² {best['r2'].iloc[0]:.2f}" in figure.axes[0].get_title()


def test_a_clustering_draws_itself() -> None:
    tree = cluster(signature_distances({name: RNG.random(9) for name in "abcdefgh"}))
    families = dict(zip("abcdefgh", ("A", "B", "C", "C") * 2, strict=True))
    for columns, numbers in ((1, 0), (2, 64)):
        figure = tree.plot(families, columns=columns)  # type: ignore[arg-type]
        assert len(figure.axes[1].texts) == numbers  # distances in the cells, where they fit
        marks = [line for line in figure.axes[0].lines if line.get_xdata() == [0]]
        assert len(marks) == 8
        looks = {(mark.get_color(), mark.get_marker()) for mark in marks}
        assert len(looks) == 3
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == list(
            dict.fromkeys(families[name] for name in tree.names)
        )


def test_leaves_stand_at_the_rows_of_the_matrix() -> None:
    figure = cluster(signature_distances({name: RNG.random(9) for name in "abcdefgh"})).plot()
    figure.draw_without_rendering()
    branches, matrix = figure.axes[:2]
    for row in range(8):
        leaf = branches.transData.transform((0, 10 * row + 5))[1]
        assert leaf == pytest.approx(matrix.transData.transform((0, row))[1], abs=1)


def test_panels_of_families_stand_in_rows() -> None:
    names = [f"{family}{i}" for family in "abc" for i in range(4)]
    numbers = pd.DataFrame.from_dict({n: signature_statistics(RNG.random(9)) for n in names}, orient="index")
    facts = pd.DataFrame({"accuracy": RNG.random(12), "depth": RNG.random(12)}, index=names)
    families = {name: name[0] for name in names}
    best = best_predictors(numbers, facts, families)
    wide = plot_predictors(best, numbers, facts, families, columns=2)
    assert [axes.get_visible() for axes in wide.axes] == [True] * 6 + [False] * 2
    narrow = plot_predictors(best, numbers, facts, families, columns=1)
    assert [axes.get_ylabel() for axes in narrow.axes[::2]] == [f"{family}\naccuracy" for family in "abc"]
