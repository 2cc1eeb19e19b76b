"""Soundings side by side: their names and signatures, what differs, and whether they can be compared."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fathometer.errors import InputError, check_choice, join_names
from fathometer.gauges.gauge import indices_of_equal
from fathometer.results.provenance import weights_identity
from fathometer.results.sounding import Sounding, column_of

Soundings: TypeAlias = Mapping[str, Sounding] | Sequence[Sounding]
Array: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Sequence[float] | NDArray[np.floating[Any]]

MUST_AGREE = ("data", "pooling", "samples")
"""Aspects that must agree, or else a difference in signature is no difference between networks."""
_CONTAINERS = ("list", "tuple", "ndarray", "generator", "map", "zip")


def by_name(soundings: Soundings, gauge: str | None = None) -> dict[str, Sounding]:
    """Return soundings under unique names: the given ones, or those of the networks.

    Several soundings of one network also get what differs between them: weights, data, settings, or a number.
    Sites with fewer samples than others are left out, with a warning. With `gauge`, kinds of sites that have
    no value of it are left out, too: affinity, for example, is not measured at parts of a transformer.
    """
    if not soundings:
        raise InputError("expected at least one sounding, got none")
    named = soundings if isinstance(soundings, Mapping) else dict(enumerate(soundings))
    for name, sounding in named.items():
        if not isinstance(sounding, Sounding):
            raise InputError(
                f"{name}: expected a Sounding, got {type(sounding).__name__}; load() reads a file"
            )
    enough = [sounding.with_enough_samples() for sounding in named.values()]
    names = [*map(str, soundings)] if isinstance(soundings, Mapping) else _unique_names(enough)
    if gauge is not None:
        enough = [_with_values(sounding, gauge) for sounding in enough]
    return dict(zip(names, enough, strict=True))


def measured_gauges(soundings: Iterable[Sounding]) -> list[str]:
    """Return the columns that any of the soundings has."""
    return list(dict.fromkeys(gauge for sounding in soundings for gauge in sounding.gauges))


def signatures(soundings: Soundings, gauge: str = "affinity") -> dict[str, Array]:
    """Return a gauge along the sites of each sounding, the mean over batches, by name.

    Kinds of sites that have no value are left out. Another site without a finite value is refused: no
    distance can be computed through it.
    """
    found: dict[str, Array] = {}
    for name, sounding in by_name(soundings, gauge).items():
        values = sounding.mean(column_of(gauge, sounding.gauges, f"{name}: "))
        bad = [str(site) for site in values.index[~np.isfinite(values.to_numpy())]]
        if bad:
            raise InputError(
                f"{name}: {gauge!r} has no finite value at {join_names(bad, 5)}; measure with more samples, "
                "or without these sites"
            )
        found[name] = np.asarray(values, np.float64)
    return found


def after_sums(soundings: Soundings, gauge: str = "affinity") -> dict[str, NDArray[np.bool_]]:
    """Return whether the input of each site of `signatures` is a sum, as after a block of a ResNet."""
    named = by_name(soundings, gauge)
    return {name: np.array([site.after_sum for site in each.sites], bool) for name, each in named.items()}


def comparable(
    soundings: Soundings,
    gauge: str = "affinity",
    *,
    allow_mismatch: bool = False,
    alike: Iterable[str] = MUST_AGREE,
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
        check_choice("alike", aspect, ASPECTS)
    named = by_name(soundings)
    gauge = column_of(gauge, measured_gauges(named.values()))
    without = [name for name, sounding in named.items() if gauge not in sounding.gauges]
    kept = {name: sounding for name, sounding in named.items() if name not in without}
    missing = [f"{gauge!r} was not measured in {join_names(without)}"] if without else []
    found = {aspect: aspects_of(list(kept.values()), aspect) for aspect in alike}
    found["pairs"] = [_pairs_of(sounding) for sounding in kept.values()]
    mismatches = [_mismatch(aspect, dict(zip(kept, values, strict=True))) for aspect, values in found.items()]
    differences = [text for text in mismatches if text]
    if (missing or differences) and not allow_mismatch:
        raise InputError(
            f"these soundings differ: {'; '.join(missing + differences)}; measure them alike, leave some "
            "out, or allow it",
            parameter="allow_mismatch",
        )
    for text in missing:
        warnings.warn(f"left out of the comparison: {text}", stacklevel=2)
    for text in differences:
        warnings.warn(f"compared although they differ: {text}", stacklevel=2)
    return kept


def short_name(sounding: Sounding) -> str:
    """Return the network's name without its source: `resnet18` for `torchvision:resnet18`."""
    return str(sounding.provenance.model.get("name", "?")).rpartition(":")[2]


def plan_label(sounding: Sounding, what: str) -> str:
    """Return what the plan of a survey calls the data or the settings; empty if no plan did."""
    labels = sounding.provenance.settings.get("survey")
    return str(labels.get(what) or "") if isinstance(labels, Mapping) else ""


def aspects_of(soundings: Sequence[Sounding], aspect: str) -> list[str]:
    """Describe one aspect of each. Data of the same name get their shape, or hash, where it differs."""
    words = [ASPECTS[aspect](sounding) for sounding in soundings]
    if aspect == "data":
        words = _add_detail(words, soundings, _shape, " ")
        words = _add_detail(words, soundings, _content, " ")
        seeds = [_setting(sounding, "seed") for sounding in soundings]  # which may decide the first sample
        words = _add_detail(words, soundings, _first_sample, " ", list(zip(words, seeds, strict=True)))
    return words


def labels_of(soundings: Sequence[Sounding], aspect: str, words: Sequence[str] | None = None) -> list[str]:
    """Return labels for one aspect: data with their count where it differs, random weights with their seed.

    `random:96` and `random:192` are the same data, less and more of it: they agree in this aspect, and have
    different labels. `words` are what `aspects_of` says, by default among these soundings.
    """
    words = aspects_of(soundings, aspect) if words is None else words
    if aspect == "data":
        return _add_detail(words, soundings, _count, ":")
    if aspect != "weights":
        return list(words)
    return _names_of_weights(_with_seeds(words, soundings), soundings)


def _unique_names(soundings: Sequence[Sounding]) -> list[str]:
    names = [short_name(sounding) for sounding in soundings]
    labels: list[Callable[[list[Sounding]], list[str]]] = [
        *(partial(_plan_labels, what=what) for what in ("data", "settings")),
        *(partial(labels_of, aspect=aspect) for aspect in ("data", "weights", "pooling", "samples", "seed")),
    ]
    for label in labels:
        for group in indices_of_equal(names):
            found = label([soundings[index] for index in group])
            if len(set(found)) > 1 and all(found):
                for index, text in zip(group, found, strict=True):
                    names[index] += f", {text}"
    for group in indices_of_equal(names):
        for number, index in enumerate(group[1:], 2):
            names[index] += f" #{number}"
    return names


def _with_values(sounding: Sounding, gauge: str) -> Sounding:
    """Return the sounding of the kinds of sites that have a value of the gauge; of all sites if none has."""
    try:
        values = sounding.records[column_of(gauge, sounding.gauges)]
    except InputError:  # which is for the caller to say
        return sounding
    kinds = set(sounding.records.loc[values.notna(), "kind"])
    kept = [site for site in sounding.sites if site.kind in kinds]
    mixed = dict.fromkeys(
        f"{site.kind}{' +residual' * site.residual}" for site in kept if site.layer is not None
    )
    if len(mixed) > 1:
        warnings.warn(
            f"{gauge} at {join_names(list(mixed))} is one curve here; to compare one of them, measure it "
            "alone",
            stacklevel=4,
        )
    return sounding.at(kept) if kept else sounding


def _plan_labels(soundings: Sequence[Sounding], what: str) -> list[str]:
    return [plan_label(sounding, what) for sounding in soundings]


def _add_detail(
    words: Sequence[str],
    soundings: Sequence[Sounding],
    detail: Callable[[Sounding], str],
    between: str,
    keys: Sequence[Hashable] | None = None,
) -> list[str]:
    """Append a detail to equal words (or equal keys) if it differs between them."""
    groups, words = indices_of_equal(keys or words), list(words)
    for group in groups:
        details = {index: detail(soundings[index]) for index in group}
        if len(set(details.values()) - {""}) > 1:
            for index, text in details.items():
                words[index] += text and f"{between}{text}"
    return words


def _with_seeds(words: Sequence[str], soundings: Sequence[Sounding]) -> list[str]:
    """Replace hashes of random weights by `seed 0`, `seed 1` if each seed drew its own weights."""
    seeds = {
        index: f"seed {_setting(sounding, 'seed')}"
        for index, sounding in enumerate(soundings)
        if sounding.provenance.model.get("weights") == "none"
    }
    drawn = {(words[index], seed) for index, seed in seeds.items()}
    if not len(drawn) == len(set(seeds.values())) == len({words[index] for index in seeds}) > 1:
        return list(words)
    return [seeds.get(index, word) for index, word in enumerate(words)]


def _names_of_weights(words: Sequence[str], soundings: Sequence[Sounding]) -> list[str]:
    """Name weights by their files alone where that tells them apart; one file and none: trained, random."""
    given = [str(sounding.provenance.model.get("weights") or "") for sounding in soundings]
    if not all(given) or len(set(given)) != len(set(words)) or len(set(given)) < 2:
        return list(words)
    files = set(given) - {"none"}
    names = {name: "trained" if len(files) == 1 else PurePath(name).stem for name in files}
    return [names.get(name, "random") for name in given]


def _mismatch(aspect: str, values: Mapping[str, str]) -> str:
    """Name those that differ from the majority in this aspect; empty if all agree."""
    (usual, count), *others = Counter(values.values()).most_common()
    if not others:
        return ""
    if others[0][1] == count:  # no majority
        each = [f"{name}: {value}" for name, value in values.items()]
        return f"{aspect}: {join_names(each, between='; ')}"
    odd = [f"{name} ({value})" for name, value in values.items() if value != usual]
    return f"{aspect}: {usual} in most, but not in {join_names(odd, between='; ')}"


def _shape(sounding: Sounding) -> str:
    """Return the shape of a sample; images, or noise like images, have the size that the network takes."""
    data = sounding.provenance.data
    shape = data.get("sample_shape", ())
    return "" if "kind" in data and len(shape) == 3 else "×".join(map(str, shape))


def _content(sounding: Sounding) -> str:
    """Return the start of the hash of all data, or of the fingerprint that `datasets` gives to them.

    Soundings of older versions have none.
    """
    data = sounding.provenance.data
    return str(data.get("sha256") or data.get("fingerprint") or "")[:8]


def _first_sample(sounding: Sounding) -> str:
    """Return the start of the hash of the first sample, for data that have only the name of a class."""
    data = sounding.provenance.data
    name = str(data.get("name", ""))
    named = "kind" in data or not name.isidentifier() or not (name[0].isupper() or name in _CONTAINERS)
    return "" if named else str(data.get("first_sample_sha256", ""))[:8]


def _count(sounding: Sounding) -> str:
    return str(sounding.provenance.data.get("count", ""))


def _pooling(sounding: Sounding) -> str:
    reduction = sounding.provenance.settings.get("reduction", {})
    word = str(reduction.get("pooling", "?")) + (" before σ" if reduction.get("pool_first") else "")
    axis = reduction.get("channel_axis")
    return word if axis is None else f"{word} channels on axis {axis}"


def _setting(sounding: Sounding, name: str) -> str:
    return str(sounding.provenance.settings.get(name, "?"))


def _weights(sounding: Sounding) -> str:
    model = sounding.provenance.model
    parts = str(model.get("weights") or ""), weights_identity(model)[:8]
    return " ".join(filter(None, parts)) or "?"


def _pairs_of(sounding: Sounding) -> str:
    """Describe the pairs: before and after activations, or points of a residual path and σ of them."""
    path = sounding.provenance.settings.get("path")
    if not isinstance(path, Mapping):
        return "activations"
    sigma = path.get("sigma")
    return f"residual path, σ {'of each block' if isinstance(sigma, Mapping) else sigma}"


ASPECTS: dict[str, Callable[[Sounding], str]] = {
    "data": lambda sounding: str(sounding.provenance.data.get("name", "?")),
    "pooling": _pooling,
    "samples": partial(_setting, name="samples"),
    "seed": partial(_setting, name="seed"),
    "weights": _weights,
}
"""What can differ between two soundings of one network: name → description."""
