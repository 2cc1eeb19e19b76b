"""The tasks of a survey on Ray: by model and by range of batches, put together as if measured in one piece.

Ray queues, places and repeats the tasks. This process claims soundings, hands their ranges to Ray, and keeps
what comes back; only it writes to the results folder.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fathometer.errors import InputError, MissingExtraError, TooFewSamplesError
from fathometer.sounding import Sounding
from fathometer.sounding_file import from_json, to_json
from fathometer.survey.ranges import Range, doubtful, merged, ranges
from fathometer.survey.run import Event, Ledger
from fathometer.survey.settings import RunOptions
from fathometer.survey.store import Failure
from fathometer.survey.tasks import Task, measure_task, subject_of

_WAIT = 0.5  # seconds
_PATIENCE = 10.0  # seconds
_AHEAD = 2  # soundings handed to Ray for each CPU, so that no worker waits and not all are claimed at once
_COUNT = Range(-1, None)  # stands for the question how many batches there are


class Answer(NamedTuple):
    """What a worker sends back: plain values, since an error of a library may not survive the way.

    Attributes:
        text: a sounding, or none where the data ended before its first batch.
        batches: how many there are, if that was asked.
        failure: why there is neither.
        warnings: that were given.
    """

    text: str | None = None
    batches: int = 0
    failure: Failure | None = None
    warnings: tuple[str, ...] = ()


@dataclass
class _Job:
    """A sounding under way: its claim, the ranges that are finished, and those that are not."""

    task: Task
    claim: ExitStack
    parts: dict[Range, Sounding | None] = field(default_factory=dict)
    wanted: list[Range] = field(default_factory=list)
    is_over: bool = False


def run_on_ray(tasks: Sequence[Task], ledger: Ledger, address: str | None = None) -> None:
    """Take all soundings on a Ray cluster: the one at `address`, the one in use, or a new local one."""
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    try:
        _check_resources(ray, tasks, is_local=address is None)
        _Rounds(ray, ledger).over(tasks)
    finally:
        if ours:
            ray.shutdown()


class _Rounds:
    """Hands out soundings and takes in ranges until nothing is left."""

    def __init__(self, ray: Any, ledger: Ledger) -> None:
        self._ray, self._ledger = ray, ledger
        self._window = max(4, int(_AHEAD * ray.cluster_resources().get("CPU", 1)))
        self._pending: dict[Any, tuple[_Job, Range]] = {}
        self._jobs: list[_Job] = []

    def over(self, tasks: Sequence[Task]) -> None:
        queue, busy = deque(tasks), deque[Task]()
        try:
            while queue or busy or self._pending:
                while queue and len(self._jobs) < self._window:
                    task = queue.popleft()
                    if not self._begin(task):
                        busy.append(task)
                if self._pending:
                    ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=_WAIT)
                    for reference in ready:
                        self._take(reference)
                elif not queue and busy:  # other surveys are at work on all that is left
                    time.sleep(_WAIT)
                if not queue:
                    queue, busy = busy, queue
        finally:
            for reference in self._pending:
                self._ray.cancel(reference, force=True)
            for job in self._jobs:
                job.claim.close()

    def _begin(self, task: Task) -> bool:
        """Hand out a sounding; false if another survey is at work on it."""
        with ExitStack() as stack:
            if not stack.enter_context(self._ledger.store.claimed(task)):
                self._ledger.tell(Event(task, "elsewhere"))
                return False
            if self._ledger.settled(task):
                return True
            self._ledger.tell(Event(task, "begun"))
            job = _Job(task, stack.pop_all())
        self._jobs.append(job)
        size, batches = task.run.range, task.settings.batches
        if size is None or (batches is None and task.settings.reduction == "tokens"):
            self._hand_out(job, [Range(0, batches)])
        elif batches is not None:
            self._hand_out(job, ranges(batches, size, is_open=False))
        else:
            self._submit(job, _COUNT)
        return True

    def _hand_out(self, job: _Job, wanted: list[Range]) -> None:
        job.wanted = wanted
        for part in wanted:
            if part in job.parts:
                continue
            kept = self._ledger.store.part(job.task, part)
            if kept is None:
                self._submit(job, part)
            else:
                job.parts[part] = kept
        self._finish_if_whole(job)

    def _submit(self, job: _Job, part: Range) -> None:
        function = self._ray.remote(_work).options(
            **_resources(job.task.run), max_retries=job.task.run.retries, name=job.task.title
        )
        self._pending[function.remote(job.task, part, os.getcwd())] = (job, part)

    def _take(self, reference: Any) -> None:
        """What came back of a range."""
        job, part = self._pending.pop(reference)
        try:
            answer: Answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:  # a worker that died too often, among others
            if not job.is_over:
                self._fail(job, Failure.of(error, job.task.title))
            return
        for message in answer.warnings:
            warnings.warn(message, stacklevel=2)
        if job.is_over:
            return
        if answer.failure is not None:
            self._fail(job, answer.failure)
        elif part == _COUNT:
            self._hand_out(job, ranges(answer.batches, job.task.run.range or 1, is_open=True))
        else:
            if answer.text is not None:
                self._ledger.store.keep_part(job.task, part, answer.text)
            job.parts[part] = None if answer.text is None else from_json(answer.text)
            self._ledger.tell(Event(job.task, "under way", share=min(len(job.parts) / len(job.wanted), 1.0)))
            self._finish_if_whole(job)

    def _finish_if_whole(self, job: _Job) -> None:
        if not all(part in job.parts for part in job.wanted):
            return
        again = doubtful(job.wanted, [job.parts[part] for part in job.wanted])
        if again != job.wanted:
            self._hand_out(job, again)
            return
        parts = [found for part in job.wanted if (found := job.parts[part]) is not None]
        try:
            sounding = merged(parts, batches=job.task.settings.batches)
        except InputError as error:
            self._fail(job, Failure.of(error, job.task.title))
            return
        self._ledger.measured(job.task, sounding)
        self._close(job)

    def _fail(self, job: _Job, failure: Failure) -> None:
        self._ledger.failed(job.task, failure)
        for reference, (other, _) in self._pending.items():
            if other is job:
                self._ray.cancel(reference)
        self._close(job)

    def _close(self, job: _Job) -> None:
        job.is_over = True
        job.claim.close()
        self._jobs.remove(job)


def _work(task: Task, part: Range, folder: str) -> Answer:
    """On a worker: measure a range, or count the batches."""
    if os.path.isdir(folder):
        os.chdir(folder)  # where paths and code of the user's own begin
    task = replace(task, run=replace(task.run, threads=task.run.threads or 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            answer = _count(task) if part == _COUNT else _measure(task, part)
        except Exception as error:  # whatever a network, its data or its library does
            answer = Answer(failure=Failure.of(error, task.title))
    told = dict.fromkeys(str(entry.message) for entry in caught if entry.category is UserWarning)
    return answer._replace(warnings=tuple(told))


def _measure(task: Task, part: Range) -> Answer:
    try:
        sounding = measure_task(
            task, first_batch=part.first, batches=part.batches, assume_readable=not part.reads_all
        )
    except TooFewSamplesError:
        if part.first == 0:
            raise
        return Answer()  # images that could not be read made the data shorter
    return Answer(to_json(sounding))


def _count(task: Task) -> Answer:
    samples, count = task.settings.samples, len(subject_of(task).source)
    rest = task.settings.leftover == "keep" and count % samples > 1
    return Answer(batches=max(1, count // samples + rest))


def _resources(run: RunOptions) -> dict[str, float]:
    memory = {} if run.memory is None else {"memory": run.memory * 1e9}
    return {"num_cpus": run.threads or 1, "num_gpus": run.gpus, **memory}


def _check_resources(ray: Any, tasks: Sequence[Task], *, is_local: bool) -> None:
    """Ray waits for ever for what no node has; a cluster may grow, this machine does not."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for run in dict.fromkeys(task.run for task in tasks):
        needs = _resources(run)
        wanted = {"CPU": needs["num_cpus"], "GPU": needs["num_gpus"], "memory": needs.get("memory", 0)}
        if any(all(node.get(name, 0) >= least for name, least in wanted.items()) for node in nodes):
            continue
        asked = ", ".join(f"{least:g} {name}" for name, least in wanted.items() if least)
        message = (
            f"ray: no node has {asked}, which the plan asks for each task (threads, gpus, memory in [run])"
        )
        if is_local:
            raise InputError(message)
        warnings.warn(f"{message}; waiting for one", stacklevel=3)


def _connect(ray: Any, address: str | None) -> None:
    _check_answers(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            ray.init(address="local", include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"--address {address}: no Ray cluster answers there ({reason})") from error


def _check_answers(address: str | None) -> None:
    """Ray itself tries for minutes before it gives up."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        return  # a name such as auto
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"--address {address}: no Ray cluster answers there ({reason})") from error


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "a survey on Ray") from error
    return ray
