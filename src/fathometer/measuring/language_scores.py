"""How well a language model predicts the measured text: perplexity, or the share of hidden tokens found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fathometer.data.texts import Tokenize
from fathometer.measuring.batches import Piece, copied, run
from fathometer.models import LoadedModel
from fathometer.models.language import head_of, ids_of, token_limits

_AT_ONCE = 2**24  # logits whose loss is computed at once: the copy that it needs stays small
_HIDDEN_SHARE = 0.15  # Devlin et al. (2019), BERT, section 3.1
_MAX_TOKENS = 2048  # of which some are hidden


@torch.no_grad()
def next_token_sums(logits: Tensor, value: Any) -> Tensor | None:
    """Return how many tokens were predicted from those before them, and the sum of −log p of these, in nats.

    Logits `[n, t, vocabulary]` at position i predict token i + 1. A token counts if it and the one before it
    are not masked.
    """
    ids = ids_of(value)
    if ids is None or logits.ndim != 3 or logits.shape[:2] != ids.shape:
        return None
    mask = value.get("attention_mask") if isinstance(value, Mapping) else None
    counts = torch.ones_like(ids[:, 1:], dtype=torch.bool)
    if mask is not None:
        counts = (mask[:, 1:] != 0) & (mask[:, :-1] != 0)
    targets = torch.where(counts, ids[:, 1:], -100).to(logits.device)  # -100: left out by torch
    size = max(1, _AT_ONCE // logits.shape[2])
    total = torch.zeros((), dtype=torch.float64, device=logits.device)
    for row, wanted in zip(logits[:, :-1], targets, strict=True):
        for part, own in zip(row.split(size), wanted.split(size), strict=True):
            total += cross_entropy(part.float(), own, reduction="sum").double()
    return torch.stack([counts.sum().to(total), total])


class HiddenTokens:
    """Hides some of the measured tokens, and counts how many of them a masked language model finds.

    The measured pass sees all tokens: the first inputs are kept, and run once more afterwards, with 15 % of
    their tokens replaced by the mask token. Special tokens are not hidden.
    """

    def __init__(self, model: nn.Module | LoadedModel, network: nn.Module, tokenizer: Any, seed: int) -> None:
        if (
            tokenizer is None
            and isinstance(model, LoadedModel)
            and isinstance(model.inputs.tokenize, Tokenize)
        ):
            tokenizer = model.inputs.tokenize.tokenizer
        self._mask_id = getattr(tokenizer, "mask_token_id", None)
        self._special = list(getattr(tokenizer, "all_special_ids", ()))
        vocabulary = token_limits(network).vocabulary or math.inf
        is_known = self._mask_id is not None and self._mask_id < vocabulary
        self._is_wanted = is_known and head_of(network) == "masked"
        self._network, self._seed = network, seed
        self._kept: list[Any] = []
        self._count = 0

    @property
    def is_any(self) -> bool:
        """Whether there is something to hide."""
        return bool(self._kept)

    def keeping(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the inputs, and keep the first of them."""
        for piece in pieces:
            ids = ids_of(piece.value)
            if self._is_wanted and ids is not None and self._count < _MAX_TOKENS:
                self._count += ids.numel()
                is_mapping = isinstance(piece.value, Mapping)
                self._kept.append(copied(piece.value if is_mapping else {"input_ids": ids}))
            yield piece

    @torch.no_grad()
    def outcome(self, device: torch.device) -> dict[str, Any]:
        """Return the share of hidden tokens that the network finds, and their number.

        Nothing if no token is hidden, or if the output has no logits.
        """
        generator = torch.Generator().manual_seed(self._seed)
        found = hidden = 0
        for value in self._kept:
            ids = value["input_ids"]
            draw = torch.rand(ids.shape, generator=generator).to(ids.device) < _HIDDEN_SHARE
            draw &= ~torch.isin(ids, torch.tensor(self._special, dtype=ids.dtype, device=ids.device))
            if value.get("attention_mask") is not None:
                draw &= value["attention_mask"] != 0
            output = run(
                self._network, {**value, "input_ids": ids.masked_fill(draw, self._mask_id)}, device, None
            )
            if getattr(output, "logits", None) is None:
                return {}
            best = output.logits.argmax(-1).to(ids.device)
            found += int((best[draw] == ids[draw]).sum())
            hidden += int(draw.sum())
        return {"masked_accuracy": found / hidden, "hidden_tokens": hidden} if hidden else {}
