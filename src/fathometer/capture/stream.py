"""Follow the tensors of a traced pass: what contains the input of a module, and what is added to it.

Seen from a module call, a tensor is part of the *stream* if it contains the call's input as a summand: it is
`x + f(x)`, or made of that by reshaping, dropout, scaling, normalisation or an activation. What a linear map,
a convolution or attention makes of the stream is a *branch*; a branch may be added to the stream.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from torch import Tensor, broadcast_shapes

from fathometer.capture.axes import SUMS, TensorFacts, tensors_in
from fathometer.capture.sites import OPERATORS

_SCALINGS = frozenset("mul div __mul__ __rmul__ __imul__ __truediv__ __itruediv__".split())
_TRANSPARENT = OPERATORS | frozenset(
    "view reshape view_as reshape_as flatten unflatten permute transpose movedim swapaxes T mT squeeze "
    "unsqueeze contiguous clone detach data to type type_as float double half bfloat16 roll "
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout "
    "layer_norm rms_norm batch_norm group_norm instance_norm".split()
)
_CUTTING = frozenset("__getitem__ pad".split())  # transparent if they leave everything as it is
_MIXING = frozenset("scaled_dot_product_attention multi_head_attention_forward cumsum cumprod conv1d".split())
_PRODUCTS = frozenset("matmul __matmul__ __rmatmul__ bmm baddbmm einsum".split())
_PICKING = frozenset("__getitem__ index_select".split())
_CONVOLUTIONS = frozenset("conv2d conv3d conv_transpose2d max_pool2d avg_pool2d".split())


class Sum(IntEnum):
    """Whether the output of a call contains its input as a summand."""

    NONE = 0
    WITHIN = 1  # a part of the module adds it
    OWN = 2  # the module's own `forward` adds it


class Branch(NamedTuple):
    """What is added to the stream of a call.

    Attributes:
        starts: the calls inside that were given what the branch is made of, the outermost first.
        end: the call that returned the branch; if the branch is one module, this is the only start.
        mixes: whether positions (tokens) are mixed, as by attention.
        convolves: whether positions are mixed by a convolution of images.
    """

    starts: tuple[int, ...]
    end: int | None
    mixes: bool
    convolves: bool


class _Origin(NamedTuple):
    """Where a branch comes from, seen from a call."""

    starts: tuple[int, ...] = ()
    mixes: bool = False
    convolves: bool = False

    def joined(self, other: _Origin) -> _Origin:
        first = min(filter(None, (self.starts, other.starts)), default=())
        return _Origin(first, self.mixes or other.mixes, self.convolves or other.convolves)


class _Flow(NamedTuple):
    """What is known of a tensor, by open call.

    Attributes:
        stream: of the calls whose input it contains as a summand, whether and which branches were added.
        branch: of the calls whose input it is computed from in another way, how.
        taken: calls that were given it.
        returned: calls that returned it, or what it is made of by reshaping and the like.
        terms: of a sum of two branches, both.
        is_weight: whether it was picked from weights, as those of an expert are.
    """

    stream: Mapping[int, tuple[Sum, tuple[Branch, ...]]] = {}
    branch: Mapping[int, _Origin] = {}
    taken: tuple[int, ...] = ()
    returned: tuple[int, ...] = ()
    terms: tuple[_Flow, ...] = ()
    is_weight: bool = False


_NOTHING = _Flow()


def carried(
    operator: str, sources: Sequence[Tensor], tensors: TensorFacts, output: Tensor | None = None
) -> list[Tensor]:
    """Return the sources that the result of a call contains: two of a sum, one of reshaping, or none.

    `output` need not be known for a sum.
    """
    if operator in SUMS or operator in _SCALINGS:  # by a number, or by what is broadcast: weights, a norm
        shape = broadcast_shapes(*(source.shape for source in sources)) if sources else ()
        full = [source for source in sources if source.shape == shape]
        if operator in _SCALINGS:
            return full if len(full) == 1 else []
        return [source for source in full if not tensors.facts_of(source).constant]  # no bias, no positions
    if operator in _CUTTING and (len(sources) > 1 or output is None or output.shape != sources[0].shape):
        return []
    return list(sources[:1]) if operator in _TRANSPARENT or operator in _CUTTING else []


class Flows:
    """What is known of the tensors of a pass under way."""

    def __init__(self, tensors: TensorFacts) -> None:
        self._tensors = tensors
        self._open: dict[int, _Flow] = {}  # calls that have begun and not ended, with their input
        self._on_stream: dict[int, frozenset[int]] = {}  # calls, and of which others their input is stream
        self._known: dict[int, tuple[weakref.ref[Tensor], _Flow]] = {}

    def begin(self, call: int, given: Tensor) -> None:
        """Note that a call starts with `given` as its input."""
        flow = self._of(given)
        self._on_stream[call] = frozenset(flow.stream)
        flow = flow._replace(
            stream={**flow.stream, call: (Sum.NONE, ())},
            branch={
                key: origin if origin.starts else origin._replace(starts=(call,))
                for key, origin in flow.branch.items()
            },
            taken=(*flow.taken, call),
        )
        self._open[call] = flow
        self._keep(given, flow)

    def end(self, call: int, result: Tensor | None) -> tuple[Sum, tuple[Branch, ...]]:
        """Note that a call ends; say whether `result` contains its input, and what was added to it."""
        given = self._open.pop(call, _NOTHING)
        if result is None:
            return Sum.NONE, ()
        reference, known = self._known.get(id(result), (None, _NOTHING))
        found = (known.stream if reference is not None and reference() is result else {}).get(call)
        flow = self._of(result)
        unseen = {  # what a kernel of somebody else's has computed
            key: given.branch.get(key, _Origin((call,)))
            for key in (*given.stream, *given.branch)
            if key in self._open and key not in flow.stream and key not in flow.branch
        }
        returned = (*flow.returned, call)
        self._keep(result, flow._replace(branch={**flow.branch, **unseen}, returned=returned))
        return found or (Sum.NONE, ())

    def note(
        self, operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any, within: int
    ) -> None:
        """Learn from a call of a torch function that the module call `within` made."""
        sources = list(tensors_in((args, kwargs)))
        if operator == "__setitem__":
            self._keep(args[0], self._computed(operator, sources))
        outputs = list(tensors_in(output))
        if not outputs:
            return
        carries = carried(operator, sources, self._tensors, output) if isinstance(output, Tensor) else []
        if len(carries) > 1:
            flow = self._summed(carries[0], carries[1], within)
        elif carries and output is carries[0]:
            return  # `to` the device where it is
        elif carries:
            flow = self._of(carries[0])._replace(taken=())
        else:
            flow = self._computed(operator, sources, args)
        for tensor in outputs:
            self._keep(tensor, flow)

    def _of(self, tensor: Tensor) -> _Flow:
        """Return what is known of a tensor, as far as calls are still open."""
        reference, flow = self._known.get(id(tensor), (None, _NOTHING))
        if reference is None or reference() is not tensor:
            return _NOTHING
        return flow._replace(
            stream={call: value for call, value in flow.stream.items() if call in self._open},
            branch={call: value for call, value in flow.branch.items() if call in self._open},
        )

    def _computed(self, operator: str, sources: Sequence[Tensor], args: Sequence[Any] = ()) -> _Flow:
        """Return what is known of the result of a function: it is a branch."""
        numbers = [source for source in sources if source.is_floating_point() or source.is_complex()]
        data = [source for source in numbers if not self._is_weight(source)]
        if operator in _PICKING and not data:
            return _Flow(is_weight=True)
        mixes = (
            (operator in _MIXING and bool(data))
            or "fft" in operator
            or (operator in _PRODUCTS and len(data) > 1)
            or (operator == "linear" and self._is_transposed(sources[0]))
            or (operator == "__getitem__" and _selects_a_position(args))
        )
        origins: dict[int, _Origin] = {}
        for flow in map(self._of, data):
            own = {
                call: _Origin(tuple(inner for inner in flow.taken if inner > call)) for call in flow.stream
            }
            for call, origin in (*flow.branch.items(), *own.items()):
                origins[call] = origins.get(call, _Origin()).joined(origin)
        step = _Origin(mixes=mixes, convolves=operator in _CONVOLUTIONS)
        return _Flow(branch={call: origin.joined(step) for call, origin in origins.items()})

    def _is_transposed(self, tensor: Tensor) -> bool:
        """Tell whether positions are on the last axis, so that a linear map mixes them."""
        axis = self._tensors.facts_of(tensor).axis
        return axis is not None and axis < tensor.ndim - 1

    def _is_weight(self, tensor: Tensor) -> bool:
        return self._tensors.facts_of(tensor).constant or self._of(tensor).is_weight

    def _summed(self, first: Tensor, second: Tensor, within: int) -> _Flow:
        """Return what is known of a sum of two tensors."""
        one, two = self._of(first), self._of(second)
        stream: dict[int, tuple[Sum, tuple[Branch, ...]]] = {}
        for call in one.stream.keys() | two.stream.keys():
            (a, branches), (b, others) = (flow.stream.get(call, (Sum.NONE, ())) for flow in (one, two))
            known = max(a, b)
            both = call in one.stream and call in two.stream
            alone = known is Sum.NONE and both  # x + x, x + relu(x)
            if not both:
                added = two if call in one.stream else one
                branches = (*branches, *others, *self._branches(added, call))
            stream[call] = known if alone else max(known, Sum.OWN if call == within else Sum.WITHIN), branches
        branch = {
            call: one.branch.get(call, _Origin()).joined(two.branch.get(call, _Origin()))
            for call in one.branch.keys() | two.branch.keys()
            if call not in stream
        }
        return _Flow(stream, branch, terms=(one, two))

    def _branches(self, added: _Flow, call: int) -> Iterable[Branch]:
        """Return what is added to the stream of a call: one branch, or several that were summed before."""
        origin = added.branch.get(call)
        modules = [inner for inner in added.returned if call in self._on_stream.get(inner, ())]
        if modules:
            _, mixes, convolves = origin or _Origin()
            return [Branch((modules[-1],), modules[-1], mixes, convolves)]
        if added.terms and not added.returned:
            return [branch for term in added.terms for branch in self._branches(term, call)]
        if origin is None:
            return []
        end = added.returned[0] if added.returned else None
        return [Branch(origin.starts, end, origin.mixes, origin.convolves)]

    def _keep(self, tensor: Tensor, flow: _Flow) -> None:
        if any(flow):
            self._known[id(tensor)] = weakref.ref(tensor), flow
        else:
            self._known.pop(id(tensor), None)


def _selects_a_position(args: Sequence[Any]) -> bool:
    """Tell whether an index picks one of the positions, as a loop over time does."""
    tensor, index = (*args, None, None)[:2]
    return (
        isinstance(tensor, Tensor)
        and tensor.ndim > 2
        and isinstance(index, tuple)
        and len(index) > 1
        and isinstance(index[0], slice)
        and isinstance(index[1], int)
    )
