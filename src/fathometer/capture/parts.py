"""Find the blocks of a transformer, and within each its attention and its MLP, by what is added to what."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from fathometer.capture.blocks import find_blocks
from fathometer.capture.stream import Branch
from fathometer.capture.trace import ModuleCall, traced
from fathometer.errors import InputError

Residual: TypeAlias = Literal["without", "with", "both"]

_REMEDY = "give module:NAME for whole modules"
_FEW = 2  # samples are enough to see what is added to what


class Part(NamedTuple):
    """A block, or what a block adds to its stream.

    Attributes:
        kind: `mlp`, `attention` or `block`.
        path: that of its module; that of the block and the kind, `encoder.layer.0.mlp`, where the part is not
            one module.
        operator: the class of its module, or the kind.
        start: path of the module whose input is that of the part.
        end: path of the module whose output is that of the part; often the same.
        calls: how often this module has been called then, since the part began.
    """

    kind: str
    path: str
    operator: str
    start: str
    end: str
    calls: int = 1


class Structure(NamedTuple):
    """What a network consists of.

    Attributes:
        parts: the parts that were asked for.
        layers: the layer numbers of blocks, one for each call, by path.
        missing: kinds of parts that there are none of, with the reason.
    """

    parts: tuple[Part, ...]
    layers: Mapping[str, tuple[int, ...]]
    missing: Mapping[str, str]


def search_parts(
    network: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], samples: int, kinds: Collection[str]
) -> Structure:
    """Run the network on a few of the samples that it was given, in eval mode, and return its parts."""

    def few(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return copy.deepcopy(value)  # a cache, which the pass would fill
        return value[:_FEW] if value.ndim and len(value) == samples else value

    modes = {module: module.training for module in network.modules()}
    devices = {weight.device for weight in network.parameters() if weight.is_cuda}
    try:
        network.eval()
        with (
            torch.random.fork_rng(devices),
            torch.no_grad(),
            traced(network, min(samples, _FEW)) as calls,
        ):
            network(*tree_map(few, tuple(args)), **tree_map(few, dict(kwargs)))
    finally:
        for module, mode in modes.items():
            module.training = mode
    return find_parts(calls, kinds)


def find_parts(calls: Sequence[ModuleCall], kinds: Collection[str]) -> Structure:
    """Return the parts of these kinds.

    Blocks are those of `find_blocks`. What a block adds to its stream is `attention` if it mixes positions:
    by attention, a state space, a Fourier transform. It is the `mlp` if it does not. What convolves images is
    neither. A layer number counts the blocks of one stack, such as those of an encoder.

    Args:
        calls: module calls of one forward pass (`traced`).
        kinds: `mlp`, `attention`, `block`.
    """
    try:
        blocks = find_blocks(calls)
    except InputError as error:
        reason, _, _ = error.reason.partition(". Give patterns")
        return Structure((), {}, dict.fromkeys(kinds, f"{reason}; {_REMEDY}"))
    counts: Counter[str] = Counter()
    layers: dict[str, tuple[int, ...]] = {}
    found: dict[str, Part] = {}
    for block in blocks:
        stack = re.sub(r"\.\d+(?=\.|$)", "", f".{block.path}")
        layers[block.path] = (*layers.get(block.path, ()), counts[stack])
        counts[stack] += 1
        for part in _parts_of(block, calls):
            if part.kind in kinds:
                found.setdefault(part.path, part)
    missing = set(kinds) - {part.kind for part in found.values()}
    return Structure(
        tuple(found.values()), layers, {kind: _why_missing(kind, blocks, calls) for kind in sorted(missing)}
    )


def _parts_of(block: ModuleCall, calls: Sequence[ModuleCall]) -> Iterator[Part]:
    """Yield the block, and what it adds to its stream."""
    yield Part("block", block.path, type(block.module).__name__, block.path, block.path)
    ends = {branch.end for branch in block.branches}
    names: set[str] = set()
    for branch in block.branches:
        kind = _kind(branch)
        begin = next((i for i in branch.starts if not _holds(calls, i, ends - {branch.end})), None)
        if kind is None or begin is None or branch.end is None:
            continue
        start, end = calls[begin].path, calls[branch.end].path
        path = _common(start, end)
        others = [calls[other].path for other in ends if other not in (None, branch.end)]
        if path == block.path or any(other.startswith(f"{path}.") for other in others):
            path = f"{path}.{kind}"  # as in BERT, whose MLP is two modules
        path = start if path in names else path
        names.add(path)
        operator = next((type(call.module).__name__ for call in calls if call.path == path), kind)
        number = sum(call.path == end for call in calls[begin : branch.end + 1])
        yield Part(kind, path, operator, start, end, number)


def _kind(branch: Branch) -> str | None:
    if branch.mixes:
        return "attention"
    return None if branch.convolves else "mlp"


def _holds(calls: Sequence[ModuleCall], index: int, others: Collection[int | None]) -> bool:
    """Tell whether a call holds one of the others, so that it is more than one part."""
    return any(other is not None and index in calls[other].inside for other in others)


def _common(one: str, two: str) -> str:
    """Return the path of the smallest module that holds both."""
    names = takewhile(lambda both: both[0] == both[1], zip(one.split("."), two.split("."), strict=False))
    return ".".join(name for name, _ in names)


def _why_missing(kind: str, blocks: Sequence[ModuleCall], calls: Sequence[ModuleCall]) -> str:
    """Say what the blocks add to their streams instead."""
    block = max(blocks, key=lambda block: len(block.branches))
    name = type(block.module).__name__
    seen = []
    for branch in block.branches:
        where = next((calls[i].path for i in branch.starts), None)
        what = {"attention": "mixes positions (attention)", "mlp": "does not mix positions (mlp)"}
        seen.append(
            f"{where or 'what no module returns'}, which {what.get(_kind(branch) or '', 'convolves')}"
        )
    adds = " and ".join(seen) or "nothing that could be followed"
    return f"no {kind} found in the {len(blocks)} blocks ({name}): {block.path} adds {adds}; {_REMEDY}"
