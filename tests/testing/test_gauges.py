"""Every gauge of the package through every check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fathometer import affinity
from fathometer.gauges import GAUGES, Gauge
from fathometer.testing import Check, Promises, gauge_checks

_SCORE = Promises(translate="each", scale="each", rotate="both")
_FIT = Promises(translate="each", scale="each", rotate="each")
_MAYBE_FIT = replace(_FIT, missing=True)

PROMISES = {
    "affinity": _SCORE,
    "affinity_sample": _SCORE,
    "cka": _FIT,
    "cka_debiased": _MAYBE_FIT,
    "r2": _FIT,
    "r2_heldout": _FIT,
    "r2_trimmed": _FIT,
    "carriers": _FIT,
    "sparsity": Promises(scale="each"),
    "entropy": Promises(shift="each", scale="each"),
    "norm": Promises(translate="both", rotate="both"),
    "stable_rank": Promises(scale="each", rotate="each"),
    "cost_of_identity": Promises(scale="both", rotate="each"),
    "nonnegativity": Promises(scale="each"),
    "effective_rank": _FIT,
    "participation_ratio": _FIT,
    "rankme": Promises(scale="each", rotate="each"),
    "alpha": _MAYBE_FIT,
    "intrinsic_dimension": _MAYBE_FIT,
    "anisotropy": Promises(scale="each", rotate="each"),
    "dead": Promises(scale="each"),
    "saturated": Promises(missing=True),  # always: a bare pair has no bounds
    "scale": Promises(),
    "duplicates": Promises(translate="each", scale="each", missing=True),
}


def parameters(device: str) -> list[Any]:
    differentiable = Gauge.from_function(affinity, range=(0, 1), batched=True)
    smooth = Promises(translate="each", scale="each", rotate="both", gradients=True)
    cases = [(name, GAUGES[name], promises) for name, promises in PROMISES.items()]
    found = []
    for name, gauge, promises in [*cases, ("differentiable", differentiable, smooth)]:
        for check in gauge_checks(gauge, promises, device=device):
            found.append(pytest.param(check, id=f"{name}-{check}"))
    return found


@pytest.mark.parametrize("check", parameters("cpu"))
def test_a_gauge_passes(check: Check) -> None:
    check()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("check", parameters("cuda"))
def test_a_gauge_passes_on_a_gpu(check: Check) -> None:
    check()


def test_every_gauge_has_promises() -> None:
    assert [*PROMISES, "neural_collapse"] == list(GAUGES)  # it needs labels: tests/gauges/test_collapse.py
