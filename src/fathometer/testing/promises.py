"""What a gauge promises, and its values on pairs that are made to break it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import FathometerError, check_choice
from fathometer.gauges.gauge import Gauge, bounds_of, values_of

Sides: TypeAlias = Literal["neither", "both", "each"]
"""Nothing is promised; the same change of both sides does not matter; nor does one of either alone."""

_ROUNDING = 1e-12  # of a bound, by which a value may miss it


class GaugeError(FathometerError, AssertionError):
    """A gauge does not keep what it promises. It is an `AssertionError` too, as test runners expect."""


@dataclass(frozen=True)
class Promises:
    """What must not change the value of a gauge. Its range is declared by its `Gauge`.

    Args:
        shift: whether one number, added to all entries, does not matter.
        translate: whether a number of its own, added to each feature, does not matter.
        scale: whether a factor above 0 does not matter.
        rotate: whether a rotation of the features does not matter.
        gradients: whether it can be differentiated in X and Y.
        missing: whether it may give NaN where there is no number. It may then also pass on a NaN of its
            input, which it must otherwise refuse with an `InputError`.
        tolerance: by which two values that should be equal may differ, relative to the larger of them and 1.

    Example:
        >>> Promises(scale="both").scale
        'both'
    """

    shift: Sides = "neither"
    translate: Sides = "neither"
    scale: Sides = "neither"
    rotate: Sides = "neither"
    gradients: bool = False
    missing: bool = False
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        for change in ("shift", "translate", "scale", "rotate"):
            check_choice(change, getattr(self, change), Sides)


@dataclass(frozen=True)
class Subject:
    """A gauge under test, its promises, and the device to try it on."""

    gauge: Gauge
    promises: Promises
    device: torch.device

    def pair(self, n: int = 40, d: int = 6, *, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Return correlated samples of uneven scale, each feature with a mean of its own, and their ReLU."""
        x = draw_samples(n, d, seed).to(self.device)
        return x, x.relu()

    def read(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Return the values by name, each in its range."""
        numbers = {name: float(value) for name, value in values_of(self.gauge(x, y)).items()}
        if not numbers:
            raise GaugeError("expected a number, or a mapping of them, got an empty one")
        declared = self.gauge.range
        ranges = declared if isinstance(declared, Mapping) else dict.fromkeys(numbers, declared)
        for name, number in numbers.items():
            if name not in ranges:
                raise GaugeError(f"expected values named {', '.join(ranges)}, got {name!r}")
            if math.isnan(number) and self.promises.missing:
                continue
            low, high = bounds_of(ranges[name], *x.shape)
            nearest = min(max(number, low), high)
            fits = math.isclose(number, nearest, rel_tol=_ROUNDING, abs_tol=_ROUNDING)  # False for NaN
            if not fits or (math.isinf(number) and not self.gauge.infinite):
                raise GaugeError(
                    f"a pair {list(x.shape)}: expected a finite number from {low:g} to {high:g}, "
                    f"got {_prefix(name)}{number:.17g}"
                )
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
                raise GaugeError(f"{what}: expected {_prefix(name)}{value:.9g}, got {other:.9g}")


def draw_samples(n: int, d: int, seed: int) -> Tensor:
    """Draw seeded float64 samples that look like activations, on the CPU."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    mixed = normal(n, d) @ (normal(d, d) / d**0.5) * normal(d).exp()
    return mixed + normal(d)


def _prefix(name: str) -> str:
    return f"{name} = " if name else ""
