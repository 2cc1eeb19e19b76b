"""Random pairs through every gauge.

Hypothesis draws pairs of 2 to 40 samples and 1 to 40 features, most of them degenerate: constants, copies,
low rank, outliers, denormal numbers, scales from 1e-320 to 1e308, float16 to float64. They go through every
gauge. An exception other than a refusal (`InputError`, `NumericalError`), a value outside the range of the
gauge, and a NaN are failures. A refusal is right where the spread leaves float64, or where X is constant
and Y varies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from benchmarks.records import Row
from fathometer.errors import InputError, NumericalError
from fathometer.gauges import GAUGES
from fathometer.gauges.reading import read_gauges
from fathometer.gauges.registry import choose_gauges, out_of_range

Matrix: TypeAlias = npt.NDArray[np.float64]

LARGEST = 40
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
FUNCTIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "step": np.sign,
    "square": np.square,
    "affine": lambda x: 3 * x - 2,
    "equal": np.copy,
    "backwards": lambda x: x[::-1].copy(),
    "zero": np.zeros_like,
    "constant": lambda x: np.full_like(x, 0.1),
}
DEGENERATE: dict[str, Callable[[Matrix, np.random.Generator], Matrix]] = {
    "low rank": lambda x, rng: x[:, :2] @ rng.standard_normal((x[:, :2].shape[1], x.shape[1])),
    "copied rows": lambda x, rng: x[rng.integers(0, max(1, len(x) // 3), size=len(x))],
    "an outlier": lambda x, rng: (
        x * np.where(rng.random(x.shape) < 1 / x.size, 10.0 ** rng.integers(1, 60), 1)
    ),
    "far from zero": lambda x, rng: x + 10.0 ** rng.integers(1, 18),
    "uneven features": lambda x, rng: x * 10 ** rng.uniform(-20, 20, size=x.shape[1]),
    "constant features": lambda x, rng: np.where(rng.random(x.shape[1]) < 0.5, x[0], x),
    "zeros of both signs": lambda x, rng: np.where(
        rng.random(x.shape) < 0.5, rng.choice((0.0, -0.0), x.shape), x
    ),
    "denormals": lambda x, rng: np.where(
        rng.random(x.shape) < 0.3, rng.integers(-9, 10, x.shape) * 5e-324, x
    ),
    "scaled": lambda x, rng: x * 10 ** rng.uniform(-320, 308),
    "constant": lambda x, _: np.broadcast_to(x[:1], x.shape).copy(),
}
ENTRIES = st.one_of(
    st.floats(-10, 10, width=16),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 65504.0, 1e-30]),
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Draw X, and Y that is a function of it or unrelated."""
    shape = draw(st.integers(2, LARGEST)), draw(st.integers(1, LARGEST))
    x = draw(_matrices(shape))
    function = draw(st.sampled_from([*FUNCTIONS, None]))
    with np.errstate(all="ignore"):
        y = FUNCTIONS[function](x) if function else draw(_matrices(shape))
    dtype = draw(st.sampled_from(DTYPES))
    return _as_tensor(x, dtype), _as_tensor(y, dtype)


@st.composite
def _matrices(draw: st.DrawFn, shape: tuple[int, int]) -> Matrix:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        return draw(hnp.arrays(np.float64, shape, elements=ENTRIES))
    laws: tuple[Callable[[tuple[int, int]], Matrix], ...] = (
        rng.standard_normal,
        rng.random,
        rng.standard_cauchy,
    )
    x = laws[draw(st.integers(0, 2))](shape)
    with np.errstate(all="ignore"):
        for name in draw(st.lists(st.sampled_from(sorted(DEGENERATE)), max_size=3, unique=True)):
            x = np.nan_to_num(DEGENERATE[name](x, rng))
    return np.asarray(x, np.float64)


def _as_tensor(matrix: Matrix, dtype: torch.dtype) -> Tensor:
    largest = torch.finfo(dtype).max
    return torch.from_numpy(np.nan_to_num(matrix)).clamp(-largest, largest).to(dtype)


@pytest.mark.parametrize("name", GAUGES)
def test_random_pairs(name: str, full: bool, row: Row) -> None:
    gauge = choose_gauges(name)
    counts = Counter[str]()

    @settings(max_examples=2000 if full else 20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(pair=pairs())
    def check(pair: tuple[Tensor, Tensor]) -> None:
        counts["pairs"] += 1
        try:
            (values,) = read_gauges(gauge, {"pair": pair})
        except (InputError, NumericalError):
            counts["refused"] += 1
            return
        n, d = pair[0].shape
        faults = [out_of_range(column, [(value, n, d)]) for column, value in values.items()]
        assert not any(faults), faults

    row |= {"gauge": name}
    try:
        check()
    finally:
        row |= {"pairs": counts["pairs"], "refused": counts["refused"]}
