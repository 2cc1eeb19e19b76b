"""Checks of dtypes, devices and derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from unittest import SkipTest

import torch
from torch import Tensor

from fathometer.testing.promises import GaugeError
from fathometer.testing.subject import Subject


def float32(subject: Subject) -> None:
    """A pair in float32 reads as the same numbers in float64."""
    _as_in_double(subject, torch.float32)


def float16(subject: Subject) -> None:
    """A pair in float16 reads as the same numbers in float64."""
    _as_in_double(subject, torch.float16)


def bfloat16(subject: Subject) -> None:
    """A pair in bfloat16 reads as the same numbers in float64."""
    _as_in_double(subject, torch.bfloat16)


def cpu_and_cuda(subject: Subject) -> None:
    """A GPU reads what a CPU reads."""
    if not torch.cuda.is_available():
        raise SkipTest("there is no CUDA device")
    for n, d in ((40, 6), (30, 1), (12, 12), (10, 24), (8, 40)):
        pair = subject.pair(n, d)
        here, there = ([side.to(device) for side in pair] for device in ("cpu", "cuda"))
        found, expected = (subject.read_unless_refused(*sides) for sides in (there, here))
        subject.same(found, expected, f"a pair [{n}, {d}] on a GPU")


def derivatives(subject: Subject) -> None:
    """Gradients in X and Y are those of finite differences, in float64."""
    for n, d in ((12, 3), (9, 1), (4, 9)):
        x, y = subject.pair(n, d)
        y = y + 0.2 * subject.pair(n, d, seed=1)[0]
        if subject.read_unless_refused(x, y) is None:
            continue

        def values(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            found = subject.gauge(a, b)
            numbers = list(found.values()) if isinstance(found, Mapping) else [found]
            if not all(isinstance(number, Tensor) and number.requires_grad for number in numbers):
                raise GaugeError("expected tensors with gradients, got numbers without")
            return tuple(torch.as_tensor(number) for number in numbers)

        try:
            torch.autograd.gradcheck(values, (x.requires_grad_(), y.requires_grad_()))
        except torch.autograd.gradcheck.GradcheckError as error:  # type: ignore[attr-defined]
            raise GaugeError(f"a pair [{n}, {d}]: {error}") from error


def _as_in_double(subject: Subject, dtype: torch.dtype) -> None:
    for n, d in ((40, 6), (10, 24)):
        x = subject.pair(n, d)[0].to(dtype)
        y = x.relu()
        found, expected = (subject.read_unless_refused(*pair) for pair in ((x, y), (x.double(), y.double())))
        subject.same(found, expected, f"a pair [{n}, {d}] in {dtype}")
