"""What can differ between two soundings of one network, as words: data, pooling, samples, seed, weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fathometer.errors import InputError
from fathometer.sounding import Sounding

_CONTAINERS = ("list", "tuple", "ndarray", "generator", "map", "zip")


def short_name(sounding: Sounding) -> str:
    """What the network is called, without where it came from: `resnet18` of `torchvision:resnet18`."""
    return str(sounding.provenance.model.get("name", "?")).rpartition(":")[2]


def aspects_of(soundings: Sequence[Sounding], aspect: str) -> list[str]:
    """One aspect of each. Data of one name get their shape, or the head of their hash, where it differs."""
    if aspect not in ASPECTS:
        raise InputError(f"expected one of {', '.join(ASPECTS)}, got {aspect!r}")
    return ASPECTS[aspect](soundings)


def _data(soundings: Sequence[Sounding]) -> list[str]:
    words = [str(sounding.provenance.data.get("name", "?")) for sounding in soundings]
    for detail in (_shape, _first_sample):
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            places.setdefault(word, []).append(place)
        for group in places.values():
            found = detail([soundings[place] for place in group])
            if len(set(found) - {""}) > 1:
                for place, more in zip(group, found, strict=True):
                    words[place] = f"{words[place]} {more}".strip()
    return words


def _shape(soundings: Sequence[Sounding]) -> list[str]:
    facts = [sounding.provenance.data for sounding in soundings]
    return ["" if _pictures(data) else "×".join(map(str, data.get("sample_shape", ()))) for data in facts]


def _pictures(data: Mapping[str, Any]) -> bool:
    """Whether these are pictures, or noise in their place, whose size is what the network takes."""
    return "kind" in data and len(data.get("sample_shape", ())) == 3


def _first_sample(soundings: Sequence[Sounding]) -> list[str]:
    """The head of the hash of the first sample, for data without a name and of one seed."""
    seeds = {str(sounding.provenance.settings.get("seed")) for sounding in soundings}
    facts = [sounding.provenance.data for sounding in soundings]
    if len(seeds) > 1 or not all(_unnamed(data) for data in facts):
        return [""] * len(facts)
    return [str(data.get("first_sample_sha256", ""))[:8] for data in facts]


def _unnamed(data: Mapping[str, Any]) -> bool:
    """Whether the name is that of a class: of data that say nothing of themselves."""
    name = str(data.get("name", ""))
    return "kind" not in data and name.isidentifier() and (name[0].isupper() or name in _CONTAINERS)


def _pooling(soundings: Sequence[Sounding]) -> list[str]:
    return [_pooling_of(sounding.provenance.settings.get("reduction", {})) for sounding in soundings]


def _pooling_of(reduction: Mapping[str, Any]) -> str:
    words = [str(reduction.get("pooling", "?"))]
    if reduction.get("pool_first"):
        words.append("before σ")
    if reduction.get("channel_axis") is not None:
        words.append(f"channels on axis {reduction['channel_axis']}")
    return " ".join(words)


def _setting(name: str) -> Callable[[Sequence[Sounding]], list[str]]:
    return lambda soundings: [str(s.provenance.settings.get(name, "?")) for s in soundings]


def _weights(soundings: Sequence[Sounding]) -> list[str]:
    return [_weights_of(sounding.provenance.model) for sounding in soundings]


def _weights_of(model: Mapping[str, Any]) -> str:
    digest = str(model.get("sha256", ""))[:8]
    return " ".join(filter(None, (str(model.get("weights") or ""), digest))) or "?"


ASPECTS: dict[str, Callable[[Sequence[Sounding]], list[str]]] = {
    "data": _data,
    "pooling": _pooling,
    "samples": _setting("samples"),
    "seed": _setting("seed"),
    "weights": _weights,
}
"""By name, as words for several soundings at once."""
