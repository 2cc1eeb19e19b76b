"""The tasks of a survey on Ray: by model and by range of batches, put together as if measured in one piece.

Ray queues and places the tasks. This process claims soundings, hands their ranges to Ray, keeps what comes
back, and repeats a range whose worker died: Ray itself would repeat one that is killed for its memory without
end. Only this process writes to the results folder.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fathometer.errors import InputError, TooFewSamplesError
from fathometer.results.sounding import Sounding
from fathometer.results.sounding_file import from_json, to_json
from fathometer.survey.ranges import Range, RangesDifferError, differing, doubtful, merged, ranges
from fathometer.survey.ray_cluster import cluster, resources
from fathometer.survey.run import Event, Ledger
from fathometer.survey.store import Failure
from fathometer.survey.tasks import Task, measure_task, subject_of

_WAIT = 0.5  # seconds
_LOOK = 1.0  # seconds between looks at the size of the cluster
_AHEAD = 2  # tasks handed to Ray for each CPU, so that no worker waits and not all is claimed at once
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


@dataclass(eq=False)
class _Job:
    """A sounding under way: its claim, what a range of it needs, those that are finished and those wanted."""

    task: Task
    claim: ExitStack
    needs: dict[str, float]
    parts: dict[Range, Sounding | None] = field(default_factory=dict)
    kept: set[Range] = field(default_factory=set)  # by an earlier survey
    wanted: list[Range] = field(default_factory=list)
    is_over: bool = False


class _Piece(NamedTuple):
    """A range for Ray, and how often its worker died."""

    job: _Job
    part: Range
    deaths: int = 0


def run_on_ray(tasks: Sequence[Task], ledger: Ledger, address: str | None = None) -> None:
    """Take all soundings on a Ray cluster: at `address`, in use, at RAY_ADDRESS, or a new local one."""
    with cluster(address, tasks) as ray:
        _Rounds(ray, ledger).over(tasks)


class _Rounds:
    """Hands out soundings and takes in ranges until nothing is left."""

    def __init__(self, ray: Any, ledger: Ledger) -> None:
        self._ray, self._ledger = ray, ledger
        self._function = ray.remote(_work)
        errors = ray.exceptions
        self._deaths = (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.LocalRayletDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        )
        self._looked, self._window = -_LOOK, 0
        self._todo: deque[_Piece] = deque()
        self._held: list[_Piece] = []  # until there may be more memory
        self._pending: dict[Any, _Piece] = {}
        self._jobs: list[_Job] = []

    def over(self, tasks: Sequence[Task]) -> None:
        queue, busy = deque(tasks), deque[Task]()
        try:
            while queue or busy or self._jobs:
                self._look()
                while queue and len(self._jobs) < self._window and not self._todo:
                    task = queue.popleft()
                    if not self._begin(task):
                        busy.append(task)
                    self._submit()
                self._submit()
                if self._pending:
                    self._take_ready()
                elif self._held or (not queue and busy):  # memory is short, or other surveys are at work
                    time.sleep(_WAIT)
                if not self._pending:
                    self._release()
                if not queue:
                    queue, busy = busy, queue
        finally:
            for reference in self._pending:
                self._ray.cancel(reference, force=True)
            for job in self._jobs:
                job.claim.close()

    def _look(self) -> None:
        """How much to hand out: a cluster may grow, from nothing, too."""
        if time.monotonic() - self._looked >= _LOOK:
            self._window = max(4, int(_AHEAD * self._ray.cluster_resources().get("CPU", 0)))
            self._looked = time.monotonic()

    def _begin(self, task: Task) -> bool:
        """Take up a sounding; false if another survey is at work on it."""
        with ExitStack() as stack:
            if not stack.enter_context(self._ledger.store.claimed(task)):
                self._ledger.tell(Event(task, "elsewhere"))
                return False
            if self._ledger.settled(task):
                return True
            self._ledger.begin(task)
            job = _Job(task, stack.pop_all(), resources(self._ray, task.run))
        self._jobs.append(job)
        size, batches = task.run.range, task.settings.batches
        if size is None or (batches is None and task.settings.reduction == "tokens"):
            self._hand_out(job, [Range(0, batches)])
        elif batches is not None:
            self._hand_out(job, ranges(batches, size, is_open=False))
        else:
            self._todo.append(_Piece(job, _COUNT))
        return True

    def _hand_out(self, job: _Job, wanted: list[Range]) -> None:
        job.wanted = wanted
        for part in wanted:
            if part in job.parts:
                continue
            kept = self._ledger.store.part(job.task, part)
            if kept is None:
                self._todo.append(_Piece(job, part))
            else:
                job.parts[part] = kept
                job.kept.add(part)
        self._finish_if_whole(job)

    def _submit(self) -> None:
        while self._todo and len(self._pending) < self._window:
            piece = self._todo.popleft()
            task, needs = piece.job.task, piece.job.needs
            if piece.part == _COUNT:
                needs = {**needs, "num_gpus": 0}
            function = self._function.options(**needs, max_retries=0, name=task.title)
            self._pending[function.remote(task, piece.part, os.getcwd())] = piece

    def _take_ready(self) -> None:
        ready, rest = self._ray.wait(list(self._pending), num_returns=1, timeout=_WAIT)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for reference in ready:
            self._take(reference)

    def _take(self, reference: Any) -> None:
        """What came back of a range."""
        piece = self._pending.pop(reference)
        job, part, _ = piece
        try:
            answer: Answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            if not job.is_over:
                self._died(piece, error)
            return
        for message in answer.warnings:
            warnings.warn(message, stacklevel=2)
        self._release()
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
            job.kept.discard(part)
            self._ledger.tell(Event(job.task, "under way", share=min(len(job.parts) / len(job.wanted), 1.0)))
            self._finish_if_whole(job)

    def _died(self, piece: _Piece, error: Exception) -> None:
        """Once more, if a worker or its node died; one that had no memory waits for others to finish."""
        if not isinstance(error, self._deaths) or piece.deaths >= piece.job.task.run.retries:
            self._fail(piece.job, Failure.of(error, piece.job.task))
            return
        again = piece._replace(deaths=piece.deaths + 1)
        if isinstance(error, self._ray.exceptions.OutOfMemoryError):
            self._held.append(again)
        else:
            self._todo.append(again)

    def _release(self) -> None:
        self._todo.extend(self._held)
        self._held.clear()

    def _finish_if_whole(self, job: _Job) -> None:
        if not all(part in job.parts for part in job.wanted):
            return
        again = doubtful(job.wanted, [job.parts[part] for part in job.wanted])
        if again != job.wanted or self._drop_strangers(job):
            self._hand_out(job, again)
            return
        parts = [found for part in job.wanted if (found := job.parts[part]) is not None]
        try:
            sounding = merged(parts, batches=job.task.settings.batches)
        except InputError as error:
            if isinstance(error, RangesDifferError):
                self._ledger.store.forget_work(job.task)
            self._fail(job, Failure.of(error, job.task))
            return
        self._ledger.measured(job.task, sounding)
        self._close(job)

    def _drop_strangers(self, job: _Job) -> bool:
        """Set aside ranges of an earlier survey that are not of this network; whether there were any."""
        parts = [(part, found) for part in job.wanted if (found := job.parts[part]) is not None]
        parts.sort(key=lambda entry: entry[0] in job.kept)  # what was measured now is the measure
        strangers = [
            (part, others)
            for part, found in parts
            if part in job.kept and (others := differing(parts[0][1], found))
        ]
        for part, others in strangers:
            self._ledger.store.drop_part(job.task, part, f"it has other {', '.join(others)}")
            del job.parts[part]
            job.kept.discard(part)
        return bool(strangers)

    def _fail(self, job: _Job, failure: Failure) -> None:
        self._ledger.failed(job.task, failure)
        for reference, piece in self._pending.items():
            if piece.job is job:
                self._ray.cancel(reference)
        self._todo = deque(piece for piece in self._todo if piece.job is not job)
        self._held = [piece for piece in self._held if piece.job is not job]
        self._close(job)

    def _close(self, job: _Job) -> None:
        job.is_over = True
        job.claim.close()
        self._jobs.remove(job)


def _work(task: Task, part: Range, folder: str) -> Answer:
    """On a worker: measure a range, or count the batches."""
    if os.path.isdir(folder):
        os.chdir(folder)  # where paths and code of the user's own begin
    run = replace(task.run, threads=task.run.threads or 1)
    if part == _COUNT:
        run = replace(run, device="cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            there = replace(task, run=run)
            answer = _count(there) if part == _COUNT else _measure(there, part)
        except Exception as error:  # whatever a network, its data or its library does
            answer = Answer(failure=Failure.of(error, task))
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
