"""Tables in the terminal: one view for every command, and what it shows of a sounding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group
from rich.table import Table
from rich.text import Text

from fathometer.checking.ranges import reference_percentiles
from fathometer.errors import join_names
from fathometer.results.sounding import Sounding

_BORDER = 3  # characters of a column beside its cells
_NAME = 24  # characters of a name in one line, if there is no room for all of it
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_EXTRA_GAUGES = (
    "cka_debiased",
    "cka",
    "r2_heldout",
    "stable_rank_x",
    "stable_rank_y",
    "cost_of_identity",
    "nonnegativity_energy",
)
_WHY_MISSING = {
    "saturated": "it is for bounded activations, such as Tanh or sigmoid",
    "neural_collapse": "it needs batches with at least two samples of each of two classes",
}
"""Why a gauge may have no value at any site, by the beginning of its name."""


@dataclass(frozen=True)
class TableView:
    """A DataFrame for the terminal: its index first, numbers right-aligned, missing values as a dash.

    Nothing is cut. In a narrow terminal optional columns are left out, names are folded, headings and text
    break at spaces, and columns are spread over several tables. A matrix that is too wide has numbers as
    headings.

    Attributes:
        frame: what to show; text is shown as it is.
        title: the line above the table.
        caption: the text below it.
        number: format of numbers that are not whole.
        optional: columns that may be left out, the last one first.
        show_lines: whether to draw a line between rows.
    """

    frame: pd.DataFrame
    title: str = ""
    caption: str = ""
    number: str = ".3f"
    optional: Sequence[str] = ()
    show_lines: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        """Yield one table, or several if the terminal is too narrow for one."""
        del console
        names = _Column(str(self.frame.index.name or ""), [Text(str(name)) for name in self.frame.index])
        columns = [
            _Column(str(name), [_cell(value, self.number) for value in self.frame[name]])
            for name in self.frame.columns
        ]
        room = options.max_width - 1
        optional, caption = list(self.optional), self.caption
        while optional and names.width + sum(column.width for column in columns) > room:
            left_out = optional.pop()
            columns = [column for column in columns if column.heading != left_out]
            caption = f"{self.caption}; a wider terminal shows more"
        is_matrix = list(self.frame.columns) == list(self.frame.index)
        if is_matrix and names.width + sum(column.min_width for column in columns) > room:
            names.cells = [Text(f"{place} {name}") for place, name in enumerate(names.cells, 1)]
            columns = [_Column(str(place), column.cells) for place, column in enumerate(columns, 1)]
        parts = _split(columns, room - min(names.width, _NAME + _BORDER))
        for number, part in enumerate(parts):
            view = Table(
                title=Text(self.title) if self.title and number == 0 else None,
                caption=Text(caption) if caption and number == len(parts) - 1 else None,
                show_lines=self.show_lines,
            )
            left = room - sum(column.min_width for column in part)
            view.add_column(
                Text(names.heading), overflow="fold", width=max(1, min(names.width, left) - _BORDER)
            )
            for column in part:
                view.add_column(
                    Text(column.heading),
                    justify="right" if column.are_numbers else "left",
                    overflow="fold",
                    min_width=column.min_width - _BORDER,
                )
            for row in zip(names.cells, *(column.cells for column in part), strict=True):
                view.add_row(*row)
            yield view


@dataclass
class _Column:
    heading: str
    cells: list[Text]

    @property
    def width(self) -> int:
        return max(map(cell_len, [self.heading, *self._lines()])) + _BORDER

    @property
    def min_width(self) -> int:
        """The width of a column whose heading and text break at spaces; numbers do not."""
        words = (
            self._lines() if self.are_numbers else [word for line in self._lines() for word in line.split()]
        )
        return max(map(cell_len, [*self.heading.split(), *words]), default=0) + _BORDER

    @property
    def are_numbers(self) -> bool:
        return all(not cell or cell.plain.startswith(("inf", *"0123456789-–")) for cell in self.cells)

    def _lines(self) -> list[str]:
        return [line for cell in self.cells for line in cell.plain.splitlines()]


def _split(columns: Sequence[_Column], room: int) -> list[list[_Column]]:
    """Split columns into as few groups as the room allows, of similar widths."""

    def greedy(limit: int) -> list[list[_Column]]:
        parts: list[list[_Column]] = [[]]
        left = limit
        for column in columns:
            if parts[-1] and column.min_width > left:
                parts.append([])
                left = limit
            parts[-1].append(column)
            left -= column.min_width
        return parts

    parts = greedy(room)
    for limit in range(room - 1, 0, -1):
        narrower = greedy(limit)
        if len(narrower) > len(parts):
            break
        parts = narrower
    return parts


def _cell(value: object, number: str) -> Text:
    if isinstance(value, Text):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Text("–")
    if isinstance(value, bool | np.bool_):
        return Text("yes" if value else "no")
    return Text(f"{value:{number}}" if isinstance(value, float) else str(value))


def bar(share: float, cells: int = 16) -> str:
    """Return a bar for a number from 0 to 1, to an eighth of a character."""
    if math.isnan(share):
        return ""
    eighths = round(8 * cells * min(max(share, 0.0), 1.0))
    return ("█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")).ljust(cells)


def sounding_view(sounding: Sounding, gauge: str) -> Group:
    """Show a gauge at every site with a bar, and below it the summary (Figure 3)."""
    mean, std = sounding.mean(gauge), sounding.std(gauge)
    sites = sounding.records.groupby("site", sort=False)
    width, samples = sites["d"].first(), sites["n"].min()
    top = max(1.0, float(mean[mean < math.inf].max())) if len(mean) else 1.0
    frame = pd.DataFrame({"operator": [site.operator for site in sounding.sites], "width": width})
    if samples.nunique() > 1:  # some sites see only a part of the data
        frame["n"] = samples
    frame[gauge] = [
        "–" if math.isnan(value) else f"{value:.3f}" + ("" if math.isnan(spread) else f" ± {spread:.3f}")
        for value, spread in zip(mean, std, strict=True)
    ]
    frame[""] = [bar(value / top) for value in mean]
    percentile = reference_percentiles(sounding, gauge)
    if percentile.notna().any():
        frame["percentile"] = [math.nan if math.isnan(value) else f"{value:.0f}" for value in percentile]
    others = [name for name in _EXTRA_GAUGES if name in sounding.gauges and name != gauge]
    for name in others:
        frame[name] = sounding.mean(name)
    batches = ", mean ± std over batches" if std.notna().any() else ""
    caption = f"{gauge}{batches}; a full bar is {top:.4g}"
    if percentile.notna().any():
        caption += "; percentile: among trained networks at the same operator in the same role"
    numbers = ", ".join(f"{name} {number:.3f}" for name, number in sounding.summary(gauge).items())
    left_out = sounding.undersampled
    counted = int(mean.drop(list(left_out)).notna().sum())
    count = "1 site" if counted == 1 else f"{counted} sites"
    first = f"{gauge} over {count}: {numbers}"
    if left_out:
        first += f"; without {join_names(left_out, 3)}, with fewer samples"
    if mean.isna().all():
        why = [f": {reason}" for name, reason in _WHY_MISSING.items() if gauge.startswith(name)]
        first = f"{gauge} has no value at any of these sites{''.join(why)}"
    lines = [first, *remarks(sounding)]
    optional = ["operator", "width", "", "percentile", *others]  # rather than names in two lines
    view = TableView(frame.rename_axis("site"), title_of(sounding), caption, optional=optional)
    return Group(view, *map(Text, lines))


def title_of(sounding: Sounding) -> str:
    """Name the network, its weights and the data."""
    facts = sounding.provenance
    weights = facts.model.get("weights")
    own = f" ({weights})" if weights else ""
    return f"{facts.model.get('name', '?')}{own} on {facts.data.get('name', '?')}"


def remarks(sounding: Sounding) -> list[str]:
    """Say how well the network does on the data, if it is known, and at how many sites samples are few."""
    return [line for line in (sounding.outcome, sounding.few_samples) if line]


def labels_view(soundings: Mapping[str, Sounding], gauge: str) -> TableView:
    """Show the soundings of each label in a row: samples, accuracy and loss if known, and a gauge."""
    rows = {}
    for label, sounding in soundings.items():
        known = {"accuracy": sounding.accuracy, "loss": sounding.loss}
        rows[label] = {
            "samples": sounding.provenance.data.get("samples_measured"),
            **{name: number for name, number in known.items() if number is not None},
            **sounding.summary(gauge),
        }
    name = next(iter(soundings.values())).provenance.model.get("name", "?")
    caption = f"min, median, max, spread: {gauge} over the sites"
    return TableView(pd.DataFrame.from_dict(rows, orient="index").rename_axis("label"), str(name), caption)


def sounding_json(sounding: Sounding) -> dict[str, Any]:
    """Return a sounding for `--json`: what was measured, and the mean of every gauge at every site."""
    means = pd.DataFrame({gauge: sounding.mean(gauge) for gauge in sounding.gauges})
    means.insert(0, "operator", [site.operator for site in sounding.sites])
    means.insert(1, "width", sounding.records.groupby("site", sort=False)["d"].first())
    return {**sounding.provenance.as_dict(), "sites": means.rename_axis("site")}
