"""Every gauge of the package through every check."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fathometer import affinity
from fathometer.gauges import GAUGES
from fathometer.testing import Check, gauge_checks
from tests.testing.promises import EXPECTED_FAILURES, PROMISES

DIFFERENTIABLE = replace(PROMISES["affinity"], gradients=True)


def parameters(device: str) -> list[object]:
    subjects = [(name, name, promises) for name, promises in PROMISES.items()]
    checks = [
        (name, check)
        for name, gauge, promises in [*subjects, ("differentiable", affinity, DIFFERENTIABLE)]
        for check in gauge_checks(gauge, promises, device=device)  # type: ignore[arg-type]
    ]
    return [
        pytest.param(
            check,
            id=f"{name}-{check}",
            marks=[pytest.mark.xfail(strict=True)] if (name, check.name) in EXPECTED_FAILURES else [],
        )
        for name, check in checks
    ]


@pytest.mark.parametrize("check", parameters("cpu"))
def test_a_gauge_passes(check: Check) -> None:
    check()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("check", parameters("cuda"))
def test_a_gauge_passes_on_a_gpu(check: Check) -> None:
    check()


def test_every_gauge_has_promises() -> None:
    assert list(PROMISES) == list(GAUGES)
