from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from matplotlib.patches import ConnectionPatch
from numpy.testing import assert_allclose

from fathometer import InputError, Sounding
from fathometer.compare import dtw_path
from fathometer.compare.distance import aligned
from fathometer.report.blocks import blocks_of
from fathometer.report.figures.pairs import plot_alignment, plot_difference
from fathometer.report.figures.soundings import plot_overlay, plot_signature, plot_strip
from fathometer.report.figures.style import PALETTE
from tests.report.figures.drawn import network


@pytest.fixture
def sounding() -> Sounding:
    return network("mine")


def bands(axes: Any) -> list[tuple[float, float]]:
    """From where to where the shaded blocks reach."""
    return [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]


def colours(axes: Any) -> dict[str, tuple[str, list[float]]]:
    """By operator: its colour, and where its points stand."""
    return {
        bar.get_label(): (bar.lines[0].get_color(), list(bar.lines[0].get_xdata())) for bar in axes.containers
    }


def test_one_sounding_shows_operators_blocks_and_errors(sounding: Sounding) -> None:
    figure = plot_signature(sounding)
    (axes,) = figure.axes
    found = colours(axes)
    assert found == {"relu": (PALETTE[0], [0, 2, 4, 6, 8, 10]), "gelu": (PALETTE[1], [1, 3, 5, 7, 9, 11])}
    blocks = blocks_of(sounding.sites)
    assert [block.label for block in blocks][:2] == ["layer0.0", "layer0.1"]
    assert bands(axes) == [(block.start - 0.5, block.stop - 0.5) for block in blocks[1::2]]
    assert [label.get_text() for label in axes.get_xticklabels()] == [site.name for site in sounding.sites]
    bars: Any = axes.containers[0]
    reach = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    assert_allclose(np.ptp(reach, axis=1) / 2, sounding.std("affinity").iloc[::2])
    assert_allclose(np.asarray(axes.get_lines()[0].get_ydata(), float), sounding.signature)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["relu", "gelu"]
    assert axes.get_title("left") == "mine"


def test_marks_after_a_residual_sum_are_filled_and_others_open(sounding: Sounding) -> None:
    sites = tuple(
        msgspec.structs.replace(site, after_sum=place in (3, 7)) for place, site in enumerate(sounding.sites)
    )
    residual = replace(sounding, sites=sites)
    inner = [place for place in range(12) if place not in (3, 7)]
    words = ["after a residual sum", "inside a block, stem"]
    named = {"plain": sounding, "residual": residual}
    one, both = plot_signature(residual), plot_overlay(named)
    for figure in (one, both, plot_alignment(named), plot_difference(named)):
        assert [text.get_text() for text in figure.legends[0].get_texts()][-2:] == words
    for figure, places in ((one, inner), (both, [place / 11 for place in inner])):
        drawn = [line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "white"]
        found = np.concatenate([np.asarray(line.get_xdata(), float) for line in drawn])
        assert_allclose(np.sort(found), places)
    assert len(plot_overlay({"a": sounding, "b": sounding}).legends[0].get_texts()) == 2


@pytest.mark.parametrize(
    ("count", "columns", "named"), [(24, 1, True), (40, 1, False), (60, 2, True), (70, 2, False)]
)
def test_sites_are_named_where_they_fit_else_blocks(count: int, columns: Any, named: bool) -> None:
    shown = plot_signature(network("mine", count), columns=columns).axes[0].get_xticklabels()
    sites = network("mine", count).sites
    expected = [site.name for site in sites] if named else [block.label for block in blocks_of(sites)]
    assert [label.get_text() for label in shown] == expected


def test_a_signature_can_have_a_strip_and_a_distribution(sounding: Sounding) -> None:
    main, beside, strip, corner = plot_signature(sounding, strip=True, distribution=True).axes
    assert not corner.get_visible()
    cells: Any = strip.collections[0]
    assert_allclose(np.asarray(cells.get_array()).ravel(), sounding.signature)
    assert sum(bar.get_width() for bar in beside.patches) == 12  # type: ignore[attr-defined]
    assert beside.get_ylim() == main.get_ylim()
    assert [label.get_text() for label in strip.get_xticklabels()] == [site.name for site in sounding.sites]


def test_two_modes_are_marked_in_the_distribution() -> None:
    values = np.r_[np.linspace(0.5, 0.54, 10), np.linspace(0.9, 0.94, 10)]
    lines = plot_signature(network("two", 20, two=values), "two", distribution=True).axes[1].lines
    marked = [np.asarray(line.get_ydata(), float)[0] for line in lines]
    assert marked == pytest.approx([0.52, 0.92], abs=0.01)
    one = network("one", 20, one=np.random.default_rng(0).normal(0.7, 0.02, 20))
    assert not plot_signature(one, "one", distribution=True).axes[1].lines


def test_what_is_not_finite_is_crossed_out() -> None:
    values = np.linspace(1, 2, 12)
    values[[3, 5]] = np.inf, np.nan
    figure = plot_signature(network("mine", odd=values), "odd")
    cross = next(line for line in figure.axes[0].get_lines() if line.get_marker() == "x")
    assert list(np.asarray(cross.get_xdata())) == [3, 5]
    assert "no finite value" in [text.get_text() for text in figure.legends[0].get_texts()]
    with pytest.raises(InputError, match="'odd' has no finite value at any site"):
        plot_signature(network("mine", odd=np.full(12, np.nan)), "odd")
    with pytest.raises(InputError, match="'rank' was not measured"):
        plot_signature(network("mine"), "rank")


def test_a_strip_has_a_cell_for_each_site_with_its_score() -> None:
    sounding = network("mine", 12)
    figure = plot_strip([sounding])
    row = figure.axes[0]
    cells: Any = row.collections[0]
    assert_allclose(np.asarray(cells.get_array()).ravel(), sounding.signature)
    assert [text.get_text() for text in row.texts] == [f"{value:.2f}" for value in sounding.signature]
    assert [label.get_text() for label in row.get_xticklabels()] == [
        block.label for block in blocks_of(sounding.sites)
    ]
    operators = [patch.get_facecolor() for patch in row.patches]
    assert len(operators) == 12
    assert operators[0] == operators[2] != operators[1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["relu", "gelu"]


def test_several_networks_have_a_strip_each() -> None:
    named = {"first": network("a", 12), "second": network("b", 30, seed=1)}
    axes = plot_strip(named).axes[0]
    cells: list[Any] = list(axes.collections)
    assert [np.asarray(row.get_array()).size for row in cells] == [12, 30]
    assert cells[0].get_clim() == cells[1].get_clim()  # one scale
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]


def test_an_overlay_goes_from_the_first_site_to_the_last() -> None:
    named = {"a": network("a", 12), "b": network("b", 30, seed=1)}
    figure = plot_overlay(named)
    (axes,) = figure.axes
    every: list[Any] = list(axes.containers)
    for bar, sounding in zip(every, named.values(), strict=True):
        line = bar.lines[0]
        assert_allclose(line.get_xdata(), np.linspace(0, 1, len(sounding.sites)))
        assert_allclose(line.get_ydata(), sounding.signature)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_an_overlay_by_dtw_puts_sites_at_their_partners() -> None:
    first, second = network("a", 12), network("b", 30, seed=1)
    path, _ = dtw_path(first.signature.to_numpy(), second.signature.to_numpy())
    (axes,) = plot_overlay({"a": first, "b": second}, along="dtw").axes
    bars: Any = axes.containers[1]
    line = bars.lines[0]
    expected = [np.mean([i / 11 for i, j in path if j == site]) for site in range(30)]
    assert_allclose(line.get_xdata(), expected)
    assert axes.get_xlabel() == "depth in a, by DTW"


def test_alignment_is_by_site_where_sites_are_the_same_else_by_dtw() -> None:
    first, again, other = network("a"), network("a", seed=1), network("b", 9, seed=2)
    x, y = first.signature.to_numpy(), again.signature.to_numpy()
    same = aligned(first, again)
    assert same.how == "sites"
    assert same.pairs.tolist() == [[i, i] for i in range(12)]
    assert same.distance == pytest.approx(np.linalg.norm(x - y))
    warped = aligned(first, again, by="dtw")
    path, distance = dtw_path(x, y)
    assert warped.pairs.tolist() == [list(pair) for pair in path]
    assert warped.distance == pytest.approx(distance)
    assert warped.distance <= same.distance
    assert aligned(first, other).how == "dtw"
    with pytest.raises(InputError, match="12 and 9 that differ; use dtw"):
        aligned(first, other, by="sites")
    with pytest.raises(InputError, match="align: expected one of auto, sites, dtw, got 'depth'"):
        aligned(first, other, by="depth")  # type: ignore[arg-type]


def test_lines_join_aligned_sites() -> None:
    first, other = network("a"), network("b", 9, seed=2)
    figure = plot_alignment([first, other])
    lines = [patch for patch in figure.findobj(ConnectionPatch) if patch.get_gid() == "match"]
    pairs = aligned(first, other).pairs
    ends = [(*line.xy1, *line.xy2) for line in lines]
    x, y = first.signature.to_numpy(), other.signature.to_numpy()
    assert_allclose(ends, [(i / 11, x[i], j / 8, y[j]) for i, j in pairs])
    top, bottom = figure.axes
    assert {line.axesA for line in lines} == {top}
    assert {line.axesB for line in lines} == {bottom}
    assert f"DTW distance {aligned(first, other).distance:.3g}" in bottom.get_xlabel()
    with pytest.raises(InputError, match="expected two soundings to compare, got 3"):
        plot_alignment([first, other, other])


def test_the_difference_is_the_second_minus_the_first() -> None:
    first, again = network("a"), network("a", seed=1)
    top, bottom = plot_difference({"before": first, "after": again}).axes
    heights = [bar.get_height() for bar in bottom.containers[0]]
    assert_allclose(heights, (again.signature - first.signature).to_numpy())
    bars: Any = bottom.containers[1]
    reach = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    assert_allclose(np.ptp(reach, axis=1) / 2, np.hypot(first.std("affinity"), again.std("affinity")))
    assert bottom.get_ylabel() == "after\n− before"
    _, long = plot_difference({"before": first, "after a very long training": again}).axes
    assert long.get_ylabel() == "second − first,\naffinity score"
    assert "same sites" in bottom.get_xlabel()
    bars = top.containers[1]
    line = bars.lines[0]
    assert_allclose(line.get_ydata(), again.signature)
