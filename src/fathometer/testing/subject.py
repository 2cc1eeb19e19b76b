"""A gauge under test: pairs for it, its values, and what they are held to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.errors import FathometerError
from fathometer.gauges.registry import Gauge, read_together
from fathometer.testing.promises import GaugeError, Promises

Reader: TypeAlias = (
    "Callable[[Mapping[str, Gauge], Mapping[str, tuple[Tensor, Tensor]]], list[dict[str, float]]]"
)

_ROUNDING = 1e-12  # of a bound, by which a value may miss it


@dataclass(frozen=True)
class Subject:
    """A gauge, its promises, and the device that it is tried on."""

    gauge: Gauge
    promises: Promises
    device: torch.device

    def pair(self, n: int = 40, d: int = 6, *, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Correlated samples of uneven scale, each feature with a mean of its own, and their ReLU."""
        x = samples(n, d, seed).to(self.device)
        return x, x.relu()

    @torch.no_grad()
    def read(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """The values by name, each a number that was promised."""
        found = self.gauge(x, y)
        values = found if isinstance(found, Mapping) else {"": found}
        numbers = {name: _number(value, name) for name, value in values.items()}
        if not numbers:
            raise GaugeError("expected a number, or a mapping of them, got an empty one")
        self._hold_to_promises(numbers, x)
        return numbers

    def read_many(
        self, pairs: Sequence[tuple[Tensor, Tensor]], how: Reader = read_together
    ) -> list[dict[str, float]]:
        """The values of many pairs, read in batches or `read_one_by_one`."""
        rows = how({"": self.gauge}, {str(place): pair for place, pair in enumerate(pairs)})
        rows = [{column.removeprefix("_"): number for column, number in row.items()} for row in rows]
        for numbers, (x, _) in zip(rows, pairs, strict=True):
            self._hold_to_promises(numbers, x)
        return rows

    def read_unless_refused(self, x: Tensor, y: Tensor) -> dict[str, float] | None:
        """The values; none where the gauge refuses the pair by a `FathometerError`."""
        try:
            return self.read(x, y)
        except GaugeError:
            raise
        except FathometerError:
            return None

    def same(
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
            low, high = self.promises.range_of(name, n, d)
            if not low - _slack(low) <= number <= high + _slack(high):
                raise GaugeError(f"expected {_named(name)}{low:g} to {high:g} {pair}, got {number:.17g}")


def samples(n: int, d: int, seed: int) -> Tensor:
    """Seeded float64 samples that look like activations, on the CPU."""
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
