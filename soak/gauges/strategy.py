"""Pairs drawn by hypothesis, entry by entry: it knows which numbers are awkward."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from soak.gauges.pairs import DTYPES, FUNCTIONS, LARGEST, Matrix, as_block

_ENTRIES = st.one_of(
    st.floats(-10, 10, width=16),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 65504.0, 1e-30]),
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """X, and Y that is a function of it or has nothing to do with it."""
    shape = draw(st.integers(2, LARGEST)), draw(st.integers(1, LARGEST))
    dtype = draw(st.sampled_from(DTYPES))
    x = draw(_matrices(shape))
    function = draw(st.sampled_from([*FUNCTIONS, None]))
    with np.errstate(all="ignore"):
        y = np.nan_to_num(FUNCTIONS[function](x)) if function else draw(_matrices(shape))
    return as_block([x], dtype)[0], as_block([y], dtype)[0]


@st.composite
def _matrices(draw: st.DrawFn, shape: tuple[int, int]) -> Matrix:
    """Some entries are drawn; the others are all one number, or normal."""
    if draw(st.booleans()):
        return draw(hnp.arrays(np.float64, shape, elements=_ENTRIES))
    drawn = draw(hnp.arrays(np.float64, shape, elements=_ENTRIES, fill=st.just(np.nan)))
    rest = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).standard_normal(shape)
    return np.where(np.isnan(drawn), rest, drawn)
