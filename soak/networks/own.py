"""The networks of `tests/zoo`, whose sites were counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch

from fathometer.capture import Pair, watch
from fathometer.errors import InputError
from soak.networks.count import RULES
from soak.networks.trial import Trial, try_network
from soak.program import Effort, Outcome, Program, Row
from tests import zoo
from tests.zoo import Awkward


class Mode(NamedTuple):
    """How a network is run."""

    context: Callable[[], AbstractContextManager[Any]]
    training: bool = False
    gradients: bool = False


MODES = {
    "no_grad": Mode(torch.no_grad),
    "inference": Mode(torch.inference_mode),
    "gradients": Mode(torch.enable_grad, gradients=True),
    "training": Mode(torch.enable_grad, training=True, gradients=True),
}


def try_awkward(entry: Awkward, mode: Mode) -> Trial:
    """A network of the zoo, made anew for each run."""
    return try_network(
        lambda: entry.make(training=mode.training),
        mode.context,
        gradients=mode.gradients and entry.trains,
    )


def unlike_plain(entry: Awkward, mode: Mode) -> list[str]:
    """Where the pairs are not those of the network that computes the same in a plain way."""
    if entry.plain is None:
        return []
    found = []
    for made in (entry.make(training=mode.training), entry.make_plain(training=mode.training)):
        with mode.context(), watch(made.network) as seen:
            made.run(made.network, *made.given)
        found.append({site.name: pair for site, pair in seen.pairs.items()})
    ours, theirs = found
    if list(ours) != list(theirs):
        return [f"sites {list(ours)}, in a plain network {list(theirs)}"]
    return [
        f"{name}: the pair is not that of a plain network"
        for name in ours
        if not _close(ours[name], theirs[name])
    ]


def _close(one: Pair, other: Pair) -> bool:
    """But for rounding: a product of one row and one of many rows are added up in another order."""
    return all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-6)
        for a, b in ((one.x, other.x), (one.y, other.y))
    )


def faults_of(entry: Awkward, mode: Mode) -> tuple[Trial, list[str]]:
    """All that is wrong with one network in one mode."""
    trial = try_awkward(entry, mode)
    faults = trial.faults + unlike_plain(entry, mode)
    faults += [f"sites {trial.sites} for {entry.sites}"] if trial.sites != entry.sites else []
    if len(trial.counted) != len(entry.sites) + entry.hidden:
        faults.append(f"{len(trial.counted)} calls counted")
    return trial, faults


def _run(effort: Effort) -> Outcome:
    rows: list[Row] = []
    failures: list[str] = []
    for group, entries in zoo.GROUPS.items():
        chosen = list(entries.items())[:: 1 if effort == "full" else 5]
        row = dict.fromkeys(_COLUMNS, 0)
        row["number"] = len(chosen)
        for name, entry in chosen:
            if entry.refused:
                words = unless_refused(name, entry)
                failures += words
                row["refused"] += not words
                continue
            for kind, mode in MODES.items():
                trial, faults = faults_of(entry, mode)
                failures += [f"{name}, {kind}: {fault}" for fault in faults]
                row["runs"] += 1
                row["sites"] += len(trial.sites)
                row["counted"] += len(trial.counted)
                row["out of sight"] += entry.hidden
                row["bit for bit"] += not trial.changed
                row["interrupted"] += trial.interrupted
                row["left behind"] += bool(trial.left)
        rows.append({"networks": group, **row})
    return Outcome(rows, failures, [*NOTES, *RULES])


def unless_refused(name: str, entry: Awkward) -> list[str]:
    """What is wrong if a network is watched that must be refused, or is refused by other words."""
    made = entry.make()
    try:
        with watch(made.network):
            made.run(made.network, *made.given)
        return [f"{name}: was not refused"]
    except InputError as error:
        return [] if entry.refused in str(error) else [f"{name}: refused by the words {error}"]


_COLUMNS = "number, refused, runs, sites, counted, out of sight, bit for bit, interrupted, left behind".split(
    ", "
)

NOTES = (
    "Networks that are refused do not run. All others run in four modes: without gradients, in inference "
    "mode, with gradients, in training.",
    "*Sites* is what fathometer sees, *counted* what reaches a kernel. Of these, *out of sight* are, by what "
    "the zoo says of a network, in a piece that torch.jit has compiled, or passed over for want of an axis "
    "of samples; sites must be the calls counted less those out of sight.",
    "*Interrupted* are the runs in which the exception in the middle did come.",
)

OWN = Program(
    "networks-own",
    "Awkward networks",
    "Networks written to be awkward (`tests/zoo`) run plainly and watched, in four modes; once more with an "
    "exception in the middle. A failure: an output, gradient, buffer or random number that differs in one "
    "bit; sites that are not those counted by hand, or not as many as counted below torch's dispatcher, less "
    "those out of sight; an exception that did not come; a hook, function, attribute or mode that is left "
    "behind; a network that is to be refused and is not.",
    _run,
)
