"""Traces one forward pass on a few samples: which module adds its input to its output, and its activations.

A tensor contains the input of a module as a summand if it is `x + f(x)`, or made of that by reshaping,
dropout, scaling, normalisation or an activation. A linear map, a convolution or attention ends the trace.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fathometer.capture import OPERATORS
from fathometer.capture.axes import TensorFacts, tensors_in
from fathometer.capture.intercept import call_on, eager
from fathometer.capture.sites import composite_name, is_composite, module_paths, operator_name

_SUMS = frozenset("add sub __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__".split())
_SCALINGS = frozenset("mul div __mul__ __rmul__ __imul__ __truediv__ __itruediv__".split())
_TRANSPARENT = OPERATORS | frozenset(
    "view reshape view_as reshape_as flatten unflatten permute transpose movedim swapaxes T mT squeeze "
    "unsqueeze contiguous clone detach data to type type_as float double half bfloat16 roll "
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout "
    "layer_norm rms_norm batch_norm group_norm instance_norm".split()
)


class Sum(IntEnum):
    """Whether the output of a call contains its input as a summand."""

    NONE = 0
    WITHIN = 1  # a part of the module adds it
    OWN = 2  # the module's own `forward` adds it


class Activation(NamedTuple):
    """An activation as it was called, with its slopes and options."""

    operator: str
    function: Callable[[Tensor], Tensor]

    def apply(self, a: Tensor) -> Tensor:
        """Return σ(A), computed in float64 where it overflows in the dtype of A."""
        with torch.no_grad():
            image = self.function(a.clone())  # a copy, because the call may work in place
            if a.dtype != torch.float64 and not image.isfinite().all() and a.isfinite().all():
                return self.function(a.double())
            return image

    @property
    def key(self) -> tuple[Any, ...]:
        """Its name, slopes and options: equal for activations that compute the same."""
        function = self.function
        if isinstance(function, partial) and function.func is call_on:
            _, args, kwargs, old = function.args
            rest = {**dict(enumerate(args)), **kwargs}
            return self.operator, tuple(
                (key, _comparable(value))
                for key, value in rest.items()
                if value is not old and key != "inplace"
            )
        module = getattr(function, "__self__", None)
        if isinstance(module, nn.Module):
            state = tuple((key, _comparable(value)) for key, value in module.state_dict().items())
            return self.operator, type(module), repr(module), state
        return self.operator, id(function)


@dataclass
class ModuleCall:
    """One call of a module.

    Attributes:
        module: the module that was called.
        path: its name in the network.
        inside: indices of the calls that it is a part of, the outermost first.
        sum: whether its output contains its input as a summand.
        activations: the activations that it and its parts called.
    """

    module: nn.Module
    path: str
    inside: tuple[int, ...]
    sum: Sum = Sum.NONE
    activations: list[Activation] = field(default_factory=list)


@contextmanager
def traced(network: nn.Module, samples: int) -> Iterator[list[ModuleCall]]:
    """Collect the module calls of a pass over so many samples, in order; complete when the context ends."""
    tracer = _Tracer(network, samples)
    with ExitStack() as stack:
        stack.enter_context(eager())
        for module in tracer.paths:
            before = module.register_forward_pre_hook(tracer.begin, with_kwargs=True, prepend=True)
            stack.callback(before.remove)
            stack.callback(module.register_forward_hook(tracer.end).remove)
        stack.enter_context(tracer)
        yield tracer.calls


class _Tracer(TorchFunctionMode):
    def __init__(self, network: nn.Module, samples: int) -> None:
        super().__init__()
        self.paths = module_paths(network)
        self.calls: list[ModuleCall] = []
        self._stack: list[int] = []  # indices of the calls that have not returned
        self._tensors = TensorFacts(samples, [*network.parameters(), *network.buffers()])
        self._summands = _Summands(self._tensors)

    def begin(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        index = len(self.calls)
        self.calls.append(ModuleCall(module, self.paths[module], tuple(self._stack)))
        self._stack.append(index)
        given = next(tensors_in((args, kwargs)), None)
        if given is not None:
            self._summands.begin(index, given)

    def end(self, module: nn.Module, _: Any, output: Any) -> None:
        if is_composite(module):
            self._add_activation(Activation(composite_name(type(module)), module.forward))
        while self._stack:
            index = self._stack.pop()
            call = self.calls[index]
            if call.module is module:
                call.sum = self._summands.end(index, next(tensors_in(output), None))
                break
            self._summands.end(index, None)  # it failed, and the network went on without it

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        output = function(*args, **kwargs)
        if not self._stack:
            return output
        operator = operator_name(function)
        given = next(tensors_in((args, kwargs)), None)
        if operator in OPERATORS and given is not None and self._is_data(given) and not self._in_composite():
            name = "relu6" if isinstance(self.calls[self._stack[-1]].module, nn.ReLU6) else operator
            self._add_activation(Activation(name, partial(call_on, function, args, kwargs, given)))
        self._summands.note(operator, args, kwargs, output, self._stack[-1])
        self._tensors.note(operator, args, kwargs, output)
        return output

    def _add_activation(self, activation: Activation) -> None:
        for index in self._stack:
            self.calls[index].activations.append(activation)

    def _in_composite(self) -> bool:
        return any(is_composite(self.calls[index].module) for index in self._stack)

    def _is_data(self, tensor: Tensor) -> bool:
        return tensor.ndim > 1 and self._tensors.is_data(tensor)


class _Summands:
    """Remembers for every tensor the calls whose input it contains, and whether something was added to it."""

    def __init__(self, tensors: TensorFacts) -> None:
        self._tensors = tensors
        self._open: set[int] = set()  # calls that have begun and not ended
        self._known: dict[int, tuple[weakref.ref[Tensor], dict[int, Sum]]] = {}

    def begin(self, call: int, given: Tensor) -> None:
        """Note that a call starts with `given` as its input."""
        self._open.add(call)
        self._keep(given, {**self._of(given), call: Sum.NONE})

    def end(self, call: int, result: Tensor | None) -> Sum:
        """Note that a call ends, and say whether `result` contains its input."""
        found = Sum.NONE if result is None else self._of(result).get(call, Sum.NONE)
        self._open.discard(call)
        return found

    def note(
        self, operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any, within: int
    ) -> None:
        """Learn from a call of a torch function that the module call `within` made."""
        if operator == "__setitem__":
            self._known.pop(id(args[0]), None)
        if not isinstance(output, Tensor):
            return
        sources = list(tensors_in((args, kwargs)))
        calls: dict[int, Sum] = {}
        if operator in _SUMS:
            calls = self._summed(sources, output, within)
        elif operator in _SCALINGS:  # by a number, or by what is broadcast: weights, a norm
            full = [source for source in sources if source.shape == output.shape]
            calls = self._of(full[0]) if len(full) == 1 else {}
        elif operator in _TRANSPARENT and sources:
            calls = self._of(sources[0])
        self._keep(output, calls)

    def _of(self, tensor: Tensor) -> dict[int, Sum]:
        """Return the open calls whose input a tensor contains."""
        reference, calls = self._known.get(id(tensor), (None, {}))
        if reference is None or reference() is not tensor:
            return {}
        return {call: how for call, how in calls.items() if call in self._open}

    def _summed(self, sources: Sequence[Tensor], output: Tensor, within: int) -> dict[int, Sum]:
        full = [s for s in sources if s.shape == output.shape and not self._tensors.facts_of(s).constant]
        if len(full) < 2:  # a bias, or positions
            return self._of(full[0]) if full else {}
        first, second = self._of(full[0]), self._of(full[1])
        calls = {}
        for call in first.keys() | second.keys():
            known = max(first.get(call, Sum.NONE), second.get(call, Sum.NONE))
            alone = known is Sum.NONE and call in first and call in second  # x + x, x + relu(x)
            calls[call] = known if alone else max(known, Sum.OWN if call == within else Sum.WITHIN)
        return calls

    def _keep(self, tensor: Tensor, calls: dict[int, Sum]) -> None:
        if calls:
            self._known[id(tensor)] = weakref.ref(tensor), calls
        else:
            self._known.pop(id(tensor), None)


def _comparable(value: Any) -> Any:
    return (tuple(value.shape), tuple(value.flatten().tolist())) if isinstance(value, Tensor) else repr(value)
