"""The checks of a gauge: as a list for a test runner, or in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges.gauge import LABELS, Gauge, values_of
from fathometer.gauges.registry import GaugeChoice, choose_gauges
from fathometer.testing.promises import GaugeError, Promises, Subject, draw_samples

_SHAPES = ((40, 6), (10, 24))

CHECKS: dict[str, Callable[[Subject], None]] = {}
"""Every check by its name, in order; the last three only where something is promised."""


def _check(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
    CHECKS[function.__name__] = function
    return function


@dataclass(frozen=True)
class Check:
    """One check of one gauge. Called, it raises a `GaugeError`, or what the gauge raised, if that fails."""

    name: str
    subject: Subject

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Make the check."""
        CHECKS[self.name](self.subject)


def gauge_checks(
    gauge: GaugeChoice, promises: Promises | None = None, *, device: str | torch.device = "cpu"
) -> list[Check]:
    """Return all checks of a gauge, to be called one by one, e.g. as parameters of a test.

    With pytest: `@pytest.mark.parametrize("check", gauge_checks(mine), ids=str)`, and `check()` in the test.
    The arguments are those of `check_gauge`.
    """
    if isinstance(gauge, str):
        record, *others = choose_gauges(gauge).values()
        if others:
            raise InputError(f"expected one gauge, got {gauge!r}", parameter="gauge")
    else:
        record = gauge if isinstance(gauge, Gauge) else Gauge.from_function(gauge)
    if LABELS in record.needs:
        raise InputError(
            f"expected a gauge of x and y alone, got {record.name}, which needs labels; check a function of "
            "x and y that makes labels from the samples, e.g. labels=(x[:, 0] > 0).long()",
            parameter="gauge",
        )
    promises = promises or Promises()
    applies = {
        "devices": torch.cuda.is_available(),
        "batches": record.batched,
        "derivatives": promises.gradients,
        "invariances": any(getattr(promises, change) != "neither" for change in _CHANGES),
    }
    subject = Subject(record, promises, torch.device(device))
    return [Check(name, subject) for name in CHECKS if applies.get(name, True)]


def check_gauge(
    gauge: GaugeChoice,
    promises: Promises | None = None,
    *,
    skip: Collection[str] = (),
    device: str | torch.device = "cpu",
) -> list[str]:
    """Try a gauge on pairs that break gauges, and hold it to its range and its promises.

    Args:
        gauge: a function of X and Y, the name of a gauge of the package, or a `Gauge`, which has a range:
            `Gauge.from_function(mine, range=(0, 1))`.
        promises: what must not matter to it; by default nothing is promised.
        skip: names of checks to leave out.
        device: where the pairs are.

    Returns:
        The names of the checks that it passed, if none failed.

    Raises:
        GaugeError: an `AssertionError` that names every check that failed.

    Example:
        >>> "order_of_samples" in check_gauge("cka")
        True
        >>> def share_of_zeros(x, y):
        ...     return (y == 0).float().mean()
        >>> check_gauge(Gauge.from_function(share_of_zeros, range=(0, 1)))
        Traceback (most recent call last):
            ...
        fathometer.testing.promises.GaugeError: share_of_zeros fails 1 of 9 checks:
          not_finite: nan in y: expected an InputError, got 0.717
    """
    if unknown := set(skip) - set(CHECKS):
        raise InputError(
            f"expected some of {', '.join(CHECKS)}; got {', '.join(sorted(unknown))}", parameter="skip"
        )
    checks = [check for check in gauge_checks(gauge, promises, device=device) if check.name not in skip]
    failed = {}
    for check in checks:
        try:
            check()
        except GaugeError as error:
            failed[check.name] = str(error)
        except Exception as error:  # the user's code
            failed[check.name] = f"it raised {error!r}"
    if failed:
        title = f"{checks[0].subject.gauge.name} fails {len(failed)} of {len(checks)} checks:"
        raise GaugeError("\n".join([title, *(f"  {name}: {why}" for name, why in failed.items())]))
    return [check.name for check in checks]


@_check
def usual(subject: Subject) -> None:
    """A usual pair of a ReLU, a Tanh, a square, an affine map or a copy gives numbers in the range."""
    for seed in range(3):
        x, relu = subject.pair(seed=seed)
        for y in (relu, x.tanh(), x.square(), 3 - 2 * x, x.clone()):
            subject.read(x, y)


@_check
def shapes(subject: Subject) -> None:
    """Few samples, one feature, as many samples as features: the same names, or a `FathometerError`."""
    expected = list(subject.read(*subject.pair()))
    for n, d in ((2, 1), (2, 2), (2, 5), (8, 40), (12, 12), (13, 12), (20, 30), (30, 1)):
        found = subject.read_unless_refused(*subject.pair(n, d))
        if found is not None and list(found) != expected:
            raise GaugeError(f"expected the names {expected} of a pair [{n}, {d}] too, got {list(found)}")


@_check
def degenerate(subject: Subject) -> None:
    """Constant features, repeated samples and samples on one line: numbers, or a `FathometerError`."""
    x, _ = subject.pair(12, 5)
    pairs = [(rows, rows.relu()) for rows in (x[torch.arange(24, device=x.device) % 12], x[[0] * 12])]
    for n, d in ((40, 6), (6, 40)):
        x, _ = subject.pair(n, d)
        line = x[:, :1] * x[:1]
        pairs += [(rows, rows.relu()) for rows in (line, line + 1)]
    for value in (0.0, 0.1, -3.0):
        x, _ = subject.pair()
        x[:, ::2] = value
        constant = torch.full_like(x, value)
        pairs += [(x, x.relu()), (x, constant), (constant, constant.relu()), (constant, x)]
    for pair in pairs:
        subject.read_unless_refused(*pair)


@_check
def not_finite(subject: Subject) -> None:
    """One NaN or inf on a side that it looks at gives an `InputError`, or NaN where that is promised."""
    for side in (0, 1):
        if not _looks_at(subject, side):
            continue
        for bad in (math.nan, math.inf, -math.inf):
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
    """Tell whether the values change when that side becomes another, or zero."""
    plain = subject.pair()
    expected = subject.read(*plain)
    others = (subject.pair(seed=1)[side], torch.zeros_like(plain[side]))
    changed = [(other, plain[1]) if side == 0 else (plain[0], other) for other in others]
    return any(subject.read_unless_refused(*pair) != expected for pair in changed)


@_check
def dtypes(subject: Subject) -> None:
    """A pair in float32, float16 or bfloat16 gives what it gives in float64, up to the rounding."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        tolerance = max(subject.promises.tolerance, (4 * torch.finfo(dtype).eps) ** 2)
        for n, d in _SHAPES:
            x = subject.pair(n, d)[0].to(dtype)
            y = x.relu()
            found = subject.read_unless_refused(x, y)
            expected = subject.read_unless_refused(x.double(), y.double())
            subject.require_same(found, expected, f"a pair [{n}, {d}] in {dtype}", tolerance)


@_check
def devices(subject: Subject) -> None:
    """A GPU gives what a CPU gives."""
    for n, d in ((40, 6), (30, 1), (12, 12), (10, 24), (8, 40)):
        pair = subject.pair(n, d)
        here, there = ([side.to(device) for side in pair] for device in ("cpu", "cuda"))
        found, expected = (subject.read_unless_refused(*sides) for sides in (there, here))
        subject.require_same(found, expected, f"a pair [{n}, {d}] on a GPU")


@_check
def extreme_values(subject: Subject) -> None:
    """Values of 1e-20 and 1e20: numbers, or a `FathometerError`; if scale does not matter, the same."""
    sides = subject.promises.scale
    for size in (1e-20, 1e20):
        for dtype in (torch.float64, torch.float32):
            x, y = (side.to(dtype) for side in subject.pair())
            plain = subject.read(x, y)
            for first, second in ((size, size), (size, 1.0), (1.0, size)):
                pair = first * x, second * y
                if sides == "each" or (sides == "both" and first == second):
                    what = f"x times {first:g}, y times {second:g}"
                    subject.require_same(subject.read(*pair), plain, what)
                else:
                    subject.read_unless_refused(*pair)


@_check
def order_of_samples(subject: Subject) -> None:
    """The samples in another order, the same on both sides, give the same."""
    for n, d in _SHAPES:
        x, y = subject.pair(n, d)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(x.device)
        expected = subject.read_unless_refused(x, y)
        subject.require_same(subject.read_unless_refused(x[order], y[order]), expected, "in another order")


@_check
def repeatable(subject: Subject) -> None:
    """Twice the same, to the last bit on a CPU, and no random number is drawn from torch's own state."""
    generators = [torch.default_generator]
    if subject.device.type == "cuda":
        torch.cuda.init()  # which makes the generators
        generators.append(torch.cuda.default_generators[torch.cuda.current_device()])
    pair = subject.pair()
    readings = []
    with torch.random.fork_rng():
        for seed in (1, 2):
            torch.manual_seed(seed)
            before = [generator.get_state() for generator in generators]
            readings.append(subject.read(*pair))
            if not all(map(torch.equal, before, [generator.get_state() for generator in generators])):
                raise GaugeError(
                    "expected torch's random state as it was; draw from a torch.Generator of your own"
                )
    exact = 0.0 if subject.device.type == "cpu" else None
    subject.require_same(readings[1], readings[0], "a second time", exact)


@_check
def threads(subject: Subject) -> None:
    """Called from several threads at once it gives what it gives alone."""
    shapes = 2 * ((40, 6), (40, 9), (10, 24), (30, 1))
    pairs = [subject.pair(n, d, seed=seed) for seed, (n, d) in enumerate(shapes)]
    alone = [subject.read_unless_refused(*pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: subject.read_unless_refused(*pair), pairs))
    for mine, expected in zip(found, alone, strict=True):
        subject.require_same(mine, expected, "in threads")


@_check
def invariances(subject: Subject) -> None:
    """What is promised not to matter does not: shift, translation, scale, rotation."""
    for change, function in _CHANGES.items():
        sides = getattr(subject.promises, change)
        for n, d in _SHAPES if sides != "neither" else ():
            x, y = subject.pair(n, d)
            changed = {"both sides": (function(x, 0), function(y, 0))}
            if sides == "each":
                changed["x"] = function(x, 0), y
                changed["y"] = x, function(y, 0)
                changed["each side"] = function(x, 0), function(y, 1)
            expected = subject.read_unless_refused(x, y)
            for which, pair in changed.items():
                found = subject.read_unless_refused(*pair)
                subject.require_same(found, expected, f"{change} of {which}")


def _drawn(n: int, like: Tensor, seed: int) -> Tensor:
    return draw_samples(n, like.shape[-1], seed + 1).to(like.device)


_CHANGES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "shift": lambda a, seed: a + (3.5, -0.7)[seed],
    "translate": lambda a, seed: a + 5 * _drawn(1, a, seed),
    "scale": lambda a, seed: a * (1e-3, 70)[seed],
    "rotate": lambda a, seed: a @ torch.linalg.qr(_drawn(a.shape[-1], a, seed))[0],
}


@_check
def batches(subject: Subject) -> None:
    """A batch `[batch, samples, features]`, in any order, gives what its items give alone."""
    for n, d in ((40, 6), (12, 12), (10, 24)):
        x = torch.stack([draw_samples(n, d, seed) for seed in range(4)]).to(subject.device)
        x[2, :, 0] = x[2, 0, 0]
        y = torch.stack([x[0].relu(), x[1].tanh(), x[2].square(), torch.zeros_like(x[3])])
        alone = [subject.read_unless_refused(*pair) for pair in zip(x, y, strict=True)]
        for whole in ([0, 1, 2, 3], [3, 1, 0, 2]):
            order = [item for item in whole if alone[item] is not None]
            if not order:
                continue
            columns = {
                name: torch.as_tensor(column)
                for name, column in values_of(subject.gauge(x[order], y[order])).items()
            }
            for column in columns.values():
                if column.shape != (len(order),):
                    raise GaugeError(
                        f"expected a value for each of {len(order)} items, got shape {list(column.shape)}"
                    )
            for index, item in enumerate(order):
                row = {name: float(column[index]) for name, column in columns.items()}
                subject.require_same(row, alone[item], f"item {item} of a batch [{len(order)}, {n}, {d}]")


@_check
def derivatives(subject: Subject) -> None:
    """Gradients in X and Y are those of finite differences, in float64."""
    function = subject.gauge.function
    for n, d in ((12, 3), (9, 1), (4, 9)):
        x, y = subject.pair(n, d)
        y = y + 0.2 * subject.pair(n, d, seed=1)[0]
        if subject.read_unless_refused(x, y) is None:
            continue

        def values(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            numbers = list(values_of(function(a, b)).values())
            if not all(isinstance(number, Tensor) and number.requires_grad for number in numbers):
                raise GaugeError("expected tensors with gradients, got numbers without")
            return tuple(torch.as_tensor(number) for number in numbers)

        torch.autograd.gradcheck(values, (x.requires_grad_(), y.requires_grad_()))
