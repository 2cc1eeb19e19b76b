"""Find the residual blocks of a network, and the activation of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from torch import nn

from fathometer.capture.stream import Sum
from fathometer.capture.trace import Activation, ModuleCall
from fathometer.errors import InputError

_GATES = frozenset("sigmoid hardsigmoid special_expit log_sigmoid".split())


def find_blocks(calls: Sequence[ModuleCall], patterns: Iterable[str] | None = None) -> list[ModuleCall]:
    """Return the calls that make the residual path, in order.

    A class of modules makes blocks if it is called at least twice and, at least once, its output contains its
    input as a summand. Then all its calls count, also those with a projected shortcut or none, as at the
    beginning of a stage, and so do residual modules beside them in a list, such as a single attention layer
    among others. A class that only chains such blocks, or wraps one, is none. Of nested blocks the outermost
    count.

    Args:
        calls: module calls of one forward pass (`traced`).
        patterns: patterns of paths, or names of classes, instead of the search.
    """
    if patterns is None:
        classes = _residual_classes(calls)
        found = [index for index, call in enumerate(calls) if type(call.module) in classes]
        if not found:
            raise _nothing_found(calls)
        lists = {_list_of(calls[index]) for index in found} - {""}
        beside = {index for index, call in enumerate(calls) if call.sum and _list_of(call) in lists}
        found = sorted(beside.union(found))
    else:
        listed = list(patterns)
        found = [index for index, call in enumerate(calls) if call.path and _matches(call, listed)]
        for pattern in listed:
            if not any(_matches(call, [pattern]) for call in calls if call.path):
                raise InputError(
                    f"no module that is called is {pattern!r}; expected a pattern of names or a "
                    f"class{_examples(calls)}",
                    parameter="blocks",
                )
    chosen = set(found)
    return [calls[index] for index in found if not chosen.intersection(calls[index].inside)]


def find_activation(blocks: Iterable[ModuleCall], *, gates: bool = True) -> Activation | None:
    """Return the activation that the blocks call most often; of equals the last, which is not in attention.

    Gates count only if nothing else is called, or not at all.
    """
    every = [activation for block in blocks for activation in block.activations]
    called = [activation for activation in every if activation.operator not in _GATES]
    called = called or (every if gates else [])
    counts = Counter(activation.operator for activation in called)
    return max(reversed(called), key=lambda activation: counts[activation.operator], default=None)


def _residual_classes(calls: Sequence[ModuleCall]) -> set[type[nn.Module]]:
    counts = Counter(type(call.module) for call in calls)
    residual = {
        type(call.module)
        for call in calls
        if call.sum
        and counts[type(call.module)] > 1
        and type(call.module).forward is not nn.Sequential.forward  # which adds nothing itself
    }
    own = {type(call.module) for call in calls if call.sum is Sum.OWN}
    within: Counter[tuple[int, type[nn.Module]]] = Counter(
        (outer, type(call.module)) for call in calls if type(call.module) in residual for outer in call.inside
    )
    chains = {type(calls[outer].module) for (outer, _), count in within.items() if count > 1}
    adding = [call for call in calls if type(call.module) in residual and call.branches]
    wraps = {outer for call in adding for outer in call.inside if calls[outer].branches == call.branches}
    wrappers = residual - {type(call.module) for i, call in enumerate(calls) if call.sum and i not in wraps}
    return residual - ((chains | wrappers) - own)


def _list_of(call: ModuleCall) -> str:
    """Return `layers` for `layers.3`; nothing for a path that does not end in a number."""
    parent, _, name = call.path.rpartition(".")
    return parent if name.isdigit() else ""


def _matches(call: ModuleCall, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(call.path, p) or type(call.module).__name__ == p for p in patterns)


def _nothing_found(calls: Sequence[ModuleCall]) -> InputError:
    network = next(call.module for call in calls if not call.path)
    if callable(getattr(network, "representations", None)):
        return InputError(
            f"{type(network).__name__} has no modules to measure, but a path of its own: see fathometer.leaky"
        )
    adding = next((call for call in calls if call.sum is Sum.OWN), None)
    reason = (
        "no module that is called repeatedly adds its input to its output"
        if adding is None
        else f"only {adding.path or 'the network itself'} adds its input to its output, once"
    )
    return InputError(
        f"no residual blocks found: {reason}. Give patterns of names or classes{_examples(calls)}",
        parameter="blocks",
    )


def _examples(calls: Sequence[ModuleCall]) -> str:
    """Name parts of the network that have parts, and classes that are called often."""
    top = dict.fromkeys(call.path.partition(".")[0] for call in calls if "." in call.path)
    counts = Counter(type(call.module).__name__ for call in calls[1:])
    often = [name for name, count in counts.most_common(2) if count > 1]
    names = ", ".join([*(f"{name}.*" for name in list(top)[:3]), *often])
    return f", such as {names}" if names else "; it has no parts that repeat"
