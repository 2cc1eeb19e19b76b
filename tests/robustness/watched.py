"""Runs a network with and without a watch, and compares: outputs, counted calls, and what is left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fathometer.capture import watch
from tests.robustness.counting import Count, is_called_from
from tests.robustness.state import World, differences, network_state, random_state
from tests.zoo.entry import Made as Made

SEED = 1
_FOR_PAIRS = ("fathometer/capture/reduce.py", "fathometer/capture/pairs.py")


@dataclass(frozen=True)
class Trial:
    """The result for one network: its sites, counted calls, what changed, and what was left behind."""

    sites: list[str]
    counted: list[str]
    changed: list[str]
    left: list[str]
    interrupted: bool = False  # the exception in the middle came, plainly and watched

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong, in words."""
        found = [f"{what} differ" for what in self.changed]
        found += [] if self.interrupted else ["the exception in the middle did not come"]
        return found + ([f"left behind: {', '.join(self.left)[:200]}"] if self.left else [])


def try_network(
    make: Callable[[], Made],
    mode: Callable[[], AbstractContextManager[Any]] = torch.no_grad,
    *,
    gradients: bool = False,
) -> Trial:
    """Run a network plainly, counted, watched; then, with an exception in the middle, plainly and watched.

    Args:
        make: called before each run, for a network in one and the same state.
        mode: with gradients, without, in inference mode.
        gradients: whether to compare those, too; the mode must allow it.
    """
    plain = _Run(make(), mode, gradients=gradients)
    made = make()
    count = Count(made.given)
    _Run(made, mode, inside=count)
    made = make()
    world, before = World(made.network), network_state(made.network)
    with watch(made.network) as record:
        watched = _Run(made, mode, gradients=gradients)
    left = _left(before, plain, made.network) + world.changes()
    changed = plain.differences(watched)
    names = [site.name for site in record.sites]
    if names != [site.name for site in record.pairs]:
        changed.append("sites and pairs")

    middle = count.operators // 2
    stops = _Stopping(middle), _Stopping(middle)
    broken = _Run(made := make(), mode, inside=stops[0], fails=True)
    again = _Run(made, mode, fails=True)  # a lazy layer, say, is lost when it is interrupted
    made = make()
    world, before = World(made.network), network_state(made.network)
    with watch(made.network):
        watched_broken = _Run(made, mode, inside=stops[1], fails=True)
        watched_again = _Run(made, mode, fails=True)
    left += _left(before, again, made.network) + world.changes()
    changed += [f"after an exception, {what}" for what in broken.differences(watched_broken)]
    changed += [f"after an exception, in the next pass, {what}" for what in again.differences(watched_again)]
    interrupted = all(stop.has_stopped for stop in stops)
    return Trial(names, count.calls, changed, list(dict.fromkeys(left)), interrupted)


def _left(before: dict[str, Any], plain: _Run, network: nn.Module) -> list[str]:
    """Name what differs both from before and from a pass without a watch."""
    after = network_state(network)
    since = set(differences(before, after))
    return [name for name in differences(plain.state, after) if name in since]


class InterruptionError(Exception):
    """Raised by an operator in the middle of a pass; no network catches it."""


class _Stopping(TorchDispatchMode):
    """Stops after so many operators of the network; what is computed for the pairs does not count."""

    def __init__(self, after: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left = after
        self.has_stopped = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._left -= not any(is_called_from(file) for file in _FOR_PAIRS)
        if self._left < 0:
            self.has_stopped = True
            raise InterruptionError
        return function(*args, **(kwargs or {}))


class _Run:
    """One forward pass from a fixed seed, with everything that can be compared afterwards."""

    def __init__(
        self,
        made: Made,
        mode: Callable[[], AbstractContextManager[Any]],
        *,
        inside: TorchDispatchMode | None = None,
        gradients: bool = False,
        fails: bool = False,
    ) -> None:
        torch.manual_seed(SEED)
        self.output: Any = None
        self.gradients: list[Tensor | None] = []
        try:
            with mode(), inside or nullcontext():
                self.output = made.run(made.network, *made.given)
        except Exception as error:
            if not fails:
                raise
            self.output = type(error).__name__
        if gradients:
            self.gradients = _gradients(made.network, self.output)
        self.random = random_state()
        self.state = network_state(made.network)
        self.buffers = [buffer.clone() for buffer in made.network.buffers() if not is_lazy(buffer)]

    def differences(self, other: _Run) -> list[str]:
        """Name what another run did differently."""
        same = {
            "outputs": same_bits(self.output, other.output),
            "gradients": same_bits(self.gradients, other.gradients),
            "random numbers": self.random == other.random,
            "buffers": same_bits(self.buffers, other.buffers),
        }
        return [what for what, alike in same.items() if not alike]


def same_bits(one: Any, other: Any) -> bool:
    """Whether two structures hold the same, tensors bit for bit (NaN equals NaN, 0 does not equal −0)."""
    ours, theirs = tree_leaves(one), tree_leaves(other)
    return len(ours) == len(theirs) and all(_same(a, b) for a, b in zip(ours, theirs, strict=True))


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return type(one) is type(other) and (not isinstance(one, str | int | float) or one == other)
    if one.is_nested or one.layout != torch.strided:
        return other.layout == one.layout and same_bits(_parts(one), _parts(other))
    alike = (one.shape, one.dtype, one.stride(), one.requires_grad) == (
        *(other.shape, other.dtype, other.stride(), other.requires_grad),
    )
    return alike and (one.is_meta or torch.equal(_bytes(one), _bytes(other))) and vars(one) == vars(other)


def _parts(tensor: Tensor) -> list[Tensor]:
    return list(tensor.unbind()) if tensor.is_nested else [tensor.to_dense()]


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _gradients(network: nn.Module, output: Any) -> list[Tensor | None]:
    learned = [tensor for tensor in _tensors(output) if tensor.requires_grad]
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    if not learned or not weights:
        return []
    loss = torch.stack([tensor.abs().float().square().sum() for tensor in learned]).sum()
    return list(torch.autograd.grad(loss, weights, allow_unused=True))
