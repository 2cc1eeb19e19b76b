"""Checks with pairs that are changed in a way that should not matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch import Tensor, nn

from fathometer.measuring.measure import measure
from fathometer.results.sounding import Sounding
from fathometer.testing.promises import Sides
from fathometer.testing.subject import Subject, samples

Change: TypeAlias = "Callable[[Tensor], Tensor]"

_SHAPES = ((40, 6), (10, 24))


def order_of_samples(subject: Subject) -> None:
    """The samples in another order, the same on both sides, give the same."""
    for n, d in _SHAPES:
        x, y = subject.pair(n, d)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(x.device)
        expected = subject.read_unless_refused(x, y)
        subject.same(subject.read_unless_refused(x[order], y[order]), expected, "in another order")


def order_of_merging(subject: Subject) -> None:
    """Batches that are measured in ranges, in any order, and merged have the values of a whole run."""
    data = torch.cat([samples(40, 6, seed) for seed in range(3)])

    def measured(first: int, count: int) -> Sounding:
        return measure(
            nn.Sequential(nn.ReLU()),
            data,
            samples=40,
            first_batch=first,
            batches=count,
            gauges=subject.gauge,
            device=subject.device,
        )

    expected = measured(0, 3).records.drop(columns="site").to_dict("records")
    for order in ((2, 1, 0), (1, 2, 0)):
        parts = {number: measured(number, 1) for number in order}
        whole = pd.concat([parts[number].records for number in sorted(parts)])
        for row, other in zip(whole.drop(columns="site").to_dict("records"), expected, strict=True):
            subject.same(_named(row), _named(other), f"ranges measured in the order {order}")


def shift(subject: Subject) -> None:
    """One number, added to all entries, does not matter."""
    _unchanged(subject, subject.promises.shift, lambda a: a + 3.5, lambda a: a - 0.7)


def translate(subject: Subject) -> None:
    """A number of its own, added to each feature, does not matter."""

    def moved(seed: int) -> Change:
        return lambda a: a + 5 * samples(1, a.shape[-1], seed).to(a.device)

    _unchanged(subject, subject.promises.translate, moved(1), moved(2))


def scale(subject: Subject) -> None:
    """A factor above 0 does not matter."""
    _unchanged(subject, subject.promises.scale, lambda a: 1e-3 * a, lambda a: 70 * a)


def rotate(subject: Subject) -> None:
    """A rotation of the features does not matter."""

    def turned(seed: int) -> Change:
        return lambda a: a @ torch.linalg.qr(samples(a.shape[-1], a.shape[-1], seed))[0].to(a.device)

    _unchanged(subject, subject.promises.rotate, turned(1), turned(2))


def tiny_values(subject: Subject) -> None:
    """Values of 1e-20: a number in range, or a `FathometerError`; if scale does not matter, the same."""
    _extreme(subject, 1e-20)


def huge_values(subject: Subject) -> None:
    """Values of 1e20: a number in range, or a `FathometerError`; if scale does not matter, the same."""
    _extreme(subject, 1e20)


def _unchanged(subject: Subject, sides: Sides, change: Change, other: Change) -> None:
    for n, d in _SHAPES:
        x, y = subject.pair(n, d)
        changed = {"both sides": (change(x), change(y))}
        if sides == "each":
            changed |= {"x": (change(x), y), "y": (x, change(y)), "each side": (change(x), other(y))}
        expected = subject.read_unless_refused(x, y)
        for which, pair in changed.items():
            subject.same(subject.read_unless_refused(*pair), expected, f"{which} changed")


def _extreme(subject: Subject, size: float) -> None:
    sides = subject.promises.scale
    for dtype in (torch.float64, torch.float32):
        x, y = (side.to(dtype) for side in subject.pair())
        plain = subject.read(x, y)
        for first, second in ((size, size), (size, 1.0), (1.0, size)):
            pair = first * x, second * y
            if sides == "each" or (sides == "both" and first == second):
                subject.same(subject.read(*pair), plain, f"x times {first:g}, y times {second:g}")
            else:
                subject.read_unless_refused(*pair)


def _named(row: Mapping[Any, float]) -> dict[str, float]:
    """As `same` takes them."""
    return {str(name): float(value) for name, value in row.items()}
