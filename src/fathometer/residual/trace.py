"""One forward pass on a few samples, call by call: what is added to what, which activations act where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fathometer.capture import OPERATORS
from fathometer.capture.axes import Traces, tensors_in
from fathometer.capture.intercept import eager
from fathometer.capture.sites import composite_name, is_composite, module_paths, operator_name
from fathometer.residual.lineage import Lineage, Sum


class Activation(NamedTuple):
    """An activation as it was called, with its slopes and options."""

    operator: str
    function: Callable[[Tensor], Tensor]


@dataclass
class Called:
    """One call of a module in the pass.

    Attributes:
        module: what was called.
        path: its name in the network.
        inside: places, among all calls, of those that it is a part of, the outermost first.
        sum: whether its output contains its input as a summand.
        activations: those that it and its parts called.
    """

    module: nn.Module
    path: str
    inside: tuple[int, ...]
    sum: Sum = Sum.NONE
    activations: list[Activation] = field(default_factory=list)


@contextmanager
def traced(network: nn.Module, samples: int) -> Iterator[list[Called]]:
    """The module calls of a pass over so many samples, in order; complete when the context ends."""
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
        self.calls: list[Called] = []
        self._stack: list[int] = []  # places of the calls under way
        self._traces = Traces(samples, [*network.parameters(), *network.buffers()])
        self._lineage = Lineage(self._traces)

    def begin(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        place = len(self.calls)
        self.calls.append(Called(module, self.paths[module], tuple(self._stack)))
        self._stack.append(place)
        given = next(tensors_in((args, kwargs)), None)
        if given is not None:
            self._lineage.begin(place, given)

    def end(self, module: nn.Module, _: Any, output: Any) -> None:
        if is_composite(module):
            self._activated(Activation(composite_name(type(module)), module.forward))
        while self._stack:
            place = self._stack.pop()
            call = self.calls[place]
            if call.module is module:
                call.sum = self._lineage.end(place, next(tensors_in(output), None))
                break
            self._lineage.end(place, None)  # it has failed, and the network went on without it

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
            self._activated(Activation(name, partial(_again, function, args, kwargs, given)))
        self._lineage.note(operator, args, kwargs, output, self._stack[-1])
        self._traces.note(operator, args, kwargs, output)
        return output

    def _activated(self, activation: Activation) -> None:
        for place in self._stack:
            self.calls[place].activations.append(activation)

    def _in_composite(self) -> bool:
        return any(is_composite(self.calls[place].module) for place in self._stack)

    def _is_data(self, tensor: Tensor) -> bool:
        return tensor.is_floating_point() and tensor.ndim > 1 and not self._traces.of(tensor).constant


def _again(
    function: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], old: Tensor, new: Tensor
) -> Tensor:
    """The same call on another tensor."""
    return function(
        *(new if value is old else value for value in args),
        **{key: new if value is old else value for key, value in kwargs.items()},
    )


def key_of(activation: Activation) -> tuple[Any, ...]:
    """What makes it the same as another: its name, slopes and options, not the tensor that it acted on."""
    function = activation.function
    if isinstance(function, partial) and function.func is _again:
        _, args, kwargs, old = function.args
        rest = {**dict(enumerate(args)), **kwargs}
        return activation.operator, tuple(
            (key, _value(value)) for key, value in rest.items() if value is not old and key != "inplace"
        )
    module = getattr(function, "__self__", None)
    if isinstance(module, nn.Module):
        state = tuple((key, _value(value)) for key, value in module.state_dict().items())
        return activation.operator, type(module), repr(module), state
    return activation.operator, id(function)


def _value(value: Any) -> Any:
    return (tuple(value.shape), tuple(value.flatten().tolist())) if isinstance(value, Tensor) else repr(value)


def applied(activation: Activation, a: Tensor) -> Tensor:
    """σ(A), in float64 where it overflows in the dtype of A."""
    with torch.no_grad():
        image = activation.function(a.clone())  # a copy, because the call may work in place
        if a.dtype != torch.float64 and not image.isfinite().all() and a.isfinite().all():
            return activation.function(a.double())
        return image
