from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any
from xml.dom import minidom

import matplotlib
import pytest
from matplotlib.lines import Line2D

from fathometer import InputError
from fathometer.report.figures.soundings import plot_overlay
from fathometer.report.figures.style import (
    DARK,
    LINES,
    PALETTE,
    column_figure,
    legend_above,
    new_figure,
    plain_text,
    print_style,
    save_figure,
    series_style,
)
from tests.report.figures.drawn import network, texts

OKABE_ITO = "#000000 #e69f00 #56b4e9 #009e73 #f0e442 #0072b2 #d55e00 #cc79a7".split()


def test_colours_are_those_of_okabe_and_ito() -> None:
    assert set(PALETTE) - {DARK} <= set(OKABE_ITO)


def test_no_two_of_35_rely_on_colour_alone() -> None:
    looks = [series_style(number) for number in range(35)]
    for one, other in combinations(looks, 2):
        assert sum(one[key] != other[key] for key in one) >= 2
    assert {repr(each["linestyle"]) for each in looks} == {repr(line) for line in LINES}


def test_the_settings_of_the_caller_stay_as_they_are(tmp_path: Path) -> None:
    with matplotlib.rc_context({"font.size": 31, "text.usetex": True, "savefig.dpi": 20, "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        figure = plot_overlay({"a": network("a"), "b": network("b", seed=1)})
        save_figure(figure, tmp_path / "a.pdf")
        figure._repr_png_()  # type: ignore[attr-defined]
        assert dict(matplotlib.rcParams) == before
    assert {text.get_fontsize() for text in texts(figure)} <= {7.0, 8.0}
    assert not any(text.get_usetex() for text in texts(figure))
    assert not figure.axes[0].xaxis.get_gridlines()[0].get_visible()


def test_widths_are_those_of_columns() -> None:
    assert column_figure(1, 2.0).get_size_inches().tolist() == [3.5, 2.0]
    assert column_figure(2, 20.0).get_size_inches().tolist() == [7.2, 9.0]
    with pytest.raises(InputError, match=r"columns: expected 1 \(3.5 inches\) or 2 \(7.2\), got 3"):
        column_figure(3, 2.0)  # type: ignore[arg-type]


def test_text_stays_text_in_files(tmp_path: Path) -> None:
    figure = plot_overlay({"a$x_1$": network("a"), "_b": network("b", seed=1)}, columns=1)
    save_figure(figure, tmp_path / "a.pdf")
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type /Font" in pdf
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/Subtype /Type3" not in pdf
    save_figure(figure, tmp_path / "a.svg")
    words = [
        "".join(node.data for node in text.childNodes if node.nodeType == node.TEXT_NODE).strip()
        for text in minidom.parse(str(tmp_path / "a.svg")).getElementsByTagName("text")
    ]
    assert {"a$x_1$", "_b", "affinity score", "relative depth"} <= set(words)
    save_figure(figure, tmp_path / "a.png")
    # 300 dots an inch: width stands in bytes 16 to 20 of a PNG.
    assert int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big") == 1050
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_is_the_same_file(suffix: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_figure(plot_overlay({"a": network("a"), "b": network("b")}), tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a.gif: expected a name that ends in .png, .svg, .pdf"):
        save_figure(new_figure(3, 2), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("layer1.0/relu#2", "layer1.0/relu#2"),
        ("$x_1^2$", r"\$x_1^2\$"),
        ("a\\$b", r"a\\$b"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("bell\x07 and\nline\u202e", "bell� and�line�"),
        ("\ud800", "�"),
        ("_hidden", "\u200a_hidden"),
        ("", "\u200a"),
    ],
)
def test_names_are_shown_plainly(name: str, shown: str, tmp_path: Path) -> None:
    assert plain_text(name) == shown
    figure = new_figure(3, 2)
    figure.text(0.5, 0.5, plain_text(name))
    save_figure(figure, tmp_path / "a.svg")
    minidom.parse(str(tmp_path / "a.svg"))  # well formed
    assert "<script>" not in (tmp_path / "a.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("labels", "most"),
    [(["a name of some length", "another name as long", "and one more of that"], 2), (["a", "b", "c"], 3)],
)
def test_a_legend_takes_the_columns_that_fit_and_makes_room(labels: list[str], most: int) -> None:
    with print_style():
        figure: Any = column_figure(1, 2.0)
        figure.subplots()
        legend_above(figure, [Line2D([], [], label=label) for label in labels])
    (found,) = figure.legends
    assert found._ncols <= most
    assert figure.get_figheight() > 2.2
    figure.draw_without_rendering()
    assert found.get_window_extent().x1 <= figure.bbox.x1
