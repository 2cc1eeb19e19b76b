"""The pictures by name, of soundings and of Leaky ResNets, with what each needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pandas as pd

from fathometer.compare import best_predictors, cluster, known_distances, signatures, statistics
from fathometer.compare.clustering import Method
from fathometer.compare.distance import DEFAULT_METRIC, Metric
from fathometer.compare.soundings import short_name
from fathometer.errors import FathometerError, InputError, check_choice
from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.report.figures import leaky, leaky_schemes, networks
from fathometer.report.figures.layers import plot_gauges, plot_layers
from fathometer.report.figures.pairs import is_path, plot_alignment, plot_difference, plot_path
from fathometer.report.figures.similarity import plot_map
from fathometer.report.figures.soundings import plot_overlay, plot_signature, plot_strip
from fathometer.report.figures.style import Columns, require_matplotlib
from fathometer.report.tables import Along, families_of, has_layers
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named: TypeAlias = "dict[str, Sounding]"

_MAX_OVERLAID = 6  # lines that can be told apart


@dataclass(frozen=True)
class PlotOptions:
    """How to draw.

    Attributes:
        gauge: what to show.
        layer_gauge: what to show by layer at all kinds of sites; None for what is usual at each.
        columns: 1 or 2, the width in columns of a page.
        along: the axis of an overlay, `depth` or `dtw`.
        metric: of distances.
        method: of linkage.
        strip: draw a strip under a signature.
        distribution: draw the distribution beside a signature.
        facts: network × family, accuracy, year and others, as far as they are known.
    """

    gauge: str = "affinity"
    layer_gauge: str | None = None
    columns: Columns = 2
    along: Along = "depth"
    metric: Metric = DEFAULT_METRIC
    method: Method = "average"
    strip: bool = False
    distribution: bool = False
    facts: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def families(self) -> dict[str, str]:
        """Network → family, where it is known."""
        return families_of(self.facts)


class Kind(NamedTuple):
    """A kind of picture.

    Attributes:
        draw: makes it from soundings by name.
        min_count: the smallest number of soundings.
        max_count: the largest; None for any.
        needs_comparable: whether they must be measured alike to be compared.
        options: what it uses besides columns, by the names of the command's options.
    """

    draw: Callable[[Named, PlotOptions], Figure]
    min_count: int = 1
    max_count: int | None = None
    needs_comparable: bool = False
    options: tuple[str, ...] = ("gauge",)


def default_kind(soundings: Named) -> str:
    """Return what to look at first: one along depth, a few over each other, many by their distances.

    Transformers with parts are shown by layer.
    """
    if all(is_path(sounding) for sounding in soundings.values()):
        return "path"
    if all(map(has_layers, soundings.values())) and len(soundings) <= _MAX_OVERLAID:
        return "layers"
    if len(soundings) == 1:
        return "signature"
    return "overlay" if len(soundings) <= _MAX_OVERLAID else "distances"


def draw_soundings(soundings: Named, kind: str, options: PlotOptions) -> Figure:
    """Draw a picture by the name of its kind."""
    check_choice("kind", kind, KINDS)
    count = len(soundings)
    if not _fits(KINDS[kind], count):
        usual = [name for name, each in KINDS.items() if _fits(each, count) and name not in _SPECIAL]
        low, high = KINDS[kind].min_count, KINDS[kind].max_count
        expected = f"at least {low}" if high != low else "one sounding" if low == 1 else "two"
        raise InputError(
            f"{kind}: expected {expected}, got {count}, which can be shown as {', '.join(usual)}"
        )
    return KINDS[kind].draw(soundings, options)


def draw_sounding(sounding: Sounding, kind: str | None, options: PlotOptions) -> Figure:
    """Draw one sounding; without a kind, by layer if it has parts, else along depth."""
    by_layer = has_layers(sounding) and not (options.strip or options.distribution)
    named = {short_name(sounding): sounding}
    return draw_soundings(named, kind or ("layers" if by_layer else "signature"), options)


def _fits(kind: Kind, count: int) -> bool:
    return kind.min_count <= count <= (kind.max_count or count)


def _signature(soundings: Named, o: PlotOptions) -> Figure:
    ((name, sounding),) = soundings.items()
    extra = {"strip": o.strip, "distribution": o.distribution}
    return plot_signature(sounding, o.gauge, name, columns=o.columns, **extra)


def _distribution(soundings: Named, o: PlotOptions) -> Figure:
    values, numbers = signatures(soundings, o.gauge), statistics(soundings, o.gauge)
    return networks.plot_distributions(values, o.gauge, numbers, columns=o.columns)


def _distances(soundings: Named, o: PlotOptions) -> Figure:
    found = known_distances(soundings, o.gauge, o.metric)
    return networks.plot_dendrogram(cluster(found, o.method), o.families, columns=o.columns)


def _predictors(soundings: Named, o: PlotOptions) -> Figure:
    if "accuracy" not in o.facts or not o.facts["accuracy"].notna().any():
        raise InputError(
            "predictors: expected the accuracy of networks, got none; give a CSV with columns network, "
            "family and accuracy (read_facts)"
        )
    numbers = statistics(soundings, o.gauge)
    best = best_predictors(numbers, o.facts, o.families)
    return networks.plot_predictors(best, numbers, o.facts, o.families, gauge=o.gauge, columns=o.columns)


_SPECIAL = ("layers", "gauges", "map", "path")  # need soundings of a certain kind
_FACTS = ("gauge", "families", "family", "allow_mismatch")

KINDS = {
    "signature": Kind(_signature, max_count=1, options=("gauge", "strip", "distribution")),
    "strip": Kind(lambda named, o: plot_strip(named, o.gauge, columns=o.columns)),
    "distribution": Kind(_distribution),
    "overlay": Kind(
        lambda named, o: plot_overlay(named, o.gauge, along=o.along, columns=o.columns),
        min_count=2,
        options=("gauge", "along"),
    ),
    "alignment": Kind(lambda named, o: plot_alignment(named, o.gauge, columns=o.columns), 2, 2),
    "difference": Kind(lambda named, o: plot_difference(named, o.gauge, columns=o.columns), 2, 2),
    "layers": Kind(lambda named, o: plot_layers(named, o.layer_gauge, columns=o.columns)),
    "gauges": Kind(lambda named, o: plot_gauges(*named.values(), columns=o.columns), max_count=1, options=()),
    "map": Kind(lambda named, o: plot_map(*named.values(), columns=o.columns), max_count=1, options=()),
    "years": Kind(
        lambda named, o: networks.plot_years(named, o.facts, o.gauge, columns=o.columns),
        needs_comparable=True,
        options=_FACTS,
    ),
    "distances": Kind(_distances, min_count=2, needs_comparable=True, options=(*_FACTS, "metric", "linkage")),
    "predictors": Kind(_predictors, min_count=3, needs_comparable=True, options=_FACTS),
    "path": Kind(
        lambda named, o: plot_path(list(named.values()), list(named), columns=o.columns), options=()
    ),
}


class LeakyFigures(NamedTuple):
    """What a sweep can show.

    Attributes:
        figures: by name.
        reasons: for each of the others, why not.
    """

    figures: dict[str, Figure]
    reasons: dict[str, str]


LEAKY_KINDS: dict[str, Callable[..., Figure]] = {
    "1a": leaky.plot_dimensions,
    "1b": leaky.plot_spectra,
    "1c": leaky.plot_energies,
    "2a": leaky_schemes.plot_errors,
    "2b": leaky_schemes.plot_steps,
    "2c": leaky_schemes.plot_plane,
    "3": leaky.plot_bounded,
    "affinity": leaky.plot_affinity,
    "ranks": leaky.plot_ranks,
    "training": leaky.plot_training,
    "projection": leaky_schemes.plot_projection,
}
"""Of Leaky ResNets. Each takes a sweep and `columns`; an InputError says what the sweep lacks."""
PAPER_FIGURES = tuple(LEAKY_KINDS)[:8]
"""By the paper's numbers, and `affinity`."""
OF_ONE_RUN = ("1b", "1c", "affinity", "ranks", "training", "projection")
"""Of a sweep, these show the network with L̃ nearest 7 and the lowest seed, or all networks (`training`)."""


def draw_leaky(results: LeakySweep | LeakyRun, kind: str, *, columns: Columns = 2) -> Figure:
    """Draw one of `LEAKY_KINDS`, by name, of a sweep or a run; an InputError says what the sweep lacks."""
    check_choice("kind", kind, LEAKY_KINDS)
    if isinstance(results, LeakyRun) and kind not in OF_ONE_RUN:
        raise InputError(
            f"{kind} compares the networks of a sweep, got one run, which can show {', '.join(OF_ONE_RUN)}"
        )
    return LEAKY_KINDS[kind](results, columns=columns)


def default_leaky_kind(results: LeakySweep | LeakyRun) -> str:
    """Return what to look at first: 1a of several depths, 2a of several schemes, else the energies."""
    runs = (results,) if isinstance(results, LeakyRun) else results.runs
    depths = {run.design.effective_depth for run in runs}
    if len(depths - {0.0}) > 1:
        return "1a"
    if len({run.design.scheme for run in runs}) > 1:
        return "2a"
    return "1c" if max(depths) > 0 else "1b"


def leaky_figures(sweep: LeakySweep, *, columns: Columns = 2) -> LeakyFigures:
    """Draw all figures of the paper that this sweep can show, and say for the others why not."""
    require_matplotlib()
    figures: dict[str, Figure] = {}
    reasons: dict[str, str] = {}
    for name in PAPER_FIGURES:
        try:
            figures[name] = LEAKY_KINDS[name](sweep, columns=columns)
        except FathometerError as error:
            reasons[name] = str(error)
    return LeakyFigures(figures, reasons)
