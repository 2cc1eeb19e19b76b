"""What the zoo says of a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


def called(network: nn.Module, *given: Any) -> Any:
    return network(*given)


class Net(nn.Module):
    """A network of named parts whose forward pass is `body(network, *given)`."""

    def __init__(self, body: Callable[..., Any], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.body = body
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *given: Any, **named: Any) -> Any:
        return self.body(self, *given, **named)


class Made(NamedTuple):
    """A network, what it is given, and how it is run."""

    network: nn.Module
    given: tuple[Any, ...]
    run: Callable[..., Any] = called


@dataclass(frozen=True)
class Awkward:
    """A network, and what must be seen of it.

    Attributes:
        what: is awkward, in a few words.
        build: makes it.
        sites: their names, in order, counted by hand from the source.
        inputs: the shape of what it is given, or a function that makes it.
        dtype: of the network and of an input that is given by its shape.
        run: how it is run, if not `network(*given)`.
        trains: whether a backward pass goes through it; in-place calls may overwrite what that needs.
        hidden: calls that reach a kernel and are no sites: in one compiled piece of their own, where nobody
            can see them, or passed over.
        refused: by which words, if it cannot be watched.
        becomes: what the guide says of it, if that is worth a line.
    """

    what: str
    build: Callable[[], nn.Module]
    sites: list[str]
    inputs: tuple[int, ...] | Callable[[], tuple[Any, ...]] = (6, 8)
    dtype: torch.dtype = torch.float32
    run: Callable[..., Any] = called
    trains: bool = True
    hidden: int = 0
    refused: str = ""
    becomes: str = ""

    def make(self, *, training: bool = False) -> Made:
        """The network in its first state, and its input; the same every time."""
        torch.manual_seed(0)
        network = self.build()
        if self.dtype != torch.float32:
            network = network.to(self.dtype)
        if not getattr(network, "is_exported", False):  # those refuse to change
            network = network.train(training)
        given = self.inputs() if callable(self.inputs) else (torch.randn(*self.inputs).to(self.dtype),)
        return Made(network, given, self.run)

    def network(self) -> tuple[nn.Module, Tensor]:
        """In eval mode, with the first of its inputs."""
        made = self.make()
        return made.network, made.given[0]
