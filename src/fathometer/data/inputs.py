"""Describes the input of a network. Models know it, data provide it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from torch import Tensor

from fathometer.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

InputKind: TypeAlias = Literal["image", "tokens", "tensor"]


@dataclass(frozen=True)
class Inputs:
    """Describes one sample of a network's input, and how to make it from an image or a text.

    Attributes:
        kind: `image` (a float tensor `[channels, height, width]`), `tokens` (integers `[length]`), or
            `tensor` (any other float tensor).
        shape: shape of one sample, without the batch axis.
        vocabulary: for tokens, the number of different ones.
        preprocess: for images, a function from an RGB image to a tensor of `shape`.
        tokenize: for tokens, a function from a text to its tokens.
        positions: for tokens, the largest number that a sample may have.
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

    def mismatch(self, shape: tuple[int, ...]) -> str | None:
        """Say what is wrong with a float sample of this shape, or return none if it fits.

        A tensor must have the network's shape; an image its number of axes and channels, because many
        networks take images of any size.
        """
        if self.flattens:
            fits, expected = math.prod(shape) == math.prod(self.shape), f"{math.prod(self.shape)} entries"
        elif self.kind == "tensor":
            fits, expected = shape == self.shape, str(list(self.shape))
        else:
            fits = len(shape) == len(self.shape) and shape[:1] == self.shape[:1]
            expected = f"images [{self.shape[0]}, height, width]"
        if fits:
            return None
        channels_last = len(shape) == 3 and shape[-1:] == self.shape[:1]
        hint = "; move the channels to the front" if channels_last else ""
        return f"expected {expected} for this network, got {list(shape)}{hint}"

    def check_length(self, length: int | None) -> int:
        """Return the number of tokens in a sample: `length`, or what the network prefers."""
        found = length if length is not None else next(iter(self.shape), 0)
        if found < 1:
            raise InputError(f"expected at least one token, got {found}; give e.g. 128", parameter="length")
        if self.positions is not None and found > self.positions:
            raise InputError(
                f"this network has {self.positions} positions, got {found}; give fewer", parameter="length"
            )
        return found
