"""Every gauge of the package through `fathometer.testing`, on a CPU or a GPU."""

from __future__ import annotations

from dataclasses import replace
from unittest import SkipTest

from fathometer import affinity
from fathometer.gauges.registry import GaugeChoice
from fathometer.testing import GaugeError, Promises, gauge_checks
from soak.program import Effort, Outcome, Program, Row
from tests.testing.promises import EXPECTED_FAILURES, PROMISES

_SUBJECTS: dict[str, tuple[GaugeChoice, Promises]] = {
    **{name: (name, promises) for name, promises in PROMISES.items()},
    "fathometer.affinity": (affinity, replace(PROMISES["affinity"], gradients=True)),
}
_ASKS = (
    "Each gauge goes through the checks of `fathometer.testing`: awkward shapes and contents, narrow dtypes, "
    "extreme values, changes that should not matter, batches, threads. A check counts as failed if it fails "
    "without a reason on record, or passes although it was expected to fail."
)


def _checked(device: str) -> Outcome:
    rows: list[Row] = []
    failures: list[str] = []
    for name, (gauge, promises) in _SUBJECTS.items():
        checks = gauge_checks(gauge, promises, device=device)
        found: dict[str, list[str]] = {"passed": [], "expected": [], "skipped": [], "failed": []}
        for check in checks:
            reason = EXPECTED_FAILURES.get((name, check.name))
            try:
                check()
            except SkipTest as skip:
                found["skipped"].append(f"{check} ({skip})")
            except GaugeError as error:
                found["failed" if reason is None else "expected"].append(f"{check} ({reason or error})")
            else:
                found["passed" if reason is None else "failed"].append(str(check))
        failures += [f"{name}: {words}" for words in found["failed"]]
        rows.append(
            {
                "gauge": name,
                "checks": len(checks),
                "passed": len(found["passed"]),
                "expected failures": "; ".join(found["expected"]),
                "skipped": "; ".join(found["skipped"]),
                "failed": len(found["failed"]),
            }
        )
    return Outcome(rows, failures)


def _on_cpu(_: Effort) -> Outcome:
    return _checked("cpu")


def _on_cuda(_: Effort) -> Outcome:
    return _checked("cuda")


ON_CPU = Program("gauges", "One suite for every gauge", _ASKS, _on_cpu)
ON_CUDA = Program(
    "gauges-cuda",
    "One suite for every gauge, on a GPU",
    f"{_ASKS} All pairs lie on the GPU, and its values are held against those of the CPU.",
    _on_cuda,
    gpu=True,
)
