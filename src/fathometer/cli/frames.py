"""Any table in the terminal, as wide as that is: what does not fit stands in a second one below."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

_NAME = 24  # to which names are shortened, if they stay apart
_BETWEEN = 3  # what a column takes beside its cells


def frame_view(
    frame: pd.DataFrame, title: str, caption: str = "", digits: int = 3, *, width: int = 80
) -> Group:
    """Any table: the index first, numbers to the right; what is missing is a dash.

    No cell is cut. Names are shortened at their end, and where that is not enough the columns are spread over
    several tables. A matrix that is too wide has numbers above its columns.
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
    shown = _shortened(names, max(least, width - taken - 1) - _BETWEEN)
    views = []
    for place, part in enumerate(parts):
        above, below = Text(title) if place == 0 else None, caption if place == len(parts) - 1 else ""
        view = Table(title=above, caption=Text(below) if below else None)
        view.add_column(Text(head), no_wrap=True)
        for column in part:
            right = pd.api.types.is_numeric_dtype(frame.dtypes.iloc[column])
            least_width = _needed([headings[column]], [cells[column]]) - _BETWEEN
            view.add_column(
                Text(headings[column]), justify="right" if right else "left", min_width=least_width
            )
        for row, name in enumerate(shown):
            view.add_row(Text(name), *(Text(cells[column][row]) for column in part))
        views.append(view)
    return Group(*views)


def _parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns in as few groups as the room allows, none much wider than another; each has one at least."""

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
    """Of columns whose headings may break at spaces, and whose cells may not."""
    return sum(_width([*heading.split(), *cells]) for heading, cells in zip(headings, columns, strict=True))


def _width(words: Sequence[str]) -> int:
    return max(map(cell_len, words), default=0) + _BETWEEN


def _shortened(names: Sequence[str], room: int) -> list[str]:
    """Names that fit, with … at their end; as they are where they could not be told apart any more."""
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
    """What `family_table` gives as the paper prints it: `0.53 ± 0.04`; one network has no ±."""

    def word(mean: float, std: float, count: int) -> str:
        if np.isnan(mean):
            return "–"
        return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if count > 1 else "")

    words = {
        quantity: list(map(word, *(table[quantity, part] for part in ("mean", "std", "count"))))
        for quantity in dict.fromkeys(table.columns.get_level_values(0))
    }
    return pd.DataFrame(words, index=table.index)
