"""Which axis of a tensor holds the channels: found from the operator that made it, and kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

_SECOND = frozenset(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm group_norm "
    "instance_norm".split()
)
_LAST = frozenset("linear layer_norm rms_norm embedding bilinear matmul bmm baddbmm addmm mm".split())
_FORGETTING = frozenset("einsum movedim moveaxis swapaxes swapdims t flatten unflatten fold unfold".split())
_RESHAPING = frozenset("reshape view view_as reshape_as expand".split())
_MARK = "_fathometer_channel_axis"


def note_channel_axis(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
    """Remember on the tensor itself where its channels are.

    Convolutions and batch norms put them second, linear layers and layer norms last. What keeps the number of
    axes keeps their place; a permutation moves it; where it is unknown, no mark is better than a wrong one.
    """
    if isinstance(output, Tensor):
        outputs: Iterable[Any] = (output,)
    elif isinstance(output, tuple | list):  # of chunk, split, unbind
        outputs = output
    else:
        return
    for tensor in outputs:
        if not isinstance(tensor, Tensor) or tensor.ndim < 3:
            continue  # with two axes there is no doubt
        axis = _axis(operator, args, kwargs, tensor)
        if axis is not None:
            setattr(tensor, _MARK, axis)
        elif hasattr(tensor, _MARK):
            delattr(tensor, _MARK)


def channel_axis(tensor: Tensor) -> int:
    """The axis of the channels; without a mark, the second of four or more axes and the last of fewer."""
    axis: int | None = getattr(tensor, _MARK, None)
    if axis is not None and axis < tensor.ndim:
        return axis
    return 1 if tensor.ndim >= 4 else tensor.ndim - 1


def forget_channel_axis(tensors: Iterable[Tensor]) -> None:
    """Leave nothing on tensors that the user gets."""
    for tensor in tensors:
        if hasattr(tensor, _MARK):
            delattr(tensor, _MARK)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)


def _axis(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Tensor) -> int | None:
    if operator in _SECOND:
        return 1
    if operator in _LAST:
        return output.ndim - 1
    if operator in _FORGETTING:
        return None
    source = next((t for t in tensors_in(args) if t.ndim == output.ndim and hasattr(t, _MARK)), None)
    if source is None:
        return None
    axis: int = getattr(source, _MARK)
    if operator == "permute":
        dims = kwargs.get("dims", args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:])
        return [d % output.ndim for d in dims].index(axis)
    if operator == "transpose":
        first, second = (d % output.ndim for d in (*args[1:], *kwargs.values()))
        return {first: second, second: first}.get(axis, axis)
    if operator in _RESHAPING and source.shape[axis] != output.shape[axis]:
        return None
    return axis
