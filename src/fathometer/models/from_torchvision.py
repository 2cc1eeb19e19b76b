"""`torchvision:NAME`: image classifiers of torchvision, with its own preprocessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from fathometer.data import Inputs
from fathometer.errors import InputError
from fathometer.models.sources import Found, import_optional, no_weights, unknown_model

_INCEPTIONS = ("googlenet", "inception_v3")


def load(name: str, weights: str | Path) -> Found:
    """Make the classifier of that name, with the preprocessing of its weights or of fitting ones."""
    models = _models()
    if name not in names():
        raise unknown_model("torchvision", name, names())
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
        raise no_weights(f"torchvision:{name}", error) from error
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
