"""Derive where the channels and the samples of a tensor are from the operators that made it.

Facts are kept beside the tensors of one forward pass, not on them, and only as long as they live.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import index
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._C import _functorch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

_CONVOLUTIONS = {f"conv{kind}{n}d": n for kind in ("", "_transpose") for n in (1, 2, 3)}
_CHANNELS_SECOND = frozenset("batch_norm group_norm instance_norm".split())
_CHANNELS_LAST = frozenset(
    "linear layer_norm rms_norm embedding bilinear matmul bmm baddbmm addmm mm".split()
)
_UNKNOWN = frozenset("einsum movedim moveaxis swapaxes swapdims t T H unflatten fold unfold".split())
_RESHAPES = frozenset("reshape view view_as reshape_as expand flatten unflatten contiguous".split())
_SELECTS_ROWS = frozenset("index_select gather masked_select take take_along_dim index".split())
SUMS = frozenset("add sub __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__".split())
_KEEPS_SUM = _CHANNELS_SECOND | _RESHAPES | frozenset("layer_norm rms_norm dropout clone to".split())
_SEQUENCES = (tuple, list)
_SCALARS = frozenset({bool, int, float, str, slice, torch.dtype, torch.device})
_RANDOM = ("rand", "normal", "bernoulli", "multinomial")  # noise counts as data


class Facts(NamedTuple):
    """What is known of one tensor.

    Attributes:
        axis: the axis of its channels.
        rows_per_sample: how many rows of the first axis belong to one sample.
        constant: whether it depends on weights alone.
        is_sum: whether it is a sum of two tensors that depend on the data, perhaps normalised.
    """

    axis: int | None = None
    rows_per_sample: int = 1
    constant: bool = False
    is_sum: bool = False

    def channel_axis(self, axes: int) -> int:
        """Return the axis of the channels; if unknown, the second of four or more axes, the last of fewer."""
        if self.axis is not None and self.axis < axes:
            return self.axis
        return 1 if axes >= 4 else axes - 1


_NOTHING = Facts()
_CONSTANT = Facts(constant=True)


class TensorFacts:
    """Facts about the tensors of a pass over `samples` inputs; `constants` are weights and buffers.

    Weights without memory (`meta`) are offloaded: each is another parameter while its module runs.
    """

    def __init__(self, samples: int, constants: Iterable[Tensor] = ()) -> None:
        self._samples = samples
        # Kept alive: were one replaced during the pass, another tensor could get its id.
        self._constants = {id(tensor): tensor for tensor in constants}
        self._are_offloaded = any(tensor.is_meta for tensor in self._constants.values())
        self._facts: dict[int, tuple[weakref.ref[Tensor], Facts]] = {}

    def facts_of(self, tensor: Tensor) -> Facts:
        """Return what is known of a tensor."""
        if id(tensor) in self._constants or (self._are_offloaded and isinstance(tensor, nn.Parameter)):
            return _CONSTANT
        reference, facts = self._facts.get(id(tensor), (None, _NOTHING))
        if reference is not None and reference() is tensor:
            return facts
        if _functorch.is_gradtrackingtensor(tensor):  # inside `torch.func.grad`, which keeps all axes
            return self.facts_of(_functorch.get_unwrapped(tensor))
        return _NOTHING

    def is_data(self, tensor: Tensor) -> bool:
        """Exclude what depends on weights alone (a learned gate), and one number for the whole batch."""
        if not tensor.is_floating_point() or not has_entries(tensor) or self.facts_of(tensor).constant:
            return False
        return tensor.ndim > 1 or tuple(tensor.shape) == (self._samples,)

    def note(self, operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """Learn from a call. Where a fact would be a guess, none is kept."""
        if operator == "__setitem__":
            self._note_write(args)
        several = output if isinstance(output, _SEQUENCES) else (output,)  # of chunk, split, unbind
        outputs = [tensor for tensor in several if isinstance(tensor, Tensor) and is_dense(tensor)]
        if not outputs:
            return
        known = [(source, self.facts_of(source)) for source in tensors_in((*args, *kwargs.values()))]
        constant = all(facts.constant for _, facts in known) and not any(word in operator for word in _RANDOM)
        for tensor in outputs:
            axis = self._axis(operator, args, kwargs, known, tensor) if tensor.ndim > 2 else None
            rows = self._rows(operator, args, known, tensor) if tensor.ndim else 1
            facts = Facts(axis, rows, constant, _is_sum(operator, known, tensor))
            if facts != _NOTHING:
                self._facts[id(tensor)] = weakref.ref(tensor), facts
            else:
                self._facts.pop(id(tensor), None)

    def _note_write(self, args: Sequence[Any]) -> None:
        """Note `a[i] = b`: with data in b there are data in a."""
        target, *rest = tensors_in(args)
        facts = self.facts_of(target)
        if facts.constant and not all(self.facts_of(tensor).constant for tensor in rest):
            self._constants.pop(id(target), None)
            self._facts[id(target)] = weakref.ref(target), facts._replace(constant=False)

    def _rows(
        self, operator: str, args: Sequence[Any], known: Sequence[tuple[Tensor, Facts]], output: Tensor
    ) -> int:
        """Return how many rows a sample has: more than 1 where an axis was merged into the first."""
        count = output.shape[0]
        if operator in _SELECTS_ROWS or (operator == "__getitem__" and not _keeps_rows(args)):
            return 1
        for source, facts in known:
            if facts.constant or not source.ndim or not is_dense(source):
                continue
            length = source.shape[0]
            if length == count:
                return facts.rows_per_sample
            whole = length == facts.rows_per_sample * self._samples
            if operator in _RESHAPES and whole and self._samples and count % self._samples == 0:
                return count // self._samples
        return 1

    def _axis(
        self,
        operator: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        known: Sequence[tuple[Tensor, Facts]],
        output: Tensor,
    ) -> int | None:
        if operator in _CONVOLUTIONS:
            return output.ndim - _CONVOLUTIONS[operator] - 1
        if operator in _CHANNELS_SECOND:
            return 1
        if operator in _CHANNELS_LAST:
            return output.ndim - 1
        if operator in _UNKNOWN:
            return None
        found = next(((source, facts.axis) for source, facts in known if facts.axis is not None), None)
        if found is None:
            return None
        source, axis = found
        assert axis is not None
        moved = _MOVES.get(operator)
        if moved is not None:
            return moved(axis, source, args, kwargs)
        if source.ndim != output.ndim or (operator in _RESHAPES and source.shape[axis] != output.shape[axis]):
            return None
        return axis


def _is_sum(operator: str, known: Sequence[tuple[Tensor, Facts]], output: Tensor) -> bool:
    if operator in SUMS:
        full = [facts for source, facts in known if source.shape == output.shape and not facts.constant]
        return len(full) > 1 or any(facts.is_sum for facts in full)
    return operator in _KEEPS_SUM and bool(known) and known[0][1].is_sum


def is_dense(tensor: Tensor) -> bool:
    """Exclude nested and sparse tensors and those of lazy layers: they have no shape, or no strides."""
    return not is_lazy(tensor) and tensor.layout == torch.strided and not tensor.is_nested


def has_entries(tensor: Tensor) -> bool:
    """Tell whether a matrix can be made of a tensor; nested and sparse tensors are skipped."""
    return is_dense(tensor) and tensor.numel() > 0


def is_in_vmap(tensor: Tensor) -> bool:
    """Tell whether a tensor stands for one sample of many, inside `torch.vmap`."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Return all tensors in nested tuples, lists and dicts, in order."""
    found: list[Tensor] = []
    _collect((value,), found)
    return iter(found)


def _collect(values: Iterable[Any], found: list[Tensor]) -> None:
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif value is None or type(value) in _SCALARS:
            continue
        elif isinstance(value, _SEQUENCES):
            _collect(value, found)
        elif isinstance(value, Mapping):
            _collect(value.values(), found)
        else:  # a class that was registered with torch, or none that holds tensors
            _collect((leaf for leaf in tree_leaves(value) if leaf is not value), found)


def _keeps_rows(args: Sequence[Any]) -> bool:
    """Tell whether an index leaves the first axis alone."""
    chosen = args[1] if len(args) > 1 else None
    first = chosen[0] if isinstance(chosen, tuple) and chosen else chosen
    return first is Ellipsis or (isinstance(first, slice) and first == slice(None))


def _whole_numbers(values: Iterable[Any]) -> list[int]:
    """Return the whole numbers among arguments, in tuples and lists too; NumPy's and 0-d tensors count."""
    flat = [v for value in values for v in (value if isinstance(value, tuple | list) else [value])]
    found = []
    for value in flat:
        if not isinstance(value, bool) and not getattr(value, "ndim", 0):
            with suppress(TypeError):  # not a whole number
                found.append(index(value))
    return found


def _dims(source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """Return the axes of `source` that are named in a call, from 0."""
    return [d % source.ndim for d in _whole_numbers((*args[1:], *kwargs.values()))]


def _permuted(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    dims = _dims(source, args, kwargs)
    return dims.index(axis) if axis in dims else None


def _transposed(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    dims = _dims(source, args, kwargs)
    if len(dims) != 2:
        return None
    return {dims[0]: dims[1], dims[1]: dims[0]}.get(axis, axis)


def _last_two_swapped(axis: int, source: Tensor, *_: Any) -> int:
    last = source.ndim - 1
    return {last: last - 1, last - 1: last}.get(axis, axis)


def _squeezed(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    removed = {d for d in _dims(source, args, kwargs) or range(source.ndim) if source.shape[d] == 1}
    return None if axis in removed else axis - sum(d < axis for d in removed)


def _unsqueezed(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    dims = _whole_numbers((*args[1:], *kwargs.values()))
    return axis + (dims[0] % (source.ndim + 1) <= axis) if len(dims) == 1 else None


def _flattened(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    given = dict(zip(("start_dim", "end_dim"), args[1:], strict=False)) | dict(kwargs)
    ends = _whole_numbers([given.get("start_dim", 0), given.get("end_dim", -1)])
    if len(ends) != 2:
        return None
    start, end = (d % source.ndim for d in ends)
    if start == end or axis < start:
        return axis
    return None if axis <= end else axis - (end - start)


_MOVES: dict[str, Callable[[int, Tensor, Sequence[Any], Mapping[str, Any]], int | None]] = {
    "permute": _permuted,
    "transpose": _transposed,
    "mT": _last_two_swapped,
    "mH": _last_two_swapped,
    "squeeze": _squeezed,
    "unsqueeze": _unsqueezed,
    "flatten": _flattened,
}
