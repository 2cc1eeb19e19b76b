"""What the gauges of the package promise, beyond the ranges in their records."""

from __future__ import annotations

from dataclasses import replace

from fathometer.gauges import GAUGES
from fathometer.testing import Promises

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
