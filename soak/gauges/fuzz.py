"""Random pairs through every gauge: half from a plain loop, half from hypothesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from fathometer.errors import FathometerError
from fathometer.gauges import GAUGES
from fathometer.testing import GaugeError
from fathometer.testing.subject import Subject
from soak.gauges.pairs import draw_block
from soak.program import Effort, Outcome, Program, Row
from tests.testing.promises import PROMISES

_PAIRS = {"smoke": 200, "full": 100_000}
_BLOCK = 10


class Tally:
    """What became of the pairs, gauge by gauge."""

    def __init__(self) -> None:
        self.counts = {name: Counter[str]() for name in GAUGES}
        self.dtypes = Counter[str]()
        self.failures: list[str] = []
        self._subjects = {
            name: Subject(gauge, gauge, PROMISES[name], torch.device("cpu")) for name, gauge in GAUGES.items()
        }

    def block(self, x: Tensor, y: Tensor, where: str) -> None:
        """Pairs of one shape together; one by one where the gauge refuses any of them."""
        pairs = list(zip(x, y, strict=True))
        self.dtypes[str(x.dtype).removeprefix("torch.")] += len(pairs)
        for name, subject in self._subjects.items():
            try:
                rows = subject.read_many(pairs)
            except Exception as error:
                values = [self._one(name, *pair, f"{where}, pair {i}") for i, pair in enumerate(pairs)]
                if all(values):  # a fault of the batch alone
                    self._fail(name, "crashes", f"{where}, as a batch, {list(x.shape)}, {x.dtype}: {error!r}")
            else:
                self.counts[name]["pairs"] += len(pairs)
                self.counts[name]["values"] += sum(map(len, rows))

    def pair(self, x: Tensor, y: Tensor, where: str) -> None:
        """One pair by itself."""
        self.dtypes[str(x.dtype).removeprefix("torch.")] += 1
        for name in self._subjects:
            self._one(name, x, y, where)

    def _one(self, name: str, x: Tensor, y: Tensor, where: str) -> bool:
        """Whether it has values."""
        counts = self.counts[name]
        counts["pairs"] += 1
        try:
            counts["values"] += len(self._subjects[name].read(x, y))
            return True
        except GaugeError as error:
            self._fail(name, "out of range", f"{where}, {x.dtype}: {error}")
        except FathometerError as error:
            counts[type(error).__name__] += 1
        except Exception as error:
            self._fail(name, "crashes", f"{where}, {list(x.shape)}, {x.dtype}: {error!r}")
        return False

    def _fail(self, name: str, kind: str, words: str) -> None:
        self.counts[name][kind] += 1
        self.failures.append(f"{name}: {kind}: {words}")

    def rows(self) -> list[Row]:
        """A row for each gauge; all have the same columns."""
        kinds = sorted({kind for counts in self.counts.values() for kind in counts})
        refusals = [kind for kind in kinds if kind.endswith("Error")]
        return [
            {
                "gauge": name,
                "pairs": counts["pairs"],
                "values": counts["values"],
                **{f"refused: {kind}": counts[kind] for kind in refusals},
                "crashes": counts["crashes"],
                "out of range or NaN": counts["out of range"],
            }
            for name, counts in self.counts.items()
        ]


def _run(effort: Effort) -> Outcome:
    half = _PAIRS[effort] // 2
    tally = Tally()
    for number in range(half // _BLOCK):
        tally.block(*block_of(number), f"block_of({number})")
    by_loop = sum(tally.dtypes.values())
    by_hypothesis(lambda x, y, number: tally.pair(x, y, f"pair_of({number}, {half})"), half)
    total = sum(tally.dtypes.values())
    dtypes = ", ".join(f"{count} in {dtype}" for dtype, count in sorted(tally.dtypes.items()))
    notes = [
        f"{by_loop} pairs were drawn by a plain loop and read in batches of {_BLOCK}, one by one where a "
        f"gauge refused any of a batch; {total - by_loop} were drawn by hypothesis and read one by one. "
        f"{dtypes}. A failure names its pair: `block_of` and `pair_of` in soak/gauges/fuzz.py draw it again.",
        "A refusal is a `FathometerError`: a spread that leaves float64, or an X that is constant where Y "
        "varies. `cost_of_identity` promises inf where Y is 0 and X is not.",
    ]
    return Outcome(tally.rows(), tally.failures, notes)


def block_of(number: int) -> tuple[Tensor, Tensor]:
    """A block of the plain loop, by its number alone."""
    return draw_block(np.random.default_rng([0, number]), _BLOCK)


def pair_of(number: int, count: int) -> tuple[Tensor, Tensor]:
    """A pair of `by_hypothesis` out of so many: all are drawn again, some minutes for 50 000."""
    found: list[tuple[Tensor, Tensor]] = []
    by_hypothesis(lambda x, y, place: found.append((x, y)) if place == number else None, count)
    return found[0]


def by_hypothesis(use: Callable[[Tensor, Tensor, int], None], count: int) -> None:
    """Pairs that hypothesis draws, entry by entry, always the same, with their number."""
    from hypothesis import HealthCheck, Phase, given, settings

    from soak.gauges.strategy import pairs

    places = iter(range(count))

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(pair=pairs())
    def read(pair: tuple[Tensor, Tensor]) -> None:
        use(*pair, next(places))

    read()


FUZZ = Program(
    "fuzz-gauges",
    "Random pairs through every gauge",
    "Pairs of 2 to 40 samples and 1 to 40 features, most of them degenerate (constants, copies, low rank, "
    "outliers, denormals, scales from 1e-320 to 1e308, float16 to float64), go through every gauge. Any "
    "exception but a `FathometerError`, a value outside the range that the gauge declares, and a NaN count "
    "as failures.",
    _run,
)
