"""Checks with pairs that are awkward in shape or content."""

from __future__ import annotations

import math

import torch

from fathometer.errors import InputError
from fathometer.testing.promises import GaugeError
from fathometer.testing.subject import Subject


def usual(subject: Subject) -> None:
    """A usual pair of a ReLU, a Tanh, a square, an affine map or a copy: numbers, in the range promised."""
    for seed in range(3):
        x, relu = subject.pair(seed=seed)
        for y in (relu, x.tanh(), x.square(), 3 - 2 * x, x.clone()):
            subject.read(x, y)


def names(subject: Subject) -> None:
    """The same names of values, whatever the pair."""
    expected = list(subject.read(*subject.pair()))
    for n, d in ((30, 1), (12, 12), (8, 40)):
        found = subject.read_unless_refused(*subject.pair(n, d))
        if found is not None and list(found) != expected:
            raise GaugeError(f"expected the names {expected} of a pair [{n}, {d}] too, got {list(found)}")


def few_samples(subject: Subject) -> None:
    """Fewer samples than features, down to two: numbers in range, or a `FathometerError`."""
    for n, d in ((20, 30), (8, 40), (2, 5)):
        subject.read_unless_refused(*subject.pair(n, d))


def as_many_samples_as_features(subject: Subject) -> None:
    """As many samples as features, and one more: numbers in range, or a `FathometerError`."""
    for n, d in ((12, 12), (13, 12), (2, 2)):
        subject.read_unless_refused(*subject.pair(n, d))


def one_feature(subject: Subject) -> None:
    """A single feature: numbers in range, or a `FathometerError`."""
    for n in (2, 30):
        subject.read_unless_refused(*subject.pair(n, 1))


def constant_channels(subject: Subject) -> None:
    """Features that do not vary, some or all, of Y or of both: numbers in range, or a `FathometerError`."""
    for value in (0.0, 0.1, -3.0):
        x, _ = subject.pair()
        x[:, ::2] = value
        subject.read_unless_refused(x, x.relu())
        subject.read_unless_refused(x, torch.full_like(x, value))
        still = torch.full_like(x, value)
        subject.read_unless_refused(still, still.relu())
        subject.read_unless_refused(still, x)


def duplicate_rows(subject: Subject) -> None:
    """Samples that come more than once, or are all one: numbers in range, or a `FathometerError`."""
    x, _ = subject.pair(12, 5)
    for rows in (x[torch.arange(24, device=x.device) % 12], x[[0, 1] * 6], x[[0] * 12]):
        subject.read_unless_refused(rows, rows.relu())


def rank_one(subject: Subject) -> None:
    """Samples along one line, through zero or not: numbers in range, or a `FathometerError`."""
    for n, d in ((40, 6), (6, 40)):
        x, _ = subject.pair(n, d)
        line = x[:, :1] * x[:1]
        for rows in (line, line + 1):
            subject.read_unless_refused(rows, rows.relu())


def not_a_number(subject: Subject) -> None:
    """One NaN on a side that it looks at: an `InputError`, or a NaN where that is promised."""
    _refused(subject, math.nan)


def infinity(subject: Subject) -> None:
    """One inf or −inf on a side that it looks at: an `InputError`, or a NaN where that is promised."""
    _refused(subject, math.inf)
    _refused(subject, -math.inf)


def _refused(subject: Subject, bad: float) -> None:
    for side in (0, 1):
        if not _looks_at(subject, side):
            continue
        pair = subject.pair()
        pair[side][3, 2] = bad
        try:
            found = subject.read(*pair)
        except InputError:
            continue
        if not any(math.isnan(number) for number in found.values()):
            numbers = ", ".join(f"{number:.3g}" for number in found.values())
            raise GaugeError(f"{bad} in {'xy'[side]}: expected an InputError, got {numbers}")


def _looks_at(subject: Subject, side: int) -> bool:
    """Whether the values change when that side becomes another, or zero."""
    plain = subject.pair()
    expected = subject.read(*plain)
    others = (subject.pair(seed=1)[side], torch.zeros_like(plain[side]))
    changed = [(other, plain[1]) if side == 0 else (plain[0], other) for other in others]
    return any(subject.read_unless_refused(*pair) != expected for pair in changed)
