"""What the tensors of a pass are: whether they hold data, where their samples are, their matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from fathometer.capture.reduction import Reduction, Scene, reduce
from fathometer.capture.sites import Site
from fathometer.capture.traces import Facts, Traces, default_axis, is_dense, tensors_in
from fathometer.capture.transforms import Maps, is_wrapped, outside
from fathometer.errors import InputError


class Layout:
    """The tensors of one pass after the other.

    Attributes:
        scene: how many samples the pass has, and which of their positions count.
        traces: what is known of tensors from the calls that made them.
    """

    def __init__(self, reduction: Reduction, *, gradients: bool = False) -> None:
        self._reduction, self._gradients = reduction, gradients
        self._maps = Maps(reduction.sample_axis)
        self.scene, self.traces = Scene(0), Traces(0)

    def begin(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], before: int) -> None:
        """A pass begins; so many samples came `before`."""
        samples = self._samples_in((args, kwargs))
        mask = kwargs.get("attention_mask")
        usable = isinstance(mask, Tensor) and mask.ndim == 2 and not mask.is_floating_point()
        self.scene = Scene(samples, before, mask if usable else None)
        # Anew for each pass, since `functional_call` runs the network on other weights.
        self.traces = Traces(samples, (*model.parameters(), *model.buffers()))

    def end(self) -> None:
        """Forget the tensors of the pass."""
        self.traces = Traces(0)

    def enter_map(
        self, axes: Sequence[int | None], tensors: Sequence[Tensor], level: int, batched: Any
    ) -> None:
        """`vmap` takes an axis away from each of the tensors that it runs over."""
        mapped = [(t, axis) for t, axis in zip(tensors, axes, strict=True) if axis is not None]
        entered = [(tensor, axis, self.traces.of(tensor)) for tensor, axis in mapped]
        self._maps.begin(level, entered, self.scene.samples)
        rows = [row for row, axis in zip(tree_leaves(batched), axes, strict=True) if axis is not None]
        for (tensor, axis), row in zip(mapped, rows, strict=True):
            self.traces.enter(tensor, axis, row)

    def is_data(self, tensor: Tensor) -> bool:
        """Not what depends on weights alone (a learned gate), nor one number for the whole batch."""
        if not tensor.is_floating_point() or not has_entries(tensor) or self.traces.of(tensor).constant:
            return False
        shape = tensor.shape
        if is_wrapped(tensor):
            with outside():
                plain = self._maps.plain(tensor, self.traces.of(tensor), self.scene.samples)
            if plain is None:
                return False
            shape = plain.tensor.shape
        return len(shape) > 1 or tuple(shape) == (self.scene.samples,)

    def reduced(self, tensor: Tensor, site: Site, facts: Facts | None = None) -> Tensor | None:
        """As a matrix; `facts` are those of the tensor if not given. None if the samples cannot be found."""
        facts = self.traces.of(tensor) if facts is None else facts
        if is_wrapped(tensor):
            with outside(), self.graph():
                plain = self._maps.plain(tensor, facts, self.scene.samples)
            if plain is None:
                return None
            tensor, axis, rows = plain
        else:
            axis, rows = default_axis(tensor.ndim), facts.rows
            if facts.axis is not None and facts.axis < tensor.ndim:
                axis = facts.axis
        try:
            with outside(), self.graph():
                return reduce(tensor, axis, self._reduction, self.scene, site.name, rows)
        except InputError as error:
            raise InputError(f"{site}: {error}") from error

    def graph(self) -> torch.set_grad_enabled:
        """Pairs are part of the network's graph only if that was asked for."""
        return torch.set_grad_enabled(self._gradients and torch.is_grad_enabled())

    def _samples_in(self, given: Any) -> int:
        axis = self._reduction.sample_axis
        tensor = next((t for t in tensors_in(given) if t.ndim), None)
        if tensor is None:
            return 0
        with outside():
            self._maps.settle(tensor)
            plain = self._maps.plain(tensor, Facts(), 0) if is_wrapped(tensor) else None
        if plain is not None:  # the network itself is run by `vmap`
            tensor = plain.tensor
        if not -tensor.ndim <= axis < tensor.ndim:
            raise InputError(
                f"expected samples on axis {axis}, got an input of shape {list(tensor.shape)}; "
                "give another sample_axis"
            )
        return tensor.size(0 if tensor.is_nested else axis)


def has_entries(tensor: Tensor) -> bool:
    """Whether a matrix can be made of it; nested and sparse tensors are passed over."""
    return is_dense(tensor) and tensor.numel() > 0
