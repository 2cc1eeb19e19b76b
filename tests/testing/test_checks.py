"""Gauges that are broken on purpose are caught, each by the check that is meant for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges import Gauge
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


def declared(function: Callable[..., object], **declaration: Any) -> Gauge:
    return Gauge.from_function(function, **declaration)  # type: ignore[arg-type]


BROKEN: list[tuple[Callable[..., object], str, Promises]] = [
    (depends_on_order, "order_of_samples", Promises()),
    (gives_nan_of_constants, "degenerate", Promises()),
    (declared(lambda x, y: 1 + 2 * gap(x, y), range=(0, 1)), "usual", Promises()),
    (computes_in_the_dtype_that_came, "dtypes", Promises()),
    (raises_value_error, "shapes", Promises()),
    (refuses_few_samples_in_float64, "dtypes", Promises()),
    (swallows_nan, "not_finite", Promises()),
    (overflows, "extreme_values", Promises()),
    (draws_random_numbers, "repeatable", Promises()),
    (is_no_number, "usual", Promises()),
    (KeepsState(), "threads", Promises()),
    (gap, "extreme_values", Promises(scale="both")),
    (gap, "invariances", Promises(scale="both")),
    (gap, "invariances", Promises(shift="each")),
    (gap, "invariances", Promises(translate="each")),
    (gap, "invariances", Promises(rotate="each")),
    (declared(gap, batched=True), "batches", Promises()),
    (lambda x, y: gap(x, y).detach(), "derivatives", Promises(gradients=True)),
    (lambda x, y: gap(x, y) - 0.5 * gap(x, y).detach(), "derivatives", Promises(gradients=True)),
    (changes_its_names, "shapes", Promises()),
    (declared(changes_its_names, range={"": (0, 99), "tall": (0, 99)}), "shapes", Promises()),
]


def find(gauge: Callable[..., object], name: str, promises: Promises) -> Check:
    (check,) = [check for check in gauge_checks(gauge, promises) if check.name == name]  # type: ignore[arg-type]
    return check


@pytest.mark.parametrize(("gauge", "check", "promises"), BROKEN)
def test_a_broken_gauge_is_caught(gauge: Callable[..., object], check: str, promises: Promises) -> None:
    with pytest.raises((GaugeError, ValueError, RuntimeError)):
        find(gauge, check, promises)()


def test_a_correct_gauge_passes() -> None:
    promises = Promises(translate="both", rotate="both", gradients=True)
    passed = check_gauge(declared(gap, range=(0, float("inf"))), promises)
    assert set(CHECKS) - set(passed) - {"devices"} == {"batches"}  # which it does not take
    assert "repeatable" in check_gauge(writes_into_its_input)
    few = check_gauge(declared(refuses_few_samples, batched=True), promises)
    assert {"shapes", "batches"} <= set(few)


def test_one_error_names_every_check_that_failed() -> None:
    with pytest.raises(AssertionError) as caught:
        check_gauge(declared(swallows_nan, range=(0, 0.1)))
    first, *lines = str(caught.value).splitlines()
    assert first.startswith("swallows_nan fails ")
    assert {"usual", "not_finite"} <= {line.split(":")[0].strip() for line in lines}
    assert "not_finite" not in check_gauge(swallows_nan, skip=["not_finite"])


def test_a_missing_value_may_be_promised() -> None:
    find(declared(gives_nan_of_constants, infinite=True), "degenerate", Promises(missing=True))()


def test_the_reference_lists_every_check() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "testing.md").read_text("utf-8")
    rows = [f"| `{name}` | {check.__doc__} |" for name, check in CHECKS.items()]
    assert "\n".join(rows) in page


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: gauge_checks("ckaa"), "did you mean cka"),
        (lambda: check_gauge("standard"), "gauge: expected one gauge, got 'standard'"),
        (
            lambda: check_gauge("neural_collapse"),
            "gauge: expected .* alone, got neural_collapse, which needs",
        ),
        (lambda: check_gauge(gap, skip=["nan"]), r"skip: expected some of usual, .*; got nan"),
        (lambda: Promises(scale="x"), "scale: expected one of neither, both, each, got 'x'"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()
