"""What a language model of transformers takes, as its modules and its configuration say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from torch import Tensor, nn

from fathometer.data import Inputs
from fathometer.data.texts import Tokenize
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.models.loading import LoadedModel

_LENGTH = 128  # tokens in a sample, unless the model has fewer positions


class TokenLimits(NamedTuple):
    """What a network can take as token ids; None where that is not known.

    Attributes:
        vocabulary: the number of embeddings.
        positions: the largest number of tokens in an input.
        trained: the number of positions in training, where the network also runs on more.
    """

    vocabulary: int | None = None
    positions: int | None = None
    trained: int | None = None

    def check(self, value: Any) -> None:
        """Refuse a batch with ids that have no embedding, or with more tokens than positions."""
        ids = ids_of(value)
        if ids is None or not ids.numel():
            return
        low, high = (int(each) for each in ids.aminmax())
        if self.vocabulary is not None and (low < 0 or high >= self.vocabulary):
            raise InputError(
                f"expected token ids from 0 to {self.vocabulary - 1}, got {low if low < 0 else high}; "
                "use the tokenizer of this network",
                parameter="data",
            )
        if self.positions is not None and ids.shape[1] > self.positions:
            raise InputError(
                f"this network has {self.positions} positions, got inputs of {ids.shape[1]} tokens; "
                "cut them, or give texts and a length of blocks",
                parameter="data",
            )


def token_limits(module: nn.Module) -> TokenLimits:
    """Return what a network of transformers can take; nothing is known of others.

    Rotary embeddings go on beyond the positions that were trained, with worse results.
    """
    config = config_of(module)
    if config is None:
        return TokenLimits()
    vocabulary = _vocabulary(module) or getattr(config, "vocab_size", None)
    positions = getattr(config, "max_position_embeddings", None)
    positions = positions if positions and positions > 0 else None  # -1 in XLNet, which has no limit
    if any(getattr(config, name, None) for name in ("rope_parameters", "rope_theta")):
        return TokenLimits(vocabulary, None, positions)
    for name, part in module.named_modules():
        is_table = isinstance(part, nn.Embedding) and name.endswith("position_embeddings")
        if positions and is_table and part.padding_idx is not None:  # RoBERTa counts positions from there
            positions = part.num_embeddings - part.padding_idx - 1
    return TokenLimits(vocabulary, positions, positions)


def token_inputs(module: nn.Module, tokenizer: Any = None) -> Inputs:
    """Describe the tokens that a network takes, and how to make them from a text."""
    limits = token_limits(module)
    return Inputs(
        "tokens",
        (min(_LENGTH, limits.trained or _LENGTH),),
        vocabulary=limits.vocabulary,
        tokenize=None if tokenizer is None else Tokenize(tokenizer),
        positions=limits.positions,
    )


def is_language_model(model: LoadedModel) -> bool:
    """Say whether a network by name is of a family of causal or masked language models of transformers.

    An encoder with a decoder is not: its decoder needs an input of its own.
    """
    is_by_name = model.name.startswith("hf:") and model.inputs.kind == "tokens"
    return is_by_name and is_of_language(model.module)


def is_of_language(module: nn.Module) -> bool:
    """Say whether a network is of a family of causal or masked language models of transformers."""
    config = config_of(module)
    if config is None:
        return False
    is_known = any(config.model_type in _heads(task) for task in ("CAUSAL", "MASKED"))
    return is_known and not getattr(config, "is_encoder_decoder", False)


def head_of(module: nn.Module) -> Literal["causal", "masked"] | None:
    """Return what a network of transformers predicts: the next token, hidden ones, or neither."""
    config = config_of(module)
    if config is None or getattr(config, "is_encoder_decoder", False):
        return None
    names = {kind.__name__ for kind in type(module).__mro__}
    sees_all = config.model_type in _heads("MASKED") and not getattr(config, "is_decoder", False)
    if names & set(_heads("CAUSAL").values()) and not sees_all:  # a BERT may also be set to be causal
        return "causal"
    return "masked" if names & set(_heads("MASKED").values()) and sees_all else None


def _heads(task: str) -> dict[str, str]:
    """Return the names of the classes with a head for causal or masked language models, by model type."""
    from transformers.models.auto import modeling_auto

    return dict(getattr(modeling_auto, f"MODEL_FOR_{task}_LM_MAPPING_NAMES"))


def config_of(module: nn.Module) -> Any:
    """Return the configuration of a network of transformers, that of its text; None for others."""
    config = getattr(module, "config", None)
    find_text: Any = getattr(config, "get_text_config", None)
    return None if find_text is None else find_text()


def _vocabulary(module: nn.Module) -> int | None:
    try:
        weight = module.get_input_embeddings().weight  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return None
    return len(weight) if isinstance(weight, Tensor) and weight.ndim == 2 else None


def ids_of(value: Any) -> Tensor | None:
    """Return the token ids `[n, length]` of a batch: `input_ids`, or whole numbers by themselves."""
    if isinstance(value, Mapping):
        value = value.get("input_ids")
    elif isinstance(value, tuple | list) and value:
        value = value[0]
    is_ids = isinstance(value, Tensor) and value.ndim == 2 and not value.is_floating_point()
    return value if is_ids else None
