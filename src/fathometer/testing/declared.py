"""What the gauges of the package promise."""

from __future__ import annotations

from dataclasses import replace

from fathometer.gauges.affinity import affinity
from fathometer.gauges.ranges import INFINITE, RANGES
from fathometer.gauges.registry import GAUGES, Gauge
from fathometer.testing.promises import Promises

_SCORE = Promises(translate="each", scale="each", rotate="both")
_FIT = Promises(translate="each", scale="each", rotate="each", batches=True)
_FOLDS = "a sample is dealt to a fold by its place"

_KEPT: dict[str, Promises] = {
    "affinity": _SCORE,
    "affinity_sample": _SCORE,
    "cka": _FIT,
    "r2": _FIT,
    "r2_heldout": replace(_FIT, expected_failures={"order_of_samples": _FOLDS}),
    "sparsity": Promises(scale="each", batches=True),
    "entropy": Promises(shift="each", scale="each", batches=True),
    "norm": Promises(translate="both", rotate="both", batches=True),
    "stable_rank": Promises(scale="each", rotate="each", batches=True),
    "cost_of_identity": Promises(scale="both", rotate="each", batches=True),
    "nonnegativity": Promises(scale="each", batches=True),
}
BY_NAME = {
    name: replace(promises, range=RANGES[name], infinite=name in INFINITE) for name, promises in _KEPT.items()
}
"""Of each gauge in `GAUGES`."""

_DIFFERENTIABLE = replace(BY_NAME["affinity"], batches=True, gradients=True)


def promises_of(gauge: Gauge) -> Promises:
    """What a gauge of the package declares; nothing for any other."""
    declared = [(GAUGES[name], promises) for name, promises in BY_NAME.items()]
    of_known = (promises for known, promises in [*declared, (affinity, _DIFFERENTIABLE)] if known is gauge)
    return next(of_known, Promises())
