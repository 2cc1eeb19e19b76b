"""Take every sounding of a plan once: keep what is in the store, record failures, continue with the others.

A survey makes passes over its tasks, in this process or on Ray, until no task is left that another survey is
measuring. The backends differ only in where `take_soundings` runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from fathometer.errors import InputError, check_choice, check_device
from fathometer.measuring.journal import JournalError
from fathometer.results.files import StoreError
from fathometer.results.sounding import Sounding
from fathometer.survey.identity import known_count
from fathometer.survey.plan import Plan, read_plan
from fathometer.survey.store import Failure, Store
from fathometer.survey.tasks import Networks, Task, by_network, measure_task, tasks_of

State: TypeAlias = Literal[
    "started", "in progress", "measured", "kept", "failed", "failed before", "elsewhere"
]
Backend: TypeAlias = Literal["local", "ray"]

_WAIT = 0.5  # seconds between passes while another survey measures what is left


class Event(NamedTuple):
    """What happens to a sounding.

    Attributes:
        task: which one.
        state: `kept` was measured before, `elsewhere` is being measured by another survey.
        seconds: how long it took, if it was measured.
        fraction: the fraction that is done, if it is in progress and that is known.
        failure: the record of a failure.
    """

    task: Task
    state: State
    seconds: float = 0.0
    fraction: float | None = None
    failure: Failure | None = None

    @property
    def message(self) -> str:
        """Why it failed; empty if it did not."""
        return "" if self.failure is None else self.failure.message


OnEvent: TypeAlias = "Callable[[Event], None]"


@dataclass
class Outcome:
    """The result of a survey: tasks that were measured now, kept from before, and failed."""

    measured: list[Task] = field(default_factory=list)
    kept: list[Task] = field(default_factory=list)
    failed: list[tuple[Task, Failure]] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Count what an event reports."""
        if event.state == "measured":
            self.measured.append(event.task)
        elif event.state == "kept":
            self.kept.append(event.task)
        elif event.failure is not None:
            self.failed.append((event.task, event.failure))


def run_survey(
    plan: Plan | str | Path | Sequence[Task],
    out: str | Path,
    *,
    backend: Backend = "local",
    address: str | None = None,
    runtime_env: dict[str, Any] | None = None,
    retry_failed: bool = False,
    on_event: OnEvent | None = None,
) -> Outcome:
    """Take every sounding of a plan that is not in the results folder yet.

    Run it again after an interruption to resume. Several surveys may share one folder.

    Args:
        plan: a plan, its file, or tasks.
        out: the results folder: a path, or a URL that fsspec opens.
        backend: `local`, in this process, or `ray`, on a cluster.
        address: address of a Ray cluster. Default: the cluster in use, RAY_ADDRESS, or a new local one.
        runtime_env: Ray's runtime environment of the workers. Default: modules of the current folder that the
            plan names are sent to them.
        retry_failed: try again what failed before.
        on_event: function that is called with every event.

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
    check_choice("backend", backend, Backend)
    plan = read_plan(plan) if isinstance(plan, str | Path) else plan
    tasks = tasks_of(plan) if isinstance(plan, Plan) else list(plan)
    store, outcome = Store(out), Outcome()
    check_data(tasks)

    def note(event: Event) -> None:
        outcome.add(event)
        if on_event is not None:
            on_event(event)

    try:
        store.remove_leftovers(tasks)
        if backend == "ray":
            from fathometer.survey.ray_engine import on_ray

            with on_ray(tasks, store, address, runtime_env) as take:
                _until_done(tasks, lambda waiting: take(waiting, retry_failed, note))
        else:
            for device in dict.fromkeys(task.run.device for task in tasks):
                check_device(device)  # on Ray only a worker can tell
            _until_done(tasks, lambda waiting: take_soundings(waiting, store, retry_failed, note))
    except StoreError as error:
        safe = len(outcome.measured) + len(outcome.kept)
        raise StoreError(
            f"{error}; {safe} of {len(tasks)} soundings are safe; run the same survey again to resume"
        ) from error
    return outcome


def _until_done(tasks: Sequence[Task], take: Callable[[Sequence[Task]], list[Task]]) -> None:
    waiting = list(tasks)
    while waiting:
        busy = take(waiting)
        if len(busy) == len(waiting):
            time.sleep(_WAIT)
        waiting = busy


def take_soundings(tasks: Sequence[Task], store: Store, retry_failed: bool, on_event: OnEvent) -> list[Task]:
    """Take soundings one after the other, and return the tasks that another survey is measuring."""
    networks, busy, may_write = Networks(tasks), [], False
    for task in chain.from_iterable(by_network(tasks)):
        with store.claimed(task) as mine:
            if not mine:
                on_event(Event(task, "elsewhere"))
                busy.append(task)
                continue
            if is_done(task, store, retry_failed, on_event):
                continue
            if not may_write:
                store.check_writable()
                may_write = True
            on_event(Event(task, "started"))
            try:
                sounding = _measured(task, store, networks, on_event)
            except StoreError:  # the journal cannot be written: not the network's fault
                raise
            except Exception as error:  # whatever a network, its data or its library does
                failure = Failure.of(error, task)
                store.write_failure(task, failure)
                on_event(Event(task, "failed", failure=failure))
            else:
                store.write_sounding(task, sounding)
                on_event(Event(task, "measured", seconds=sounding.provenance.seconds))
    return busy


def is_done(task: Task, store: Store, retry_failed: bool, on_event: OnEvent) -> bool:
    """Say whether there is nothing to do; the caller holds the lock."""
    found = store.sounding(task)
    if found is not None:
        store.relabel(task, found)
        on_event(Event(task, "kept"))
        return True
    failure = None if retry_failed else store.failure(task)
    if failure is not None:
        on_event(Event(task, "failed before", failure=failure))
    return failure is not None


def _measured(task: Task, store: Store, networks: Networks, on_event: OnEvent) -> Sounding:
    def progress(done: int, total: int | None) -> None:
        on_event(Event(task, "in progress", fraction=min(done / total, 1.0) if total else None))

    journal = store.journal(task)
    try:
        return measure_task(task, networks, journal=journal, progress=progress)
    except JournalError as error:  # broken, or of other weights: begin again
        store.drop_journal(task, str(error))
        return measure_task(task, networks, journal=journal, progress=progress)


def check_data(tasks: Iterable[Task]) -> None:
    """Refuse data that are missing, or too few to fill a batch, as far as that is known before loading."""
    count_of = cache(known_count)
    for task in tasks:
        settings = task.settings
        if "missing" in task.key["data"]:
            raise InputError(f"[data] {task.data_name}: {task.data}: no such file or folder")
        if settings.reduction == "tokens":  # an input has several
            continue
        count, samples = count_of(task.data), settings.samples
        needed = 2 if settings.leftover == "keep" else samples
        if count is not None and count < needed:
            table = f"[settings.{task.settings_name}]" if task.settings_name else "[settings]"
            keep = f', or {table} leftover = "keep"' if 1 < count < samples else ""
            raise InputError(
                f"[data] {task.data_name}: expected at least {needed} samples to fill a batch "
                f"({table} samples = {samples}), got {count}; give more data, or fewer samples{keep}"
            )
