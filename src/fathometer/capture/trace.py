"""Trace one forward pass on a few samples: which module adds its input to its output, and its activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fathometer.capture.axes import TensorFacts, tensors_in
from fathometer.capture.intercept import call_on, eager
from fathometer.capture.sites import (
    OPERATORS,
    composite_name,
    is_composite,
    module_paths,
    operator_name,
)
from fathometer.capture.stream import Branch, Flows, Sum


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
        branches: what was added to its input on the way to its output.
        activations: the activations that it and its parts called.
    """

    module: nn.Module
    path: str
    inside: tuple[int, ...]
    sum: Sum = Sum.NONE
    branches: tuple[Branch, ...] = ()
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
        self._flows = Flows(self._tensors)

    def begin(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        index = len(self.calls)
        self.calls.append(ModuleCall(module, self.paths[module], tuple(self._stack)))
        self._stack.append(index)
        given = next(tensors_in((args, kwargs)), None)
        if given is not None:
            self._flows.begin(index, given)

    def end(self, module: nn.Module, _: Any, output: Any) -> None:
        if is_composite(module):
            self._add_activation(Activation(composite_name(type(module)), module.forward))
        while self._stack:
            index = self._stack.pop()
            call = self.calls[index]
            if call.module is module:
                call.sum, call.branches = self._flows.end(index, next(tensors_in(output), None))
                break
            self._flows.end(index, None)  # it failed, and the network went on without it

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
        self._flows.note(operator, args, kwargs, output, self._stack[-1])
        self._tensors.note(operator, args, kwargs, output)
        return output

    def _add_activation(self, activation: Activation) -> None:
        for index in self._stack:
            self.calls[index].activations.append(activation)

    def _in_composite(self) -> bool:
        return any(is_composite(self.calls[index].module) for index in self._stack)

    def _is_data(self, tensor: Tensor) -> bool:
        return tensor.ndim > 1 and self._tensors.is_data(tensor)


def _comparable(value: Any) -> Any:
    return (tuple(value.shape), tuple(value.flatten().tolist())) if isinstance(value, Tensor) else repr(value)
