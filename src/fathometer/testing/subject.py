"""A gauge under test: what it promises, pairs for it, and its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from fathometer.errors import FathometerError, InputError
from fathometer.gauges.gauge import Gauge, GaugeValue, Range, bounds_of, values_of

Sides: TypeAlias = Literal["neither", "both", "each"]
"""Nothing is promised; the same change of both sides does not matter; nor does one of either alone."""

_ROUNDING = 1e-12  # of a bound, by which a value may miss it


class GaugeError(FathometerError, AssertionError):
    """A gauge does not keep what it promises. It is an `AssertionError` too, as test runners expect."""


@dataclass(frozen=True)
class Promises:
    """What a gauge is held to by `check_gauge`, beyond the checks that are made of every gauge.

    Args:
        range: the least and the largest value, or such a range for each name that the gauge gives. A bound is
            a number or a function of n and d, e.g. `(0, lambda n, d: min(n, d))` for a rank.
        infinite: whether it may give inf where no finite number is right.
        missing: whether it may give NaN where there is no number. It may then also pass on a NaN of its
            input, which it must otherwise refuse with an `InputError`.
        shift: whether one number, added to all entries, does not matter.
        translate: whether a number of its own, added to each feature, does not matter.
        scale: whether a factor above 0 does not matter.
        rotate: whether a rotation of the features does not matter.
        batches: whether it also takes `[batch, samples, features]` and gives `[batch]`.
        gradients: whether it can be differentiated in X and Y.
        tolerance: by which two values that should be equal may differ, relative to the larger of them and 1.

    Example:
        >>> Promises(range=(0, 1), scale="both").scale
        'both'
    """

    range: Range | Mapping[str, Range] = (-math.inf, math.inf)
    infinite: bool = False
    missing: bool = False
    shift: Sides = "neither"
    translate: Sides = "neither"
    scale: Sides = "neither"
    rotate: Sides = "neither"
    batches: bool = False
    gradients: bool = False
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        for change in ("shift", "translate", "scale", "rotate"):
            given = getattr(self, change)
            if given not in get_args(Sides):
                raise InputError(
                    f"expected one of {', '.join(get_args(Sides))}, got {given!r}", parameter=change
                )
        for low, high in self.range.values() if isinstance(self.range, Mapping) else [self.range]:
            if not callable(low) and not callable(high) and not low <= high:
                raise InputError(
                    f"expected the least value, then the largest, got {low}, {high}", parameter="range"
                )


@dataclass(frozen=True)
class Subject:
    """A gauge, the function of X and Y that computes it, its promises, and the device to try it on."""

    gauge: Gauge
    function: Callable[[Tensor, Tensor], GaugeValue]
    promises: Promises
    device: torch.device

    def pair(self, n: int = 40, d: int = 6, *, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Return correlated samples of uneven scale, each feature with a mean of its own, and their ReLU."""
        x = draw_samples(n, d, seed).to(self.device)
        return x, x.relu()

    @torch.no_grad()
    def read(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Return the values by name, each as promised. The gauge gets copies, as in `measure`."""
        values = values_of(self.function(x.clone(), y.clone()))
        numbers = {name: _number(value, name) for name, value in values.items()}
        if not numbers:
            raise GaugeError("expected a number, or a mapping of them, got an empty one")
        self._hold_to_promises(numbers, x)
        return numbers

    def read_unless_refused(self, x: Tensor, y: Tensor) -> dict[str, float] | None:
        """Return the values; None where the gauge refuses the pair by a `FathometerError`."""
        try:
            return self.read(x, y)
        except GaugeError:
            raise
        except FathometerError:
            return None

    def require_same(
        self,
        found: Mapping[str, float] | None,
        expected: Mapping[str, float] | None,
        what: str,
        tolerance: float | None = None,
    ) -> None:
        """Refuse values that differ by more than the tolerance; where one pair is refused, both must be."""
        tolerance = self.promises.tolerance if tolerance is None else tolerance
        if found is None or expected is None:
            if found is not expected:
                raise GaugeError(f"{what}: {'it was refused' if found is None else 'it was not refused'}")
            return
        if list(found) != list(expected):
            raise GaugeError(f"{what}: expected the names {list(expected)}, got {list(found)}")
        for name, value in expected.items():
            other = found[name]
            equal = value == other or (math.isnan(value) and math.isnan(other))
            if not equal and not abs(value - other) <= tolerance * max(1.0, abs(value), abs(other)):
                raise GaugeError(f"{what}: expected {_named(name)}{value:.9g}, got {other:.9g}")

    def _hold_to_promises(self, numbers: Mapping[str, float], x: Tensor) -> None:
        n, d = x.shape
        pair = f"of a pair [{n}, {d}]"
        for name, number in numbers.items():
            if math.isnan(number) and self.promises.missing:
                continue
            if math.isnan(number) or (math.isinf(number) and not self.promises.infinite):
                raise GaugeError(f"expected a finite number {pair}, got {_named(name)}{number}")
            ranges = self.promises.range
            if isinstance(ranges, Mapping) and name not in ranges:
                raise GaugeError(f"expected values named {', '.join(ranges)}, got {name!r}")
            low, high = bounds_of(ranges[name] if isinstance(ranges, Mapping) else ranges, n, d)
            if not low - _slack(low) <= number <= high + _slack(high):
                raise GaugeError(f"expected {_named(name)}{low:g} to {high:g} {pair}, got {number:.17g}")


def draw_samples(n: int, d: int, seed: int) -> Tensor:
    """Draw seeded float64 samples that look like activations, on the CPU."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    mixed = normal(n, d) @ (normal(d, d) / d**0.5) * normal(d).exp()
    return mixed + normal(d)


def _number(value: object, name: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError) as error:
        raise GaugeError(f"expected {_named(name)}a number, got {value!r}") from error


def _named(name: str) -> str:
    return f"{name} = " if name else ""


def _slack(bound: float) -> float:
    return _ROUNDING * max(1.0, abs(bound)) if math.isfinite(bound) else 0.0
