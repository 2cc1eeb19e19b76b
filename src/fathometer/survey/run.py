"""Every sounding of a plan, once: what is finished is kept, what fails is recorded, the rest goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from fathometer.errors import InputError, check_device
from fathometer.measuring.journal import JournalError
from fathometer.results.files import WriteError
from fathometer.results.sounding import Sounding
from fathometer.survey.counts import check_counts
from fathometer.survey.folders import FolderError
from fathometer.survey.plan import Plan, read_plan
from fathometer.survey.store import Failure, Store
from fathometer.survey.tasks import Task, measure_task, tasks_of

State: TypeAlias = Literal["begun", "under way", "measured", "kept", "failed", "failed before", "elsewhere"]
Engine: TypeAlias = Literal["here", "ray"]

_WAIT = 0.5  # seconds between looks at what other surveys are doing


class Event(NamedTuple):
    """What happens to a sounding.

    Attributes:
        task: which one.
        state: what became of it; `kept` was measured before, `elsewhere` is being measured by another survey.
        seconds: that it took, if it is measured.
        message: why it failed.
        share: how much of it is done, while it is under way and if that is known.
    """

    task: Task
    state: State
    seconds: float = 0.0
    message: str = ""
    share: float | None = None


Tell: TypeAlias = "Callable[[Event], None]"


@dataclass
class Outcome:
    """What a survey came to: the tasks that were measured now, kept from before, and failed."""

    measured: list[Task] = field(default_factory=list)
    kept: list[Task] = field(default_factory=list)
    failed: list[tuple[Task, Failure]] = field(default_factory=list)


class Ledger:
    """Keeps results as they come, and tells of them. Engines differ in where tasks run, not in this."""

    def __init__(self, store: Store, retry_failed: bool, tell: Tell) -> None:
        self.store, self.outcome, self.tell = store, Outcome(), tell
        self._retry_failed, self._may_write = retry_failed, False

    def settled(self, task: Task) -> bool:
        """Whether there is nothing to do; the caller holds the claim."""
        found = self.store.sounding(task)
        if found is not None:
            self.store.relabel(task, found)
            self.outcome.kept.append(task)
            self.tell(Event(task, "kept"))
            return True
        failure = None if self._retry_failed else self.store.failure(task)
        if failure is not None:
            self.outcome.failed.append((task, failure))
            self.tell(Event(task, "failed before", message=failure.message))
            return True
        return False

    def begin(self, task: Task) -> None:
        """Tell of it; before the first one, see that there will be a place for what comes of it."""
        if not self._may_write:
            self.store.check_writable()
            self._may_write = True
        self.tell(Event(task, "begun"))

    def measured(self, task: Task, sounding: Sounding) -> None:
        """Keep a sounding."""
        self.store.keep(task, sounding)
        self.outcome.measured.append(task)
        self.tell(Event(task, "measured", seconds=sounding.provenance.seconds))

    def failed(self, task: Task, failure: Failure) -> None:
        """Record a failure."""
        self.store.fail(task, failure)
        self.outcome.failed.append((task, failure))
        self.tell(Event(task, "failed", message=failure.message))


def run_survey(
    plan: Plan | str | Path | Sequence[Task],
    out: str | Path,
    *,
    on: Engine = "here",
    address: str | None = None,
    retry_failed: bool = False,
    tell: Tell | None = None,
) -> Outcome:
    """Take every sounding of a plan that is not in the results folder yet.

    A killed survey goes on where it stopped. Two surveys in one folder share the work.

    Args:
        plan: a plan, its file, or tasks.
        out: the results folder: a path, or a URL that fsspec knows.
        on: `here` in this process, one after the other, or on `ray`.
        address: of a Ray cluster; if left out, the one in use, that of RAY_ADDRESS, or a new local one.
        retry_failed: try again what failed before.
        tell: is told what happens.

    Example:
        >>> import tempfile
        >>> from fathometer.survey import parse_plan
        >>> plan = parse_plan('''
        ... models = ["torchvision:squeezenet1_1"]
        ... weights = "none"
        ... [data]
        ... noise = "random:8"
        ... [settings]
        ... samples = 8
        ... gauges = "affinity"
        ... ''')
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     outcome, again = run_survey(plan, folder), run_survey(plan, folder)
        >>> len(outcome.measured), len(again.measured), len(again.kept)
        (1, 0, 1)
    """
    if on not in ("here", "ray"):
        raise InputError(f"on: expected 'here' or 'ray', got {on!r}")
    plan = read_plan(plan) if isinstance(plan, str | Path) else plan
    ledger = Ledger(Store(out), retry_failed, tell or (lambda _: None))
    tasks = tasks_of(plan) if isinstance(plan, Plan) else plan
    _check_data(tasks)
    if on == "here":  # on Ray that is for the workers to know
        _check_devices(tasks)
    try:
        ledger.store.tidy(tasks)
        if on == "ray":
            from fathometer.survey.ray_engine import run_on_ray

            run_on_ray(tasks, ledger, address)
        else:
            _run_here(tasks, ledger)
    except FolderError as error:
        safe = len(ledger.outcome.measured) + len(ledger.outcome.kept)
        raise FolderError(
            f"{error}; {safe} of {len(tasks)} soundings are safe there, and the same command goes on"
        ) from error
    return ledger.outcome


def _check_data(tasks: Sequence[Task]) -> None:
    for task in tasks:
        if "missing" in task.key["data"]:
            raise InputError(f"[data] {task.data_name}: {task.data}: no such file or folder")
    check_counts(tasks)


def _check_devices(tasks: Sequence[Task]) -> None:
    """What cannot run here fails at once, and not for each network."""
    for device in dict.fromkeys(task.run.device for task in tasks):
        try:
            check_device(device)
        except InputError as error:
            asked = f'device = "{device}" in [run] or in a family'
            raise InputError(str(error).replace(f"--device {device}", asked)) from error


def _run_here(tasks: Sequence[Task], ledger: Ledger) -> None:
    """One after the other; those that another survey has claimed are looked at again in the end."""
    waiting = list(tasks)
    while waiting:
        busy = [task for task in waiting if not _settle(task, ledger)]
        if len(busy) == len(waiting):
            time.sleep(_WAIT)
        waiting = busy


def _settle(task: Task, ledger: Ledger) -> bool:
    with ledger.store.claimed(task) as mine:
        if not mine:
            ledger.tell(Event(task, "elsewhere"))
            return False
        if ledger.settled(task):
            return True
        ledger.begin(task)
        try:
            sounding = _measured(task, ledger)
        except WriteError as error:  # of the journal: not the fault of the network
            raise FolderError(str(error)) from error
        except Exception as error:  # whatever a network, its data or its library does
            ledger.failed(task, Failure.of(error, task))
        else:
            ledger.measured(task, sounding)
        return True


def _measured(task: Task, ledger: Ledger) -> Sounding:
    def progress(done: int, in_all: int | None) -> None:
        share = min(done / in_all, 1.0) if in_all else None
        ledger.tell(Event(task, "under way", share=share))

    journal = ledger.store.journal(task)
    try:
        return measure_task(task, journal=journal, progress=progress)
    except JournalError as error:  # of weights that were others then, or broken: from the beginning
        ledger.store.drop_journal(task, str(error))
        return measure_task(task, journal=journal, progress=progress)
