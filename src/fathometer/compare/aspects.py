"""What can differ between two soundings of one network, as words: data, pooling, samples, seed, weights.

`aspects_of` says what must agree, `labels_of` what it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fathometer.results.sounding import Sounding

_CONTAINERS = ("list", "tuple", "ndarray", "generator", "map", "zip")


def short_name(sounding: Sounding) -> str:
    """What the network is called, without where it came from: `resnet18` of `torchvision:resnet18`."""
    return str(sounding.provenance.model.get("name", "?")).rpartition(":")[2]


def aspects_of(soundings: Sequence[Sounding], aspect: str) -> list[str]:
    """One aspect of each. Data of one name get their shape, or the head of their hash, where it differs."""
    return ASPECTS[aspect](soundings)


def labels_of(soundings: Sequence[Sounding], aspect: str) -> list[str]:
    """The same, to be read: data of one name with how many there were, random weights with their seed.

    Two soundings on `random:96` and `random:192` saw the same data, more and less of it; they agree in this
    aspect, and are told apart by their labels.
    """
    words = aspects_of(soundings, aspect)
    if aspect == "data":
        return with_counts(words, soundings)
    return _by_seed(words, soundings) if aspect == "weights" else words


def with_counts(words: list[str], soundings: Sequence[Sounding]) -> list[str]:
    """Words for data, with how many there were where this sets them apart: `random:96`, `random:192`."""
    return _told_apart(words, soundings, _count, ":")


def counted_name(sounding: Sounding) -> str:
    """The name of the data with how many there were, as the command takes it: `random:192`."""
    data = sounding.provenance.data
    return f"{data.get('name', '?')}:{data.get('count', '?')}"


def has_random_weights(sounding: Sounding) -> bool:
    """Whether a seed drew the weights."""
    return sounding.provenance.model.get("weights") == "none"


def _data(soundings: Sequence[Sounding]) -> list[str]:
    words = [str(sounding.provenance.data.get("name", "?")) for sounding in soundings]
    for detail in (_shape, _content, _first_sample):
        words = _told_apart(words, soundings, detail, " ")
    return words


def _told_apart(
    words: list[str],
    soundings: Sequence[Sounding],
    detail: Callable[[Sequence[Sounding]], list[str]],
    between: str,
) -> list[str]:
    """The words, and where several are one, a detail behind them if it differs."""
    words, places = list(words), places_of(words)
    for group in places.values():
        found = detail([soundings[place] for place in group])
        if len(set(found) - {""}) > 1:
            for place, more in zip(group, found, strict=True):
                words[place] += f"{between}{more}" if more else ""
    return words


def places_of(words: Sequence[str]) -> dict[str, list[int]]:
    """Where each of the words stands."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    return places


def _by_seed(words: list[str], soundings: Sequence[Sounding]) -> list[str]:
    """`seed 0`, `seed 1` in place of hashes, where each seed drew weights of its own."""
    random = [place for place, sounding in enumerate(soundings) if has_random_weights(sounding)]
    seeds = _setting("seed")([soundings[place] for place in random])
    drawn = set(zip((words[place] for place in random), seeds, strict=True))
    if not len(drawn) == len(set(seeds)) == len({words[place] for place in random}) > 1:
        return words
    found = {place: f"seed {seed}" for place, seed in zip(random, seeds, strict=True)}
    return [found.get(place, word) for place, word in enumerate(words)]


def _count(soundings: Sequence[Sounding]) -> list[str]:
    return [str(sounding.provenance.data.get("count", "")) for sounding in soundings]


def _shape(soundings: Sequence[Sounding]) -> list[str]:
    facts = [sounding.provenance.data for sounding in soundings]
    return ["" if _pictures(data) else "×".join(map(str, data.get("sample_shape", ()))) for data in facts]


def _pictures(data: Mapping[str, Any]) -> bool:
    """Whether these are pictures, or noise in their place, whose size is what the network takes."""
    return "kind" in data and len(data.get("sample_shape", ())) == 3


def _content(soundings: Sequence[Sounding]) -> list[str]:
    """The head of the hash of files or of a folder; files of older versions have none."""
    return [str(sounding.provenance.data.get("sha256", ""))[:8] for sounding in soundings]


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
