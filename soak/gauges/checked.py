"""Every gauge of the package through `fathometer.testing`, on a CPU or a GPU."""

from __future__ import annotations

from fathometer import affinity
from fathometer.gauges import GAUGES, Gauge
from fathometer.testing import Finding, gauge_checks
from soak.program import Effort, Outcome, Program, Row

_SUBJECTS: dict[str, str | Gauge] = {**{name: name for name in GAUGES}, "fathometer.affinity": affinity}
_ASKS = (
    "Each gauge goes through the checks of `fathometer.testing`: awkward shapes and contents, narrow dtypes, "
    "extreme values, changes that should not matter, batches, threads. A check counts as failed if it fails "
    "without a reason on record, or passes although it was expected to fail."
)


def _checked(device: str) -> Outcome:
    rows: list[Row] = []
    failures: list[str] = []
    for name, gauge in _SUBJECTS.items():
        findings = [check.find() for check in gauge_checks(gauge, device=device)]
        failures += [f"{name}: {f.check}: {f.words}" for f in findings if f.verdict == "failed"]
        rows.append(
            {
                "gauge": name,
                "checks": len(findings),
                "passed": sum(finding.verdict == "passed" for finding in findings),
                "expected failures": _words(findings, "expected failure"),
                "skipped": _words(findings, "skipped"),
                "failed": sum(finding.verdict == "failed" for finding in findings),
            }
        )
    return Outcome(rows, failures)


def _words(findings: list[Finding], verdict: str) -> str:
    return "; ".join(f"{f.check} ({f.words})" for f in findings if f.verdict == verdict)


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
