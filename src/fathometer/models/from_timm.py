"""`timm:NAME`: the image models of timm, with the preprocessing of their configuration."""

from __future__ import annotations

from typing import Any

from fathometer.errors import MissingExtraError
from fathometer.inputs import Inputs
from fathometer.models.hub import hub_or_cache
from fathometer.models.sources import Found, Source, no_default_weights, unknown_model
from fathometer.models.torchvision_operators import ensure_torchvision_operators


def load(name: str, weights: str) -> Found:
    """The model of that name, which may end in a tag: `resnet10t.c3_in1k`."""
    timm = _timm()
    architecture, _, tag = name.partition(".")
    known = timm.list_models()
    if architecture not in known:
        raise unknown_model("timm", name, known)
    if tag and name not in (tagged := timm.list_pretrained(f"{architecture}.*")):
        raise unknown_model("timm", name, tagged)
    if weights == "default":
        try:
            with hub_or_cache():
                module = timm.create_model(name, pretrained=True)
        except (OSError, RuntimeError) as error:
            raise no_default_weights(f"timm:{name}", error) from error
        weights = module.pretrained_cfg.get("tag") or weights
    else:
        module = timm.create_model(name, pretrained=False)
    settings = timm.data.resolve_model_data_config(module)
    preprocess = timm.data.create_transform(**settings, is_training=False)
    return module, weights, Inputs("image", tuple(settings["input_size"]), preprocess=preprocess)


def names() -> list[str]:
    """Every architecture."""
    return list(_timm().list_models())


def _timm() -> Any:
    ensure_torchvision_operators()
    try:
        import timm
        import timm.data
    except ImportError as error:
        raise MissingExtraError("timm", "vision", "a timm: model") from error
    return timm


SOURCE = Source(load, names)
