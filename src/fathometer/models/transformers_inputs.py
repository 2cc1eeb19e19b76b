"""What a model of transformers takes in, from its configuration, image processor or tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from fathometer.data.inputs import Inputs
from fathometer.errors import InputError
from fathometer.models.images import resize_and_normalise, shape_of

if TYPE_CHECKING:
    from PIL.Image import Image

LENGTH = 128
"""Of a sample of tokens, unless the model has fewer positions."""


def describe_inputs(config: Any, at: str | None, options: dict[str, Any]) -> Inputs:
    """An image for what has a size of images or classifies them, tokens for what has a vocabulary."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING

    sees = type(config) in MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING or hasattr(config, "image_size")
    if sees and not hasattr(config, "vocab_size"):
        return _image(config, at, options)
    text = config.get_text_config()
    if getattr(text, "vocab_size", None):
        return _tokens(text, at, options)
    raise InputError(
        f"a model of type {config.model_type!r} takes in neither a text nor an image; "
        "write a factory that returns (module, Inputs(...)), and give it as package.module:factory"
    )


def _image(config: Any, at: str | None, options: dict[str, Any]) -> Inputs:
    from transformers import AutoImageProcessor

    size = getattr(config, "image_size", None) or 224
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    shape = (getattr(config, "num_channels", 3), height, width)
    processor = _if_there(AutoImageProcessor, at, options)
    if processor is None:
        return Inputs("image", shape, preprocess=resize_and_normalise(shape))
    preprocess = _ByProcessor(processor)
    found, is_fixed = shape_of(preprocess)
    return Inputs("image", found if is_fixed else shape, preprocess=preprocess)


def _tokens(config: Any, at: str | None, options: dict[str, Any]) -> Inputs:
    from transformers import AutoTokenizer

    tokenizer = _if_there(AutoTokenizer, at, options)
    tokenize = None
    if tokenizer is not None and tokenizer.vocab_size:  # transformers makes up an empty one without files
        tokenize = _by_tokenizer(tokenizer)
    positions = getattr(config, "max_position_embeddings", None) or None
    shape = (min(LENGTH, positions or LENGTH),)
    if any(getattr(config, name, None) for name in ("rope_parameters", "rope_theta")):
        positions = None  # a rotation goes on beyond those that were trained
    vocabulary = int(config.vocab_size)
    return Inputs("tokens", shape, vocabulary=vocabulary, tokenize=tokenize, positions=positions)


def _if_there(kind: Any, at: str | None, options: dict[str, Any]) -> Any:
    """A processor or tokenizer, or none where a model comes without."""
    if at is None:
        return None
    try:
        return kind.from_pretrained(at, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # each is how some version of transformers says that there are no files


class _ByProcessor:
    """Preprocesses an image with an image processor of transformers, whose settings it shows."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, image: Image) -> Tensor:
        pixels: Tensor = self._processor(image, return_tensors="pt")["pixel_values"][0]
        return pixels

    def __repr__(self) -> str:
        return repr(self._processor)


def _by_tokenizer(tokenizer: Any) -> Callable[[str], list[int]]:
    def tokenize(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    return tokenize
