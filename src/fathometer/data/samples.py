"""What every kind of data provides: samples by number, each of one tensor without the batch axis."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from fathometer.data.inputs import Inputs
from fathometer.errors import InputError


class Sample(NamedTuple):
    """One sample; `mask` says which of its tokens count."""

    name: str
    values: Tensor
    label: int | None = None
    mask: Tensor | None = None


class Unreadable(NamedTuple):
    """A sample that could not be made, and why: a value, not an error, so that it survives a worker."""

    name: str
    reason: str


class Samples(ABC):
    """Numbered samples: the same number gives the same sample, whoever asks."""

    description: dict[str, object]
    """What they are, JSON-able and without absolute paths: at least `kind` and `name`."""
    all_readable: bool = False
    """Whether none of them can turn out to be unreadable."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int) -> Sample | Unreadable: ...


def fault_of_shape(shape: tuple[int, ...], inputs: Inputs) -> str | None:
    """What is wrong with a sample of `shape`, if anything.

    A tensor has the network's shape; an image its axes and channels, since many networks take any size.
    """
    if inputs.flattens:
        fits = math.prod(shape) == math.prod(inputs.shape)
    elif inputs.kind == "tensor":
        fits = shape == inputs.shape
    else:
        fits = len(shape) == len(inputs.shape) and shape[:1] == inputs.shape[:1]
    if fits:
        return None
    hint = ""
    if len(shape) == 3 and shape[-1:] == inputs.shape[:1]:
        hint = "; move the channels to the front"
    expected = (
        f"images [{inputs.shape[0]}, height, width]" if inputs.kind == "image" else f"{list(inputs.shape)}"
    )
    if inputs.flattens:
        expected = f"{math.prod(inputs.shape)} entries"
    return f"expected {expected} for this network, got {list(shape)}{hint}"


def own_name(path: Path) -> str:
    """What a file or folder is called, without where it is; bytes of it that are no text become ?."""
    return path.resolve().name.encode("utf-8", "replace").decode()


def brief(error: BaseException) -> str:
    """The message of someone else's error in one line."""
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else text[:199] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def refuse_length(length: int | None) -> None:
    """Only token streams are cut."""
    if length is not None:
        raise InputError(f"length={length}: expected none, since this network takes no tokens; leave it out")
