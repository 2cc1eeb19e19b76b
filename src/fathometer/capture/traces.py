"""What is known of the tensors of one forward pass from the operators that made them.

Where are the channels, how many rows belong to one sample, did any input go into it at all? Facts are kept
beside the tensors, not on them, and only as long as they live.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import index
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C import _functorch
from torch.nn.parameter import is_lazy

_CONVOLVING = {f"conv{kind}{n}d": n for kind in ("", "_transpose") for n in (1, 2, 3)}
_SECOND = frozenset("batch_norm group_norm instance_norm".split())
_LAST = frozenset("linear layer_norm rms_norm embedding bilinear matmul bmm baddbmm addmm mm".split())
_UNKNOWN = frozenset("einsum movedim moveaxis swapaxes swapdims t T H unflatten fold unfold".split())
_RESHAPING = frozenset("reshape view view_as reshape_as expand flatten unflatten contiguous".split())
_PICKING = frozenset("index_select gather masked_select take take_along_dim index".split())
_DRAWING = ("rand", "normal", "bernoulli", "multinomial")  # noise is data


class Facts(NamedTuple):
    """Of one tensor: the axis of its channels, rows of a sample, whether it depends on weights alone."""

    axis: int | None = None
    rows: int = 1
    constant: bool = False


_NOTHING = Facts()


class Traces:
    """Facts about the tensors of a pass over `samples` inputs; `constants` are weights and buffers."""

    def __init__(self, samples: int, constants: Iterable[Tensor] = ()) -> None:
        self._samples = samples
        self._constants = {id(tensor) for tensor in constants}
        self._facts: dict[int, tuple[weakref.ref[Tensor], Facts]] = {}

    def of(self, tensor: Tensor) -> Facts:
        """What is known of a tensor."""
        if id(tensor) in self._constants:
            return Facts(constant=True)
        reference, facts = self._facts.get(id(tensor), (None, _NOTHING))
        if reference is not None and reference() is tensor:
            return facts
        if _functorch.is_gradtrackingtensor(tensor):  # inside `torch.func.grad`, which takes no axis away
            return self.of(_functorch.get_unwrapped(tensor))
        return _NOTHING

    def channel_axis(self, tensor: Tensor) -> int:
        """The axis of the channels; if unknown, the second of four or more axes and the last of fewer."""
        axis = self.of(tensor).axis
        return axis if axis is not None and axis < tensor.ndim else default_axis(tensor.ndim)

    def enter(self, tensor: Tensor, axis: int, row: Tensor) -> None:
        """`vmap` takes an axis away; what remains is known of the rest."""
        facts = self.of(tensor)
        known = facts.axis if facts.axis != axis else None
        if known is not None:
            known -= axis < known
        self._keep(row, Facts(known, facts.rows if axis else 1, facts.constant))

    def note(self, operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """Learn from a call. Where a fact would be a guess, none is kept."""
        if operator == "__setitem__":
            self._written(args)
        several = output if isinstance(output, tuple | list) else (output,)  # of chunk, split, unbind
        outputs = [tensor for tensor in several if isinstance(tensor, Tensor) and is_dense(tensor)]
        if not outputs:
            return
        sources = [*tensors_in(args), *tensors_in(kwargs)]
        known = [(source, self.of(source)) for source in sources]
        constant = all(facts.constant for _, facts in known) and not _draws(operator)
        for tensor in outputs:
            # Where `vmap` took axes away, there are more than one sees.
            least = 0 if _functorch.is_functorch_wrapped_tensor(tensor) else 2
            axis = self._axis(operator, args, kwargs, known, tensor) if tensor.ndim > least else None
            rows = self._rows(operator, args, known, tensor) if tensor.ndim else 1
            self._keep(tensor, Facts(axis, rows, constant))

    def _keep(self, tensor: Tensor, facts: Facts) -> None:
        if facts != _NOTHING:
            self._facts[id(tensor)] = weakref.ref(tensor), facts
        else:
            self._facts.pop(id(tensor), None)

    def _written(self, args: Sequence[Any]) -> None:
        """`a[i] = b`: with data in b there are data in a."""
        target, *rest = tensors_in(args)
        facts = self.of(target)
        if facts.constant and not all(self.of(tensor).constant for tensor in rest):
            self._constants.discard(id(target))
            self._facts[id(target)] = weakref.ref(target), facts._replace(constant=False)

    def _rows(
        self, operator: str, args: Sequence[Any], known: Sequence[tuple[Tensor, Facts]], output: Tensor
    ) -> int:
        """Rows of a sample: more than 1 where an axis was merged into the first."""
        count = output.shape[0]
        if operator in _PICKING or (operator == "__getitem__" and not _keeps_rows(args)):
            return 1
        for source, facts in known:
            if facts.constant or not source.ndim or not is_dense(source):
                continue
            length = source.shape[0]
            if length == count:
                return facts.rows
            whole = length == facts.rows * self._samples
            if operator in _RESHAPING and whole and self._samples and count % self._samples == 0:
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
        if operator in _CONVOLVING:
            return output.ndim - _CONVOLVING[operator] - 1
        if operator in _SECOND:
            return 1
        if operator in _LAST:
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
        if source.ndim != output.ndim or (
            operator in _RESHAPING and source.shape[axis] != output.shape[axis]
        ):
            return None
        return axis


def default_axis(axes: int) -> int:
    """The axis of the channels where nothing is known: the second of four or more, the last of fewer."""
    return 1 if axes >= 4 else axes - 1


def is_dense(tensor: Tensor) -> bool:
    """Not nested, sparse, or of a lazy layer that has not seen an input: those lack a shape, or strides."""
    return not is_lazy(tensor) and tensor.layout == torch.strided and not tensor.is_nested


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


def _draws(operator: str) -> bool:
    return any(word in operator for word in _DRAWING)


def _keeps_rows(args: Sequence[Any]) -> bool:
    """Whether an index leaves the first axis alone."""
    index = args[1] if len(args) > 1 else None
    first = index[0] if isinstance(index, tuple) and index else index
    return first is Ellipsis or (isinstance(first, slice) and first == slice(None))


def _numbers(values: Iterable[Any]) -> list[int]:
    """Return the whole numbers among arguments, NumPy's and 0-d tensors included, also from tuples and lists."""
    flat = [v for value in values for v in (value if isinstance(value, tuple | list) else [value])]
    found = []
    for value in flat:
        if not isinstance(value, bool) and not getattr(value, "ndim", 0):
            with suppress(TypeError):  # no whole number
                found.append(index(value))
    return found


def _permuted(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    dims = [d % source.ndim for d in _numbers((*args[1:], *kwargs.values()))]
    return dims.index(axis) if axis in dims else None


def _transposed(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    dims = [d % source.ndim for d in _numbers((*args[1:], *kwargs.values()))]
    if len(dims) != 2:
        return None
    first, second = dims
    return {first: second, second: first}.get(axis, axis)


def _last_two_swapped(axis: int, source: Tensor, *_: Any) -> int:
    last = source.ndim - 1
    return {last: last - 1, last - 1: last}.get(axis, axis)


def _squeezed(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    asked = [d % source.ndim for d in _numbers((*args[1:], *kwargs.values()))] or range(source.ndim)
    gone = {d for d in asked if source.shape[d] == 1}
    return None if axis in gone else axis - sum(d < axis for d in gone)


def _unsqueezed(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    places = _numbers((*args[1:], *kwargs.values()))
    return axis + (places[0] % (source.ndim + 1) <= axis) if len(places) == 1 else None


def _flattened(axis: int, source: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    given = dict(zip(("start_dim", "end_dim"), args[1:], strict=False)) | dict(kwargs)
    ends = _numbers([given.get("start_dim", 0), given.get("end_dim", -1)])
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
