"""All checks of a gauge: as a list for a test runner, or in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias
from unittest import SkipTest

import torch

from fathometer.errors import InputError
from fathometer.gauges.registry import Gauge, choose_gauges
from fathometer.testing import awkward, conduct, invariance, precision
from fathometer.testing.declared import promises_of
from fathometer.testing.promises import GaugeError, Promises
from fathometer.testing.subject import Subject

Verdict: TypeAlias = Literal["passed", "failed", "expected failure", "skipped"]

CHECKS: dict[str, Callable[[Subject], None]] = {
    function.__name__: function
    for function in (
        awkward.usual,
        awkward.names,
        awkward.few_samples,
        awkward.as_many_samples_as_features,
        awkward.one_feature,
        awkward.constant_channels,
        awkward.duplicate_rows,
        awkward.rank_one,
        awkward.not_a_number,
        awkward.infinity,
        precision.float32,
        precision.float16,
        precision.bfloat16,
        precision.cpu_and_cuda,
        precision.derivatives,
        invariance.tiny_values,
        invariance.huge_values,
        invariance.order_of_samples,
        invariance.order_of_merging,
        invariance.shift,
        invariance.translate,
        invariance.scale,
        invariance.rotate,
        conduct.repeatable,
        conduct.random_state_left_alone,
        conduct.inputs_left_alone,
        conduct.strides,
        conduct.threads,
        conduct.among_others,
        conduct.batches,
    )
}
"""Every check by its name."""

_OF_A_PROMISE: dict[str, Callable[[Promises], bool]] = {
    "derivatives": lambda promises: promises.gradients,
    "batches": lambda promises: promises.batches,
    "shift": lambda promises: promises.shift != "neither",
    "translate": lambda promises: promises.translate != "neither",
    "scale": lambda promises: promises.scale != "neither",
    "rotate": lambda promises: promises.rotate != "neither",
}
"""Checks that are made only where something is promised."""


@dataclass(frozen=True)
class Finding:
    """What came of a check: the verdict, and the failure or the reason in words."""

    check: str
    verdict: Verdict
    words: str = ""
    error: Exception | None = None


@dataclass(frozen=True)
class Check:
    """One check of one gauge. Called, it raises a `GaugeError` if the gauge fails, or passes unexpectedly.

    Attributes:
        name: of the check.
        demands: what it asks for, in words.
        reason: why the gauge is expected to fail it, if it is.
    """

    name: str
    demands: str
    reason: str | None
    subject: Subject

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Make the check; raise if it fails, or `unittest.SkipTest` if it cannot be made here."""
        finding = self.find()
        if finding.verdict == "skipped":
            raise SkipTest(finding.words)
        if finding.verdict == "failed":
            raise GaugeError(f"{self.name}: {finding.words}. The check: {self.demands}") from finding.error

    def find(self) -> Finding:
        """Make the check and say what came of it; whatever a gauge raises is a failure."""
        try:
            CHECKS[self.name](self.subject)
        except SkipTest as skip:
            return Finding(self.name, "skipped", str(skip))
        except Exception as error:
            if self.reason is not None:
                return Finding(self.name, "expected failure", self.reason, error)
            words = str(error) if isinstance(error, GaugeError) else f"it raised {error!r}"
            return Finding(self.name, "failed", words, error)
        if self.reason is not None:
            return Finding(self.name, "failed", f"it was expected to fail ({self.reason}) and passed")
        return Finding(self.name, "passed")


def gauge_checks(
    gauge: str | Gauge, promises: Promises | None = None, *, device: str | torch.device = "cpu"
) -> list[Check]:
    """All checks of a gauge, to be called one by one, e.g. as parameters of a test.

    With pytest: `@pytest.mark.parametrize("check", gauge_checks(mine), ids=str)`, and `check()` in the test.

    Args:
        gauge: a function of X and Y, or the name of one of the package's.
        promises: what it is held to; of a gauge of the package, what it declares.
        device: where the pairs lie.

    Example:
        >>> def largest_gap(x, y):
        ...     return (x - y).abs().max()
        >>> [check.name for check in gauge_checks(largest_gap)][:3]
        ['usual', 'names', 'few_samples']
    """
    (function,) = choose_gauges([gauge]).values()
    promises = promises_of(function) if promises is None else promises
    if not isinstance(promises, Promises):
        raise InputError(f"promises: expected Promises(…), got {type(promises).__name__}")
    if unknown := set(promises.expected_failures) - set(CHECKS):
        raise InputError(
            f"expected_failures: expected some of {', '.join(CHECKS)}; got {', '.join(sorted(unknown))}"
        )
    made = [name for name in CHECKS if name not in _OF_A_PROMISE or _OF_A_PROMISE[name](promises)]
    if unmade := [name for name in promises.expected_failures if name not in made]:
        raise InputError(
            f"expected_failures: {', '.join(unmade)}: not tried, since nothing is promised; leave it out"
        )
    subject = Subject(function, promises, torch.device(device))
    return [
        Check(
            name, " ".join(str(CHECKS[name].__doc__).split()), promises.expected_failures.get(name), subject
        )
        for name in made
    ]


def check_gauge(
    gauge: str | Gauge, promises: Promises | None = None, *, device: str | torch.device = "cpu"
) -> list[Finding]:
    """Try a gauge on pairs that break gauges, and hold it to its promises.

    Args:
        gauge: a function of X and Y, or the name of one of the package's.
        promises: what it is held to; of a gauge of the package, what it declares.
        device: where the pairs lie.

    Returns:
        What came of each check, if none failed.

    Raises:
        GaugeError: an `AssertionError` that names every check that failed.

    Example:
        >>> findings = check_gauge("cka")
        >>> {finding.verdict for finding in findings} <= {"passed", "skipped"}
        True
        >>> def share_of_zeros(x, y):
        ...     return (y == 0).float().mean()
        >>> check_gauge(share_of_zeros, Promises(range=(0, 1)))
        Traceback (most recent call last):
            ...
        fathometer.testing.promises.GaugeError: share_of_zeros fails 2 of 24 checks:
          not_a_number: nan in y: expected an InputError, got 0.717
          infinity: inf in y: expected an InputError, got 0.717
    """
    findings = [check.find() for check in gauge_checks(gauge, promises, device=device)]
    failed = [finding for finding in findings if finding.verdict == "failed"]
    if failed:
        (name,) = choose_gauges([gauge])
        lines = [f"  {finding.check}: {finding.words}" for finding in failed]
        raise GaugeError("\n".join([f"{name} fails {len(failed)} of {len(findings)} checks:", *lines]))
    return findings
