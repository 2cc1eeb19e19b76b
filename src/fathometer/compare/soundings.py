"""Soundings side by side: their names and signatures, what differs, and whether they can be compared."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fathometer.errors import InputError, did_you_mean
from fathometer.results.sounding import Sounding

Soundings: TypeAlias = Mapping[str, Sounding] | Sequence[Sounding]
Array: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Sequence[float] | NDArray[np.floating[Any]]

ALIKE = ("data", "pooling", "samples")
"""Aspects that must agree, or else a difference in signature is no difference between networks."""
_CONTAINERS = ("list", "tuple", "ndarray", "generator", "map", "zip")


def by_name(soundings: Soundings) -> dict[str, Sounding]:
    """Return soundings under unique names: the given ones, or those of the networks.

    Several soundings of one network also get what differs between them: weights, data, settings, or a number.
    """
    if not soundings:
        raise InputError("expected at least one sounding, got none")
    named = soundings if isinstance(soundings, Mapping) else dict(enumerate(soundings))
    for name, sounding in named.items():
        if not isinstance(sounding, Sounding):
            raise InputError(
                f"{name}: expected a Sounding, got {type(sounding).__name__}; load() reads a file"
            )
    if isinstance(soundings, Mapping):
        return {str(name): sounding for name, sounding in soundings.items()}
    return dict(zip(_unique_names(list(soundings)), soundings, strict=True))


def signatures(soundings: Soundings, gauge: str = "affinity") -> dict[str, Array]:
    """Return a gauge along the sites of each sounding, the mean over batches, by name.

    A site without a finite value is refused: no distance can be computed through it.
    """
    found: dict[str, Array] = {}
    for name, sounding in by_name(soundings).items():
        if gauge not in sounding.gauges:
            raise InputError(f"{name}: {not_measured(gauge, sounding.gauges)}")
        values = sounding.mean(gauge)
        bad = [str(site) for site in values.index[~np.isfinite(values.to_numpy())]]
        if bad:
            raise InputError(
                f"{name}: {gauge!r} has no finite value at {_listed(bad, 5)}; measure with more samples, or "
                "without these sites"
            )
        found[name] = np.asarray(values, np.float64)
    return found


def comparable(
    soundings: Soundings,
    gauge: str = "affinity",
    *,
    allow_mismatch: bool = False,
    alike: Iterable[str] = ALIKE,
) -> dict[str, Sounding]:
    """Return the soundings by name if a difference between them is one between the networks.

    All must hold the gauge and agree in `alike`; all must be of activations, or all of residual paths with
    the same σ. If not, those that differ from the majority are named.
    Data are the same if their name and the shape of a sample agree; the size of images does not count, since
    each network takes its own. Tensors, and data sets without a `description`, have no name: their first
    samples are compared, if all soundings have the same seed (which may decide the order).

    Args:
        soundings: what to compare.
        gauge: the gauge to compare.
        allow_mismatch: warn instead of refusing; soundings without the gauge are left out.
        alike: any of `data`, `pooling` (the reduction), `samples` (in a batch), `seed`, `weights`.
    """
    alike = list(alike)
    for aspect in alike:
        if aspect not in ASPECTS:
            raise InputError(f"expected some of {', '.join(ASPECTS)}, got {aspect!r}", parameter="alike")
    named = by_name(soundings)
    without = [name for name, sounding in named.items() if gauge not in sounding.gauges]
    kept = {name: sounding for name, sounding in named.items() if name not in without}
    if not kept:
        measured = dict.fromkeys(gauge for sounding in named.values() for gauge in sounding.gauges)
        raise InputError(not_measured(gauge, list(measured)), parameter="gauge")
    missing = [f"{gauge!r} was not measured in {_listed(without)}"] if without else []
    found = {aspect: aspects_of(list(kept.values()), aspect) for aspect in alike}
    found["pairs"] = [_pairs_of(sounding) for sounding in kept.values()]
    differences = [text for aspect, values in found.items() if (text := _mismatched(aspect, kept, values))]
    if (missing or differences) and not allow_mismatch:
        raise InputError(
            f"needed to compare these soundings, which differ: {'; '.join(missing + differences)}. Or "
            "measure them alike, or leave some out",
            parameter="allow_mismatch",
        )
    for text in missing:
        warnings.warn(f"left out of the comparison: {text}", stacklevel=2)
    for text in differences:
        warnings.warn(f"compared although they differ: {text}", stacklevel=2)
    return kept


def not_measured(gauge: str, measured: Sequence[str]) -> str:
    """Say that a gauge is missing, and which ones there are.

    Example:
        >>> not_measured("stable_rank", ["affinity", "stable_rank_x", "stable_rank_y"])
        "'stable_rank' was not measured, but affinity, stable_rank_x, stable_rank_y; did you mean \
stable_rank_x or stable_rank_y?"
    """
    hint = did_you_mean(gauge, measured) or "choose one of these"
    return f"{gauge!r} was not measured, but {', '.join(measured)}; {hint}"


def short_name(sounding: Sounding) -> str:
    """Return the network's name without its source: `resnet18` for `torchvision:resnet18`."""
    return str(sounding.provenance.model.get("name", "?")).rpartition(":")[2]


def aspects_of(soundings: Sequence[Sounding], aspect: str) -> list[str]:
    """Describe one aspect of each. Data of the same name get their shape, or hash, where it differs."""
    return ASPECTS[aspect](soundings)


def labels_of(soundings: Sequence[Sounding], aspect: str) -> list[str]:
    """Return labels for one aspect: data with their count where it differs, random weights with their seed.

    `random:96` and `random:192` are the same data, less and more of it: they agree in this aspect, and have
    different labels.
    """
    words = aspects_of(soundings, aspect)
    if aspect == "data":
        return with_counts(words, soundings)
    return _by_seed(words, soundings) if aspect == "weights" else words


def with_counts(words: list[str], soundings: Sequence[Sounding]) -> list[str]:
    """Add the number of samples where only this differs: `random:96`, `random:192`."""
    return _distinguished(words, soundings, _count, ":")


def counted_name(sounding: Sounding) -> str:
    """Return the name of the data with their count, as the command takes it: `random:192`."""
    data = sounding.provenance.data
    return f"{data.get('name', '?')}:{data.get('count', '?')}"


def has_random_weights(sounding: Sounding) -> bool:
    """Return whether the weights are random, drawn with the seed."""
    return sounding.provenance.model.get("weights") == "none"


def plan_label(sounding: Sounding, what: str) -> str:
    """Return what the plan of a survey calls the data or the settings; empty if no plan did."""
    labels = sounding.provenance.settings.get("survey")
    return str(labels.get(what) or "") if isinstance(labels, Mapping) else ""


def _plan_labels(what: str, soundings: Sequence[Sounding]) -> list[str]:
    """Return what the plan calls them, if it has a name for each."""
    found = [plan_label(sounding, what) for sounding in soundings]
    return found if all(found) else [""] * len(found)


def _unique_names(soundings: Sequence[Sounding]) -> list[str]:
    names = [short_name(sounding) for sounding in soundings]
    for what in ("data", "settings"):
        names = _distinguished(names, soundings, partial(_plan_labels, what), ", ")
    for aspect in ("data", "weights", "pooling", "samples", "seed"):
        names = _distinguished(names, soundings, partial(labels_of, aspect=aspect), ", ")
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names


def _mismatched(aspect: str, names: Iterable[str], found: Sequence[str]) -> str:
    """Name those that differ from the majority in this aspect; empty if all agree."""
    values = dict(zip(names, found, strict=True))
    (usual, most), *others = Counter(values.values()).most_common()
    if not others:
        return ""
    if others[0][1] == most:  # no majority
        return f"{aspect}: {_listed([f'{name}: {value}' for name, value in values.items()])}"
    odd = [f"{name} ({value})" for name, value in values.items() if value != usual]
    return f"{aspect}: {usual} in most, but not in {_listed(odd)}"


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _distinguished(
    words: list[str],
    soundings: Sequence[Sounding],
    detail: Callable[[Sequence[Sounding]], list[str]],
    between: str,
) -> list[str]:
    """Append a detail to equal words if it differs between them."""
    words = list(words)
    for group in _places_of(words).values():
        found = detail([soundings[place] for place in group])
        if len(set(found) - {""}) > 1:
            for place, more in zip(group, found, strict=True):
                words[place] += f"{between}{more}" if more else ""
    return words


def _places_of(words: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    return places


def _data(soundings: Sequence[Sounding]) -> list[str]:
    words = [str(sounding.provenance.data.get("name", "?")) for sounding in soundings]
    for detail in (_shape, _content, _first_sample):
        words = _distinguished(words, soundings, detail, " ")
    return words


def _shape(soundings: Sequence[Sounding]) -> list[str]:
    facts = [sounding.provenance.data for sounding in soundings]
    return ["" if _are_images(data) else "×".join(map(str, data.get("sample_shape", ()))) for data in facts]


def _are_images(data: Mapping[str, Any]) -> bool:
    """Return whether these are images, or noise like images, whose size the network decides."""
    return "kind" in data and len(data.get("sample_shape", ())) == 3


def _content(soundings: Sequence[Sounding]) -> list[str]:
    """Return the start of the hash of files or of a folder; soundings of older versions have none."""
    return [str(sounding.provenance.data.get("sha256", ""))[:8] for sounding in soundings]


def _first_sample(soundings: Sequence[Sounding]) -> list[str]:
    """Return the start of the hash of the first sample, for data without a name and with the same seed."""
    seeds = {str(sounding.provenance.settings.get("seed")) for sounding in soundings}
    facts = [sounding.provenance.data for sounding in soundings]
    if len(seeds) > 1 or not all(_is_unnamed(data) for data in facts):
        return [""] * len(facts)
    return [str(data.get("first_sample_sha256", ""))[:8] for data in facts]


def _is_unnamed(data: Mapping[str, Any]) -> bool:
    """Return whether the name is only that of a class."""
    name = str(data.get("name", ""))
    return "kind" not in data and name.isidentifier() and (name[0].isupper() or name in _CONTAINERS)


def _count(soundings: Sequence[Sounding]) -> list[str]:
    return [str(sounding.provenance.data.get("count", "")) for sounding in soundings]


def _pooling(soundings: Sequence[Sounding]) -> list[str]:
    words = []
    for sounding in soundings:
        reduction = sounding.provenance.settings.get("reduction", {})
        word = str(reduction.get("pooling", "?")) + (" before σ" if reduction.get("pool_first") else "")
        axis = reduction.get("channel_axis")
        words.append(word if axis is None else f"{word} channels on axis {axis}")
    return words


def _setting(name: str) -> Callable[[Sequence[Sounding]], list[str]]:
    return lambda soundings: [str(s.provenance.settings.get(name, "?")) for s in soundings]


def _weights(soundings: Sequence[Sounding]) -> list[str]:
    models = [sounding.provenance.model for sounding in soundings]
    parts = [(str(model.get("weights") or ""), str(model.get("sha256", ""))[:8]) for model in models]
    return [" ".join(filter(None, part)) or "?" for part in parts]


def _by_seed(words: list[str], soundings: Sequence[Sounding]) -> list[str]:
    """Replace hashes by `seed 0`, `seed 1` if each seed drew its own weights."""
    random = [place for place, sounding in enumerate(soundings) if has_random_weights(sounding)]
    seeds = _setting("seed")([soundings[place] for place in random])
    drawn = set(zip((words[place] for place in random), seeds, strict=True))
    if not len(drawn) == len(set(seeds)) == len({words[place] for place in random}) > 1:
        return words
    found = {place: f"seed {seed}" for place, seed in zip(random, seeds, strict=True)}
    return [found.get(place, word) for place, word in enumerate(words)]


def _pairs_of(sounding: Sounding) -> str:
    """Describe the pairs: before and after activations, or points of a residual path and σ of them."""
    path = sounding.provenance.settings.get("path")
    if not isinstance(path, Mapping):
        return "activations"
    sigma = path.get("sigma")
    return f"residual path, σ {'of each block' if isinstance(sigma, Mapping) else sigma}"


ASPECTS: dict[str, Callable[[Sequence[Sounding]], list[str]]] = {
    "data": _data,
    "pooling": _pooling,
    "samples": _setting("samples"),
    "seed": _setting("seed"),
    "weights": _weights,
}
"""What can differ between two soundings of one network: name → descriptions of several soundings."""
