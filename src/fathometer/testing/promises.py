"""What a gauge promises of its values: their range, what leaves them alone, what they are good for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from fathometer.errors import FathometerError, InputError
from fathometer.gauges.ranges import Range

Sides: TypeAlias = Literal["neither", "both", "each"]
"""Nothing is promised; the same change of both sides does not matter; nor does one of either alone."""


class GaugeError(FathometerError, AssertionError):
    """A gauge does not keep what it promises. It is an `AssertionError` too, as test runners expect."""


@dataclass(frozen=True)
class Promises:
    """What a gauge is held to by `check_gauge`, beyond the checks that are made of every gauge.

    Args:
        range: the least and the largest value, or such a range for each name that the gauge gives. A bound is
            a number or a function of n and d, e.g. `(0, lambda n, d: min(n, d))` for a rank.
        infinite: whether it may give inf where no finite number is right.
        missing: whether it may give NaN where there is no number. It may then also pass a NaN of its
            input on, which it must otherwise refuse with an `InputError`.
        shift: whether one number, added to all entries, does not matter.
        translate: whether a number of its own, added to each feature, does not matter.
        scale: whether a factor above 0 does not matter.
        rotate: whether a rotation of the features does not matter.
        batches: whether it also takes `[batch, samples, features]` and gives `[batch]`.
        gradients: whether it can be differentiated in X and Y.
        tolerance: by which two values that should be equal may differ, relative to the larger of them and 1.
        expected_failures: names of checks that it fails, with the reason; one that it passes is a failure,
            and one that is not made, since nothing is promised, an `InputError`.

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
    expected_failures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for change in ("shift", "translate", "scale", "rotate"):
            if getattr(self, change) not in get_args(Sides):
                raise InputError(
                    f"{change}: expected one of {', '.join(get_args(Sides))}, got {getattr(self, change)!r}"
                )

        for low, high in self.range.values() if isinstance(self.range, Mapping) else [self.range]:
            if not callable(low) and not callable(high) and not low <= high:
                raise InputError(f"range: expected the least value, then the largest, got {low}, {high}")

    def range_of(self, name: str, n: int, d: int) -> tuple[float, float]:
        """The range of one value of a pair `[n, d]`."""
        if isinstance(self.range, Mapping):
            if name not in self.range:
                raise GaugeError(f"expected values named {', '.join(self.range)}, got {name!r}")
            low, high = self.range[name]
        else:
            low, high = self.range
        return (low(n, d) if callable(low) else low), (high(n, d) if callable(high) else high)
