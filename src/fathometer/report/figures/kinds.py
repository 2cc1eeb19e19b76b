"""What can be drawn of soundings, by name: one table for the command, with what each kind needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pandas as pd

from fathometer.compare import best_predictors, cluster, signature_distances, signatures, statistics
from fathometer.compare.clustering import Method
from fathometer.compare.distance import Metric
from fathometer.errors import InputError
from fathometer.report.figures.compare import plot_dendrogram, plot_distributions, plot_predictors
from fathometer.report.figures.pairs import plot_alignment, plot_difference
from fathometer.report.figures.path import is_path, plot_path
from fathometer.report.figures.signature import plot_signature
from fathometer.report.figures.soundings import Along, plot_overlay
from fathometer.report.figures.strip import plot_strip
from fathometer.report.figures.style import Columns
from fathometer.report.figures.years import plot_years
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named: TypeAlias = "dict[str, Sounding]"

_OVERLAID = 6  # lines that still can be told apart


@dataclass(frozen=True)
class Wishes:
    """How to draw.

    Attributes:
        gauge: what to show.
        columns: 1 or 2, the width in columns of a page.
        along: of an overlay, `depth` or `dtw`.
        metric: of distances.
        method: of linkage.
        strip: under a signature.
        distribution: beside a signature.
        facts: network × family, accuracy, year and others, as far as they are known.
    """

    gauge: str = "affinity"
    columns: Columns = 2
    along: Along = "depth"
    metric: Metric = "dtw"
    method: Method = "average"
    strip: bool = False
    distribution: bool = False
    facts: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def families(self) -> dict[str, str]:
        """Network → family, where it is known."""
        if "family" not in self.facts:
            return {}
        return {str(name): str(family) for name, family in self.facts["family"].dropna().items()}


class Kind(NamedTuple):
    """A kind of picture.

    Attributes:
        draw: gives it from soundings by name.
        least: how many soundings it takes.
        most: and how many at most; None for any.
        alike: whether they must be measured alike to be compared.
        options: what it looks at besides columns, by the names of the command's options.
    """

    draw: Callable[[Named, Wishes], Figure]
    least: int = 1
    most: int | None = None
    alike: bool = False
    options: tuple[str, ...] = ("gauge",)


def usual_kind(soundings: Named) -> str:
    """What one would look at first: one along depth, a few over each other, many by their distances."""
    if all(is_path(sounding) for sounding in soundings.values()):
        return "path"
    if len(soundings) == 1:
        return "signature"
    return "overlay" if len(soundings) <= _OVERLAID else "distances"


def draw_soundings(soundings: Named, kind: str, wishes: Wishes) -> Figure:
    """A picture by the name of its kind."""
    if kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if not _fits(KINDS[kind], len(soundings)):
        fitting = [name for name, each in KINDS.items() if _fits(each, len(soundings)) and name != "path"]
        least, most = KINDS[kind].least, KINDS[kind].most
        expected = ("one sounding" if least == 1 else "two") if most == least else f"at least {least}"
        raise InputError(
            f"{kind}: expected {expected}, got {len(soundings)}, which can be shown as {', '.join(fitting)}"
        )
    return KINDS[kind].draw(soundings, wishes)


def _fits(kind: Kind, count: int) -> bool:
    return kind.least <= count <= (kind.most or count)


def _signature(soundings: Named, wishes: Wishes) -> Figure:
    ((name, sounding),) = soundings.items()
    return plot_signature(
        sounding,
        wishes.gauge,
        name,
        columns=wishes.columns,
        strip=wishes.strip,
        distribution=wishes.distribution,
    )


def _distribution(soundings: Named, wishes: Wishes) -> Figure:
    numbers = statistics(soundings, wishes.gauge)
    return plot_distributions(
        signatures(soundings, wishes.gauge), wishes.gauge, numbers, columns=wishes.columns
    )


def _distances(soundings: Named, wishes: Wishes) -> Figure:
    near = signature_distances(signatures(soundings, wishes.gauge), wishes.metric, gauge=wishes.gauge)
    return plot_dendrogram(cluster(near, wishes.method), wishes.families, columns=wishes.columns)


def _predictors(soundings: Named, wishes: Wishes) -> Figure:
    if "accuracy" not in wishes.facts or not wishes.facts["accuracy"].notna().any():
        raise InputError(
            "predictors: expected the accuracy of networks, got none; give a CSV with network, family "
            "and accuracy (--families FILE, or read_facts)"
        )
    numbers = statistics(soundings, wishes.gauge)
    best = best_predictors(numbers, wishes.facts, wishes.families)
    return plot_predictors(
        best, numbers, wishes.facts, wishes.families, gauge=wishes.gauge, columns=wishes.columns
    )


def _over(draw: Callable[..., Figure], *options: str) -> Callable[[Named, Wishes], Figure]:
    """What takes soundings, a gauge, columns and some of the options by their own names."""

    def drawn(soundings: Named, wishes: Wishes) -> Figure:
        chosen: dict[str, Any] = {name: getattr(wishes, name) for name in options}
        return draw(soundings, gauge=wishes.gauge, columns=wishes.columns, **chosen)

    return drawn


def _path(soundings: Named, wishes: Wishes) -> Figure:
    return plot_path(list(soundings.values()), list(soundings), columns=wishes.columns)


_FACTS = ("gauge", "families", "family", "allow_mismatch")

KINDS = {
    "signature": Kind(_signature, most=1, options=("gauge", "strip", "distribution")),
    "strip": Kind(_over(plot_strip)),
    "distribution": Kind(_distribution),
    "overlay": Kind(_over(plot_overlay, "along"), least=2, options=("gauge", "along")),
    "alignment": Kind(_over(plot_alignment), least=2, most=2),
    "difference": Kind(_over(plot_difference), least=2, most=2),
    "years": Kind(_over(plot_years, "facts"), alike=True, options=_FACTS),
    "distances": Kind(_distances, least=2, alike=True, options=(*_FACTS, "metric", "linkage")),
    "predictors": Kind(_predictors, least=3, alike=True, options=_FACTS),
    "path": Kind(_path, options=()),
}
