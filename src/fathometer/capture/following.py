"""Capture the pairs of blocks, attention and MLPs in a forward pass, with and without the residual sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.capture.axes import SUMS, TensorFacts
from fathometer.capture.parts import Part, Residual, Structure
from fathometer.capture.reduce import Reduced
from fathometer.capture.sites import Site
from fathometer.capture.stream import carried


class _Added(NamedTuple):
    """What a part adds to the stream: its site, and the matrix once that is known."""

    site: Site
    matrix: Reduced | None = None


class FollowedParts:
    """The parts of one forward pass.

    The pair of a block is its input and its output, or its input and the difference. Without the residual
    sum, the pair of another part is its own input and output. With it, the pair is the stream before and
    after: the output of the part is followed through dropout, scaling and normalisation to the sum. Where two
    parts are added together, each has the stream plus itself.

    Attributes:
        layer: number of the block that is running.

    Args:
        structure: the parts of the network.
        residual: whether pairs have the residual sum.
        site: returns the site of a part that starts, with or without the sum.
        reduced: returns a tensor as a matrix.
        stage: keeps a pair.
        leave_out: notes why a site has no pair.
    """

    def __init__(
        self,
        structure: Structure,
        residual: Residual,
        site: Callable[[Part, bool], Site],
        reduced: Callable[[Tensor, Site], Reduced],
        stage: Callable[[Site, Reduced, Reduced], None],
        leave_out: Callable[[Site, str], None],
    ) -> None:
        self._site, self._reduced, self._stage, self._leave_out = site, reduced, stage, leave_out
        self._layers = structure.layers
        self._blocks: Counter[str] = Counter()  # how many times each block has been called
        self.layer: int | None = None
        self._variants = [
            which for which in (False, True) if residual in (("without", "with")[which], "both")
        ]
        self._paths = {part.path for part in structure.parts}
        self._starts: dict[str, list[Part]] = {}
        self._ends: dict[str, list[Part]] = {}
        for part in structure.parts:
            self._starts.setdefault(part.start, []).append(part)
            self._ends.setdefault(part.end, []).append(part)
        self._begun: dict[Part, list[tuple[Site, Reduced | None]]] = {}
        self._shapes: dict[Part, torch.Size] = {}  # of inputs
        self._ended: Counter[Part] = Counter()  # how often the last module of a part has been called
        self._added: dict[int, tuple[Tensor, list[_Added]]] = {}  # by the id of a tensor, which is kept alive

    def enter(self, path: str, given: Tensor | None) -> None:
        """Note that a module starts."""
        if path in self._layers:
            numbers, before = self._layers[path], self._blocks[path]
            self.layer = numbers[before] if before < len(numbers) else None
            self._blocks[path] += 1
        if given is None:
            return
        for part in self._starts.get(path, ()):
            if part in self._begun:
                continue
            self._shapes[part] = given.shape
            sites = [self._site(part, which) for which in self._variants]
            needed = [part.kind == "block" or not site.residual for site in sites]
            self._begun[part] = [
                (site, self._reduced(given, site) if is_needed else None)
                for site, is_needed in zip(sites, needed, strict=True)
            ]

    def exit(self, path: str, output: Tensor | None) -> None:
        """Note that a module has returned."""
        for part in self._ends.get(path, ()):
            self._ended[part] += part in self._begun
            if self._ended[part] < part.calls:
                continue
            self._ended[part] = 0
            for site, x in self._begun.pop(part, ()):
                if output is None:  # it raised
                    continue
                if x is None:
                    self._follow(output, [_Added(site)])
                    continue
                y = self._reduced(output, site)
                x = x._replace(matrix=x.matrix.to(y.matrix.device))  # accelerate moves inputs inside modules
                if output.shape[:-1] != self._shapes[part][:-1] and part.start != part.end:
                    self._leave_out(site, "its input and output have their positions in different orders")
                    continue
                if part.kind == "block" and not site.residual:
                    if x.matrix.shape != y.matrix.shape:
                        shapes = f"{list(x.matrix.shape)} in, {list(y.matrix.shape)} out"
                        self._leave_out(site, f"there is no difference of output and input ({shapes})")
                        continue
                    y = y._replace(matrix=y.matrix - x.matrix)
                self._stage(site, x, y)
        if path in self._layers:
            self.layer = None

    def call(
        self, operator: str, sources: list[Tensor], tensors: TensorFacts, function: Callable[[], Tensor]
    ) -> Tensor:
        """Call a torch function, and see whether it adds a part to the stream."""
        if not any(map(self._of, sources)):
            return function()
        if operator in SUMS and len(terms := carried(operator, sources, tensors)) == 2:
            return self._sum(terms[0], terms[1], function)
        output = function()
        for source in carried(operator, sources, tensors, output) if isinstance(output, Tensor) else ():
            if added := self._of(source):
                self._follow(output, added)
        return output

    def measures(self, path: str) -> bool:
        """Tell whether a module is a part, so that it need not be measured once more as a module."""
        return path in self._paths

    @property
    def is_waiting(self) -> bool:
        """Whether the output of a part has not been added yet."""
        return bool(self._added)

    def close(self) -> None:
        """End the pass: parts that were not added to anything are left out."""
        for _, added in self._added.values():
            for item in added:
                self._leave_out(item.site, "its output was followed, and is not added to anything")

    def _sum(self, first: Tensor, second: Tensor, function: Callable[[], Tensor]) -> Tensor:
        one, two = self._of(first), self._of(second)
        if one and two:  # attention and MLP side by side: the stream comes later
            known = [*self._with_matrix(first, one), *self._with_matrix(second, two)]
            self._forget(known)
            output = function()
            self._follow(output, known)
            return output
        stream, added = (second, one) if one else (first, two)
        before = [self._reduced(stream, item.site) for item in added]
        self._forget(added)
        output = function()
        for item, x in zip(added, before, strict=True):
            if item.matrix is None:
                y = self._reduced(output, item.site)
            else:
                y = item.matrix._replace(matrix=x.matrix + item.matrix.matrix)
            self._stage(item.site, x, y)
        return output

    def _with_matrix(self, tensor: Tensor, added: list[_Added]) -> list[_Added]:
        return [
            item if item.matrix else item._replace(matrix=self._reduced(tensor, item.site)) for item in added
        ]

    def _of(self, tensor: Tensor) -> list[_Added]:
        kept, added = self._added.get(id(tensor), (None, []))
        return added if kept is tensor else []

    def _follow(self, tensor: Tensor, added: list[_Added]) -> None:
        known = {item.site: item for item in (*self._of(tensor), *added)}
        self._added[id(tensor)] = tensor, list(known.values())

    def _forget(self, added: list[_Added]) -> None:
        """Follow these no longer, and let go of their tensors."""
        sites = {item.site for item in added}
        self._added = {
            key: (tensor, items)
            for key, (tensor, items) in self._added.items()
            if not any(item.site in sites for item in items)
        }
