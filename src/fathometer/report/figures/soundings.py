"""Soundings along depth: one, or several over each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fathometer.compare.distance import aligned
from fathometer.compare.soundings import Array, Soundings, by_name
from fathometer.errors import InputError
from fathometer.report.figures.signature import plot_signature, point_size, reach_one, values_of
from fathometer.report.figures.style import (
    Columns,
    column_figure,
    for_print,
    legend_above,
    look,
    plain,
    words,
)
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Along: TypeAlias = Literal["depth", "dtw"]


def plot_soundings(
    soundings: Sequence[Sounding],
    gauge: str = "affinity",
    labels: Sequence[str] | None = None,
    *,
    columns: Columns = 2,
) -> Figure:
    """A gauge at every site: of one sounding by name (`plot_signature`), of several over relative depth.

    Args:
        soundings: at least one.
        gauge: what to show.
        labels: the networks' own names, if left out.
        columns: 1 or 2, the width in columns of a page.
    """
    if not soundings:
        raise InputError("expected at least one sounding to plot, got none")
    if len(soundings) == 1:
        return plot_signature(soundings[0], gauge, labels[0] if labels else None, columns=columns)
    named = dict(zip(labels, soundings, strict=True)) if labels else soundings
    return plot_overlay(named, gauge, columns=columns)


@for_print
def plot_overlay(
    soundings: Soundings, gauge: str = "affinity", *, along: Along = "depth", columns: Columns = 2
) -> Figure:
    """Several soundings over each other, with one standard deviation over batches as error bar.

    Args:
        soundings: by name, or a list.
        gauge: what to show.
        along: `depth`, from the first site of each network to its last; or `dtw`, where every site stands at
            the mean depth of those of the first network that answer to it.
        columns: 1 or 2, the width in columns of a page.
    """
    from matplotlib.lines import Line2D

    named = by_name(soundings)
    reference = next(iter(named))
    figure = column_figure(columns, 2.6 if columns == 1 else 3.0)
    axes = figure.subplots()
    handles = []
    for number, (name, sounding) in enumerate(named.items()):
        mean, std = values_of(sounding, gauge)
        places = relative_depth(len(mean))
        if along == "dtw" and name != reference:
            places = _warped(named[reference], sounding, gauge)
        size = point_size(len(mean))
        looks = look(number) | {"linewidth": size / 4, "markersize": size}
        axes.errorbar(places, mean, yerr=std, elinewidth=size / 6, **looks)
        handles.append(Line2D([], [], label=plain(name, 40), **look(number)))
    axes.set_ylabel(words(gauge))
    reach_one(axes, gauge)
    axes.set_xlabel("relative depth" if along == "depth" else f"depth in {plain(reference, 30)}, by DTW")
    legend_above(figure, handles)
    return figure


def relative_depth(count: int) -> Array:
    """From 0 at the first site to 1 at the last."""
    return np.arange(count) / max(count - 1, 1)


def _warped(reference: Sounding, sounding: Sounding, gauge: str) -> Array:
    """For every site, the mean relative depth of those in the reference that answer to it."""
    pairs = aligned(reference, sounding, gauge, "dtw").pairs
    depth = relative_depth(len(reference.sites))[pairs[:, 0]]
    count = np.bincount(pairs[:, 1])
    return np.asarray(np.bincount(pairs[:, 1], depth) / count)
