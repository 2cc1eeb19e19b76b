"""Soundings to draw, and what must hold of every figure: letters of print, inside it, none over another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from fathometer import Provenance, Site, Sounding
from fathometer.report.figures.style import WIDTHS

Path = Callable[[int], str]


def network(
    name: str,
    count: int = 12,
    *,
    batches: int = 3,
    operators: Sequence[str] = ("relu", "gelu"),
    path: Path = lambda i: f"layer{i // 4}.{i % 4 // 2}.act{i % 2}",
    seed: int = 0,
    **gauges: Any,
) -> Sounding:
    """A sounding of so many sites, affinity scores between .5 and 1."""
    rng = np.random.default_rng(seed)
    sites = [Site(path(i), operators[i % len(operators)], 1, i, True) for i in range(count)]
    level = rng.uniform(0.55, 0.95, count)
    values = np.clip(level + 0.01 * rng.standard_normal((batches, count)), 0, 1)
    records = pd.DataFrame(
        {
            "site": [site.name for _ in range(batches) for site in sites],
            "batch": np.repeat(range(batches), count),
            "n": 64,
            "d": 8,
            "affinity": values.ravel(),
            **{gauge: np.tile(np.asarray(column, float), batches) for gauge, column in gauges.items()},
        }
    )
    facts = Provenance(model={"name": name}, data={"name": "photos"})
    names = [site.name for site in sites]
    similarity = pd.DataFrame(np.corrcoef(rng.random((count, 9)) + level[:, None]), names, names)
    return Sounding(tuple(sites), records, facts, similarity)


def transformer(name: str, layers: int = 4, *, batches: int = 2, seed: int = 0, more: int = 0) -> Sounding:
    """A sounding of a transformer: activations, and parts alone and with the residual sum.

    A few tokens decide R² of the MLP of layer 1. `more` are further gauges that all sites have.
    """
    rng = np.random.default_rng(seed)
    sites: list[Site] = []
    for layer in range(layers):
        home = f"h.{layer}"
        sites.append(Site(f"{home}.act", "gelu", 1, len(sites), True, "activation", layer))
        for kind in ("attention", "mlp", "block"):
            for residual in (False, True):
                order = len(sites)
                sites.append(Site(f"{home}.{kind}", "Part", 1, order, True, kind, layer, residual))
    every = [site for _ in range(batches) for site in sites]
    is_part = np.array([site.kind != "activation" for site in every])
    r2 = np.where(is_part, rng.uniform(0.4, 0.9, len(every)), np.nan)
    decided = np.array([site.kind == "mlp" and site.layer == 1 and not site.residual for site in every])
    columns = {
        "affinity": np.where(is_part, np.nan, rng.uniform(0.7, 0.9, len(every))),
        "r2_heldout": r2,
        "r2_trimmed": np.where(decided, r2 - 0.3, r2 - 0.01),
        **{f"rank_{i}": rng.uniform(1, 100, len(every)) for i in range(more + 1)},
    }
    keys = {"site": [site.name for site in every], "batch": np.repeat(range(batches), len(sites))}
    facts = Provenance(model={"name": name}, data={"name": "book.txt"})
    return Sounding(tuple(sites), pd.DataFrame({**keys, "n": 64, "d": 8, **columns}), facts)


def texts(figure: Figure) -> list[Text]:
    """All that can be read in a figure, once it is laid out."""
    figure.draw_without_rendering()
    hidden = {text for axes in figure.axes if not axes.get_visible() for text in axes.findobj(Text)}
    every = [text for text in figure.findobj(Text) if text not in hidden and text.get_visible()]
    return [text for text in every if isinstance(text, Text) and text.get_text().strip()]


def fits(figure: Figure, columns: int) -> None:
    """The figure has the width of its columns and the height of a page at most, and all letters are in it."""
    assert figure.get_figwidth() == WIDTHS[columns]
    assert figure.get_figheight() <= 9.0
    whole = figure.bbox
    for text in texts(figure):
        assert 6.0 <= float(text.get_fontsize()) <= 9.0, text.get_text()
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= whole.x1 + 1 and box.y1 <= whole.y1 + 1
        on_axis = not any(_hidden(text, axes) for axes in figure.axes)
        assert inside or not on_axis, f"{text.get_text()!r} at {box} of {whole}"
    for axes in figure.axes:
        labels = [label for label in axes.get_xticklabels() if label.get_text() and label.get_visible()]
        if axes.get_visible():
            assert not touching(labels), touching(labels)


def touching(labels: Sequence[Text]) -> list[tuple[str, str]]:
    """Which texts lie over each other."""
    boxes = [(label.get_text(), label.get_window_extent()) for label in labels]
    return [
        (a, b)
        for (a, one), (b, other) in combinations(boxes, 2)
        if one.x0 < other.x1 - 0.5
        and other.x0 < one.x1 - 0.5
        and one.y0 < other.y1 - 0.5
        and other.y0 < one.y1 - 0.5
    ]


def _hidden(text: Text, axes: Any) -> bool:
    """Whether it is a tick label beyond the ends of its axis, which is not drawn."""
    for axis in (axes.xaxis, axes.yaxis):
        ticks = axis.get_major_ticks() + axis.get_minor_ticks()
        mine = [tick for tick in ticks if text in (tick.label1, tick.label2)]
        if mine:
            low, high = sorted(axis.get_view_interval())
            return not low <= mine[0].get_loc() <= high
    return False
