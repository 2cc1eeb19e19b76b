"""A survey on Ray: one task for each network, which takes its soundings and writes them to the store.

A network is shared between several tasks if there is room for more tasks than there are networks. Ray queues
and places the tasks, and repeats one whose worker died. A repeated task finds in the store what is finished
already.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import torch

from fathometer.errors import InputError, first_line, import_extra
from fathometer.models.loading import SOURCES
from fathometer.results.files import StoreError
from fathometer.survey.run import Event, OnEvent, is_done, take_soundings
from fathometer.survey.settings import RunOptions
from fathometer.survey.store import Failure, Store
from fathometer.survey.tasks import Task, by_network

Take: TypeAlias = "Callable[[Sequence[Task], bool, OnEvent], list[Task]]"

_TIMEOUT = 10.0  # seconds to wait for an address; Ray itself tries for minutes


class Report(NamedTuple):
    """What a worker sends back; the soundings themselves are in the store.

    Attributes:
        events: what happened to each sounding.
        node: name of the machine.
        warnings: texts of the warnings.
        store_error: why the store failed, if it did.
    """

    events: list[Event]
    node: str
    warnings: tuple[str, ...] = ()
    store_error: str = ""


@contextmanager
def on_ray(
    tasks: Sequence[Task], store: Store, address: str | None, runtime_env: dict[str, Any] | None
) -> Iterator[Take]:
    """Connect to Ray, and yield a function that takes soundings there like `take_soundings` does here."""
    with _connected(address, tasks, runtime_env) as (ray, is_local):
        for run in dict.fromkeys(task.run for task in tasks):
            _check_resources(ray, run, is_local=is_local)
        store.check_writable()
        yield lambda waiting, retry, on_event: _RayPass(ray, store, retry, on_event).run(waiting)


class _RayPass:
    """Hands the soundings to Ray, network by network, and takes in the reports."""

    def __init__(self, ray: Any, store: Store, retry_failed: bool, on_event: OnEvent) -> None:
        self._ray, self._store, self._retry_failed, self._on_event = ray, store, retry_failed, on_event
        place = str(store.files.local.absolute()) if store.files.local else store.files.place
        self._arguments = place, retry_failed, os.getcwd()
        # Ray reads max_calls only here, at decoration: a worker that used a GPU ends with its task, because
        # CUDA keeps its memory and its device for as long as the process lives.
        self._on_cpu = ray.remote(_measure_network)
        self._on_gpu = ray.remote(max_calls=1)(_measure_network)
        self._pending: dict[Any, list[Task]] = {}
        self._busy: list[Task] = []

    def run(self, tasks: Sequence[Task]) -> list[Task]:
        """Take the soundings, and return the tasks that another survey is measuring."""
        networks = by_network(task for task in tasks if not self._is_done(task))
        try:
            for network in networks:
                parts = max(_places(self._ray, network[0].run) // len(networks), 1)
                size = -(-len(network) // parts)
                for start in range(0, len(network), size):
                    self._submit(network[start : start + size])
            while self._pending:
                for reference in self._ray.wait(list(self._pending), num_returns=1)[0]:
                    self._collect(reference)
        finally:
            for reference in self._pending:
                self._ray.cancel(reference, force=True)
        return self._busy

    def _is_done(self, task: Task) -> bool:
        with self._store.claimed(task) as mine:
            return mine and is_done(task, self._store, self._retry_failed, self._on_event)

    def _submit(self, tasks: list[Task]) -> None:
        run = tasks[0].run
        needs = _resources(self._ray, run)
        function = self._on_gpu if needs["GPU"] else self._on_cpu
        options = function.options(
            num_cpus=needs["CPU"],
            num_gpus=needs["GPU"],
            memory=needs["memory"] or None,
            max_retries=run.retries,
            name=tasks[0].title,
        )
        self._pending[options.remote(tasks, *self._arguments)] = tasks
        for task in tasks:
            self._on_event(Event(task, "started"))

    def _collect(self, reference: Any) -> None:
        tasks = self._pending.pop(reference)
        try:
            report: Report = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._retry_or_fail(tasks, error)
            return
        for message in report.warnings:
            warnings.warn(message, stacklevel=2)
        for event in report.events:
            if event.state == "elsewhere":
                self._busy.append(event.task)
            if event.state == "measured" and not self._store.is_finished(event.task):
                raise StoreError(_not_shared(self._store.files.place, report.node))
            self._on_event(event)
        if report.store_error:
            raise StoreError(report.store_error)

    def _retry_or_fail(self, tasks: list[Task], error: Exception) -> None:
        """Take the rest of what a dead worker had to do one by one: a single sounding may be to blame."""
        rest = []
        for task in tasks:
            found = self._store.sounding(task)
            if found is None:
                rest.append(task)
            else:
                self._on_event(Event(task, "measured", seconds=found.provenance.seconds))
        if len(tasks) > 1:
            for task in rest:
                self._submit([task])
            return
        for task in rest:
            failure = Failure.of(error, task)
            self._store.write_failure(task, failure)
            self._on_event(Event(task, "failed", failure=failure))


def _measure_network(tasks: list[Task], place: str, retry_failed: bool, folder: str) -> Report:
    """Run on a worker: load one network, and take soundings of it."""
    if os.path.isdir(folder):
        os.chdir(folder)  # where the user's code is, on this machine or on a shared file system
    store, node, error = Store(place), socket.gethostname(), ""
    events: list[Event] = []
    if store.files.local and not store.files.is_folder():
        return Report([], node, store_error=_not_shared(place, node))

    def note(event: Event) -> None:
        if event.state not in ("started", "in progress"):
            events.append(event)

    torch.set_num_threads(1)  # for tasks without threads of their own: the plan asks Ray for one CPU
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            take_soundings(tasks, store, retry_failed, note)
        except StoreError as found:
            error = str(found)
    messages = dict.fromkeys(str(entry.message) for entry in caught if entry.category is UserWarning)
    return Report(events, node, tuple(messages), error)


def _not_shared(place: str, node: str) -> str:
    return f"{place}: {node} does not see this folder; give a URL, or a folder that all machines share"


def _resources(ray: Any, run: RunOptions) -> dict[str, float]:
    """Return what a task asks Ray for, by Ray's names."""
    return {
        "CPU": (run.threads or 1) + run.workers,
        "GPU": _gpus(ray, run),
        "memory": (run.memory or 0) * 1e9,
    }


def _places(ray: Any, run: RunOptions) -> int:
    """Return how many tasks the cluster can run at the same time."""
    found = ray.cluster_resources()
    return int(min(found.get(name, 0) // need for name, need in _resources(ray, run).items() if need))


def _gpus(ray: Any, run: RunOptions) -> float:
    """Return what the plan says, or else one GPU for a network that runs on a GPU if it sees one."""
    if run.gpus is not None:
        return run.gpus
    if run.device == "auto":
        # A cluster may have no GPU now, and add nodes that have one when tasks ask for it. Ray has no public
        # function for that.
        find_limits = getattr(ray._private.state.state, "get_max_resources_from_cluster_config", dict)
        limits: dict[str, float] = find_limits() or {}  # what the autoscaler may add
        return float(max(ray.cluster_resources().get("GPU", 0), limits.get("GPU", 0)) > 0)
    return float(run.device.startswith("cuda"))


def _check_resources(ray: Any, run: RunOptions, *, is_local: bool) -> None:
    """Refuse what this machine does not have, and warn if no node of a cluster has it: Ray waits forever."""
    wanted = _resources(ray, run)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
        return
    asked = ", ".join(f"{amount:g} {name}" for name, amount in wanted.items() if amount)
    message = f"no node has {asked}, which threads, workers, gpus and memory in [run] ask for each task"
    if is_local:
        raise InputError(f"ray: {message}")
    warnings.warn(f"ray: {message}; waiting for one", stacklevel=4)


@contextmanager
def _connected(
    address: str | None, tasks: Sequence[Task], runtime_env: dict[str, Any] | None
) -> Iterator[tuple[Any, bool]]:
    """Yield Ray, connected, and whether the cluster is a local one that was started for this survey."""
    ray = _import_ray()
    if ray.is_initialized():
        used = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", used) or runtime_env is not None:
            raise InputError(
                f"this process uses the Ray cluster at {used} already; leave address and runtime_env out to "
                "use that one, or call ray.shutdown() first"
            )
        yield ray, False
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    is_local = address == "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if is_local:
        options["include_dashboard"] = False
    else:
        _check_answers(address)
        runtime_env = {"py_modules": _user_modules(tasks)} if runtime_env is None else runtime_env
    try:
        ray.init(address=address, runtime_env=runtime_env, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray cluster at {address} ({first_line(error)})", parameter="address") from error
    try:
        yield ray, is_local
    finally:
        ray.shutdown()


def _user_modules(tasks: Sequence[Task]) -> list[ModuleType]:
    """Return the modules of the current folder that tasks name, which other machines may not have."""
    named = {
        name.partition(":")[0].strip()
        for task in tasks
        for name in (task.member.model, *task.settings.gauges, *task.settings.activations)
        if ":" in name
    }
    packages = {name.partition(".")[0] for name in named - SOURCES.keys()}
    found = []
    for name in sorted(packages & sys.modules.keys()):
        file = Path(sys.modules[name].__file__ or "")
        if Path.cwd() in file.parents and "site-packages" not in file.parts:
            found.append(sys.modules[name])
    return found


def _check_answers(address: str) -> None:
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        return  # a name such as auto
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT).close()
    except OSError as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({error.strerror or error})", parameter="address"
        ) from error


def _import_ray() -> Any:
    # Ray repeats a task that was killed for its memory without end, unless this is set before it is imported.
    os.environ.setdefault("RAY_task_oom_retries", "3")
    return import_extra("ray", "_private.state", "exceptions", extra="ray", purpose="a survey on Ray")
