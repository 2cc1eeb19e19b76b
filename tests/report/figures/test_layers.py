"""Transformers by layer: which lines, marks and cells are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from fathometer.report import gauge_table, layer_table, plot_gauges, plot_layers
from fathometer.report.figures.style import PALETTE
from fathometer.report.numbers import number
from tests.report.figures.drawn import texts, transformer


def drawn(axes: Any) -> list[tuple[str, str, list[float]]]:
    """Colour, line style and values of each line."""
    lines = [bars.lines[0] for bars in axes.containers]
    return [(line.get_color(), line.get_linestyle(), list(line.get_ydata())) for line in lines]


def test_one_network_has_a_line_for_each_kind_and_residual() -> None:
    sounding = transformer("mine")
    figure = plot_layers([sounding])
    above, below = figure.axes
    table = layer_table(sounding).set_index("series")["mean"]
    assert drawn(above) == [(PALETTE[0], "-", table["activation"].to_list())]
    expected = [
        (PALETTE[place], style, table[f"{kind}{residual}"].to_list())
        for place, kind in enumerate(("attention", "mlp", "block"), 1)
        for style, residual in (("-", ""), ("--", " +residual"))
    ]
    assert drawn(below) == expected
    assert [axes.get_ylabel() for axes in (above, below)] == ["affinity score", "r2 heldout"]
    assert below.get_xlabel() == "layer"
    assert above.get_title("left") == "mine"
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["activation", "attention", "mlp", "block", "with residual", "r2 trimmed"]


def test_r2_is_marked_where_a_few_tokens_decide_it() -> None:
    sounding = transformer("mine")
    lines: list[Any] = list(plot_layers([sounding]).axes[1].lines)
    (mark,) = (line for line in lines if line.get_markerfacecolor() == "white" and len(line.get_xdata()))
    assert mark.get_color() == PALETTE[2]
    assert (mark.get_xdata().item(), mark.get_ydata().item()) == (1, sounding.mean("r2_trimmed")["h.1.mlp"])


def test_several_networks_have_a_panel_for_each_kind() -> None:
    named = {"a": transformer("a", 3), "b": transformer("b", 5, seed=1)}
    panels = plot_layers(named).axes
    assert [axes.get_title("left") for axes in panels] == ["activation", "attention", "mlp", "block"]
    for axes in panels[1:]:
        found = [(colour, style, len(values)) for colour, style, values in drawn(axes)]
        both = [(PALETTE[0], "-", 3), (PALETTE[0], "--", 3), (PALETTE[1], "-", 5), (PALETTE[1], "--", 5)]
        assert found == both
    (axes,) = plot_layers([named["a"]], "rank_0").axes
    assert len(drawn(axes)) == 7
    assert axes.get_ylabel() == "rank 0"


def test_a_heat_map_has_a_row_for_each_gauge_with_its_range() -> None:
    sounding = transformer("mine")
    figure = plot_gauges(sounding)
    table = gauge_table(sounding)
    panels: list[Any] = figure.axes[:-1]  # the last is the colour bar
    assert [axes.get_title("left") for axes in panels] == list(dict.fromkeys(table["series"]))
    for axes, (_, rows) in zip(panels, table.groupby("series", sort=False), strict=True):
        cells = np.asarray(axes.collections[0].get_array())
        assert_allclose(cells, rows["share"].to_numpy().reshape(-1, 4))
        ranges = [
            f"{number(low)} … {number(high)}" for low, high in zip(rows["low"], rows["high"], strict=True)
        ]
        assert [text.get_text() for text in axes.texts] == list(dict.fromkeys(ranges))
    many = plot_gauges(transformer("mine", more=40))
    # 7 inches have room for 70 rows: affinity has 1, both R² have 6 each, 8 others have 7 each
    assert "value in a row; the first 11 of 44 gauges" in [text.get_text() for text in texts(many)]


def test_a_sounding_with_parts_draws_itself_by_layer() -> None:
    sounding = transformer("mine")
    assert len(sounding.plot().axes) == 2
    assert sounding.plot("rank_0").axes[0].get_ylabel() == "rank 0"
    assert len(sounding.plot(kind="gauges").axes) == 8
    assert sounding.plot(kind="signature").axes[0].get_ylabel() == "affinity score"
