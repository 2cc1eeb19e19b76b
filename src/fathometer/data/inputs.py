"""What a network takes in: the meeting point of models, which know it, and data, which provide it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

InputKind: TypeAlias = Literal["image", "tokens", "tensor"]


@dataclass(frozen=True)
class Inputs:
    """What one sample of a network looks like, and how to make it from an image or a text.

    Attributes:
        kind: `image` (a float tensor `[channels, height, width]`), `tokens` (integers `[length]`), or
            `tensor` (any other float tensor).
        shape: of one sample, without the batch axis.
        vocabulary: for tokens, how many there are.
        preprocess: for images, from an RGB image to a tensor of `shape`.
        tokenize: for tokens, from a text to its tokens.
        positions: for tokens, how many a sample may have at most.
    """

    kind: InputKind
    shape: tuple[int, ...]
    vocabulary: int | None = None
    preprocess: Callable[[Image], Tensor] | None = None
    tokenize: Callable[[str], list[int]] | None = None
    positions: int | None = None
