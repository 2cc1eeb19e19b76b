"""Facts about torchvision's networks: accuracy, parameters, GFLOPS, family, year; and a counted depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from fathometer.errors import MissingExtraError
from fathometer.models.sources import import_optional

_LAYERS = (
    nn.Linear,
    nn.Bilinear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


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


def torchvision_weights(model: str) -> list[str]:
    """List torchvision's names for the weights of a model; empty for other models."""
    return [entry.name for entry in _entries(model)]


def default_weights(model: str) -> str | None:
    """Return the name of torchvision's default weights."""
    entries = _entries(model)
    return entries.DEFAULT.name if entries else None


def torchvision_facts(model: str, weights: str) -> dict[str, float]:
    """Return `parameters`, `gflops`, `year`, and the `accuracy` (top-1 on ImageNet-1K, %) of these weights.

    Example:
        >>> torchvision_facts("torchvision:resnet18", "IMAGENET1K_V1")
        {'parameters': 11689512, 'gflops': 1.814, 'accuracy': 69.758, 'year': 2015}
        >>> sorted(torchvision_facts("torchvision:resnet18", "none"))
        ['gflops', 'parameters', 'year']
    """
    entries = _entries(model)
    if not entries:
        return {}
    file = Path(weights).name
    entry = next(
        (
            e
            for e in entries
            if weights == e.name
            or e.url.endswith("/" + file)
            or (weights == "default" and e == entries.DEFAULT)
        ),
        None,
    )
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
    models = _torchvision(model)
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
    return sum(isinstance(layer, _LAYERS) for layer in module.modules())


def _entries(model: str) -> Any:
    models = _torchvision(model)
    return [] if models is None else models.get_model_weights(_name(model))


def _name(model: str) -> str:
    return model.partition(":")[2]


def _torchvision(model: str) -> Any:
    """Return `torchvision.models` if the model is one of them and torchvision is installed."""
    if not model.startswith("torchvision:"):
        return None
    try:
        return import_optional("torchvision", "models", extra="vision", purpose="a torchvision: model").models
    except MissingExtraError:
        return None
