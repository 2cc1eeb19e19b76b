"""Assertions about networks, for test suites: is it healthy, and is it still the same network?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from fathometer.errors import FathometerError, InputError, check_positive, join_names
from fathometer.measuring.check import check
from fathometer.measuring.measure import measure
from fathometer.models import LoadedModel
from fathometer.results.checkup import Checkup
from fathometer.results.loading import load
from fathometer.results.severity import Severity
from fathometer.results.sounding import Sounding


class NetworkError(FathometerError, AssertionError):
    """A network is not as a test expects it. It is an `AssertionError` too, as test runners expect."""


def assert_healthy(
    model: nn.Module | LoadedModel, data: Any, *, fail_on: Severity = "error", **options: Any
) -> Checkup:
    """Check a network, and fail if something as severe as `fail_on` is found.

    Args:
        model: as for `fathometer.check`.
        data: as for `fathometer.check`.
        fail_on: `error`, `warning` or `note`.
        options: those of `fathometer.check`.

    Raises:
        NetworkError: an `AssertionError` that lists the findings.

    Example:
        >>> import torch
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> assert_healthy(net, torch.randn(128, 4)).severity
        >>> net[0].weight.data[0, 0] = torch.nan
        >>> assert_healthy(net, torch.randn(128, 4))
        Traceback (most recent call last):
            ...
        fathometer.testing.networks.NetworkError: Sequential is not healthy:
          error: 0.weight: has NaN or inf; the first output with NaN or inf is that of 0 [nonfinite]
    """
    found = check(model, data, **options)
    if severe := found.at_least(fail_on):
        name = found.provenance.model.get("name", "the network")
        raise NetworkError("\n".join([f"{name} is not healthy:", *(f"  {each}" for each in severe)]))
    return found


def assert_signature(
    model: nn.Module | LoadedModel,
    data: Any,
    expected: Sounding | str | Path,
    *,
    tolerance: float = 1e-3,
    **options: Any,
) -> Sounding:
    """Measure the affinity score of every site, and fail if one differs from that of an earlier sounding.

    So a team notices that a refactoring has changed what a network computes. The same samples in the same
    order are needed: give `samples`, `batches` and `reduction` as for the earlier sounding.

    Args:
        model: as for `fathometer.measure`.
        data: as for `fathometer.measure`.
        expected: a sounding, or its file.
        tolerance: the largest difference of a score that is allowed.
        options: those of `fathometer.measure`.

    Raises:
        NetworkError: an `AssertionError` that names the sites that differ.

    Example:
        >>> import torch
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <torch...>
        >>> net, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.randn(128, 4)
        >>> before = measure(net, x, samples=128)
        >>> _ = assert_signature(net, x, before, samples=128)
        >>> net[0].bias.data += 1
        >>> assert_signature(net, x, before, samples=128)
        Traceback (most recent call last):
            ...
        fathometer.testing.networks.NetworkError: 1 of 1 scores differ by more than 0.001: 1 (0.895 was 0.660)
    """
    check_positive("tolerance", tolerance)
    known = expected if isinstance(expected, Sounding) else load(expected)
    if not isinstance(known, Sounding) or "affinity" not in known.gauges:
        raise InputError("expected a sounding with affinity scores", parameter="expected")
    found = measure(model, data, **{"gauges": "affinity", **options})
    before, after = known.signature, found.signature
    if list(before.index) != list(after.index):
        missing, new = before.index.difference(after.index), after.index.difference(before.index)
        parts = [
            f"{words}: {join_names(list(names), 5)}" for words, names in (("gone", missing), ("new", new))
        ]
        raise NetworkError(f"the sites are others than those of the earlier sounding; {'; '.join(parts)}")
    gap = (after - before).abs()
    if len(wide := gap[gap > tolerance]):
        named = [f"{site} ({after[site]:.3f} was {before[site]:.3f})" for site in wide.index]
        raise NetworkError(
            f"{len(wide)} of {len(gap)} scores differ by more than {tolerance:g}: {join_names(named, 5)}"
        )
    return found
