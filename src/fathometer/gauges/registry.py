"""The gauges of the package, and how to find gauges by name."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TypeAlias

from fathometer.errors import InputError, did_you_mean
from fathometer.gauges.affinity import affinity, affinity_of_batches
from fathometer.gauges.collapse import neural_collapse
from fathometer.gauges.dimensions import cost_of_identity, nonnegativity, stable_rank
from fathometer.gauges.gauge import LABELS, Gauge, GaugeFunction, Range
from fathometer.gauges.geometry import anisotropy, dead, duplicates, saturated
from fathometer.gauges.linear_fits import carriers, cka, cka_debiased, r2, r2_heldout, r2_trimmed
from fathometer.gauges.neighbours import intrinsic_dimension
from fathometer.gauges.ranks import alpha, effective_rank, max_rankme, participation_ratio, rankme
from fathometer.gauges.statistics import entropy, norm, scale, sparsity

GaugeChoice: TypeAlias = "str | Gauge | GaugeFunction"
"""A name, a record, or a plain function of X and Y."""

_RESERVED = ("site", "kind", "layer", "batch", "n", "d")  # columns that a table of readings has anyway
_SHARE = (0.0, 1.0)
_NATS = (0.0, math.log(256))  # an entropy over 256 bins
_RANK: Range = (0.0, min)
_POSITIVE = (0.0, math.inf)


_gauge = partial(Gauge, batched=True, takes_samples=True)
_joined = partial(_gauge, joins_widths=True)
_unequal = partial(_joined, unequal=True)


def _both(*quantities: str) -> tuple[str, ...]:
    return tuple(f"{quantity}_{side}" for quantity in quantities for side in "xy")


def _of_sides(bounds: Range, *prefixes: str) -> dict[str, Range]:
    return {f"{prefix}{side}": bounds for prefix in prefixes or ("",) for side in "xy"}


GAUGES: dict[str, Gauge] = {
    gauge.name: gauge
    for gauge in (
        _gauge("affinity", affinity, _SHARE, compute_many=affinity_of_batches, slow=True),
        _gauge(
            "affinity_sample",
            partial(affinity, covariance="sample"),
            _SHARE,
            compute_many=partial(affinity_of_batches, covariance="sample"),
            slow=True,
        ),
        _unequal("cka", cka, _SHARE),
        _unequal("cka_debiased", cka_debiased, (-1.0, 1.0), missing=True, needs=_both("gram", "norms2")),
        _unequal("r2", r2, _SHARE),
        _unequal("r2_heldout", r2_heldout, _SHARE, slow=True),
        _unequal("r2_trimmed", r2_trimmed, _SHARE, slow=True),
        _unequal("carriers", carriers, _of_sides(_SHARE), needs=_both("norms2")),
        _gauge("sparsity", sparsity, {"before": _SHARE, "after": _SHARE, "change": (-1.0, 1.0)}),
        _gauge("entropy", entropy, {"before": _NATS, "after": _NATS, "change": (-_NATS[1], _NATS[1])}),
        _joined("norm", norm, (0.0, math.inf)),
        _joined("stable_rank", stable_rank, _of_sides(_RANK), needs=_both("singular_values")),
        _joined(
            "cost_of_identity",
            cost_of_identity,
            (0.0, math.inf),
            infinite=True,
            needs=("singular_values_y",),
        ),
        _gauge("nonnegativity", nonnegativity, {"entries": _SHARE, "energy": _SHARE}),
        _joined("effective_rank", effective_rank, _of_sides(_RANK), needs=_both("spectrum")),
        _joined("participation_ratio", participation_ratio, _of_sides(_RANK), needs=_both("gram", "norms2")),
        _joined("rankme", rankme, _of_sides((0.0, max_rankme)), needs=_both("singular_values")),
        _joined("alpha", alpha, _of_sides(_POSITIVE), missing=True, needs=_both("spectrum")),
        _joined(
            "intrinsic_dimension",
            intrinsic_dimension,
            _of_sides(_POSITIVE, "twonn_", "mle_"),
            missing=True,
            needs=_both("nearest"),
        ),
        _joined("anisotropy", anisotropy, _of_sides((lambda n, _: -1 / (n - 1), 1.0))),
        _joined("dead", dead, _of_sides(_SHARE)),
        _gauge("saturated", saturated, _SHARE, missing=True),
        _unequal("scale", scale, _of_sides(_POSITIVE)),
        _unequal("duplicates", duplicates, _SHARE, missing=True),
        _joined(
            "neural_collapse",
            neural_collapse,
            {"nc1": _POSITIVE, "nc2_norms": _POSITIVE, "nc2_angles": (0.0, 2.0)},
            missing=True,
            needs=(LABELS,),
        ),
    )
}
"""The gauges of the package by name."""

SETS = {
    # Without one that is slower than all others together on a CPU, and unstable where d > n, without CKA with
    # its bias, which is in the paper, without what only a few huge samples change, and what `check` reads.
    "standard": tuple(
        name for name in GAUGES if name not in ("affinity_sample", "cka", "r2_trimmed", "scale", "duplicates")
    ),
    # What the rules of `fathometer.check` read.
    "check": (
        *("affinity", "carriers", "nonnegativity", "participation_ratio", "dead", "saturated"),
        *("scale", "duplicates"),
    ),
    "language": ("affinity", "r2_heldout", "r2_trimmed", "carriers", "stable_rank", "intrinsic_dimension"),
    "all": tuple(GAUGES),
}
"""Names that stand for several gauges."""

MAX_TRIMMED_GAP = 0.1
"""Up to which r2_heldout and r2_trimmed may differ; beyond it, a few samples decide R²."""

_DIMENSIONS = frozenset({"stable_rank", "intrinsic_dimension"})

UNFIT_FOR_KIND = {
    "activation": frozenset({"r2_heldout", "r2_trimmed"}),
    "mlp": frozenset({"affinity"}) | _DIMENSIONS,
    "attention": frozenset({"affinity"}) | _DIMENSIONS,
    "block": frozenset({"affinity"}),
}
"""Gauges of the set `language` that are not read at a kind of site.

The affinity score penalises rotation, so that it is for activations, and R² for parts that mix features. The
dimensions of the residual stream are read once, at blocks.
"""

_BY_COLUMN = {column: gauge for gauge in GAUGES.values() for column in gauge.ranges}


def choose_gauges(gauges: GaugeChoice | Iterable[GaugeChoice] = "standard") -> dict[str, Gauge]:
    """Return gauges by name: names, functions of your own, `standard` and `all`, in a list or with commas.

    Example:
        >>> def gap(x, y):
        ...     return (x - y).abs().max()
        >>> list(choose_gauges(["affinity", gap]))
        ['affinity', 'gap']
        >>> "gap" in choose_gauges(["standard", gap])
        True
    """
    chosen: dict[str, Gauge] = {}
    for choice in [gauges] if isinstance(gauges, str) or callable(gauges) else gauges:
        for gauge in _named(choice) if isinstance(choice, str) else [_as_gauge(choice)]:
            if chosen.get(gauge.name, gauge) is not gauge:
                raise InputError(
                    f"two are called {gauge.name!r}; give one of the functions another name",
                    parameter="gauges",
                )
            chosen[gauge.name] = gauge
    if not chosen:
        raise InputError("expected at least one, got none", parameter="gauges")
    return chosen


def _named(names: str) -> list[Gauge]:
    """Return the gauges that a text names."""
    found = []
    for name in map(str.strip, names.split(",")):
        several = SETS.get(name, (name,))
        if several[0] not in GAUGES:
            known = (*SETS, *GAUGES)
            hint = did_you_mean(name, known) or f"expected {', '.join(known)}, or a function"
            raise InputError(f"unknown gauge {name!r}; {hint}", parameter="gauges")
        found += [GAUGES[each] for each in several]
    return found


def _as_gauge(choice: Gauge | GaugeFunction) -> Gauge:
    """Return a record, one made from a function, or that of a function of the package."""
    if not callable(choice):
        raise InputError(
            f"expected names or functions of x and y, got {type(choice).__name__}", parameter="gauges"
        )
    for known in GAUGES.values():
        if choice is known or getattr(choice, "function", choice) is known.function:
            return known
    gauge = choice if isinstance(choice, Gauge) else Gauge.from_function(choice)
    function = gauge.function.func if isinstance(gauge.function, partial) else gauge.function
    home = str(getattr(function, "__module__", ""))
    for name in (gauge.name, *gauge.ranges):
        if name in _RESERVED:
            raise InputError(
                f"{name!r} is a column of every table; give the function another name", parameter="gauges"
            )
        if (name in GAUGES or name in _BY_COLUMN) and not home.startswith("fathometer."):
            kind = "gauge" if name in GAUGES else "column"
            raise InputError(
                f"{name!r} is a {kind} of fathometer; give your function another name", parameter="gauges"
            )
    return gauge


def out_of_range(column: str, rows: Iterable[tuple[float, float, float]]) -> str | None:
    """Describe the first value outside the range of its column; None if all are inside.

    A row is (value, n, d). Columns of other gauges may hold anything. The path along residual blocks has no
    value missing in the columns that it shares with the package's: only in its `speed`.

    Example:
        >>> out_of_range("affinity", [(0.5, 40, 6), (1.5, 40, 6)])
        'affinity: expected values from 0 to 1, got 1.5'
        >>> out_of_range("stable_rank_x", [(5.5, 40, 6), (5.5, 40, 5)])
        'stable_rank_x: expected values from 0 to 5, got 5.5'
    """
    return _BY_COLUMN[column].out_of_range(column, rows) if column in _BY_COLUMN else None
