"""Every gauge of the package through every check."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fathometer import affinity
from fathometer.gauges import GAUGES
from fathometer.testing import Check, gauge_checks
from fathometer.testing.declared import BY_NAME

CHECKS = [
    pytest.param(check, id=f"{name}-{check}")
    for name, gauge in [*GAUGES.items(), ("differentiable", affinity)]
    for check in gauge_checks(gauge)
    if check.name != "cpu_and_cuda"
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_gauge_passes(check: Check) -> None:
    check()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("gauge", [*GAUGES, affinity])
def test_a_gauge_passes_on_a_gpu(gauge: str | Callable[..., torch.Tensor]) -> None:
    for check in gauge_checks(gauge, device="cuda"):
        check()


def test_every_gauge_declares_what_it_promises() -> None:
    assert list(BY_NAME) == list(GAUGES)
