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
from fathometer.testing import Check, Finding, GaugeError, Promises, check_gauge, gauge_checks
from fathometer.testing.suite import CHECKS


def gap(x: Tensor, y: Tensor) -> Tensor:
    """A gauge without fault: the root of the mean square of Y − X."""
    for side in (x, y):
        if not side.isfinite().all():
            raise InputError("expected finite values")
    return torch.linalg.vector_norm(y.double() - x.double()) / x.numel() ** 0.5


def writes_into_its_input(x: Tensor, y: Tensor) -> Tensor:
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


def needs_rows_in_memory(x: Tensor, y: Tensor) -> Tensor:
    return gap(x.view(-1)[None], y.view(-1)[None])


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


class RemembersTheLast:
    """A part of the value of the batch before, so that it matters which that was."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, x: Tensor, y: Tensor) -> float:
        found = float(gap(x, y))
        self.last, before = found, self.last
        return found + 1e-3 * before


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
    (writes_into_its_input, "inputs_left_alone", Promises()),
    (depends_on_order, "order_of_samples", Promises()),
    (RemembersTheLast(), "order_of_merging", Promises()),
    (gives_nan_of_constants, "constant_channels", Promises()),
    (leaves_its_range, "usual", Promises(range=(0, 1))),
    (computes_in_the_dtype_that_came, "bfloat16", Promises()),
    (computes_in_the_dtype_that_came, "float16", Promises()),
    (raises_value_error, "few_samples", Promises()),
    (refuses_few_samples_in_float64, "float32", Promises()),
    (swallows_nan, "not_a_number", Promises()),
    (swallows_nan, "infinity", Promises()),
    (overflows, "huge_values", Promises()),
    (draws_random_numbers, "repeatable", Promises()),
    (draws_random_numbers, "random_state_left_alone", Promises()),
    (is_no_number, "usual", Promises()),
    (needs_rows_in_memory, "strides", Promises()),
    (KeepsState(), "threads", Promises()),
    (gap, "scale", Promises(scale="both")),
    (gap, "tiny_values", Promises(scale="both")),
    (gap, "shift", Promises(shift="each")),
    (gap, "translate", Promises(translate="each")),
    (gap, "rotate", Promises(rotate="each")),
    (gap, "batches", Promises(batches=True)),
    (lambda x, y: float(gap(x, y)), "derivatives", Promises(gradients=True)),
    (lambda x, y: gap(x, y) - 0.5 * gap(x, y).detach(), "derivatives", Promises(gradients=True)),
    (changes_its_names, "names", Promises()),
    (changes_its_names, "few_samples", Promises(range={"": (0, 99), "tall": (0, 99)})),
]


def find(gauge: Callable[..., object], name: str, promises: Promises) -> Finding:
    (check,) = [check for check in gauge_checks(gauge, promises) if check.name == name]  # type: ignore[arg-type]
    return check.find()


@pytest.mark.parametrize(("gauge", "check", "promises"), BROKEN)
def test_a_broken_gauge_is_caught(gauge: Callable[..., object], check: str, promises: Promises) -> None:
    finding = find(gauge, check, promises)
    assert finding.verdict == "failed"
    assert finding.words


def test_a_gauge_without_fault_passes() -> None:
    promises = Promises(range=(0, math.inf), translate="both", rotate="both", gradients=True)
    findings = check_gauge(gap, promises)
    assert [finding.check for finding in findings if finding.verdict not in ("passed", "skipped")] == []
    made = {finding.check for finding in findings}
    assert set(CHECKS) - made == {"shift", "scale", "batches"}  # nothing is promised of these


def test_a_gauge_may_refuse_few_samples() -> None:
    promises = Promises(translate="both", rotate="both", batches=True, gradients=True)
    assert {finding.verdict for finding in check_gauge(refuses_few_samples, promises)} <= {
        "passed",
        "skipped",
    }


def test_one_error_names_every_check_that_failed() -> None:
    with pytest.raises(GaugeError) as caught:
        check_gauge(swallows_nan)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("swallows_nan fails 2 of ")
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["not_a_number", "infinity"]
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, FathometerError)


def test_a_missing_value_may_be_promised() -> None:
    def passed_on(x: Tensor, y: Tensor) -> Tensor:
        return (y.double() - x.double()).abs().mean()

    assert find(passed_on, "not_a_number", Promises()).verdict == "failed"
    assert find(passed_on, "not_a_number", Promises(missing=True)).verdict == "passed"
    assert find(gives_nan_of_constants, "constant_channels", Promises(missing=True)).verdict == "passed"


class TestExpectedFailures:
    promises = Promises(expected_failures={"not_a_number": "a NaN counts as nothing", "infinity": "as above"})

    def test_are_no_failures_and_keep_their_reason(self) -> None:
        findings = {finding.check: finding for finding in check_gauge(swallows_nan, self.promises)}
        assert findings["not_a_number"].verdict == "expected failure"
        assert findings["not_a_number"].words == "a NaN counts as nothing"

    def test_that_pass_are_failures(self) -> None:
        with pytest.raises(
            GaugeError, match=r"not_a_number: it was expected to fail \(a NaN .*\) and passed"
        ):
            check_gauge(gap, self.promises)

    def test_of_checks_that_there_are_not(self) -> None:
        with pytest.raises(InputError, match=r"expected_failures: expected some of usual, .*; got nan"):
            gauge_checks(gap, Promises(expected_failures={"nan": "why"}))

    @pytest.mark.parametrize("name", ["batches", "rotate", "derivatives"])
    def test_of_checks_that_are_not_made(self, name: str) -> None:
        with pytest.raises(InputError, match=f"expected_failures: {name}: not tried, since nothing"):
            gauge_checks(gap, Promises(expected_failures={name: "why"}))


class TestForARunner:
    def test_a_check_says_what_it_demands(self) -> None:
        check = next(check for check in gauge_checks(swallows_nan) if check.name == "not_a_number")
        assert str(check) == "not_a_number"
        with pytest.raises(GaugeError, match="The check: One NaN on a side"):
            check()

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
    def test_what_cannot_be_checked_here_is_skipped(self) -> None:
        check: Check = next(check for check in gauge_checks(gap) if check.name == "cpu_and_cuda")
        with pytest.raises(unittest.SkipTest, match="no CUDA device"):
            check()

    def test_the_reference_has_every_check(self) -> None:
        page = (Path(__file__).parents[2] / "docs" / "reference" / "testing.md").read_text("utf-8")
        rows = [f"| `{name}` | {' '.join(str(check.__doc__).split())} |" for name, check in CHECKS.items()]
        assert "\n".join(rows) in page

    def test_a_gauge_by_name_is_held_to_what_it_declares(self) -> None:
        assert all(check.subject.promises.range == (0.0, 1.0) for check in gauge_checks("affinity"))
        with pytest.raises(InputError, match="did you mean cka"):
            gauge_checks("ckaa")


def test_a_promise_is_one_of_three() -> None:
    with pytest.raises(InputError, match="scale: expected one of neither, both, each, got 'x'"):
        Promises(scale="x")  # type: ignore[arg-type]


def test_promises_that_are_none() -> None:
    with pytest.raises(InputError, match=r"promises: expected Promises\(…\), got dict"):
        check_gauge("cka", {"scale": "each"})  # type: ignore[arg-type]
    for wrong in ((1, 0), {"a": (0, 1), "b": (2.0, 1.0)}):
        with pytest.raises(InputError, match="range: expected the least value, then the largest"):
            Promises(range=wrong)
    assert Promises(range=(0, lambda n, d: min(n, d))).range_of("", 3, 4) == (0, 3)
