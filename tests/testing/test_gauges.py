"""Every gauge of the package through every check."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fathometer import affinity
from fathometer.gauges import GAUGES
from fathometer.testing import Check, Promises, gauge_checks

_SCORE = Promises(translate="each", scale="each", rotate="both")
_FIT = Promises(translate="each", scale="each", rotate="each")

_KEPT = {
    "affinity": _SCORE,
    "affinity_sample": _SCORE,
    "cka": _FIT,
    "r2": _FIT,
    "r2_heldout": _FIT,
    "sparsity": Promises(scale="each"),
    "entropy": Promises(shift="each", scale="each"),
    "norm": Promises(translate="both", rotate="both"),
    "stable_rank": Promises(scale="each", rotate="each"),
    "cost_of_identity": Promises(scale="both", rotate="each"),
    "nonnegativity": Promises(scale="each"),
}

PROMISES = {
    name: replace(_KEPT[name], range=gauge.range, infinite=gauge.infinite, batches=gauge.batched)
    for name, gauge in GAUGES.items()
}

EXPECTED_FAILURES = {("r2_heldout", "order_of_samples"): "a sample is assigned to a fold by its place"}
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
