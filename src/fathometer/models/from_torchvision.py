"""`torchvision:NAME`: image classifiers of torchvision, with its own preprocessing and facts about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from fathometer.data import Inputs
from fathometer.errors import InputError, MissingExtraError
from fathometer.models.sources import SourceResult, download_error, import_optional, unknown_model_error

_INCEPTIONS = ("googlenet", "inception_v3")
_YEARS = {
    "alexnet": 2012,
    "convnext": 2022,
    "densenet": 2016,
    "efficientnet": 2019,
    "efficientnet_v2": 2021,
    "googlenet": 2014,
    "inception_v3": 2015,
    "maxvit": 2022,
    "mnasnet": 2018,
    "mobilenet_v2": 2018,
    "mobilenet_v3": 2019,
    "regnet": 2020,
    "resnet": 2015,
    "resnext": 2016,
    "shufflenet_v2": 2018,
    "squeezenet": 2016,
    "swin": 2021,
    "swin_v2": 2021,
    "vgg": 2014,
    "vit": 2020,
    "wide_resnet": 2016,
}
"""Year of publication, by the beginning of the network's name; the longest that fits counts."""


def load(name: str, weights: str | Path) -> SourceResult:
    """Make the classifier of that name, with the preprocessing of its weights or of fitting ones."""
    models = _models()
    if name not in names():
        raise unknown_model_error("torchvision", name, names())
    entries = models.get_model_weights(name)
    entry = _entry(name, entries, weights) if isinstance(weights, str) and weights != "none" else None
    options: dict[str, Any] = {}
    if name in _INCEPTIONS:
        # Torchvision's weights for these hold auxiliary heads and expect another normalisation.
        options = {"aux_logits": True, "transform_input": True, "init_weights": weights == "none"}
    try:
        module = models.get_model(name, weights=entry, **options)
    except (OSError, RuntimeError) as error:
        if entry is None:
            raise
        raise download_error(f"torchvision:{name}", error) from error
    if isinstance(weights, Path):
        return module, weights.name, inputs_of_file(name, weights.name)
    return module, entry.name if entry else weights, _inputs(entry or _fitting(entries, module))


def inputs_of_file(name: str, file: str) -> Inputs:
    """Return the preprocessing for a file of weights, if it has the name that torchvision gave it."""
    entries = _models().get_model_weights(name)
    return _inputs(next((e for e in entries if e.url.endswith("/" + file)), entries.DEFAULT))


def _fitting(entries: Any, module: nn.Module) -> Any:
    """Return the default weights, unless they are for larger images than the network takes."""
    size = getattr(module, "image_size", None)  # of vision transformers
    fitting = (e for e in (entries.DEFAULT, *entries) if size in (None, e.transforms().crop_size[0]))
    return next(fitting, entries.DEFAULT)


def names() -> list[str]:
    """List every classifier."""
    models = _models()
    return list(models.list_models(module=models))


def _inputs(entry: Any) -> Inputs:
    preprocess = entry.transforms()
    side = preprocess.crop_size[0]
    return Inputs("image", (3, side, side), preprocess=preprocess)


def _models() -> Any:
    return import_optional("torchvision", "models", extra="vision", purpose="a torchvision: model").models


def _entry(name: str, entries: Any, weights: str) -> Any:
    if weights == "default":
        return entries.DEFAULT
    if weights not in entries.__members__:
        raise InputError(
            f"torchvision:{name}: no weights {weights!r}; expected default, none, a file, "
            f"or {' or '.join(e.name for e in entries)}"
        )
    return entries[weights]


def torchvision_weights(model: str) -> list[str]:
    """List torchvision's names for the weights of a model; empty for other models."""
    return [entry.name for entry in _weights_of(model)]


def default_weights(model: str) -> str | None:
    """Return the name of torchvision's default weights."""
    entries = _weights_of(model)
    return entries.DEFAULT.name if entries else None


def torchvision_categories(model: str) -> list[str]:
    """Return the names of the classes of a model's weights; empty for other models.

    Example:
        >>> torchvision_categories("torchvision:resnet18")[:2]
        ['tench', 'goldfish']
    """
    entries = _weights_of(model)
    return list(entries.DEFAULT.meta["categories"]) if entries else []


def torchvision_facts(model: str, weights: str) -> dict[str, float]:
    """Return `parameters`, `gflops`, `year`, and the `accuracy` (top-1 on ImageNet-1K, %) of these weights.

    Example:
        >>> torchvision_facts("torchvision:resnet18", "IMAGENET1K_V1")
        {'parameters': 11689512, 'gflops': 1.814, 'accuracy': 69.758, 'year': 2015}
        >>> sorted(torchvision_facts("torchvision:resnet18", "none"))
        ['gflops', 'parameters', 'year']
    """
    entries = _weights_of(model)
    if not entries:
        return {}
    file = Path(weights).name
    named = (e for e in entries if weights == e.name or e.url.endswith("/" + file))
    entry = entries.DEFAULT if weights == "default" else next(named, None)
    meta = (entry or entries.DEFAULT).meta
    facts: dict[str, float] = {"parameters": meta["num_params"], "gflops": meta["_ops"]}
    accuracy = meta["_metrics"].get("ImageNet-1K", {}).get("acc@1")
    if entry is not None and accuracy is not None:
        facts["accuracy"] = accuracy
    year = torchvision_year(model)
    return facts if year is None else {**facts, "year": year}


def torchvision_family(model: str) -> str | None:
    """Return the file of torchvision that builds it: `resnet`, `densenet`; none for other models.

    Example:
        >>> torchvision_family("torchvision:wide_resnet50_2")
        'resnet'
    """
    models = _if_torchvision(model)
    known = models is not None and _name(model) in models.list_models(module=models)
    return models.get_model_builder(_name(model)).__module__.rpartition(".")[2] if known else None


def torchvision_year(model: str) -> int | None:
    """Return the year in which the architecture was first published, or none if it is not known here.

    Example:
        >>> torchvision_year("torchvision:efficientnet_v2_s"), torchvision_year("torchvision:wide_resnet50_2")
        (2021, 2016)
    """
    name = _name(model) if model.startswith("torchvision:") else ""
    return _YEARS.get(max((begin for begin in _YEARS if name.startswith(begin)), key=len, default=""))


def depth_of(module: nn.Module) -> int:
    """Count the convolutions and linear layers of a network, because torchvision's metadata have no depth.

    Shortcuts and heads count, too: 21 for ResNet-18.
    """
    return sum(
        isinstance(layer, nn.Linear | nn.Bilinear | nn.modules.conv._ConvNd) for layer in module.modules()
    )


def _weights_of(model: str) -> Any:
    models = _if_torchvision(model)
    return [] if models is None else models.get_model_weights(_name(model))


def _name(model: str) -> str:
    return model.partition(":")[2]


def _if_torchvision(model: str) -> Any:
    """Return `torchvision.models` if the model is one of them and torchvision is installed."""
    try:
        return _models() if model.startswith("torchvision:") else None
    except MissingExtraError:
        return None
