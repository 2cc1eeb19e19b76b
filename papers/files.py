"""Files that are complete or absent, locks, tensors on disk, and work in threads."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from fathometer import InputError, MissingExtraError

T = TypeVar("T")
Result = TypeVar("Result")


class TensorFile(NamedTuple):
    """Tensors and plain values of one safetensors file."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; at the end it replaces `path`, or is removed after an error."""
    part = path.with_name(f".{path.stem}.{uuid.uuid4().hex[:12]}.part{path.suffix}")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Yield whether this process holds the lock; another may. The file is removed at the end."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):  # Windows does not remove open files
            path.unlink()
        lock.release()


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and plain values to a safetensors file."""
    save, _ = _safetensors()
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with complete_file(path) as part:
        part.write_bytes(save(whole, metadata={"facts": json.dumps(facts)}))


def read_tensors(path: Path) -> TensorFile:
    """Read what `write_tensors` wrote."""
    _, safe_open = _safetensors()
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["facts"])
            return TensorFile({name: file.get_tensor(name) for name in file.keys()}, facts)  # noqa: SIM118
    except Exception as error:  # safetensors raises its own kinds
        raise InputError(f"{path}: cannot be read ({error}); remove it to train the network again") from error


def in_threads(work: Callable[[T], Result], items: Iterable[T]) -> list[Result]:
    """Apply `work` to each item, in order, each in a thread of its own."""
    with one_torch_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread: small products are not worth sharing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _safetensors() -> tuple[Any, Any]:
    try:
        from safetensors import safe_open
        from safetensors.torch import save
    except ImportError as error:
        raise MissingExtraError("safetensors", "papers", "keeping trained networks") from error
    return save, safe_open
