"""The models and weights that a plan names: patterns become names, and what there is not is refused."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from fathometer.errors import InputError, MissingExtraError
from fathometer.models import list_models
from fathometer.models.loading import SOURCES
from fathometer.models.sources import import_optional
from fathometer.models.torchvision_facts import torchvision_weights
from fathometer.models.user_code import import_by_name
from fathometer.survey.section import Section, suggestion

_LISTED = ("torchvision", "timm")  # which know all their names
_WORDS = ("default", "none")


@dataclass(frozen=True)
class Member:
    """A model with weights.

    Attributes:
        model: its name, as the plan has it.
        weights: as the plan has them: `default`, `none`, a name of torchvision's, or a file.
        model_source: what to load: the name, with the path of its file or folder from here.
        weights_source: the same for weights.
        weights_is_file: whether they are in a file of their own.
    """

    model: str
    weights: str
    model_source: str
    weights_source: str
    weights_is_file: bool = False


class Named(NamedTuple):
    """As the plan has it, and what to load."""

    label: str
    load_as: str
    is_file: bool = False


def find_members(table: Section, folder: Path) -> list[Named]:
    """The models that `models` of a table names, but for those that `without` does."""
    patterns = table.words("models")
    if not patterns:
        raise table.error('no models; expected models = ["torchvision:resnet*"]')
    found: list[Named] = []
    for pattern in patterns:
        try:
            found += _matches(pattern, folder)
        except (InputError, MissingExtraError) as error:
            raise table.error(f"models: {error}", "models", pattern) from error
    left_out = table.words("without")
    for pattern in left_out:
        if not any(fnmatchcase(entry.label, pattern) for entry in found):
            names = [entry.label for entry in found]
            raise table.error(
                f"without: {pattern!r} matches none of the models; {suggestion(pattern, names)}",
                "without",
                pattern,
            )
    kept = [entry for entry in found if not any(fnmatchcase(entry.label, pattern) for pattern in left_out)]
    return list(dict.fromkeys(kept))


def find_weights(table: Section, usual: tuple[str, ...], model: Named, folder: Path) -> list[Named]:
    """The weights for a model; in a path, `{name}` is the name of the model without its source."""
    found = []
    for entry in table.words("weights", usual) if table.path else usual:
        if entry in _WORDS:
            found.append(Named(entry, entry))
            continue
        bare = model.label.rpartition(":")[2]
        file = folder / Path(entry.replace("{name}", bare)).expanduser()
        named = torchvision_weights(model.label)
        if entry in named:
            found.append(Named(entry, entry))
        elif os.path.isfile(file):
            found.append(Named(entry.replace("{name}", bare), str(file), is_file=True))
        else:
            raise table.error(
                f"weights: {entry!r} for {model.label}: no such file, nor a name of weights; "
                f"{suggestion(entry, [*_WORDS, *named])}",
                "weights",
                entry,
            )
    return found


def _matches(pattern: str, folder: Path) -> list[Named]:
    source, colon, rest = pattern.partition(":")
    if not colon or not rest:
        near = list_models(f"*:{pattern}")[:3]
        hint = f"did you mean {' or '.join(near)}?" if near else "e.g. torchvision:resnet50"
        raise InputError(f"{pattern!r}: expected SOURCE:NAME; {hint}")
    if source in _LISTED:
        return _listed(pattern, source, rest)
    if source in ("hf", "onnx"):
        place = folder / Path(rest).expanduser()
        if os.path.exists(place):
            return [Named(pattern, f"{source}:{place}")]
        if source == "onnx" or rest[:1] in "./~" or rest.endswith(".gguf"):
            raise InputError(f"{pattern}: no such file or folder; paths are relative to the plan")
        return [Named(pattern, pattern)]  # a name on the hub, which only loading can tell
    if "." not in source and suggestion(source, SOURCES).startswith("did you mean"):
        raise InputError(f"{pattern}: {source!r} is no source; {suggestion(source, SOURCES)}")
    import_by_name(pattern, "a model")
    return [Named(pattern, pattern)]


def _listed(pattern: str, source: str, rest: str) -> list[Named]:
    known = SOURCES[source].names()
    if any(sign in rest for sign in "*?["):
        names = sorted((name for name in known if fnmatchcase(name, rest)), key=_natural)
        if not names:
            bare = rest.strip("*?")
            raise InputError(f"{pattern!r} matches no model; {_near(source, bare, known)}")
        return [Named(f"{source}:{name}", f"{source}:{name}") for name in names]
    name, dot, _ = rest.partition(".")
    if source == "timm" and dot and name in known:
        known = _tagged(name)
        if not known:
            raise InputError(f"{pattern}: there is no such model; timm:{name} has no weights, and so no tags")
    if rest not in known:
        raise InputError(f"{pattern}: there is no such model; {_near(source, rest, known)}")
    return [Named(pattern, pattern)]


def _tagged(name: str) -> list[str]:
    """The names of an architecture of timm with the tags of its weights."""
    timm = import_optional("timm", extra="vision", purpose="a timm: model")
    return list(timm.list_pretrained(f"{name}.*"))


def _natural(name: str) -> list[tuple[int, str]]:
    """resnet18 before resnet101."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _near(source: str, name: str, known: list[str]) -> str:
    hint = suggestion(name.lower(), known)
    if not hint.startswith("did you mean"):
        return f"fathometer models '{source}:*' lists them"
    return hint
