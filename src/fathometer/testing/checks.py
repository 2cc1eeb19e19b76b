"""The checks of a gauge: as a list for a test runner, or in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from unittest import SkipTest

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges.gauge import Gauge, values_of
from fathometer.gauges.registry import GaugeChoice, choose_gauges
from fathometer.testing.subject import GaugeError, Promises, Sides, Subject, draw_samples

_SHAPES = ((40, 6), (10, 24))


@dataclass(frozen=True)
class Check:
    """One check of one gauge. Called, it raises a `GaugeError` if the gauge fails.

    Attributes:
        name: the name of the check.
        demands: what it asks for, in words.
    """

    name: str
    demands: str
    subject: Subject

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Make the check; raise if it fails, or `unittest.SkipTest` if it cannot be made here."""
        try:
            CHECKS[self.name](self.subject)
        except (GaugeError, SkipTest):
            raise
        except Exception as error:  # the user's code
            raise GaugeError(f"it raised {error!r}") from error


def gauge_checks(
    gauge: GaugeChoice, promises: Promises | None = None, *, device: str | torch.device = "cpu"
) -> list[Check]:
    """Return all checks of a gauge, to be called one by one, e.g. as parameters of a test.

    With pytest: `@pytest.mark.parametrize("check", gauge_checks(mine), ids=str)`, and `check()` in the test.

    Args:
        gauge: a function of X and Y, or the name of one of the package's.
        promises: what it is held to; by default the range of a gauge of the package, nothing for another.
        device: where the pairs are.
    """
    if isinstance(gauge, str):
        (record,) = choose_gauges(gauge).values()
    else:
        record = gauge if isinstance(gauge, Gauge) else Gauge.from_function(gauge)
    if promises is None:
        promises = Promises(range=record.range, infinite=record.infinite, batches=record.batched)
    if not isinstance(promises, Promises):
        raise InputError(f"expected Promises(…), got {type(promises).__name__}", parameter="promises")
    subject = Subject(record, record if isinstance(gauge, str) else gauge, promises, torch.device(device))
    promised = {
        "shift": promises.shift != "neither",
        "translate": promises.translate != "neither",
        "scale": promises.scale != "neither",
        "rotate": promises.rotate != "neither",
        "batches": promises.batches,
        "derivatives": promises.gradients,
    }
    return [
        Check(name, " ".join(str(check.__doc__).split()), subject)
        for name, check in CHECKS.items()
        if promised.get(name, True)
    ]


def check_gauge(
    gauge: GaugeChoice,
    promises: Promises | None = None,
    *,
    skip: Collection[str] = (),
    device: str | torch.device = "cpu",
) -> list[str]:
    """Try a gauge on pairs that break gauges, and hold it to its promises.

    Args:
        gauge: a function of X and Y, or the name of one of the package's.
        promises: what it is held to; by default the range of a gauge of the package, nothing for another.
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
        >>> check_gauge(share_of_zeros, Promises(range=(0, 1)))
        Traceback (most recent call last):
            ...
        fathometer.testing.subject.GaugeError: share_of_zeros fails 1 of 9 checks:
          not_finite: nan in y: expected an InputError, got 0.717
    """
    checks = gauge_checks(gauge, promises, device=device)
    if unknown := set(skip) - set(CHECKS):
        raise InputError(
            f"expected some of {', '.join(CHECKS)}; got {', '.join(sorted(unknown))}", parameter="skip"
        )
    passed, failed = [], []
    for check in checks:
        if check.name in skip:
            continue
        try:
            check()
        except SkipTest:
            continue
        except GaugeError as error:
            failed.append(f"  {check.name}: {error}")
        else:
            passed.append(check.name)
    if failed:
        name = checks[0].subject.gauge.name
        made = len(passed) + len(failed)
        raise GaugeError("\n".join([f"{name} fails {len(failed)} of {made} checks:", *failed]))
    return passed


def usual(subject: Subject) -> None:
    """A usual pair of a ReLU, a Tanh, a square, an affine map or a copy gives numbers in the range."""
    for seed in range(3):
        x, relu = subject.pair(seed=seed)
        for y in (relu, x.tanh(), x.square(), 3 - 2 * x, x.clone()):
            subject.read(x, y)


def shapes(subject: Subject) -> None:
    """Few samples, one feature, as many samples as features: the same names, or a `FathometerError`."""
    expected = list(subject.read(*subject.pair()))
    for n, d in ((2, 1), (2, 2), (2, 5), (8, 40), (12, 12), (13, 12), (20, 30), (30, 1)):
        found = subject.read_unless_refused(*subject.pair(n, d))
        if found is not None and list(found) != expected:
            raise GaugeError(f"expected the names {expected} of a pair [{n}, {d}] too, got {list(found)}")


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


def dtypes(subject: Subject) -> None:
    """A pair in float32, float16 or bfloat16 gives what the same numbers give in float64."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for n, d in _SHAPES:
            x = subject.pair(n, d)[0].to(dtype)
            y = x.relu()
            found = subject.read_unless_refused(x, y)
            expected = subject.read_unless_refused(x.double(), y.double())
            subject.require_same(found, expected, f"a pair [{n}, {d}] in {dtype}")


def devices(subject: Subject) -> None:
    """A GPU gives what a CPU gives."""
    if not torch.cuda.is_available():
        raise SkipTest("there is no CUDA device")
    for n, d in ((40, 6), (30, 1), (12, 12), (10, 24), (8, 40)):
        pair = subject.pair(n, d)
        here, there = ([side.to(device) for side in pair] for device in ("cpu", "cuda"))
        found, expected = (subject.read_unless_refused(*sides) for sides in (there, here))
        subject.require_same(found, expected, f"a pair [{n}, {d}] on a GPU")


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


def order_of_samples(subject: Subject) -> None:
    """The samples in another order, the same on both sides, give the same."""
    for n, d in _SHAPES:
        x, y = subject.pair(n, d)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(x.device)
        expected = subject.read_unless_refused(x, y)
        subject.require_same(subject.read_unless_refused(x[order], y[order]), expected, "in another order")


def repeatable(subject: Subject) -> None:
    """Twice the same, to the last bit on a CPU, and no random number is drawn from torch's own state."""
    generators = [torch.default_generator]
    if subject.device.type == "cuda":
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


def threads(subject: Subject) -> None:
    """Called from several threads at once it gives what it gives alone."""
    shapes = 2 * ((40, 6), (40, 9), (10, 24), (30, 1))
    pairs = [subject.pair(n, d, seed=seed) for seed, (n, d) in enumerate(shapes)]
    alone = [subject.read_unless_refused(*pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: subject.read_unless_refused(*pair), pairs))
    for mine, expected in zip(found, alone, strict=True):
        subject.require_same(mine, expected, "in threads")


def shift(subject: Subject) -> None:
    """One number, added to all entries, does not matter."""
    _unchanged(subject, subject.promises.shift, lambda a, seed: a + (3.5, -0.7)[seed])


def translate(subject: Subject) -> None:
    """A number of its own, added to each feature, does not matter."""
    _unchanged(subject, subject.promises.translate, lambda a, seed: a + 5 * _drawn(1, a, seed))


def scale(subject: Subject) -> None:
    """A factor above 0 does not matter."""
    _unchanged(subject, subject.promises.scale, lambda a, seed: a * (1e-3, 70)[seed])


def rotate(subject: Subject) -> None:
    """A rotation of the features does not matter."""
    _unchanged(
        subject, subject.promises.rotate, lambda a, seed: a @ torch.linalg.qr(_drawn(a.shape[-1], a, seed))[0]
    )


def _drawn(n: int, like: Tensor, seed: int) -> Tensor:
    return draw_samples(n, like.shape[-1], seed + 1).to(like.device)


def _unchanged(subject: Subject, sides: Sides, change: Callable[[Tensor, int], Tensor]) -> None:
    for n, d in _SHAPES:
        x, y = subject.pair(n, d)
        changed = {"both sides": (change(x, 0), change(y, 0))}
        if sides == "each":
            changed |= {
                "x": (change(x, 0), y),
                "y": (x, change(y, 0)),
                "each side": (change(x, 0), change(y, 1)),
            }
        expected = subject.read_unless_refused(x, y)
        for which, pair in changed.items():
            subject.require_same(subject.read_unless_refused(*pair), expected, f"{which} changed")


@torch.no_grad()
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
                for name, column in values_of(subject.function(x[order], y[order])).items()
            }
            for column in columns.values():
                if column.shape != (len(order),):
                    raise GaugeError(
                        f"expected a value for each of {len(order)} items, got shape {list(column.shape)}"
                    )
            for place, item in enumerate(order):
                row = {name: float(column[place]) for name, column in columns.items()}
                subject.require_same(row, alone[item], f"item {item} of a batch [{len(order)}, {n}, {d}]")


def derivatives(subject: Subject) -> None:
    """Gradients in X and Y are those of finite differences, in float64."""
    for n, d in ((12, 3), (9, 1), (4, 9)):
        x, y = subject.pair(n, d)
        y = y + 0.2 * subject.pair(n, d, seed=1)[0]
        if subject.read_unless_refused(x, y) is None:
            continue

        def values(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            numbers = list(values_of(subject.function(a, b)).values())
            if not all(isinstance(number, Tensor) and number.requires_grad for number in numbers):
                raise GaugeError("expected tensors with gradients, got numbers without")
            return tuple(torch.as_tensor(number) for number in numbers)

        try:
            torch.autograd.gradcheck(values, (x.requires_grad_(), y.requires_grad_()))
        except torch.autograd.gradcheck.GradcheckError as error:  # type: ignore[attr-defined]
            raise GaugeError(f"a pair [{n}, {d}]: {error}") from error


CHECKS: dict[str, Callable[[Subject], None]] = {
    check.__name__: check
    for check in (
        usual,
        shapes,
        degenerate,
        not_finite,
        dtypes,
        devices,
        extreme_values,
        order_of_samples,
        repeatable,
        threads,
        shift,
        translate,
        scale,
        rotate,
        batches,
        derivatives,
    )
}
"""Every check by its name; the last six only where something is promised."""
