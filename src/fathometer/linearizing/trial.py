"""A network on calibration data: its lines are fitted, and its outputs compared with the original ones."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.flop_counter import FlopCounterMode

from fathometer.errors import InputError
from fathometer.linearizing.maps import ChannelMoments, FullMoments, Kind, fitted
from fathometer.linearizing.outputs import check_finite, forward, rows_of
from fathometer.linearizing.slots import Original, Slot
from fathometer.measuring.batches import (
    batches_of,
    input_count,
    pieces,
    slice_inputs,
    take_inputs,
    unfit_labels,
)
from fathometer.measuring.scores import Scorer, outcome

_MAX_ROWS = 16_384  # about as many positions are compared
_MAX_NUMBERS = 2**27  # of outputs that are not logits

Note: TypeAlias = Callable[[Slot, Tensor, Tensor, Tensor], None]
"""Called with a slot, its input, what the original call gives, and what the network goes on with."""


class Fit(NamedTuple):
    """A map in the place of a call.

    Attributes:
        module: the map.
        r2: the share of the variance of the outputs that the map explains.
        constant: the number of channels whose inputs do not vary.
    """

    module: nn.Module
    r2: float
    constant: int


@dataclass(frozen=True)
class Score:
    """How a changed network does.

    Attributes:
        divergence: of its outputs from the original ones: the mean KL divergence in nats, or the squared
            error as a share of their variance where they are not logits; infinite if it is not a number.
        outcome: accuracy and loss, or perplexity and loss; empty without labels.
        label_problem: why the labels cannot be compared with the outputs; empty if they can, or without any.
        agreement: share of inputs whose largest output is that of the original network; NaN without logits.
        seconds: of the forward passes.
    """

    divergence: float
    outcome: dict[str, Any]
    label_problem: str
    agreement: float
    seconds: float


class Trial:
    """Runs a network on batches that stay in memory, and knows what the original network gives for them.

    Attributes:
        network: the network as it is now.
        data: what the batches were taken from, which may name the classes of the labels.
        model: the original network, which may know the names of its classes.
        batches: the inputs of forward passes.
        inputs: how many there are.
        are_logits: whether the outputs are logits, so that KL divergences are measured.
    """

    def __init__(
        self,
        network: nn.Module,
        data: Any,
        batches: Sequence[Any],
        device: torch.device,
        model: Any = None,
        parameter: str = "data",
    ) -> None:
        self.network, self.data, self._device = network, data, device
        self.model = network if model is None else model  # knows the names of classes
        self.batches, self.inputs = batches, sum(map(input_count, batches))
        self.are_logits = True
        self._original: list[Tensor] = []
        self._every = 1  # compare every n-th position, or number: all of them would need too much memory
        seen = 0
        with torch.no_grad():
            for output, value in self.outputs():
                rows, self.are_logits = rows_of(output, value)
                if not torch.isfinite(rows).all():
                    check_finite(value, parameter)
                    raise InputError(
                        "the outputs of the network are not finite numbers, although its inputs are; look at "
                        "its weights",
                        parameter="model",
                    )
                if not self._original:
                    share = self.inputs / input_count(value)
                    if not self.are_logits:
                        self._every = math.ceil(rows.numel() * share / _MAX_NUMBERS)
                    elif len(rows) > input_count(value):
                        most = min(_MAX_ROWS, 4 * _MAX_NUMBERS // rows.shape[-1])
                        self._every = math.ceil(len(rows) * share / most)
                kept, seen = self._compared(rows, seen), seen + len(rows)
                self._original.append(log_softmax(kept, -1) if self.are_logits else kept.clone())
        self._spread = 0.0
        if not self.are_logits:
            # of each column; of all numbers where sequences of other lengths have other columns
            have_columns = len({rows.shape[1] for rows in self._original}) == 1
            parts = [rows if have_columns else rows.reshape(-1, 1) for rows in self._original]
            mean = sum(rows.sum(0, dtype=torch.float64) for rows in parts) / sum(map(len, parts))
            self._spread = sum(float((rows - mean).square().sum()) for rows in self._original)

    def most_uncertain(self, count: int) -> Trial:
        """Return a trial on the inputs whose original outputs have the highest entropy.

        Call it while the network is the original one. Of outputs with several positions for each input, and
        of those that are not logits, the first inputs are taken.
        """
        sizes = [input_count(value) for value in self.batches]
        if count >= self.inputs:
            return self
        scores = -torch.arange(self.inputs, dtype=torch.float32)
        if self.are_logits and [len(rows) for rows in self._original] == sizes:
            scores = torch.cat([-(rows.exp() * rows).sum(-1).cpu() for rows in self._original])
        is_chosen = torch.zeros(len(scores), dtype=torch.bool)
        is_chosen[scores.topk(count).indices] = True
        batches = [
            take_inputs(value, chosen.nonzero().flatten().tolist(), len(chosen))
            for value, chosen in zip(self.batches, is_chosen.split(sizes), strict=True)
            if chosen.any()
        ]
        return Trial(self.network, self.data, _joined(batches, max(sizes)), self._device, self.model)

    def _compared(self, rows: Tensor, seen: int) -> Tensor:
        """Return every n-th position of a batch after `seen` others, or every n-th number of each row."""
        return rows[-seen % self._every :: self._every] if self.are_logits else rows[:, :: self._every]

    def outputs(self, batches: Sequence[Any] | None = None) -> Iterator[tuple[Any, Any]]:
        """Run the network, and yield each output with what it was given."""
        for value in self.batches if batches is None else batches:
            yield forward(self.network, value, self._device), value

    @torch.no_grad()
    def score(self) -> Score:
        """Compare the network as it is now with the original one."""
        scorer = Scorer(self.model, self.data)
        total = rows_seen = same = seconds = 0.0
        seen = 0
        for value, wanted in zip(self.batches, self._original, strict=True):
            started = time.perf_counter()
            output, _ = next(self.outputs([value]))
            _wait_for(self._device)
            seconds += time.perf_counter() - started
            rows, _ = rows_of(output, value)
            rows, seen = self._compared(rows, seen), seen + len(rows)
            rows_seen += len(rows)
            if self.are_logits:
                found = log_softmax(rows, -1)
                total += float((wanted.exp() * (wanted - found)).sum(dtype=torch.float64))
                same += float((found.argmax(-1) == wanted.argmax(-1)).sum())
            else:
                total += float((rows - wanted).square().sum(dtype=torch.float64))
            if self.are_logits or unfit_labels(value):
                scorer.add(output, value, unfit_labels(value))
        scores = scorer.take()()
        label_problem = scorer.label_problem([scores] if scores else [])
        known = outcome([scores], self.inputs, label_problem)
        divergence = total / rows_seen if self.are_logits else total / max(self._spread, 1e-30)
        divergence = (
            max(divergence, 0.0) if math.isfinite(divergence) else math.inf
        )  # rounding may be negative
        return Score(
            divergence,
            {name: value for name, value in known.items() if isinstance(value, float)},
            label_problem,
            same / rows_seen if self.are_logits else math.nan,
            seconds,
        )

    @torch.no_grad()
    def fit(
        self,
        slots: Sequence[Slot],
        kind: Kind,
        original: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> dict[Slot, Fit]:
        """Return the best map of each slot for the network as it is now, in one pass over the data.

        The map is fitted to what the call would give; or, if there is a context in which the network is the
        original one, to what it gives there, in a second pass.
        """
        wanted: dict[Slot, Tensor] = {}
        found = {slot: FullMoments() if kind == "affine" else ChannelMoments() for slot in slots}
        examples: dict[Slot, Tensor] = {}
        mask: Tensor | None = None

        def note(slot: Slot, x: Tensor, y: Tensor, _: Tensor) -> None:
            is_cast = torch.is_autocast_enabled(x.device.type)  # the map is a weight, which autocast casts
            examples[slot] = x.new_empty(0, dtype=torch.float32 if is_cast else x.dtype)
            y = wanted.get(slot, y)
            sides = [_positions(side, axis, mask) for side, axis in zip((x, y), slot.axes, strict=True)]
            if (widths := (len(sides[0]), len(sides[1]))) != slot.widths:
                raise InputError(
                    f"{slot.site}: its width changes from batch to batch ({slot.widths[0]} channels, then "
                    f"{widths[0]}); leave it out",
                    parameter="sites",
                )
            found[slot].add(*((side.T for side in sides) if kind == "affine" else sides))

        for value in self.batches:
            given = value.get("attention_mask") if isinstance(value, Mapping) else None
            mask = given.to(self._device).bool() if isinstance(given, Tensor) else None
            if original is not None:
                with original(), listening(slots, lambda slot, _, y, __: wanted.update({slot: y.clone()})):
                    self._run(value)
            with listening(slots, note):
                self._run(value)
        for slot in slots:
            if slot not in examples:
                raise InputError(f"{slot.site}: was never called on the data", parameter="sites")
        return {
            slot: Fit(*fitted(kind, moments, slot.axes[0], examples[slot]), int(moments.constant.sum()))
            for slot, moments in found.items()
        }

    def _run(self, value: Any) -> None:
        for _ in self.outputs([value]):
            pass

    @torch.no_grad()
    def flops(self) -> int:
        """Return the floating-point operations of matrix products and convolutions, for one input."""
        value = self.batches[0]
        with FlopCounterMode(display=False) as counter:
            self._run(value)
        return int(counter.get_total_flops()) // input_count(value)

    @property
    def has_running_means(self) -> bool:
        """Whether there are BatchNorm layers whose running means can be estimated."""
        return bool(self._norms()) and input_count(self.batches[0]) > 1

    @torch.no_grad()
    def recalibrate(self) -> None:
        """Estimate the running means and variances of all BatchNorm layers again, in one pass."""
        norms = self._norms()
        before = [norm.momentum for norm in norms]
        states = [copy.deepcopy(norm.state_dict()) for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all batches
            norm.train()
        try:
            size = input_count(self.batches[0])  # a smaller last batch would count as much as the others
            for _ in self.outputs([batch for batch in self.batches if input_count(batch) == size]):
                pass
        finally:
            for norm, momentum, state in zip(norms, before, states, strict=True):
                norm.momentum = momentum
                norm.eval()
                if not norm.num_batches_tracked:  # it does not run in eval mode
                    norm.load_state_dict(state)

    def running_statistics(self) -> list[Tensor]:
        """Return the tensors that `recalibrate` changes."""
        return [value for norm in self._norms() for value in norm.buffers(recurse=False)]

    def _norms(self) -> list[nn.modules.batchnorm._BatchNorm]:
        found = [m for m in self.network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        return [norm for norm in found if norm.track_running_stats and norm.running_mean is not None]


def _joined(batches: list[Any], size: int) -> list[Any]:
    """Return the inputs of small batches in batches of this size, if their tensors have the same shapes."""
    flat = [tree_flatten(value) for value in batches]
    counts = [input_count(value) for value in batches]
    shapes = {
        (
            spec,
            *(leaf.shape[1:] if isinstance(leaf, Tensor) and len(leaf) == count else None for leaf in leaves),
        )
        for (leaves, spec), count in zip(flat, counts, strict=True)
    }
    if len(shapes) > 1 or None in shapes.pop():
        return batches
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    whole = tree_unflatten([torch.cat(parts) for parts in columns], flat[0][1])
    return [slice_inputs(whole, start, start + size, sum(counts)) for start in range(0, sum(counts), size)]


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def calibration_batches(
    data: Any, samples: int, batch_size: int | None, seed: int, parameter: str = "data"
) -> list[Any]:
    """Return the first `samples` inputs of the data, cut into forward passes."""
    found = []
    for piece in pieces(batches_of(data, batch_size, seed), samples, batch_size, tokens=False):
        found.append(piece.value)
        if piece.completes:
            break
    if sum(map(input_count, found)) < 2:
        raise InputError("expected at least 2 inputs", parameter=parameter)
    return found


@contextmanager
def listening(slots: Iterable[Slot], note: Note) -> Iterator[None]:
    """Note the input and the original output of every slot, whatever runs in its place."""

    def listen(slot: Slot, x: Tensor, original: Original) -> Any:
        given = x.detach().clone()  # the call may overwrite it
        if slot.replacement is None:
            output = original(x)
            note(slot, given, output.detach(), output)
            return output
        with torch.no_grad():
            wanted = original(x.detach().clone())
        output = slot.replaced(x)
        note(slot, given, wanted, output)
        return output

    chosen = list(slots)
    for slot in chosen:
        slot.listener = listen
    try:
        yield
    finally:
        for slot in chosen:
            slot.listener = None


def _positions(tensor: Tensor, axis: int, mask: Tensor | None) -> Tensor:
    """Return `[channels, positions]`; only the positions that a mask of tokens admits."""
    if mask is not None and tensor.ndim == 3 and axis in (-1, 2) and mask.shape == tensor.shape[:2]:
        return tensor[mask].T
    return tensor.movedim(axis, 0).flatten(1) if tensor.ndim > 1 else tensor[None]
