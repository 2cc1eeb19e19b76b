"""Gauges that are broken on purpose are caught, each by the check that is meant for it."""

from __future__ import annotations

import math
import threading
import unittest
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fathometer.errors import FathometerError, InputError
from fathometer.testing import Check, GaugeError, Promises, check_gauge, gauge_checks
from fathometer.testing.checks import CHECKS


def gap(x: Tensor, y: Tensor) -> Tensor:
    """A gauge without fault: the root of the mean square of Y − X."""
    if not (x.isfinite().all() and y.isfinite().all()):
        raise InputError("expected finite values")
    return torch.linalg.vector_norm(y.double() - x.double()) / x.numel() ** 0.5


def writes_into_its_input(x: Tensor, y: Tensor) -> Tensor:
    """Without fault: it gets copies."""
    found = gap(x, y)
    x -= x.mean(0)
    return found


def depends_on_order(x: Tensor, y: Tensor) -> Tensor:
    return gap(x, y) + 1e-3 * (y[0] - x[0]).abs().max().double() + gap(x[:1], y[:1])


def gives_nan_of_constants(x: Tensor, y: Tensor) -> Tensor:
    spread = (y.double() - y.double().mean(0)).square().sum()
    return gap(x, y) * (spread / spread)


def leaves_its_range(x: Tensor, y: Tensor) -> Tensor:
    return 1 + 2 * gap(x, y)


def computes_in_the_dtype_that_came(x: Tensor, y: Tensor) -> Tensor:
    return gap(x, y) + ((y - x).square().mean().sqrt().double() - gap(x, y))


def raises_value_error(x: Tensor, y: Tensor) -> Tensor:
    if len(x) < x.shape[1]:
        raise ValueError("too few samples")
    return gap(x, y)


def swallows_nan(x: Tensor, y: Tensor) -> Tensor:
    return torch.nan_to_num(y.double() - x.double(), posinf=0, neginf=0).abs().mean()


def overflows(x: Tensor, y: Tensor) -> Tensor:
    return gap(x, y).float() ** 2


def draws_random_numbers(x: Tensor, y: Tensor) -> Tensor:
    return gap(x, y) + 1e-9 * torch.rand(1).item()


def changes_its_names(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    return {"wide" if x.shape[1] > len(x) else "tall": gap(x, y), "": gap(x, y)}


def is_no_number(x: Tensor, _: Tensor) -> Tensor:
    return x.mean(0)


class KeepsState:
    """A sum that is kept between calls, so that threads get in each other's way."""

    def __init__(self) -> None:
        self.here = threading.Lock()

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.here.acquire(blocking=False):
            raise RuntimeError("already at work")
        try:
            found = gap(x, y)
            threading.Event().wait(0.01)
            return found
        finally:
            self.here.release()


def refuses_few_samples(x: Tensor, y: Tensor) -> Tensor:
    """Without fault: that it needs more samples than features is its right."""
    if x.shape[-2] <= x.shape[-1]:
        raise InputError("expected more samples than features")
    if not (x.isfinite().all() and y.isfinite().all()):
        raise InputError("expected finite values")
    return (y.double() - x.double()).square().mean((-2, -1)).sqrt()


def refuses_few_samples_in_float64(x: Tensor, y: Tensor) -> Tensor:
    return refuses_few_samples(x, y) if x.dtype == torch.float64 else gap(x, y)


BROKEN: list[tuple[Callable[..., object], str, Promises]] = [
    (depends_on_order, "order_of_samples", Promises()),
    (gives_nan_of_constants, "degenerate", Promises()),
    (leaves_its_range, "usual", Promises(range=(0, 1))),
    (computes_in_the_dtype_that_came, "dtypes", Promises()),
    (raises_value_error, "shapes", Promises()),
    (refuses_few_samples_in_float64, "dtypes", Promises()),
    (swallows_nan, "not_finite", Promises()),
    (overflows, "extreme_values", Promises()),
    (draws_random_numbers, "repeatable", Promises()),
    (is_no_number, "usual", Promises()),
    (KeepsState(), "threads", Promises()),
    (gap, "scale", Promises(scale="both")),
    (gap, "extreme_values", Promises(scale="both")),
    (gap, "shift", Promises(shift="each")),
    (gap, "translate", Promises(translate="each")),
    (gap, "rotate", Promises(rotate="each")),
    (gap, "batches", Promises(batches=True)),
    (lambda x, y: float(gap(x, y)), "derivatives", Promises(gradients=True)),
    (lambda x, y: gap(x, y) - 0.5 * gap(x, y).detach(), "derivatives", Promises(gradients=True)),
    (changes_its_names, "shapes", Promises()),
    (changes_its_names, "shapes", Promises(range={"": (0, 99), "tall": (0, 99)})),
]


def find(gauge: Callable[..., object], name: str, promises: Promises) -> Check:
    (check,) = [check for check in gauge_checks(gauge, promises) if check.name == name]  # type: ignore[arg-type]
    return check


@pytest.mark.parametrize(("gauge", "check", "promises"), BROKEN)
def test_a_broken_gauge_is_caught(gauge: Callable[..., object], check: str, promises: Promises) -> None:
    with pytest.raises(GaugeError, match=r"\w"):
        find(gauge, check, promises)()


def test_a_gauge_without_fault_passes() -> None:
    promises = Promises(range=(0, math.inf), translate="both", rotate="both", gradients=True)
    passed = check_gauge(gap, promises)
    assert set(CHECKS) - set(passed) - {"devices"} == {"shift", "scale", "batches"}  # nothing is promised
    assert "repeatable" in check_gauge(writes_into_its_input)


def test_a_gauge_may_refuse_few_samples() -> None:
    promises = Promises(translate="both", rotate="both", batches=True, gradients=True)
    assert {"shapes", "batches"} <= set(check_gauge(refuses_few_samples, promises))


def test_one_error_names_every_check_that_failed() -> None:
    with pytest.raises(GaugeError) as caught:
        check_gauge(swallows_nan, Promises(range=(0, 0.1)), skip=["devices"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("swallows_nan fails ")
    assert {"usual", "not_finite"} <= {line.split(":")[0].strip() for line in lines[1:]}
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, FathometerError)


def test_checks_may_be_left_out() -> None:
    assert "not_finite" not in check_gauge(swallows_nan, skip=["not_finite"])


def test_a_missing_value_may_be_promised() -> None:
    def passed_on(x: Tensor, y: Tensor) -> Tensor:
        return (y.double() - x.double()).abs().mean()

    with pytest.raises(GaugeError, match="nan"):
        find(passed_on, "not_finite", Promises())()
    missing = Promises(missing=True, infinite=True)
    find(gives_nan_of_constants, "degenerate", missing)()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_what_cannot_be_checked_here_is_skipped() -> None:
    with pytest.raises(unittest.SkipTest, match="no CUDA device"):
        find(gap, "devices", Promises())()


def test_the_reference_has_every_check() -> None:
    every = Promises(
        shift="each", translate="each", scale="each", rotate="each", batches=True, gradients=True
    )
    page = (Path(__file__).parents[2] / "docs" / "reference" / "testing.md").read_text("utf-8")
    rows = [f"| `{check}` | {check.demands} |" for check in gauge_checks("cka", every)]
    assert "\n".join(rows) in page


def test_a_gauge_by_name_is_held_to_its_range() -> None:
    assert all(check.subject.promises.range == (0.0, 1.0) for check in gauge_checks("affinity"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: gauge_checks("ckaa"), "did you mean cka"),
        (lambda: check_gauge(gap, skip=["nan"]), r"skip: expected some of usual, .*; got nan"),
        (lambda: check_gauge("cka", {"scale": "each"}), r"promises: expected Promises\(…\), got dict"),  # type: ignore[arg-type]
        (lambda: Promises(scale="x"), "scale: expected one of neither, both, each, got 'x'"),  # type: ignore[arg-type]
        (lambda: Promises(range=(1, 0)), "range: expected the least value, then the largest"),
        (lambda: Promises(range={"a": (0, 1), "b": (2.0, 1.0)}), "range: expected the least value"),
    ],
)
def test_wrong_arguments_are_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()
