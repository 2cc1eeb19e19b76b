"""Soundings side by side: their names, their signatures, and whether they can be compared at all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fathometer.errors import InputError
from fathometer.sounding import Sounding

Soundings: TypeAlias = Mapping[str, Sounding] | Sequence[Sounding]
Array: TypeAlias = NDArray[np.float64]

ASPECTS: dict[str, Callable[[Sounding], Any]] = {
    "data": lambda s: s.provenance.data.get("name", "?"),
    "pooling": lambda s: _pooling(s.provenance.settings.get("reduction", {})),
    "samples": lambda s: s.provenance.settings.get("samples", "?"),
    "seed": lambda s: s.provenance.settings.get("seed", "?"),
    "weights": lambda s: _weights(s.provenance.model),
}
"""What can differ between two soundings of one network, as words."""

ALIKE = ("data", "pooling", "samples")
"""Aspects that must agree, or else a difference in signature is no difference between networks."""


def short_name(sounding: Sounding) -> str:
    """What the network is called, without where it came from: `resnet18` of `torchvision:resnet18`."""
    return str(sounding.provenance.model.get("name", "?")).rpartition(":")[2]


def by_name(soundings: Soundings) -> dict[str, Sounding]:
    """Soundings under unique names: those that are given, or the networks' own.

    Where several are of one network, what sets them apart is added: weights, data, settings, or a number.
    """
    if isinstance(soundings, Mapping):
        named = dict(soundings)
    else:
        soundings = list(soundings)
        named = dict(zip(_unique_names(soundings), soundings, strict=True))
    if not named:
        raise InputError("expected at least one sounding, got none")
    for name, sounding in named.items():
        if not isinstance(sounding, Sounding):
            raise InputError(
                f"{name}: expected a Sounding, got {type(sounding).__name__}; load() reads a file"
            )
    return named


def signatures(soundings: Soundings, gauge: str = "affinity") -> dict[str, Array]:
    """The gauge along the sites of each, the mean over batches, by name.

    A site without a finite value is refused by name: no distance can be taken through it.
    """
    found: dict[str, Array] = {}
    for name, sounding in by_name(soundings).items():
        if gauge not in sounding.gauges:
            raise InputError(f"{name}: {gauge!r} was not measured, but {', '.join(sounding.gauges)}")
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

    All must hold the gauge and agree in `alike`. If not, those that stand apart from the majority are named.

    Args:
        soundings: what is to be compared.
        gauge: what will be compared.
        anyway: warn instead of refusing; soundings without the gauge are left out.
        alike: of `data`, `pooling` (the reduction), `samples` (in a batch), `seed`, `weights`.
    """
    named = by_name(soundings)
    without = [name for name, sounding in named.items() if gauge not in sounding.gauges]
    reasons = [f"{gauge!r} was not measured in {_listed(without)}"] if without else []
    kept = {name: sounding for name, sounding in named.items() if name not in without}
    if not kept:
        raise InputError(f"{gauge!r} was measured in none of these soundings; choose another gauge")
    for aspect in alike:
        values = {name: str(ASPECTS[aspect](sounding)) for name, sounding in kept.items()}
        usual = Counter(values.values()).most_common(1)[0][0]
        odd = [f"{name} ({value})" for name, value in values.items() if value != usual]
        if odd:
            reasons.append(f"{aspect}: {usual} in most, but not in {_listed(odd)}")
    if reasons and not anyway:
        raise InputError(
            f"these soundings cannot be compared: {'; '.join(reasons)}. Measure them alike, leave some out, "
            "or compare anyway (anyway=True, --anyway)"
        )
    for reason in reasons:
        left_out = " and left out" if reason.startswith(f"{gauge!r} was not") else ""
        warnings.warn(f"compared anyway{left_out}: {reason}", stacklevel=2)
    return kept


def aspect_of(sounding: Sounding, aspect: str) -> Any:
    """One of `data`, `pooling`, `samples`, `seed`, `weights`."""
    if aspect not in ASPECTS:
        raise InputError(f"expected one of {', '.join(ASPECTS)}, got {aspect!r}")
    return ASPECTS[aspect](sounding)


def _unique_names(soundings: Sequence[Sounding]) -> list[str]:
    names = [short_name(s) if isinstance(s, Sounding) else "?" for s in soundings]
    for aspect in ("data", "weights", "pooling", "samples", "seed"):
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            groups.setdefault(name, []).append(place)
        for places in (places for places in groups.values() if len(places) > 1):
            values = [str(ASPECTS[aspect](soundings[place])) for place in places]
            if len(set(values)) > 1:
                for place, value in zip(places, values, strict=True):
                    names[place] = f"{names[place]}, {value}"
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names


def _pooling(reduction: Mapping[str, Any]) -> str:
    words = [str(reduction.get("pooling", "?"))]
    if reduction.get("pool_first"):
        words.append("before σ")
    if reduction.get("channel_axis") is not None:
        words.append(f"channels on axis {reduction['channel_axis']}")
    return " ".join(words)


def _weights(model: Mapping[str, Any]) -> str:
    digest = str(model.get("sha256", ""))[:8]
    return " ".join(filter(None, (str(model.get("weights") or ""), digest))) or "?"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
