"""Slots: calls of a network, and what runs in their place in every forward pass."""

from __future__ import annotations

import copy
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fathometer.capture import Reduction, Site, Watch
from fathometer.capture.axes import TensorFacts, tensors_in
from fathometer.capture.hiding import is_fused
from fathometer.capture.intercept import call_on, eager, intercepted
from fathometer.capture.observer import Observer
from fathometer.capture.passes import Frame, Pass, is_running
from fathometer.capture.reduce import PassInfo
from fathometer.capture.sites import SiteChoice, is_plain_activation, operator_name
from fathometer.errors import InputError

Original: TypeAlias = Callable[[Tensor], Any]
Listener: TypeAlias = "Callable[[Slot, Tensor, Original], Any]"
"""Called instead of a call, with its input; returns what the network goes on with."""


@dataclass(eq=False)
class Slot:
    """One call of a network, and what runs in its place.

    Attributes:
        site: the call, by the name that `watch` gives it.
        number: which call of this operator by this module it is, from 1; those on weights count, too.
        widths: channels of its input and of its output.
        axes: where they are; -1 is the last axis.
        elements: numbers that it is given for each input of the network.
        is_only: whether it is the only call of its module.
        in_place: whether the output overwrites the input.
        reason: why it cannot be replaced; empty if it can.
        replacement: runs instead of the call; None leaves the call as it is.
        listener: runs instead of either, while something is measured.
    """

    site: Site
    number: int
    widths: tuple[int, int]
    axes: tuple[int, int]
    elements: int
    is_only: bool = False
    in_place: bool = False
    reason: str = ""
    replacement: nn.Module | None = None
    listener: Listener | None = None

    def run(self, x: Any, original: Original) -> Any:
        """Run the replacement, or the original call."""
        if self.listener is not None:
            return self.listener(self, x, original)
        return original(x) if self.replacement is None else self.replaced(x)

    def replaced(self, x: Any) -> Any:
        """Return the replacement's output; it overwrites the input where the call does."""
        assert self.replacement is not None
        if not self.in_place or not isinstance(x, Tensor):  # without memory, it is a proxy of torch.fx
            return self.replacement(x)
        return x.copy_(self.replacement(x.clone() if torch.is_grad_enabled() else x))


@dataclass
class _Running:
    """A forward pass under way in one thread.

    Attributes:
        state: the modules that are running.
        counts: how often each operator and module was called so far.
        undo: ends what was begun for the pass.
    """

    state: Pass
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    undo: ExitStack = field(default_factory=ExitStack)


class Replacer(Observer):
    """Runs the slots of a network in every forward pass, by hooks that stay.

    Modules whose every call is one slot run it as their `forward`. Calls of functions are seen by a function
    mode while the network runs. Each thread has a pass of its own.

    Attributes:
        slots: the calls.
    """

    _keeps_outputs = False

    def __init__(self, model: nn.Module, choice: SiteChoice, slots: Sequence[Slot]) -> None:
        choice = replace(choice, tests=(), patterns={})  # slots are chosen; without functions it can be saved
        record = Watch(choice, None, "any", gradients=False, within_range=False)
        super().__init__(model, choice, Reduction(), record)
        self.slots = list(slots)
        self._threads: dict[int, _Running] = {}
        self._functions = {
            (slot.site.module, slot.site.operator, slot.number): slot
            for slot in slots
            if not slot.site.is_module
        }
        modules: dict[str, dict[int, Slot]] = {}
        for slot in slots:
            if slot.site.is_module:
                modules.setdefault(slot.site.module, {})[slot.number] = slot
        by_path = {path: module for module, path in self._paths.items()}
        for path, calls in modules.items():
            forward = _Forward(self, path, by_path[path].forward, calls)
            by_path[path].forward = forward
        # without a hook, torch's encoder layers run one kernel that passes over their activation
        owners = [m for m in self._paths if self._functions or m is model or is_fused(m)]
        self._handles = [h for m in filter(self._needs_hooks, owners) for h in self._hooks(m)]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out passes under way."""
        return {**vars(self), "_threads": {}}

    def __deepcopy__(self, memo: Any) -> Replacer:
        """Belong to the copy of the network."""
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        for name, value in self.__getstate__().items():
            setattr(new, name, copy.deepcopy(value, memo))
        return new

    @property
    def _own(self) -> _Running | None:
        """The pass of this thread, unless an interrupt has ended it and no hook was called."""
        own = self._threads.get(threading.get_ident())
        if own is None or is_running(own.state.caller):
            return own
        self._leave()
        return None

    @property
    def _running(self) -> Pass | None:
        return None if self._own is None else self._own.state

    @property
    def left(self) -> list[Slot]:
        """The slots that have no replacement."""
        return [slot for slot in self.slots if slot.replacement is None]

    def keep_replaced(self) -> None:
        """Forget all other slots, so that their calls run as they were written."""
        self.remove()
        Replacer(self._model, self._choice, [slot for slot in self.slots if slot.replacement is not None])

    def remove(self) -> None:
        """Let all calls run as they were written."""
        for handle in self._handles:
            handle.remove()
        for module in self._paths:
            forward = vars(module).get("forward")
            if isinstance(forward, _Forward):
                forward.restore(module)

    def merged(self, choice: SiteChoice) -> SiteChoice:
        """Return a choice of further sites that also sees the calls of these slots."""
        return replace(
            choice,
            modules=self._choice.modules | choice.modules,
            composites=(*self._choice.composites, *choice.composites),
            functions=tuple({*self._choice.functions, *choice.functions}),
            operators=self._choice.operators | choice.operators,
            named=self._choice.named | choice.named,
        )

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """See a call of a torch function."""
        kwargs = kwargs or {}
        state = self._running
        operator = operator_name(function)
        if state is None or state.ignore_depth or operator not in self._choice.operators:
            return function(*args, **kwargs)
        return self._call(state, operator, function, args, kwargs)

    def _call(
        self,
        state: Pass,
        operator: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        assert self._own is not None
        frame, counts = state.frames[-1], self._own.counts
        key = frame.path, operator_at(frame, operator)
        counts[key] += 1
        slot = self._functions.get((*key, counts[key]))
        if slot is None or is_plain_activation(frame.module):
            return function(*args, **kwargs)
        given = first_input(args, kwargs)
        return slot.run(given, partial(call_on, function, args, kwargs, given))

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Run the slots while torch.fx calls the network's `forward`, past its hooks."""
        self._enter(self._model, (), {})
        own = self._threads[threading.get_ident()]
        own.state.caller = None  # the frame of a generator does not count as running
        try:
            yield
        finally:
            self._leave()

    def call_module(self, path: str, calls: dict[int, Slot], forward: Any, args: Any, kwargs: Any) -> Any:
        """Run the slot of this call of a module."""
        slot = next(iter(calls.values()))
        if not slot.is_only:
            if self._own is None:
                raise self._outside(path)
            counts = self._own.counts
            counts[path, ""] += 1
            if counts[path, ""] not in calls:
                return forward(*args, **kwargs)
            slot = calls[counts[path, ""]]
        given = first_input(args, kwargs)
        return slot.run(given, partial(call_on, forward, args, kwargs, given))

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if module is self._model:
            self._begin(args, kwargs)
        own = self._own
        if own is None:
            path = self._paths.get(module, "")
            if any(path == key[0] for key in self._functions):
                raise self._outside(path)
        elif module in self._paths:
            self._follow(own.state, module, args, kwargs)

    def _outside(self, path: str) -> InputError:
        return InputError(
            f"{path}: a replaced call is known by its number in a forward pass of the whole network; run the "
            "whole network, without gradient checkpointing"
        )

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del args, kwargs
        compiling, own = torch.compiler.is_compiling(), self._own
        if own is None:
            caller = None if compiling else sys._getframe(2)
            own = _Running(Pass(PassInfo(0), TensorFacts(0), caller, None))
            self._threads[threading.get_ident()] = own
            if self._functions:
                if not compiling:
                    own.undo.enter_context(eager())
                for function in self._choice.functions:
                    handler = partial(self.on_function, function.__name__)
                    own.undo.enter_context(intercepted(function, handler))
                TorchFunctionMode.__enter__(self)
                own.undo.callback(Observer.__exit__, self)
        own.state.depth += 1

    def _end(self, state: Pass) -> None:
        state.depth -= 1
        if not state.depth:
            self._leave()

    def _leave(self) -> None:
        own = self._threads.pop(threading.get_ident(), None)
        if own is not None:
            own.state.leave()
            own.undo.close()

    def _open(self, state: Pass, frame: Frame, given: Tensor | None) -> None:
        del given
        frame.ignores_calls = frame.module in self._composites
        state.ignore_depth += frame.ignores_calls


def replacer_of(network: nn.Module) -> Replacer | None:
    """Return what runs the slots of a linearized network."""
    owners = (getattr(hook, "__self__", None) for hook in network._forward_pre_hooks.values())
    found = (owner for owner in owners if isinstance(owner, Replacer))
    return next((owner for owner in found if owner._model is network), None)  # others are of a larger one


@contextmanager
def replaced_by(maps: Mapping[Slot, nn.Module | None]) -> Iterator[None]:
    """Put maps in the places of sites for a while."""
    before = {slot: slot.replacement for slot in maps}
    for slot, each in maps.items():
        slot.replacement = each
    try:
        yield
    finally:
        for slot, replacement in before.items():
            slot.replacement = replacement


class _Forward:
    """Stands in for the `forward` of a module whose calls are slots."""

    def __init__(self, replacer: Replacer, path: str, forward: Any, calls: dict[int, Slot]) -> None:
        self._replacer, self._path, self._calls = replacer, path, calls
        self._forward = forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._replacer.call_module(self._path, self._calls, self._forward, args, kwargs)

    def restore(self, module: nn.Module) -> None:
        """Give the module its own `forward` back."""
        if getattr(self._forward, "__self__", None) is module:
            del module.forward
        else:  # it was replaced before, by somebody else
            module.forward = self._forward


def operator_at(frame: Frame, operator: str) -> str:
    """Return the name of a call: `nn.ReLU6` calls hardtanh."""
    return "relu6" if isinstance(frame.module, nn.ReLU6) else operator


def first_input(args: Any, kwargs: Any) -> Any:
    """Return the first tensor of a call, or its first argument while torch.fx traces it."""
    given = next(tensors_in((args, kwargs)), None)
    return given if given is not None else next(iter((*args, *kwargs.values())), None)
