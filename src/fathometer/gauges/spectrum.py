"""Gram matrices and their eigenvalues. Samples are `[..., n, d]`, float64."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from fathometer.transport.decompositions import eigh

_SERIAL = 1024  # up to this size LAPACK's reduction to tridiagonal form is slower in several threads
_LOCK = threading.Lock()


def smaller_gram(a: Tensor) -> Tensor:
    """AAᵀ or AᵀA, whichever is smaller: they share all eigenvalues but zeros."""
    return a @ a.mT if a.shape[-2] <= a.shape[-1] else a.mT @ a


def eigenvalues(gram: Tensor) -> Tensor:
    """Eigenvalues of a Gram matrix, rising; those that are rounding are 0."""
    try:
        with _one_thread(gram):
            values = torch.linalg.eigvalsh(gram)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        values = eigh(gram.reshape(-1, *gram.shape[-2:]))[0].reshape(gram.shape[:-1])
    floor = values[..., -1:] * gram.shape[-1] * torch.finfo(gram.dtype).eps
    return torch.where(values > floor, values, 0.0)


def squares(a: Tensor) -> Tensor:
    """‖A‖² of each item."""
    return a.square().sum((-2, -1))


@contextmanager
def _one_thread(matrix: Tensor) -> Iterator[None]:
    """A single thread for what runs within, where that is faster: at size 512, two take thrice the time."""
    if matrix.device.type != "cpu" or matrix.shape[-1] > _SERIAL:
        yield
        return
    with _LOCK:  # the setting is the whole process's
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
