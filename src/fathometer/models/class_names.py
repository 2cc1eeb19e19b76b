"""The names of a network's classes, as far as its source knows them."""

from __future__ import annotations

from collections.abc import Sequence

from fathometer.errors import MissingExtraError
from fathometer.models.from_torchvision import torchvision_categories
from fathometer.models.loading import LoadedModel
from fathometer.models.sources import import_optional

_IMAGENET_CLASSES = 1000


def class_names(model: LoadedModel) -> list[set[str]]:
    """Return the names of each class in lower case, synonyms and WordNet's id too; none if not known.

    Example:
        >>> from fathometer.models import load_model
        >>> class_names(load_model("torchvision:squeezenet1_1", weights="none"))
        []
    """
    if model.weights == "none":  # its outputs mean nothing
        return []
    if model.name.startswith("timm:"):
        is_imagenet = getattr(model.module, "num_classes", None) == _IMAGENET_CLASSES
        return _imagenet_names() if is_imagenet else []
    names = [set(map(_plain, text.split(","))) for text in _categories(model)]
    if len(names) == _IMAGENET_CLASSES and "tench" in names[0]:
        return [own | others for own, others in zip(names, _imagenet_names() or names, strict=True)]
    return names


def match_classes(names: Sequence[str], classes: Sequence[set[str]]) -> list[int] | None:
    """Return the class of each name; None unless each one names exactly one class, and no two the same.

    Example:
        >>> match_classes(["n02", "Great_White"], [{"tench", "n01"}, {"great white", "n02"}, {"ray"}])
        >>> match_classes(["ray", "Great_White"], [{"tench", "n01"}, {"great white", "n02"}, {"ray"}])
        [2, 1]
    """
    found = []
    for name in names:
        synonyms = set(map(_plain, name.split(",")))
        fitting = [index for index, own in enumerate(classes) if own & synonyms]
        if len(fitting) != 1:
            return None
        found += fitting
    return found if len(set(found)) == len(found) else None


def _categories(model: LoadedModel) -> list[str]:
    """Return a text for each class: of torchvision's weights, or of the configuration of transformers."""
    if model.name.startswith("torchvision:"):
        return torchvision_categories(model.name)
    labels = getattr(getattr(model.module, "config", None), "id2label", None) or {}
    return [str(labels.get(index, "")) for index in range(len(labels))]


def _imagenet_names() -> list[set[str]]:
    """Return WordNet's id and synonyms of the classes of ImageNet-1k, which timm has."""
    try:
        info = import_optional("timm", "data", extra="vision", purpose="names of classes").data.ImageNetInfo()
    except MissingExtraError:
        return []
    return [
        {info.index_to_label_name(index), *map(_plain, info.index_to_description(index).split(","))}
        for index in range(_IMAGENET_CLASSES)
    ]


def _plain(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").split())
