"""Error bars: intervals of means over seeds, and how a test by such an interval is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, stdtrit

from papers.item import Numbers, Simulation, Value


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float
    number: int  # number of values, or of groups

    def __str__(self) -> str:
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"


def mean_interval(values: npt.ArrayLike) -> Interval:
    """Compute mean ± t s/√n with Student's t; for one value the interval is infinite.

    Example:
        >>> print(mean_interval([1.0, 2.0, 3.0]))
        2 (-0.484 to 4.48)
    """
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count < 2:
        return Interval(mean, -np.inf, np.inf, count)
    half = float(stdtrit(count - 1, 0.975) * array.std(ddof=1) / np.sqrt(count))
    return Interval(mean, mean - half, mean + half, count)


Range: TypeAlias = Literal["any", "correlation", "share"]
"""What values can be: any number, from −1 to 1, or from 0 to 1. An interval stays within."""

_EDGE = 1e-3  # a correlation of ±1, or a share of 0 or 1, counts as so far from it: its transform is infinite


def _to_line(values: npt.ArrayLike, within: Range) -> npt.NDArray[np.float64]:
    """Map values to the whole line: by Fisher's z for correlations, the logit for shares."""
    array = np.asarray(values, dtype=float)
    if within == "correlation":
        return np.arctanh(np.clip(array, _EDGE - 1, 1 - _EDGE))
    return logit(np.clip(array, _EDGE, 1 - _EDGE)) if within == "share" else array


def _from_line(values: npt.ArrayLike, within: Range) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=float)
    return np.tanh(array) if within == "correlation" else expit(array) if within == "share" else array


def bounded_interval(values: npt.ArrayLike, within: Range = "any") -> Interval:
    """Compute a mean and its interval within the possible range, on the scale of Fisher's z or of the logit.

    Example:
        >>> print(bounded_interval([-1.0, -0.98, -0.99, -1.0], "correlation"))
        -0.996 (-1 to -0.956)
    """
    array = np.asarray(values, dtype=float)
    if len(array) > 1 and np.ptp(array) == 0:  # exact, also at an end of the range
        return Interval(array[0], array[0], array[0], len(array))
    *line, number = mean_interval(_to_line(array, within))
    mean, low, high = _from_line(line, within).tolist()
    return Interval(mean, low, high, number)


def interval_numbers(values: npt.ArrayLike, within: Range = "any") -> dict[str, float]:
    """Return `mean`, `low`, `high` and `seeds` for the numbers of a claim.

    Example:
        >>> interval_numbers([1.0, 2.0, 3.0])["mean"]
        2.0
    """
    mean, low, high, seeds = bounded_interval(values, within)
    return {"mean": mean, "low": low, "high": high, "seeds": seeds}


def interval_simulation(
    words: str, effect: float, spread: float | None = None, null: float = 0.0, within: Range = "any"
) -> Simulation:
    """Simulate a test by `interval_numbers`: normal values, one for each seed.

    Args:
        words: the effect that the paper shows, in words.
        effect: mean over seeds at the paper's effect.
        spread: standard deviation between seeds; None for that of the measured seeds.
        null: mean over seeds where the claim is just false.
        within: the range of the values, as for `interval_numbers`.
    """

    def draw(generator: np.random.Generator, present: bool, numbers: Numbers) -> Numbers:
        centre = effect if present else null
        return interval_numbers(_seeds(generator, centre, numbers, "", within, spread), within)

    return Simulation(words, draw)


def _seeds(
    generator: np.random.Generator,
    centre: float,
    numbers: Any,
    prefix: str,
    within: Range,
    spread: float | None = None,
) -> npt.NDArray[np.float64]:
    """Draw values of as many seeds as were measured; without a spread, with that of the measured interval."""
    count = int(numbers["seeds"])
    if spread is None:
        low, high = _to_line([numbers[f"{prefix}low"], numbers[f"{prefix}high"]], within)
        spread = (high - low) / 2 * np.sqrt(count) / stdtrit(count - 1, 0.975) if count > 1 else 0.0
    return _from_line(generator.normal(_to_line(centre, within), spread, count), within)


def intervals(values: Mapping[str, npt.ArrayLike], within: Range = "any") -> dict[str, float]:
    """Return the numbers of several intervals: `NAME`, `NAME_low` and `NAME_high` of each, and `seeds`.

    Example:
        >>> sorted(intervals({"gain": [1.0, 2.0, 3.0]}))
        ['gain', 'gain_high', 'gain_low', 'seeds']
    """
    found: dict[str, float] = {}
    for name, each in values.items():
        mean, low, high, number = bounded_interval(each, within)
        found |= {name: mean, f"{name}_low": low, f"{name}_high": high, "seeds": number}
    return found


def simulated_intervals(
    words: str, effects: Mapping[str, float], null: float | Mapping[str, float] = 0.0, within: Range = "any"
) -> Simulation:
    """Simulate a test by `intervals`: normal values with the measured spread between seeds.

    Args:
        words: the effect, in words.
        effects: by name, the mean over seeds where the claim is true.
        null: the mean where it is just false; one for all, or by name.
        within: the range of the values, as for `intervals`.
    """

    def draw(generator: np.random.Generator, present: bool, numbers: Numbers) -> Numbers:
        false = null if isinstance(null, Mapping) else dict.fromkeys(effects, null)
        centres = effects if present else false
        found = {name: _seeds(generator, centres[name], numbers, f"{name}_", within) for name in effects}
        return {**numbers, **intervals(found, within)}

    return Simulation(words, draw)


def seeds_simulation(words: str, present: Mapping[str, float], absent: Mapping[str, float]) -> Simulation:
    """Simulate a test by numbers of which there is one for each seed: normal, spread as the measured ones.

    Args:
        words: the effect that the paper shows, in words.
        present: mean of each number at the paper's effect.
        absent: mean of each number where there is no effect.
    """

    def draw(generator: np.random.Generator, effect: bool, numbers: Numbers) -> Numbers:
        return {
            name: generator.normal(mean, _std(numbers[name]), len(numbers[name])).tolist()  # type: ignore[arg-type]
            for name, mean in (present if effect else absent).items()
        }

    return Simulation(words, draw)


def _std(values: npt.ArrayLike) -> float:
    array = np.asarray(values, dtype=float)
    return float(array.std(ddof=1)) if len(array) > 1 else 0.0


def pm(values: npt.ArrayLike) -> str:
    """Write mean ± standard deviation.

    Example:
        >>> pm([1.0, 2.0, 3.0])
        '2 ± 1'
    """
    array = np.asarray(values, dtype=float)
    return f"{array.mean():.3g}" + (f" ± {array.std(ddof=1):.2g}" if len(array) > 1 else "")


def by_name(numbers: Numbers) -> str:
    """Write numbers by their names; of several values (one for each seed) mean ± standard deviation.

    Example:
        >>> by_name({"ReLU": [1.0, 2.0, 3.0], "Tanh": 0.25})
        'ReLU: 2 ± 1, Tanh: 0.25'
    """
    return ", ".join(f"{name}: {_written(value)}" for name, value in numbers.items())


def _written(value: Value) -> str:
    return value if isinstance(value, str) else pm(np.atleast_1d(value))
