"""The models and weights that a plan names: patterns become names, and unknown ones are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from fathometer.errors import InputError, did_you_mean
from fathometer.models import list_models
from fathometer.models.from_torchvision import torchvision_weights
from fathometer.models.loading import SOURCES
from fathometer.models.sources import import_optional
from fathometer.models.user_code import import_by_name

_LISTED = ("torchvision", "timm")  # sources that know all their names
_WORDS = ("default", "none")


@dataclass(frozen=True)
class Member:
    """A model with weights.

    Attributes:
        model: its name in the plan.
        weights: their name in the plan: `default`, `none`, a name of torchvision's, or a file.
        model_source: what to load: the name, or the source with the path of its file or folder.
        weights_source: what to load: the name or the path.
        weights_is_file: whether the weights are in a file of their own.
    """

    model: str
    weights: str
    model_source: str
    weights_source: str
    weights_is_file: bool = False


def find_members(
    models: Sequence[str], without: Sequence[str], weights: Sequence[str], folder: Path
) -> list[Member]:
    """Return the models that match `models`, apart from those that match `without`, with each of the weights.

    Args:
        models: names, or patterns for torchvision and timm.
        without: patterns of models to leave out.
        weights: `default`, `none`, torchvision's names, or files, in which `{name}` is the model's name
            without its source.
        folder: where relative paths begin.
    """
    if not models or not weights:
        raise InputError("expected at least one, got none", parameter="weights" if models else "models")
    found: dict[str, str] = {}  # name in the plan to what to load
    for pattern in models:
        try:
            found |= _matches(pattern, folder)
        except InputError as error:
            raise InputError(f"models: {error}") from error
    for pattern in without:
        if not any(fnmatchcase(model, pattern) for model in found):
            hint = did_you_mean(pattern, found) or f"they are {', '.join(found)}"
            raise InputError(f"{pattern!r} matches none of the models; {hint}", parameter="without")
    return [
        _with_weights(model, source, entry, folder)
        for model, source in found.items()
        if not any(fnmatchcase(model, pattern) for pattern in without)
        for entry in weights
    ]


def _with_weights(model: str, source: str, weights: str, folder: Path) -> Member:
    names = [*_WORDS, *torchvision_weights(model)]
    if weights in names:
        return Member(model, weights, source, weights)
    name = weights.replace("{name}", model.rpartition(":")[2])
    file = folder / Path(name).expanduser()
    if os.path.isfile(file):
        return Member(model, name, source, str(file), weights_is_file=True)
    hint = did_you_mean(weights, names) or f"expected a file, or {', '.join(names)}"
    raise InputError(f"{weights!r} for {model}: no such file or name; {hint}", parameter="weights")


def _matches(pattern: str, folder: Path) -> dict[str, str]:
    source, colon, rest = pattern.partition(":")
    if not colon or not rest:
        near = list_models(f"*:{pattern}")[:3]
        hint = f"did you mean {' or '.join(near)}?" if near else "e.g. torchvision:resnet50"
        raise InputError(f"{pattern!r}: expected SOURCE:NAME; {hint}")
    if source in _LISTED:
        return {name: name for name in _listed(pattern, source, rest)}
    if source in ("hf", "onnx"):
        path = folder / Path(rest).expanduser()
        if os.path.exists(path):
            return {pattern: f"{source}:{path}"}
        if source == "onnx" or rest[:1] in "./~" or rest.endswith(".gguf"):
            raise InputError(f"{pattern}: no such file or folder; paths are relative to the plan")
        return {pattern: pattern}  # a name on the hub, which is known only when it is loaded
    if "." not in source and (hint := did_you_mean(source, SOURCES)):
        raise InputError(f"{pattern}: unknown source {source!r}; {hint}")
    import_by_name(pattern, "a model")
    return {pattern: pattern}


def _listed(pattern: str, source: str, rest: str) -> list[str]:
    known = SOURCES[source].names()
    lists = f"fathometer models '{source}:*' lists them"
    if any(sign in rest for sign in "*?["):
        names = sorted((name for name in known if fnmatchcase(name, rest)), key=_natural)
        if not names:
            raise InputError(
                f"{pattern!r} matches no model; {did_you_mean(rest.strip('*?'), known) or lists}"
            )
        return [f"{source}:{name}" for name in names]
    name, dot, _ = rest.partition(".")
    if source == "timm" and dot and name in known:  # the tag of its weights
        timm = import_optional("timm", extra="vision", purpose="a timm: model")
        known = list(timm.list_pretrained(f"{name}.*"))
    if rest not in known:
        raise InputError(f"{pattern}: there is no such model; {did_you_mean(rest, known) or lists}")
    return [pattern]


def _natural(name: str) -> list[tuple[int, str]]:
    """Order resnet18 before resnet101."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
