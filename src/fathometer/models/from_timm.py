"""`timm:NAME`: image models of timm, with the preprocessing of their configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fathometer.data import Inputs
from fathometer.data.hugging_face import hub_or_cache
from fathometer.models.sources import (
    SourceResult,
    download_error,
    import_optional,
    unknown_model_error,
)


def load(name: str, weights: str | Path) -> SourceResult:
    """Make the model of that name, which may end in a tag: `resnet10t.c3_in1k`."""
    timm = _timm()
    architecture, _, tag = name.partition(".")
    known = timm.list_models()
    if architecture not in known:
        raise unknown_model_error("timm", name, known)
    if tag and name not in (tagged := timm.list_pretrained(f"{architecture}.*")):
        raise unknown_model_error("timm", name, tagged)
    if weights == "default":
        try:
            with hub_or_cache():
                module = timm.create_model(name, pretrained=True)
        except (OSError, RuntimeError) as error:
            raise download_error(f"timm:{name}", error) from error
        weights = module.pretrained_cfg.get("tag") or weights
    else:
        module = timm.create_model(name, pretrained=False)
    settings = timm.data.resolve_model_data_config(module)
    preprocess = timm.data.create_transform(**settings, is_training=False)
    return module, str(weights), Inputs("image", tuple(settings["input_size"]), preprocess=preprocess)


def names() -> list[str]:
    """List every architecture."""
    return list(_timm().list_models())


def _timm() -> Any:
    return import_optional("timm", "data", extra="vision", purpose="a timm: model")
