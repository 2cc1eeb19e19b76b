"""Checks with pairs that are changed in a way that should not matter."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.testing.promises import Sides
from fathometer.testing.subject import Subject, samples

Change: TypeAlias = "Callable[[Tensor], Tensor]"

_SHAPES = ((40, 6), (10, 24))


def order_of_samples(subject: Subject) -> None:
    """The samples in another order, the same on both sides, give the same."""
    for n, d in _SHAPES:
        x, y = subject.pair(n, d)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(x.device)
        subject.same(subject.read(x[order], y[order]), subject.read(x, y), "in another order")


def order_of_merging(subject: Subject) -> None:
    """A pair that is put together from the same pieces in another order gives the same."""
    x, y = subject.pair()
    expected = subject.read(x, y)
    pieces = list(zip(x.split([7, 20, 13]), y.split([7, 20, 13]), strict=True))
    for order in permutations(pieces):
        merged = (torch.cat(side) for side in zip(*order, strict=True))
        subject.same(subject.read(*merged), expected, "pieces merged in another order")


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
        expected = subject.read(x, y)
        subject.same(subject.read(change(x), change(y)), expected, "both sides changed")
        if sides == "each":
            subject.same(subject.read(change(x), y), expected, "x changed")
            subject.same(subject.read(x, change(y)), expected, "y changed")
            subject.same(subject.read(change(x), other(y)), expected, "each side changed")


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
