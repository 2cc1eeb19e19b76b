"""What a watch has seen: the sites of a network, and their pairs over forward passes."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.capture.sites import Choice, Site
from fathometer.errors import InputError

Widths: TypeAlias = Literal["equal", "any"]


class _Sides(NamedTuple):
    x: Tensor
    y: Tensor


class Pair(_Sides):
    """Inputs `x` and outputs `y` of a site, `[samples, features]`; only whole modules may change the width.

    Attributes:
        resolution: the relative spacing of the numbers that the network computed x and y in. Pairs of a bf16
            network are kept in float32, but vary by bf16's rounding.
    """

    resolution: tuple[float, float]

    def __new__(cls, x: Tensor, y: Tensor, resolution: tuple[float, float] | None = None) -> Pair:
        """Make a pair; without a resolution, that of the tensors' dtypes counts."""
        pair = super().__new__(cls, x, y)
        pair.resolution = resolution or (torch.finfo(x.dtype).eps, torch.finfo(y.dtype).eps)
        return pair

    def with_sides(self, x: Tensor, y: Tensor) -> Pair:
        """Return another pair of the same resolution."""
        return Pair(x, y, self.resolution)


class Watch:
    """What has been seen: `sites` in order of first call, and `pairs`, which add up over forward passes.

    Attributes:
        samples: how many inputs the network was given.
        unequal: modules that were asked for but whose input and output differ in shape.
    """

    def __init__(
        self,
        choice: Choice,
        capacity: int | None = None,
        widths: Widths = "equal",
        *,
        gradients: bool = False,
    ) -> None:
        self.samples = 0
        self.unequal: dict[str, str] = {}
        self._choice, self._capacity, self._widths = choice, capacity, widths
        self._gradients = gradients
        self._passes = 0
        self._known: dict[tuple[str, str, int, bool], Site] = {}
        self._staged: list[tuple[Site, Pair]] = []  # of the pass under way
        self._buffers: dict[Site, _GrowingBuffer | _FixedBuffer] = {}
        self._modes: dict[Site, set[bool]] = {}  # whether its passes ran with gradients

    @property
    def sites(self) -> tuple[Site, ...]:
        """The chosen sites, in order of their first call."""
        return tuple(site for site in self._known.values() if self._choice.wanted(site))

    @property
    def called(self) -> tuple[Site, ...]:
        """All calls that could have been chosen."""
        return tuple(self._known.values())

    @property
    def pairs(self) -> dict[Site, Pair]:
        """The pair of every site, over all forward passes since the beginning or the last `clear`."""
        mixed = [site for site, modes in self._modes.items() if len(modes) > 1]
        if mixed:
            raise InputError(
                f"{mixed[0]}: expected passes with gradients, got one under no_grad among them; validate "
                "outside of the `with` block, or `clear` before and after"
            )
        if self._passes:
            self._choice.check_patterns(self.called)
        ordered = sorted(self._buffers.items(), key=lambda item: item[0].order)
        return {site: buffer.pair for site, buffer in ordered if len(buffer)}

    @property
    def graphless(self) -> tuple[Site, ...]:
        """With `gradients`, the sites that are kept of a pass under `no_grad`."""
        return tuple(site for site, modes in self._modes.items() if False in modes)

    def clear(self) -> None:
        """Forget the pairs; sites and the count of samples stay."""
        for buffer in self._buffers.values():
            buffer.clear()
        self._modes.clear()

    def site(self, module: str, operator: str, call: int, *, own: bool) -> Site:
        """Return the site of that call, a new one if it has not been seen before."""
        key = (module, operator, call, own)
        if key not in self._known:
            self._known[key] = Site(module, operator, call, len(self._known), own)
        return self._known[key]

    def is_wanted(self, site: Site) -> bool:
        """Tell whether the pair of a site is to be kept."""
        return self._choice.wanted(site)

    def stage(self, site: Site, pair: Pair) -> None:
        """Keep a pair of the pass under way; it counts if the pass ends well (`commit`)."""
        if self._fits(pair):
            pair = self._buffer(site).stage(pair)
        self._staged.append((site, pair))

    def commit(self, samples: int) -> None:
        """End a pass over so many samples: what was staged counts."""
        self.samples += samples
        self._passes += 1
        for site, pair in self._staged:
            self._keep(site, pair)
        self._staged.clear()

    def discard(self) -> None:
        """Forget what was staged by a pass that failed."""
        self._staged.clear()

    def _keep(self, site: Site, pair: Pair) -> None:
        if not self._fits(pair):
            self.unequal[site.name] = f"{list(pair.x.shape)} in, {list(pair.y.shape)} out"
            return
        buffer = self._buffer(site)
        before = len(buffer)
        try:
            buffer.add(pair)
        except InputError as error:
            raise InputError(f"{site}: {error}") from error
        if self._gradients and len(buffer) > before:
            mode = torch.is_grad_enabled() or pair.x.requires_grad or pair.y.requires_grad
            self._modes.setdefault(site, set()).add(mode)

    def _fits(self, pair: Pair) -> bool:
        return len(pair.x) == len(pair.y) and (self._widths == "any" or pair.x.shape == pair.y.shape)

    def _buffer(self, site: Site) -> _GrowingBuffer | _FixedBuffer:
        if site not in self._buffers:
            if self._capacity is None or self._gradients:  # memory that is used again holds no graph
                self._buffers[site] = _GrowingBuffer(self._capacity)
            else:
                self._buffers[site] = _FixedBuffer(self._capacity)
        return self._buffers[site]


class _GrowingBuffer:
    """Holds as many samples as come, or the first `capacity`; they may be part of a graph."""

    def __init__(self, capacity: int | None = None) -> None:
        self._capacity = capacity
        self._parts: list[Pair] = []

    def stage(self, part: Pair) -> Pair:
        """Return the part itself."""
        return part

    def add(self, part: Pair) -> None:
        """Add the samples of one more pass, as far as there is room."""
        if self._capacity is not None:
            room = self._capacity - len(self)
            part = part.with_sides(part.x[:room], part.y[:room])
        if len(part.x):
            self._parts.append(part)

    @property
    def pair(self) -> Pair:
        """All samples."""
        return Pair(
            torch.cat([part.x for part in self._parts]),
            torch.cat([part.y for part in self._parts]),
            _coarsest(*self._parts),
        )

    def clear(self) -> None:
        """Forget the samples."""
        self._parts.clear()

    def __len__(self) -> int:
        return sum(len(part.x) for part in self._parts)


class _FixedBuffer:
    """Holds the first `capacity` samples, in memory that is allocated once.

    Small tensors that outlive a pass, allocated between the large ones that do not, would fragment memory:
    1.9 GB instead of 0.2 for 512 samples of a ResNet-50 on a CPU.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._filled = 0
        self._under_way = False  # a part is staged, but not added
        self._memory: Pair | None = None

    def stage(self, part: Pair) -> Pair:
        """Return a copy in that memory, which counts once it is added; the part itself if it does not fit."""
        if self._filled + len(part.x) > self._capacity or _widths(self._memory_for(part)) != _widths(part):
            return part
        self._under_way = True
        return self._copied(part)

    def add(self, part: Pair) -> None:
        """Add the samples of one more pass, as far as there is room."""
        memory = self._memory_for(part)
        for before, now in zip(_widths(memory), _widths(part), strict=True):
            if before != now:
                raise InputError(f"its width changed from {before} to {now}")
        memory.resolution = _coarsest(memory, part) if self._filled else part.resolution
        self._filled += len(self._copied(part).x)
        self._under_way = False

    @property
    def pair(self) -> Pair:
        """The samples, as a view that is valid until the next pass after `clear`."""
        assert self._memory is not None
        return self._memory.with_sides(self._memory.x[: self._filled], self._memory.y[: self._filled])

    def clear(self) -> None:
        """Begin again, in the same memory unless a pass is under way."""
        self._filled = 0
        if self._under_way:
            self._memory, self._under_way = None, False

    def __len__(self) -> int:
        return self._filled

    @torch.inference_mode(False)  # a pass in inference mode may be followed by one that is not
    def _memory_for(self, part: Pair) -> Pair:
        """Return the memory; as long as it is empty, of the widths, dtype and device of the part."""
        if self._memory is None or (not self._filled and _kinds(self._memory) != _kinds(part)):
            x, y = (side.new_empty(self._capacity, side.shape[1]) for side in part)
            self._memory = Pair(x, y)
        return self._memory

    @torch.inference_mode(False)
    @torch.no_grad()
    def _copied(self, part: Pair) -> Pair:
        """Copy the part into the next free rows, as far as there are any."""
        assert self._memory is not None
        rows = slice(self._filled, min(self._filled + len(part.x), self._capacity))
        copy = part.with_sides(*(memory[rows] for memory in self._memory))
        for here, side in zip(copy, part, strict=True):
            here.copy_(side[: len(here)])
        return copy


def _widths(pair: Pair) -> tuple[int, int]:
    return pair.x.shape[1], pair.y.shape[1]


def _kinds(pair: Pair) -> list[tuple[int, torch.dtype, torch.device]]:
    return [(side.shape[1], side.dtype, side.device) for side in pair]


def _coarsest(*pairs: Pair) -> tuple[float, float]:
    return max(pair.resolution[0] for pair in pairs), max(pair.resolution[1] for pair in pairs)
