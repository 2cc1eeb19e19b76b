"""A forward pass under way, and the modules that are running in it."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from torch import nn

from fathometer.capture.axes import TensorFacts
from fathometer.capture.following import FollowedParts
from fathometer.capture.reduce import PassInfo, Reduced
from fathometer.capture.sites import Site


@dataclass
class Frame:
    """A module that is running."""

    module: nn.Module
    path: str
    guard: Any = None  # hides torch functions inside attention, which would compute in another way
    ignores_calls: bool = False  # calls inside it are not sites
    measured: tuple[Site, Reduced] | None = None  # as a whole: its site and its input
    outside: PassInfo | None = None  # of a decoder, which has a mask of its own: what holds around it


@dataclass
class Pass:
    """A forward pass under way."""

    info: PassInfo
    tensors: TensorFacts
    caller: FrameType | None  # runs the network; None where that is not known
    error: BaseException | None  # was being handled when the pass began
    depth: int = 0  # how many times the network has called itself
    ignore_depth: int = 0  # how many calls under way hide the calls inside them
    frames: list[Frame] = field(default_factory=list)
    calls: Counter[tuple[str, str, bool, bool]] = field(default_factory=Counter)
    parts: FollowedParts | None = None

    def leave(self) -> None:
        """Let torch see functions again where a module under way had hidden them."""
        for frame in reversed(self.frames):
            if frame.guard is not None:
                frame.guard.__exit__(None, None, None)


def is_running(frame: FrameType | None) -> bool:
    """Tell whether a frame of Python is among those that led here; None is taken to be."""
    if frame is None:
        return True
    current: FrameType | None = sys._getframe()
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None
