"""Counts the activation calls of a forward pass below torch's dispatcher.

This shares no code with `fathometer.capture`, which sees functions and modules from above. It sees only the
operators that reach a kernel, the memory of their tensors, and the Python frames that they are called from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

OPERATORS = frozenset(
    "_prelu_kernel celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid "
    "log_sigmoid_forward mish prelu relu relu6 rrelu rrelu_with_noise selu sigmoid silu softplus softshrink "
    "special_expit tanh threshold".split()
)
# An operator of `OPERATORS` is a call of an activation, with four rules:
# 1. Its input holds data: floating-point numbers that depend on the input of the network or on noise, dense,
#    with two or more axes or one number for each sample. Gates that depend on weights alone do not count.
# 2. What a library wrote in Python as one activation is one call: a `forward` in the activation files of timm
#    and transformers, and torch's `softsign` and `tanhshrink`.
# 3. Gates inside torch's recurrent layers do not count.
# 4. A transformer layer that runs as one kernel has one activation.
_FUSED = "_transformer_encoder_layer_fwd"
_ACTIVATION_FILES = (
    "transformers/activations.py",
    "timm/layers/activations.py",
    "timm/layers/activations_me.py",
)
_IN_PYTHON = ("softsign", "tanhshrink")
_NOISE = ("rand", "normal", "bernoulli", "uniform", "exponential")
_MACHINERY = ("torch/utils/_python_dispatch.py", "torch/_compile.py", "torch/_dynamo/eval_frame.py")
_FUNCTIONAL, _RECURRENT = "torch/nn/functional.py", "torch/nn/modules/rnn.py"


class Count(TorchDispatchMode):
    """Counts while it is entered; `calls` are the operators that count, in order."""

    def __init__(self, *given: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        tensors = [leaf for leaf in tree_leaves(given) if isinstance(leaf, Tensor)]
        self._samples = next((tensor.size(0) for tensor in tensors if tensor.ndim), 0)
        self._data = {place for tensor in tensors for place in _places(tensor)}
        self._whole: list[FrameType] = []  # kept, so that no other frame gets the place of one of them
        self.calls: list[str] = []
        self.operators = 0  # all that ran

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """One operator on its way to a kernel."""
        self.operators += 1
        name = function.overloadpacket.__name__.rstrip("_")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        depends = any(word in name for word in _NOISE) or any(
            place in self._data for tensor in tensors for place in _places(tensor)
        )
        if name == _FUSED:
            self.calls.append(name)
        elif depends and tensors and self._is_data(tensors[0]):
            self._consider(name)
        output = function(*args, **(kwargs or {}))
        places = {p for leaf in tree_leaves(output) if isinstance(leaf, Tensor) for p in _places(leaf)}
        self._data = self._data | places if depends else self._data - places
        return output

    def _consider(self, name: str) -> None:
        frames = list(_frames())
        whole = next((frame for frame in frames if _is_one_activation(frame)), None)
        if whole is not None:
            if not any(frame is whole for frame in self._whole):
                self._whole.append(whole)
                self.calls.append(_title(whole))
        elif name in OPERATORS and not _is_in(frames[0], _RECURRENT):
            self.calls.append(name)

    def _is_data(self, tensor: Tensor) -> bool:
        if tensor.layout != torch.strided or tensor.is_nested or not tensor.is_floating_point():
            return False
        return tensor.numel() > 0 and (tensor.ndim > 1 or tuple(tensor.shape) == (self._samples,))


def is_called_from(file: str) -> bool:
    """Whether a function of that file is at work."""
    return any(_is_in(frame, file) for frame in _frames())


def _places(tensor: Tensor) -> Iterator[int]:
    """The memory that a tensor lies in, which its views share."""
    if tensor.layout == torch.strided:
        yield tensor.untyped_storage()._cdata
    elif tensor.is_sparse:
        yield tensor._values().untyped_storage()._cdata


def _frames() -> Iterator[FrameType]:
    """Who called, from within outwards, without this file and torch's own machinery for modes."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != __file__ and not any(_is_in(frame, file) for file in _MACHINERY):
            yield frame
        frame = frame.f_back


def _is_one_activation(frame: FrameType) -> bool:
    name = frame.f_code.co_name
    if name == "forward":
        return any(_is_in(frame, file) for file in _ACTIVATION_FILES) and isinstance(
            frame.f_locals.get("self"), nn.Module
        )
    return name in _IN_PYTHON and _is_in(frame, _FUNCTIONAL)


def _is_in(frame: FrameType, file: str) -> bool:
    return frame.f_code.co_filename.endswith(file)


def _title(frame: FrameType) -> str:
    name = frame.f_code.co_name
    return type(frame.f_locals["self"]).__name__ if name == "forward" else name
