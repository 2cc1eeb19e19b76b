"""What all figures share: widths and type sizes for print, colour-blind-safe colours, names as plain text.

Every `plot_…` runs inside `print_style`, and its figure is drawn and saved inside it: the matplotlib settings
of the caller are neither used nor changed.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias

from fathometer.errors import InputError, import_extra
from fathometer.report.numbers import gauge_label
from fathometer.results.files import complete_file

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

Columns: TypeAlias = Literal[1, 2]
"""The width of a figure: one column of a journal, or two, the whole page."""

WIDTHS = {1: 3.5, 2: 7.2}
"""In inches."""
MAX_HEIGHT = 9.0
"""Of a page, in inches."""
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")

DARK = "#20303c"
BLUE = "#0072b2"
RED = "#d55e00"
GREEN = "#009e73"
ORANGE = "#e69f00"
SKY_BLUE = "#56b4e9"
PURPLE = "#cc79a7"
PALETTE = (BLUE, RED, GREEN, ORANGE, SKY_BLUE, PURPLE, DARK)
"""Okabe and Ito's colours without yellow, which is weak on paper; neighbours differ for colour-blind eyes."""
LIGHT_GREY = "#eef2f5"  # every other block
GREY = "#a9b1b8"  # what is in the background
COLOUR_MAP = "cividis"  # of scores: the same order in grey, and for colour-blind readers

MARKERS = ("o", "v", "s", "P", "^", "X", "D")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

NOTE_SIZE = 7.0  # points: ticks, legends, notes
SMALL_SIZE = 6.0  # names close together, numbers in cells


VERTICAL_NAME_WIDTH = 1.3 * SMALL_SIZE / 72
"""Inches that a vertical name under an axis takes."""
MARGIN = 0.65
"""Inches that the labels of an axis take."""

_PER_LETTER = 0.52 / 72  # inches that a letter takes for each point of its size

PRINT: Any = {  # for a type checker the keys are a long Literal
    "font.family": "DejaVu Sans",  # comes with matplotlib, and has ρ, L̃ and ‖
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": NOTE_SIZE,
    "ytick.labelsize": NOTE_SIZE,
    "legend.fontsize": NOTE_SIZE,
    "figure.titlesize": 9.0,
    "figure.labelsize": NOTE_SIZE,
    "text.color": DARK,
    "axes.edgecolor": DARK,
    "axes.labelcolor": DARK,
    "xtick.color": DARK,
    "ytick.color": DARK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.0,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "image.cmap": COLOUR_MAP,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # letters stay letters: embedded TrueType in a PDF …
    "ps.fonttype": 42,
    "svg.fonttype": "none",  # … and text in an SVG
    "svg.hashsalt": "fathometer",  # the same picture, the same file
}


@contextmanager
def print_style() -> Iterator[None]:
    """Use the settings for print inside a `with` block, whatever those of the caller are."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(PRINT)
        yield


def for_print(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function that draws a figure, so that it runs in `print_style`."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with print_style():
            return draw(*args, **kwargs)

    return drawn


def column_figure(columns: Columns, height: float) -> Figure:
    """Return an empty figure as wide as one column or two, and no higher than a page."""
    if columns not in WIDTHS:
        raise InputError(f"columns: expected 1 ({WIDTHS[1]} inches) or 2 ({WIDTHS[2]}), got {columns!r}")
    return new_figure(WIDTHS[columns], min(height, MAX_HEIGHT))


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that belongs to no window."""
    require_matplotlib()
    from fathometer.report.figures.sheet import Sheet

    return Sheet(figsize=(width, height), layout="constrained", dpi=150)


def series_style(number: int) -> dict[str, Any]:
    """Return colour, marker and line of series `number`: any two of 35 differ in two of the three."""
    colour, line = number % len(PALETTE), number % len(LINES)
    return {
        "color": PALETTE[colour],
        "marker": MARKERS[(colour + line) % len(MARKERS)],
        "linestyle": LINES[line],
    }


def legend_line(number: int, name: object, longest: int = 40, **settings: Any) -> Artist:
    """Return an entry of a legend in the style of series `number`."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=plain_text(name, longest), **(series_style(number) | settings))


def name_series(
    figure: Figure, names: Iterable[object], longest: int = 40, marks: Sequence[Artist] = (), **settings: Any
) -> None:
    """Add a legend above the figure: every series, in the style of `series_style`, and `marks`."""
    series = [legend_line(i, name, longest, **settings) for i, name in enumerate(names)]
    legend_above(figure, [*series, *marks])


def sum_marks(after_sum: Iterable[bool]) -> list[Artist]:
    """Return entries of a legend for filled and open marks, if any site is after a residual sum."""
    from matplotlib.lines import Line2D

    looks: dict[str, Any] = {"color": DARK, "marker": "o", "linestyle": "", "markersize": 4}
    if not any(after_sum):
        return []
    return [
        Line2D([], [], label="after a residual sum", **looks),
        Line2D([], [], label="inside a block, stem", markerfacecolor="white", **looks),
    ]


def title_left(axes: Axes, name: object, inches: float, **settings: Any) -> None:
    """Write a title at the left, shortened to so many inches."""
    axes.set_title(shortened(name, inches), loc="left", **settings)


def shortened(name: object, inches: float) -> str:
    """Return a name as plain text that takes so many inches at most, in letters of a title."""
    return plain_text(name, max(int(inches / (8 * _PER_LETTER)) - 1, 5))


def panel_figure(
    columns: Columns, count: int, across: int, height: float, margin: float, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure of `count` panels, `across` in a row of this height; the lowest have labels."""
    rows = math.ceil(count / across)
    figure = column_figure(columns, height * rows + margin)
    every = figure.subplots(rows, across, sharex=True, squeeze=False, **shared).ravel()
    for place, axes in enumerate(every):
        axes.set_visible(place < count)
        axes.tick_params("x", labelbottom=place + across >= count)  # no panel below it
    return figure, list(every[:count])


def plain_text(name: object, longest: int = 60) -> str:
    r"""Return a name from a file as plain text: no formula, no control character, at most so long.

    Example:
        >>> print(plain_text("a$b_2$"), plain_text("two" + chr(10) + "lines"), plain_text("x" * 99, 5))
        a\$b_2\$ two�lines xx…xx
    """
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(name))
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[len(text) - half :]}"
    if text.startswith("_") or not text:
        text = f"\N{HAIR SPACE}{text}"  # a legend leaves out names that begin with _
    return text.replace("$", r"\$")


def axis_label(gauge: str) -> str:
    """Return the name of a gauge or of a column as an axis shows it."""
    return plain_text(gauge_label(gauge))


def width_of(text: str, size: float = NOTE_SIZE) -> float:
    """Estimate how many inches a text takes; a command of a formula counts as a letter."""
    shown = re.sub(r"\\[a-zA-Z]+", "x", text)
    return len(re.sub(r"[\\${}^]", "", shown)) * size * _PER_LETTER


def legend_above(figure: Figure, handles: Sequence[Artist]) -> None:
    """Add a legend above the figure, in as many columns as fit; the figure grows by its height."""
    if not handles:
        return
    widest = max(width_of(str(handle.get_label())) for handle in handles) + 0.48
    fitting = max(1, int(figure.get_figwidth() / widest))
    rows = -(-len(handles) // fitting)
    figure.set_figheight(min(figure.get_figheight() + 0.155 * rows + 0.05, MAX_HEIGHT))
    figure.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // rows))


def note_below(figure: Figure, parts: Sequence[str], join: str = ", ") -> None:
    """Write parts of a note under the figure; lines break between the parts."""
    lines = [""]
    for place, part in enumerate(parts):
        part = part + (join if place + 1 < len(parts) else "")
        if lines[-1] and width_of(lines[-1] + part) > figure.get_figwidth() - 0.1:
            lines.append("")
        lines[-1] += part
    figure.supxlabel("\n".join(line.rstrip() for line in lines))


def require_matplotlib() -> None:
    """Fail early, and say which extra is missing."""
    import_extra("matplotlib", extra="plot", purpose="a picture")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a PNG, SVG or PDF, once it is complete. The same figure gives the same file."""
    suffix = path.suffix.lower()
    if suffix not in PICTURE_SUFFIXES:
        raise InputError(f"{path.name}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}")
    undated: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    dots = 300 if figure.get_figwidth() <= WIDTHS[2] else 150
    with complete_file(path) as part:
        figure.savefig(part, dpi=dots, metadata=undated.get(suffix))
