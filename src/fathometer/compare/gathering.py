"""Soundings side by side: their names, their signatures, and whether they can be compared at all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fathometer.compare.aspects import ASPECTS, aspects_of, labels_of, places_of, short_name
from fathometer.errors import InputError
from fathometer.results.sounding import Sounding

Soundings: TypeAlias = Mapping[str, Sounding] | Sequence[Sounding]
Array: TypeAlias = NDArray[np.float64]

ALIKE = ("data", "pooling", "samples")
"""Aspects that must agree, or else a difference in signature is no difference between networks."""


def by_name(soundings: Soundings) -> dict[str, Sounding]:
    """Soundings under unique names: those that are given, or the networks' own.

    Where several are of one network, what sets them apart is added: weights, data, settings, or a number.
    """
    named = dict(soundings) if isinstance(soundings, Mapping) else dict(enumerate(soundings))
    if not named:
        raise InputError("expected at least one sounding, got none")
    for name, sounding in named.items():
        if not isinstance(sounding, Sounding):
            raise InputError(
                f"{name}: expected a Sounding, got {type(sounding).__name__}; load() reads a file"
            )
    if isinstance(soundings, Mapping):
        return {str(name): sounding for name, sounding in named.items()}
    return dict(zip(_unique_names(list(named.values())), named.values(), strict=True))


def signatures(soundings: Soundings, gauge: str = "affinity") -> dict[str, Array]:
    """The gauge along the sites of each, the mean over batches, by name.

    A site without a finite value is refused by name: no distance can be taken through it.
    """
    found: dict[str, Array] = {}
    for name, sounding in by_name(soundings).items():
        if gauge not in sounding.gauges:
            raise InputError(f"{name}: {not_measured(gauge, sounding.gauges)}")
        values = sounding.mean(gauge)
        bad = [str(site) for site in values.index[~np.isfinite(values.to_numpy())]]
        if bad:
            raise InputError(
                f"{name}: {gauge!r} has no finite value at {', '.join(bad[:5])}"
                f"{' …' if len(bad) > 5 else ''}; measure with more samples, or without these sites"
            )
        found[name] = values.to_numpy(float)
    return found


def comparable(
    soundings: Soundings,
    gauge: str = "affinity",
    *,
    anyway: bool = False,
    alike: Iterable[str] = ALIKE,
) -> dict[str, Sounding]:
    """The soundings by name, if a comparison of them says something about the networks.

    All must hold the gauge and agree in `alike`; all must be of activations, or all of residual paths with
    one σ. If not, those that stand apart from the majority are named.
    Data are known by their name and the shape of a sample; but the size of pictures does not count, since it
    is what the network takes. Tensors, and data sets without a `description`, have no name: they are known by
    their first sample, if all were measured with one seed (which may set the order).

    Args:
        soundings: what is to be compared.
        gauge: what will be compared.
        anyway: warn instead of refusing; soundings without the gauge are left out.
        alike: of `data`, `pooling` (the reduction), `samples` (in a batch), `seed`, `weights`.
    """
    alike = list(alike)
    for aspect in alike:
        if aspect not in ASPECTS:
            raise InputError(f"alike: expected some of {', '.join(ASPECTS)}, got {aspect!r}")
    named = by_name(soundings)
    without = [name for name, sounding in named.items() if gauge not in sounding.gauges]
    kept = {name: sounding for name, sounding in named.items() if name not in without}
    if not kept:
        measured = dict.fromkeys(gauge for sounding in named.values() for gauge in sounding.gauges)
        raise InputError(f"gauge {not_measured(gauge, list(measured))}")
    missing = [f"{gauge!r} was not measured in {_listed(without)}"] if without else []
    found = {aspect: aspects_of(list(kept.values()), aspect) for aspect in alike}
    found["pairs"] = [_pairs_of(sounding) for sounding in kept.values()]
    differences = [reason for aspect, values in found.items() if (reason := _apart(aspect, kept, values))]
    if (missing or differences) and not anyway:
        raise InputError(
            f"these soundings cannot be compared: {'; '.join(missing + differences)}. Measure them alike, "
            "leave some out, or compare anyway (anyway=True, --anyway)"
        )
    for reason in missing:
        warnings.warn(f"compared anyway and left out: {reason}", stacklevel=2)
    for reason in differences:
        warnings.warn(f"compared anyway: {reason}", stacklevel=2)
    return kept


def not_measured(gauge: str, measured: Sequence[str]) -> str:
    """That a gauge is not there, which are, and which of them was meant.

    Example:
        >>> not_measured("stable_rank", ["affinity", "stable_rank_x", "stable_rank_y"])
        "'stable_rank' was not measured, but affinity, stable_rank_x, stable_rank_y; did you mean \
stable_rank_x, stable_rank_y?"
    """
    begun = [name for name in measured if name.startswith(gauge)]
    near = begun or get_close_matches(gauge, measured, n=2)
    hint = f"; did you mean {', '.join(near)}?" if near else "; choose one of these"
    return f"{gauge!r} was not measured, but {', '.join(measured)}{hint}"


def _pairs_of(sounding: Sounding) -> str:
    """What its pairs are: before and after activations, or points of a residual path and σ of them."""
    path = sounding.provenance.settings.get("path")
    if not isinstance(path, Mapping):
        return "activations"
    sigma = path.get("sigma")
    return f"residual path, σ {'of each block' if isinstance(sigma, Mapping) else sigma}"


def _apart(aspect: str, names: Iterable[str], found: Sequence[str]) -> str:
    """Who stands apart in this, in words; nothing if nobody does."""
    values = dict(zip(names, found, strict=True))
    (usual, most), *others = Counter(values.values()).most_common()
    if not others:
        return ""
    if others[0][1] == most:  # no majority
        return f"{aspect}: {_listed([f'{name}: {value}' for name, value in values.items()])}"
    odd = [f"{name} ({value})" for name, value in values.items() if value != usual]
    return f"{aspect}: {usual} in most, but not in {_listed(odd)}"


def _unique_names(soundings: Sequence[Sounding]) -> list[str]:
    names = [short_name(sounding) for sounding in soundings]
    for aspect in ("data", "weights", "pooling", "samples", "seed"):
        for places in places_of(names).values():
            values = labels_of([soundings[place] for place in places], aspect)
            if len(set(values)) > 1:
                for place, value in zip(places, values, strict=True):
                    names[place] = f"{names[place]}, {value}"
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
