"""Which Ray cluster a survey runs on, and what its tasks may ask of it."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fathometer.errors import InputError, MissingExtraError, first_line
from fathometer.survey.settings import RunOptions
from fathometer.survey.tasks import Task

_PATIENCE = 10.0  # seconds


@contextmanager
def cluster(address: str | None, tasks: Sequence[Task]) -> Iterator[Any]:
    """Ray, connected: to the cluster at `address`, in use, at RAY_ADDRESS, or to a new local one."""
    ray = _ray()
    ours = not ray.is_initialized()
    is_local = False
    if ours:
        is_local = _connect(ray, address)
    elif address is not None:
        _check_same(ray, address)
    try:
        _check_resources(ray, tasks, is_local=is_local)
        yield ray
    finally:
        if ours:
            ray.shutdown()


def resources(ray: Any, run: RunOptions) -> dict[str, float]:
    """What a task asks of a node."""
    memory = {} if run.memory is None else {"memory": run.memory * 1e9}
    return {"num_cpus": (run.threads or 1) + run.workers, "num_gpus": _gpus(ray, run), **memory}


def _gpus(ray: Any, run: RunOptions) -> float:
    """As the plan says; else one for a network that runs on a GPU if it sees one."""
    if run.gpus is not None:
        return run.gpus
    if run.device.startswith("cuda"):
        return 1.0
    return float(run.device == "auto" and ray.cluster_resources().get("GPU", 0) > 0)


def _check_resources(ray: Any, tasks: Sequence[Task], *, is_local: bool) -> None:
    """Ray waits for ever for what no node has; a cluster may grow, this machine does not."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for run in dict.fromkeys(task.run for task in tasks):
        needs = resources(ray, run)
        wanted = {"CPU": needs["num_cpus"], "GPU": needs["num_gpus"], "memory": needs.get("memory", 0)}
        if any(all(node.get(name, 0) >= least for name, least in wanted.items()) for node in nodes):
            continue
        asked = ", ".join(f"{least:g} {name}" for name, least in wanted.items() if least)
        message = (
            f"ray: no node has {asked}, which the plan asks for each task "
            "(threads and workers, gpus, memory in [run])"
        )
        if is_local:
            raise InputError(message)
        warnings.warn(f"{message}; waiting for one", stacklevel=4)


def _connect(ray: Any, address: str | None) -> bool:
    """Whether it is a local one that was started for this."""
    told = f"--address {address}"
    if address is None and (address := os.environ.get("RAY_ADDRESS")):
        told = f"RAY_ADDRESS={address}"
    is_local = address in (None, "local")
    _check_answers(address, told)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if is_local:
            ray.init(address="local", include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = first_line(error)
        if is_local:
            raise InputError(f"ray: a local cluster could not be started ({reason})") from error
        raise InputError(f"{told}: no Ray cluster answers there ({reason})") from error
    return is_local


def _check_same(ray: Any, address: str) -> None:
    """Refuse an address that is not that of the cluster in use."""
    used = str(ray.get_runtime_context().gcs_address)
    if address == "auto" or _place(ray, address) == _place(ray, used):
        return
    raise InputError(
        f"--address {address}: this process uses another Ray cluster already ({used}); "
        "leave the address out to use that one, or call ray.shutdown() first"
    )


def _place(ray: Any, address: str) -> tuple[str, str]:
    """Host, as a number, and port."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        host = socket.gethostbyname(host.strip("[]"))
    except OSError:
        return address, port
    is_here = host.startswith("127.") or host == ray.util.get_node_ip_address()
    return ("this machine" if is_here else host), port


def _check_answers(address: str | None, told: str) -> None:
    """Ray itself tries for minutes before it gives up."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        return  # a name such as auto
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{told}: no Ray cluster answers there ({reason})") from error


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "a survey on Ray") from error
    return ray
