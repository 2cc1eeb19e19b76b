"""`hf:NAME`: language and image models of transformers, from a folder, a GGUF file, the hub, or at random."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from fathometer.errors import InputError, MissingExtraError, first_line
from fathometer.models.hub import hub_or_cache
from fathometer.models.sources import Found, Source, import_optional, unknown_model
from fathometer.models.transformers_inputs import describe_inputs

TASKS = ("IMAGE_CLASSIFICATION", "MASKED_LM", "CAUSAL_LM")
"""Whose heads are looked for, in this order, where a configuration names no class."""


@dataclass(frozen=True)
class _Place:
    """Where the files of a model are; `at` is none for a bare model type."""

    name: str
    at: str | None
    options: dict[str, Any]

    @property
    def is_local(self) -> bool:
        return bool(self.options.get("local_files_only"))


def load(name: str, weights: str) -> Found:
    """The model in that folder or file, of that name on the hub, or, without weights, of that type."""
    transformers = _transformers()
    place = _place(name, weights)
    with _one_line_errors(place), hub_or_cache(), _no_progress_bar(transformers):
        config = _config(transformers, place)
        kind = _model_class(transformers, config)
        if weights == "default":
            module = _pretrained(kind, config, place)
            commit = getattr(config, "_commit_hash", None)
            weights = Path(name).absolute().name if place.is_local else (commit or weights)
        else:
            module = _random(kind, config)
        inputs = describe_inputs(config, place.at, place.options)
    if hasattr(module.config, "use_cache"):
        module.config.use_cache = False  # one pass needs no memory of keys and values
    return module, weights, inputs


def names() -> list[str]:
    """The model types that take in a text or an image, and can be built from their configuration."""
    auto = _transformers().models.auto
    configured = auto.configuration_auto.CONFIG_MAPPING_NAMES
    heads = [getattr(auto.modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES") for task in TASKS]
    return [n for n in configured if any(n in h for h in heads)]


def _place(name: str, weights: str) -> _Place:
    path = Path(name).expanduser()
    if path.is_dir():
        return _Place(name, str(path), {"local_files_only": True})
    if path.suffix == ".gguf" and path.is_file():
        _require_gguf(name)
        return _Place(name, str(path.parent), {"local_files_only": True, "gguf_file": path.name})
    if path.suffix == ".gguf" or name[:1] in "./~" or name.count("/") > 1:
        raise InputError(
            f"hf:{name}: no such folder or file; expected a folder with a config.json, or a .gguf"
        )
    if weights != "default" and name in names():
        return _Place(name, None, {})
    return _Place(name, name, {})


def _require_gguf(name: str) -> None:
    for package in ("gguf", "accelerate"):
        try:
            version(package)
        except PackageNotFoundError as error:
            raise MissingExtraError(package, "gguf", f"hf:{name}") from error


def _config(transformers: Any, place: _Place) -> Any:
    if place.at is None:
        return transformers.AutoConfig.for_model(place.name)
    config = transformers.AutoConfig.from_pretrained(place.at, trust_remote_code=False, **place.options)
    if "gguf_file" in place.options:
        _check_layers(config, place)
    return config


def _check_layers(config: Any, place: _Place) -> None:
    """Refuse a GGUF file with fewer tensors than it says layers, for which transformers looks for long.

    Its first 16 bytes: `GGUF`, the version, the number of tensors.
    """
    with (Path(str(place.at)) / place.options["gguf_file"]).open("rb") as file:
        head = file.read(16)
    order: Literal["little", "big"] = "little" if int.from_bytes(head[4:8], "little") & 0xFFFF else "big"
    tensors, layers = int.from_bytes(head[8:16], order), getattr(config, "num_hidden_layers", 0)
    if layers > tensors:
        raise InputError(
            f"hf:{place.name}: broken; it should have {layers} layers, but has {tensors} tensors"
        )


def _model_class(transformers: Any, config: Any) -> Any:
    """The class that the configuration names, or the head that its type has."""
    for name in getattr(config, "architectures", None) or ():
        found = getattr(transformers, name, None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    auto = transformers.models.auto.modeling_auto
    for task in TASKS:
        mapping = getattr(auto, f"MODEL_FOR_{task}_MAPPING")
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    return transformers.AutoModel


def _random(kind: Any, config: Any) -> nn.Module:
    build = kind.from_config if hasattr(kind, "from_config") else kind._from_config
    module: nn.Module = build(config, dtype=torch.float32)
    return module


def _pretrained(kind: Any, config: Any, place: _Place) -> nn.Module:
    module, report = kind.from_pretrained(
        place.at,
        config=config,
        dtype=torch.float32,
        trust_remote_code=False,
        output_loading_info=True,
        **place.options,
    )
    missing = sorted(map(str, report["missing_keys"]))
    if missing:
        raise InputError(
            f"hf:{place.name}: {len(missing)} tensors of {type(module).__name__} are not in its files, "
            f"e.g. {missing[0]}; correct `architectures` in its config.json"
        )
    found: nn.Module = module
    return found


@contextmanager
def _one_line_errors(place: _Place) -> Iterator[None]:
    try:
        yield
    except (InputError, MissingExtraError):
        raise
    except Exception as error:  # broken folders make transformers raise nearly anything
        reason = first_line(error)
        if place.is_local:
            raise InputError(f"hf:{place.name}: could not be loaded ({reason})") from error
        known = names()
        if place.name in known:
            raise InputError(
                f"hf:{place.name}: could not be loaded ({reason}); for random weights use --weights none"
            ) from error
        if "/" not in place.name and place.at is not None:
            complaint = unknown_model("hf", place.name, known)
            raise InputError(f"{complaint} ({reason})") from error
        raise InputError(
            f"hf:{place.name}: could not be loaded from the hub ({reason}); give a local folder"
        ) from error


@contextmanager
def _no_progress_bar(transformers: Any) -> Iterator[None]:
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _transformers() -> Any:
    submodules = (f"models.auto.{name}_auto" for name in ("configuration", "modeling"))
    return import_optional("transformers", *submodules, extra="language", purpose="an hf: model")


SOURCE = Source(load, names)
