"""Tables in the terminal: a sounding with a bar for each site, as far as the width allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fathometer.results.sounding import Sounding

_BAR = 16  # characters, if there is room
_LEAST_BAR = 4
_EDGE = 3  # what a column takes beside its cells
_VALUE = 13  # 0.123 ± 0.045
_NUMBER = 7
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BESIDE = ("cka", "r2_heldout", "stable_rank_x", "stable_rank_y", "cost_of_identity", "nonnegativity_energy")


def sounding_view(sounding: Sounding, gauge: str, console: Console) -> Group:
    """The table, and under it the summary (Figure 3)."""
    mean, std = sounding.mean(gauge), sounding.std(gauge)
    width = sounding.records.groupby("site", sort=False)["d"].first()
    samples = sounding.records.groupby("site", sort=False)["n"].min()
    uneven = samples.nunique() > 1  # some sites see a part of the data only: then it is said
    top = max(1.0, float(mean[mean < math.inf].max())) if len(mean) else 1.0
    names = max(len(site.name) + len(site.operator) for site in sounding.sites)
    room = console.width - names - 5 * _EDGE - 1 - len("width") - max(_VALUE, len(gauge))
    room -= _EDGE + 4 if uneven else 0
    cells = max(_LEAST_BAR, min(_BAR, room))
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
        f"\n{len(few)} of these sites had few samples for their width: more would be steadier" if few else ""
    )
    numbers = sounding.summary(gauge)
    line = ", ".join(f"{name} {number:.3f}" for name, number in numbers.items())
    count = "1 site" if len(sounding.sites) == 1 else f"{len(sounding.sites)} sites"
    return Group(view, Text(f"{gauge} over {count}: {line}{note}"))


def fitting(names: Sequence[str], room: int) -> list[str]:
    """As many columns as there is room for."""
    found: list[str] = []
    for name in names:
        room -= max(len(name), _NUMBER) + _EDGE
        if room < 0:
            break
        found.append(name)
    return found


def bar(share: float, cells: int = _BAR) -> str:
    """A bar for a number from 0 to 1, to an eighth of a character."""
    if math.isnan(share):
        return ""
    eighths = round(8 * cells * min(max(share, 0.0), 1.0))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _title(sounding: Sounding) -> str:
    facts = sounding.provenance
    weights = facts.model.get("weights")
    model = f"{facts.model.get('name', '?')}" + (f" ({weights})" if weights else "")
    return f"{model} on {facts.data.get('name', '?')}"
