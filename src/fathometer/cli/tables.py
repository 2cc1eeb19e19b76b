"""Tables in the terminal: a sounding with a bar for each site, and any DataFrame, within its width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.cells import cell_len
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fathometer.results.sounding import Sounding

_BAR = 16  # characters, if there is room
_MIN_BAR = 4
_BORDER = 3  # characters of a column beside its cells
_VALUE = 13  # characters of 0.123 ± 0.045
_NUMBER = 7
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BESIDE = ("cka", "r2_heldout", "stable_rank_x", "stable_rank_y", "cost_of_identity", "nonnegativity_energy")
_NAME = 24  # characters to which names are shortened, if they stay different


def sounding_view(sounding: Sounding, gauge: str, console: Console) -> Group:
    """Show a gauge at every site with a bar, and below it the summary (Figure 3)."""
    mean, std = sounding.mean(gauge), sounding.std(gauge)
    width = sounding.records.groupby("site", sort=False)["d"].first()
    samples = sounding.records.groupby("site", sort=False)["n"].min()
    uneven = samples.nunique() > 1  # some sites see only a part of the data: then the table says so
    top = max(1.0, float(mean[mean < math.inf].max())) if len(mean) else 1.0
    names = max(len(site.name) + len(site.operator) for site in sounding.sites)
    room = console.width - names - 5 * _BORDER - 1 - len("width") - max(_VALUE, len(gauge))
    room -= _BORDER + 4 if uneven else 0
    cells = max(_MIN_BAR, min(_BAR, room))
    wished = [name for name in _BESIDE if name in sounding.gauges and name != gauge]
    others = fitting(wished, room - cells)
    caption = f"{gauge}, mean ± std over batches; a full bar is {top:.4g}"
    more = "; a wider terminal shows more" if len(others) < len(wished) else ""
    view = Table(title=Text(_title(sounding)), caption=caption + more)
    view.add_column("site", overflow="fold")
    view.add_column("operator")
    view.add_column("width", justify="right")
    if uneven:
        view.add_column("n", justify="right")
    view.add_column(gauge, justify="right", no_wrap=True)
    view.add_column("", width=cells, no_wrap=True)
    for name in others:
        view.add_column(name, justify="right")
    means = {name: sounding.mean(name) for name in others}
    for site in sounding.sites:
        spread = "" if math.isnan(std[site.name]) else f" ± {std[site.name]:.3f}"
        view.add_row(
            Text(site.name),
            Text(site.operator),
            str(width[site.name]),
            *([str(samples[site.name])] if uneven else []),
            f"{mean[site.name]:.3f}{spread}",
            bar(mean[site.name] / top, cells),
            *(f"{means[name][site.name]:.3f}" for name in others),
        )
    few = [name for name in samples.index if samples[name] < 32 or 8 * samples[name] < width[name]]
    note = (
        f"\n{len(few)} of these sites have few samples for their width; more would give steadier values"
        if few
        else ""
    )
    numbers = sounding.summary(gauge)
    line = ", ".join(f"{name} {number:.3f}" for name, number in numbers.items())
    count = "1 site" if len(sounding.sites) == 1 else f"{len(sounding.sites)} sites"
    return Group(view, Text(f"{gauge} over {count}: {line}{note}"))


def fitting(names: Sequence[str], room: int) -> list[str]:
    """Return as many columns as fit."""
    found: list[str] = []
    for name in names:
        room -= max(len(name), _NUMBER) + _BORDER
        if room < 0:
            break
        found.append(name)
    return found


def bar(share: float, cells: int = _BAR) -> str:
    """Return a bar for a number from 0 to 1, to an eighth of a character."""
    if math.isnan(share):
        return ""
    eighths = round(8 * cells * min(max(share, 0.0), 1.0))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def sounding_json(sounding: Sounding) -> dict[str, Any]:
    """Return a sounding for `--json`: what was measured, and the mean of every gauge at every site."""
    means = pd.DataFrame({gauge: sounding.mean(gauge) for gauge in sounding.gauges})
    means.insert(0, "operator", [site.operator for site in sounding.sites])
    means.insert(1, "width", sounding.records.groupby("site", sort=False)["d"].first())
    return {**sounding.provenance.as_dict(), "sites": means.rename_axis("site")}


def _title(sounding: Sounding) -> str:
    facts = sounding.provenance
    weights = facts.model.get("weights")
    model = f"{facts.model.get('name', '?')}" + (f" ({weights})" if weights else "")
    return f"{model} on {facts.data.get('name', '?')}"


def frame_view(
    frame: pd.DataFrame, title: str, caption: str = "", digits: int = 3, *, width: int = 80
) -> Group:
    """Show any table: the index first, numbers right-aligned, missing values as a dash.

    No cell is cut. Names are shortened at their end; if that is not enough, the columns are spread over
    several tables. A matrix that is too wide has numbers as column headings.
    """
    names = [str(name) for name in frame.index]
    head = str(frame.index.name or "")
    is_matrix = list(frame.columns) == list(frame.index)
    headings = [str(c) if is_matrix else str(c).replace("_", " ") for c in frame.columns]
    cells = [[_cell(value, digits) for value in frame.iloc[:, place]] for place in range(len(headings))]
    if is_matrix and _needed(headings, cells) + _width([head, *names]) + 1 > width:
        headings = [str(place) for place in range(1, len(names) + 1)]
        names = [f"{place} {name}" for place, name in enumerate(names, 1)]
    least = _width([head, *_shortened(names, _NAME)])
    parts = _parts([_needed([h], [c]) for h, c in zip(headings, cells, strict=True)], width - least - 1)
    taken = max((_needed([headings[c] for c in part], [cells[c] for c in part]) for part in parts), default=0)
    shown = _shortened(names, max(least, width - taken - 1) - _BORDER)
    views = []
    for place, part in enumerate(parts):
        above, below = Text(title) if place == 0 else None, caption if place == len(parts) - 1 else ""
        view = Table(title=above, caption=Text(below) if below else None)
        view.add_column(Text(head), no_wrap=True)
        for column in part:
            right = pd.api.types.is_numeric_dtype(frame.dtypes.iloc[column])
            least_width = _needed([headings[column]], [cells[column]]) - _BORDER
            view.add_column(
                Text(headings[column]), justify="right" if right else "left", min_width=least_width
            )
        for row, name in enumerate(shown):
            view.add_row(Text(name), *(Text(cells[column][row]) for column in part))
        views.append(view)
    return Group(*views)


def _parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """Split columns into as few groups as the room allows, of similar widths."""

    def greedy(limit: int) -> list[list[int]]:
        parts: list[list[int]] = [[]]
        left = limit
        for column, width in enumerate(widths):
            if parts[-1] and width > left:
                parts.append([])
                left = limit
            parts[-1].append(column)
            left -= width
        return parts

    parts = greedy(room)
    for limit in range(room - 1, 0, -1):
        narrower = greedy(limit)
        if len(narrower) > len(parts):
            break
        parts = narrower
    return parts


def _needed(headings: Sequence[str], columns: Sequence[Sequence[str]]) -> int:
    """Return the width of columns whose headings may break at spaces, and whose cells may not."""
    return sum(_width([*heading.split(), *cells]) for heading, cells in zip(headings, columns, strict=True))


def _width(words: Sequence[str]) -> int:
    return max(map(cell_len, words), default=0) + _BORDER


def _shortened(names: Sequence[str], room: int) -> list[str]:
    """Shorten names with … at their end; leave them as they are if they would become equal."""
    found = []
    for name in names:
        text = Text(name)
        text.truncate(max(2, room), overflow="ellipsis")
        found.append(text.plain)
    return found if len(set(found)) == len(set(names)) else list(names)


def _cell(value: object, digits: int) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


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
