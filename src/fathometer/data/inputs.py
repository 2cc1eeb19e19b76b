"""What a network takes in: the meeting point of models, which know it, and data, which provide it."""

from __future__ import annotations

import re
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
        flattens: for tensors, whether the network flattens its input, so that samples of any shape with as
            many entries will do.
        size_assumed: for images, whether height and width are a guess, because the network and its
            preprocessing take several sizes. Noise is then made with a warning.
    """

    kind: InputKind
    shape: tuple[int, ...]
    vocabulary: int | None = None
    preprocess: Callable[[Image], Tensor] | None = None
    tokenize: Callable[[str], list[int]] | None = None
    positions: int | None = None
    flattens: bool = False
    size_assumed: bool = False

    @property
    def preprocess_name(self) -> str:
        """The preprocessing as text that is the same in every process, for the provenance.

        Example:
            >>> Inputs("image", (3, 8, 8), preprocess=abs).preprocess_name
            'builtins.abs'
        """
        if self.preprocess is None:
            return repr(self.kind)
        name = getattr(self.preprocess, "__qualname__", None)
        if name is not None:
            return f"{self.preprocess.__module__}.{name}"
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(self.preprocess))
