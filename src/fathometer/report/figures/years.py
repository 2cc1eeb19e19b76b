"""Networks over the years: least, median and largest score of each (Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import pandas as pd

from fathometer.compare import signatures
from fathometer.compare.soundings import Soundings, by_name
from fathometer.errors import InputError
from fathometer.report.figures.style import (
    DARK,
    GREY,
    LIGHT_GREY,
    MARGIN,
    NOTE_SIZE,
    SMALL_SIZE,
    UPRIGHT,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    legend_above,
    look,
    plain,
    words,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def year_table(soundings: Soundings, facts: pd.DataFrame, gauge: str = "affinity") -> pd.DataFrame:
    """A row for each network with a known year: `year`, `family`, `min`, `median` and `max` over its sites.

    In order of year, then of family as they come. Networks without a year are left out.

    Args:
        soundings: by name, or a list.
        facts: network × `year`, and `family` if known, as `known_facts` and `read_facts` give them.
        gauge: what to sum up.
    """
    found = signatures(soundings, gauge)
    years = facts["year"] if "year" in facts else pd.Series(dtype=float)
    years = years[years.notna()]
    rows = {
        name: {
            "year": int(years[name]),
            "family": str(facts["family"].get(name) or "") if "family" in facts else "",
            "min": values.min(),
            "median": float(pd.Series(values).median()),
            "max": values.max(),
        }
        for name, values in found.items()
        if name in years.index
    }
    if not rows:
        raise InputError(
            f"years: expected when networks were published, got no year for {_listed(list(found))}; give a "
            "CSV with columns network and year (--families FILE, or read_facts), or facts in a survey's plan"
        )
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    return table.assign(order=range(len(table))).sort_values(["year", "order"]).drop(columns="order")


@for_print
def plot_years(
    soundings: Soundings, facts: pd.DataFrame, gauge: str = "affinity", *, columns: Columns = 2
) -> Figure:
    """From the least to the largest score of each network, and its median, in order of year (Figure 3).

    A step is the median over the networks of a year of their medians.

    Args:
        soundings: by name, or a list.
        facts: network × `year`, and `family` if known.
        gauge: what to show.
        columns: 1 or 2, the width in columns of a page.
    """
    table = year_table(by_name(soundings), facts, gauge)
    figure = column_figure(columns, 2.8 if columns == 1 else 3.0)
    axes = figure.subplots()
    handles = _ranges(axes, table)
    _mark_years(axes, [int(year) for year in table["year"]], (WIDTHS[columns] - MARGIN) / len(table))
    medians = table.groupby("year")["median"].transform("median").to_numpy()
    edges = [place - 0.5 for place in range(len(table) + 1)]
    axes.stairs(medians, edges, baseline=None, color=GREY, linewidth=1.2, zorder=1)
    axes.set_xlim(-0.5, len(table) - 0.5)
    axes.set_ylabel(words(gauge))
    axes.tick_params("x", length=0)
    if (WIDTHS[columns] - MARGIN) / len(table) >= UPRIGHT:
        names = [plain(name, 26) for name in table.index]
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=SMALL_SIZE)
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{len(table)} networks, in order of year")
    legend_above(figure, handles)
    return figure


def _ranges(axes: Axes, table: pd.DataFrame) -> list[Artist]:
    """A bar from min to max and a mark at the median, by family."""
    from matplotlib.lines import Line2D

    families = list(dict.fromkeys(table["family"]))
    handles: list[Artist] = []
    for number, family in enumerate(families):
        own = (table["family"] == family).to_numpy()
        places, part = own.nonzero()[0], table[own]
        colour, marker = look(number)["color"], look(number)["marker"]
        axes.vlines(places, part["min"], part["max"], color=colour, linewidth=2.2, alpha=0.55)
        axes.plot(places, part["median"], linestyle="", marker=marker, color=colour, markersize=4.5)
        handles.append(
            Line2D(
                [], [], color=colour, marker=marker, linewidth=2.2, markersize=4.5, label=plain(family, 24)
            )
        )
    return handles if 1 < len(families) <= len(table) / 2 else []  # else the names say as much


def _mark_years(axes: Axes, years: Sequence[int], room: float) -> None:
    """Bands of years, with their numbers on top where they fit."""
    place = 0
    for number, (year, run) in enumerate(groupby(years)):
        count = len(list(run))
        if number % 2:
            axes.axvspan(place - 0.5, place + count - 0.5, color=LIGHT_GREY, linewidth=0, zorder=-10)
        upright = room * count < 0.3
        axes.annotate(
            str(year),
            (place + (count - 1) / 2, 1.01),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            rotation=90 if upright else 0,
            fontsize=SMALL_SIZE if upright else NOTE_SIZE,
            color=DARK,
        )
        place += count


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
