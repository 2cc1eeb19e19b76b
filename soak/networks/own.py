"""The networks of `tests/zoo`, whose sites were counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch

from fathometer.capture import watch
from fathometer.errors import InputError
from soak.networks.trial import Trial, try_network
from soak.program import Effort, Outcome, Program, Row


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


def try_awkward(entry: Any, mode: Mode) -> Trial:
    """A network of the zoo, made anew for each run."""
    return try_network(
        lambda: entry.make(training=mode.training),
        mode.context,
        gradients=mode.gradients and entry.trains,
    )


def _run(effort: Effort) -> Outcome:
    from tests import zoo

    rows: list[Row] = []
    failures: list[str] = []
    for group, entries in zoo.GROUPS.items():
        chosen = list(entries.items())[:: 1 if effort == "full" else 5]
        sites = counted = alike = left = 0
        for name, entry in chosen:
            if entry.refused:
                failures += _unless_refused(name, entry)
                alike += 1
                continue
            for kind, mode in MODES.items():
                trial = try_awkward(entry, mode)
                found = len(trial.counted) - entry.hidden
                faults = list(trial.faults)
                faults += [f"sites {trial.sites} for {entry.sites}"] if trial.sites != entry.sites else []
                faults += [f"{found} calls counted"] if found != len(entry.sites) else []
                failures += [f"{name}, {kind}: {fault}" for fault in faults]
                sites, counted = sites + len(trial.sites), counted + found
                left += bool(trial.left)
                alike += not trial.changed
        runs = sum(1 if entry.refused else len(MODES) for _, entry in chosen)
        rows.append(
            {
                "networks": group,
                "number": len(chosen),
                "runs": runs,
                "sites": sites,
                "counted": counted,
                "bit for bit": alike,
                "left behind": left,
            }
        )
    return Outcome(rows, failures)


def _unless_refused(name: str, entry: Any) -> list[str]:
    try:
        with watch(entry.make().network):
            return [f"{name}: was not refused"]
    except InputError as error:
        return [] if entry.refused in str(error) else [f"{name}: refused by the words {error}"]


OWN = Program(
    "networks-own",
    "Awkward networks",
    "Networks written to be awkward (`tests/zoo`) run plainly and watched, in four modes; once more with an "
    "exception in the middle. A failure: an output, gradient, buffer or random number that differs in one "
    "bit; sites that are not those counted by hand, or not as many as counted below torch's dispatcher; a "
    "hook, function, attribute or mode that is left behind.",
    _run,
)
