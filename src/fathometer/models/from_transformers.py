"""`hf:NAME`: language and image models of transformers, from a folder, a GGUF file, the hub, or at random."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fathometer.data import Inputs
from fathometer.data.hugging_face import hub_or_cache
from fathometer.errors import InputError, MissingExtraError, first_line
from fathometer.models.inputs import ResizeAndNormalise, preprocessed_shape
from fathometer.models.language import token_inputs
from fathometer.models.sources import SourceResult, import_optional, unknown_model_error

if TYPE_CHECKING:
    from PIL.Image import Image

_TASKS = ("IMAGE_CLASSIFICATION", "MASKED_LM", "CAUSAL_LM")  # whose heads are tried, in this order


@dataclass(frozen=True)
class _Place:
    """Where the files of a model are, and options to read them; none for a model type, which has no files."""

    path: str | None
    options: dict[str, Any]

    @property
    def is_local(self) -> bool:
        return "local_files_only" in self.options

    def read(self, kind: Any, **options: Any) -> Any:
        return kind.from_pretrained(self.path, trust_remote_code=False, **self.options, **options)


def load(name: str, weights: str | Path) -> SourceResult:
    """Make the model in that folder or file, of that name on the hub or, without weights, of that type."""
    transformers = _transformers()
    place = _place(name, weights)
    with _one_line_errors(name, place), hub_or_cache(), _no_progress_bar(transformers):
        if place.path is None:
            config = transformers.AutoConfig.for_model(name)
        else:
            config = place.read(transformers.AutoConfig)
        kind = _model_class(transformers, name, config)
        if weights == "default":
            module = _pretrained(name, kind, config, place)
            commit = getattr(config, "_commit_hash", None)
            weights = Path(name).absolute().name if place.is_local else (commit or weights)
        else:
            build = kind.from_config if hasattr(kind, "from_config") else kind._from_config
            module = build(config, dtype=torch.float32)
        inputs = _inputs(transformers, module, config, place)
    if hasattr(module.config, "use_cache"):
        module.config.use_cache = False  # one pass needs no memory of keys and values
    return module, str(weights), inputs


def names() -> list[str]:
    """List the model types that take a text or an image."""
    auto = _transformers().models.auto
    configured = auto.configuration_auto.CONFIG_MAPPING_NAMES
    heads = [getattr(auto.modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES") for task in _TASKS]
    return [name for name in configured if any(name in head for head in heads)]


def _place(name: str, weights: str | Path) -> _Place:
    path = Path(name).expanduser()
    if path.is_dir():
        return _Place(str(path), {"local_files_only": True})
    if path.suffix == ".gguf" and path.is_file():
        for package in ("gguf", "accelerate"):
            import_optional(package, extra="gguf", purpose=f"hf:{name}")
        return _Place(str(path.parent), {"local_files_only": True, "gguf_file": path.name})
    if path.suffix == ".gguf" or name[:1] in "./~" or name.count("/") > 1:
        raise InputError(
            f"hf:{name}: no such folder or file; expected a folder with a config.json, or a .gguf file"
        )
    return _Place(None if weights != "default" and name in names() else name, {})


def _model_class(transformers: Any, name: str, config: Any) -> Any:
    """Return the class that the configuration names, or the head for its type."""
    architectures = getattr(config, "architectures", None) or ()
    for architecture in architectures:
        found = getattr(transformers, architecture, None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    if architectures and getattr(config, "auto_map", None):  # of a known type, but it computes in its own way
        raise _own_code_error(name)
    auto = transformers.models.auto.modeling_auto
    for task in _TASKS:
        mapping = getattr(auto, f"MODEL_FOR_{task}_MAPPING")
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    return transformers.AutoModel


def _pretrained(name: str, kind: Any, config: Any, place: _Place) -> Any:
    with _bar_in_terminals_only() if "gguf_file" in place.options else nullcontext():
        module, report = place.read(kind, config=config, dtype=torch.float32, output_loading_info=True)
    missing = sorted(map(str, report["missing_keys"]))
    if missing:
        raise InputError(
            f"hf:{name}: {len(missing)} tensors of {type(module).__name__} are not in its files, "
            f"e.g. {missing[0]}; correct `architectures` in its config.json"
        )
    layers = {path.removesuffix(".weight") for path in module.state_dict()}
    for unused in sorted(map(str, report["unexpected_keys"])):
        layer, _, own = unused.rpartition(".")
        if "scale" in own and layer in layers:  # without it, the numbers of a quantised layer are wrong
            raise InputError(
                f"hf:{name}: its weights are quantised in a way that transformers does not know ({unused} "
                "was not used); give others, or a GGUF file"
            )
    return module


def _inputs(transformers: Any, module: nn.Module, config: Any, place: _Place) -> Inputs:
    """Describe images if the model has a size of images or classifies them, tokens if it has a vocabulary."""
    classifiers = transformers.models.auto.modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING
    takes_images = type(config) in classifiers or hasattr(config, "image_size")
    if takes_images and not hasattr(config, "vocab_size"):
        return _image(transformers, config, place)
    if getattr(config.get_text_config(), "vocab_size", None):
        return _tokens(transformers, module, place)
    raise InputError(
        f"a model of type {config.model_type!r} takes neither a text nor an image; "
        "write a factory that returns (module, Inputs(...)), and give it as package.module:factory"
    )


def _image(transformers: Any, config: Any, place: _Place) -> Inputs:
    size = getattr(config, "image_size", None) or 224
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    shape = (getattr(config, "num_channels", 3), height, width)
    processor = _if_available(transformers.AutoImageProcessor, place)
    if processor is None:
        usual = ResizeAndNormalise(*shape) if shape[0] in (1, 3) else None
        return Inputs("image", shape, preprocess=usual)
    preprocess = _Preprocess(processor)
    found, is_fixed = preprocessed_shape(preprocess)
    return Inputs("image", found if is_fixed else shape, preprocess=preprocess)


def _tokens(transformers: Any, module: nn.Module, place: _Place) -> Inputs:
    tokenizer = _if_available(transformers.AutoTokenizer, place)
    if tokenizer is not None and not tokenizer.vocab_size:  # transformers makes up an empty one without files
        tokenizer = None
    return token_inputs(module, tokenizer)


def _if_available(kind: Any, place: _Place) -> Any:
    """Load a processor or tokenizer, or return none if the model has none."""
    if place.path is None:
        return None
    try:
        return place.read(kind)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if "trust_remote_code" in str(error):
            warnings.warn(
                f"{place.path}: its {kind.__name__.removeprefix('Auto')} needs code from its own repository "
                "(trust_remote_code), which is never run here; in Python, texts can have another `tokenizer`",
                stacklevel=2,
            )
        return None  # each is how some version of transformers says that there are no files


class _Preprocess:
    """Preprocesses an image with an image processor of transformers, whose settings it shows."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, image: Image) -> Tensor:
        pixels: Tensor = self._processor(image, return_tensors="pt")["pixel_values"][0]
        return pixels

    def __repr__(self) -> str:
        return repr(self._processor)


def _own_code_error(name: str) -> InputError:
    return InputError(
        f"hf:{name}: it needs code from its own repository (trust_remote_code), which is never run here; "
        "load it with transformers, and give the network to fathometer.measure"
    )


@contextmanager
def _one_line_errors(name: str, place: _Place) -> Iterator[None]:
    try:
        yield
    except (InputError, MissingExtraError):
        raise
    except Exception as error:  # broken folders make transformers raise nearly anything
        reason = first_line(error)
        if not place.is_local and "/" not in name and name not in names():
            raise InputError(f"{unknown_model_error('hf', name, names())} ({reason})") from error
        if "trust_remote_code" in str(error):
            raise _own_code_error(name) from error
        advice = "" if place.is_local else "; give a local folder, or a model type with `weights` none"
        if isinstance(error, ModuleNotFoundError):
            advice = "; install it"
        if "quantiz" in reason:
            advice = "; install what its quantised weights need, or give others, or a GGUF file"
        raise InputError(f"hf:{name}: could not be loaded ({reason}){advice}") from error


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


@contextmanager
def _bar_in_terminals_only() -> Iterator[None]:
    """Keep the bar of GGUF files, which transformers cannot switch off, out of logs."""
    reader: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    bar = reader.tqdm
    reader.tqdm = partial(bar, disable=None)  # disabled if stderr is not a terminal
    try:
        yield
    finally:
        reader.tqdm = bar


def _transformers() -> Any:
    submodules = (f"models.auto.{name}_auto" for name in ("configuration", "modeling"))
    return import_optional("transformers", *submodules, extra="language", purpose="an hf: model")
