from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.dom import minidom

import matplotlib
import numpy as np
import pytest
from matplotlib.lines import Line2D

from fathometer import InputError
from fathometer.report.figures.soundings import plot_overlay
from fathometer.report.figures.style import (
    LINES,
    PALETTE,
    column_figure,
    legend_above,
    look,
    new_figure,
    plain_text,
    print_style,
    save_figure,
)
from tests.report.figures.drawn import network, texts

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
EYES = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)


def lab(colour: str, eye: Any) -> Any:
    """CIE L*a*b* of a colour as an eye sees it."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x = TO_XYZ @ np.clip(eye @ linear, 0, 1) / TO_XYZ.sum(1)
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(pairs: Any) -> float:
    """The least CIE76 distance over pairs of colours and over eyes."""
    return min(float(np.linalg.norm(lab(a, eye) - lab(b, eye))) for a, b in pairs for eye in EYES.values())


def test_all_eyes_tell_the_colours_apart() -> None:
    assert nearest(pairwise(PALETTE)) > 20
    assert nearest(combinations(PALETTE, 2)) > 15
    assert nearest((colour, "#ffffff") for colour in PALETTE) > 25  # none is lost on paper
    # The measure is one that a palette can fail: matplotlib's own does.
    usual = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b"]
    assert nearest(pairwise(usual)) < 10


def test_no_two_of_35_rely_on_colour_alone() -> None:
    looks = [look(number) for number in range(35)]
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


def test_letters_stay_letters(tmp_path: Path) -> None:
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


def test_a_legend_takes_the_columns_that_fit_and_makes_room() -> None:
    def legend(labels: list[str]) -> Any:
        with print_style():
            figure = column_figure(1, 2.0)
            figure.subplots()
            legend_above(figure, [Line2D([], [], label=plain_text(label)) for label in labels])
        return figure

    narrow = legend(["a name of some length", "another name as long", "and one more of that"])
    (found,) = narrow.legends
    assert found._ncols < 3
    assert narrow.get_figheight() > 2.2
    narrow.draw_without_rendering()
    assert found.get_window_extent().x1 <= narrow.bbox.x1
    wide = legend(["a", "b", "c"])
    assert wide.legends[0]._ncols == 3
    assert not legend([]).legends
    assert "_hidden" in legend(["_hidden", "b"]).legends[0].get_texts()[0].get_text()
