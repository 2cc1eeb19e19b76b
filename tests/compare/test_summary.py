from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.stats import skew

from fathometer import InputError, MissingExtraError
from fathometer.compare import (
    adjusted_rand,
    dip_statistic,
    signature_statistics,
    statistics,
    two_modes,
)
from tests.compare.soundings import sounding

RNG = np.random.default_rng(3)


def test_statistics_match_numpy_and_scipy() -> None:
    values = RNG.random(23) ** 2
    found: Any = signature_statistics(values)
    expected = [values.min(), values.max(), values.mean(), np.median(values), values.std(), np.ptp(values)]
    names = ["min", "max", "mean", "median", "std", "spread"]
    assert [found[name] for name in names] == pytest.approx(expected, abs=1e-15)
    assert found["skewness"] == pytest.approx(skew(values), abs=1e-13)
    assert found["sites"] == 23
    assert signature_statistics([1.0, 1.0, 1 - 1e-16])["skewness"] == 0  # rounding is no variation


def test_a_row_for_each_network_of_any_gauge() -> None:
    table: Any = statistics(
        [sounding("a", [1, 1, 1], rank=[1, 2, 6]), sounding("b", [1, 1], rank=[3, 3])], "rank"
    )
    assert table.loc["a", "mean"] == 3
    assert table.loc["b", "skewness"] == 0
    assert table["sites"].to_list() == [3, 2]
    assert table["ashman"].isna().all()  # fewer than five sites
    assert table["bimodal"].to_list() == [False, False]


def test_two_groups_are_found_and_one_is_not() -> None:
    two = two_modes(np.concatenate([RNG.normal(0.5, 0.03, 30), RNG.normal(0.9, 0.03, 30)]))
    assert two.p < 0.01
    assert two.ashman > 8
    assert two.low == pytest.approx(0.5, abs=0.02)
    assert two.high == pytest.approx(0.9, abs=0.02)
    assert two.share == pytest.approx(0.5, abs=0.01)
    assert two.clear
    tail = two_modes(np.r_[RNG.normal(0.9, 0.02, 40), 0.5])
    assert tail.ashman > 2  # one group and one value far away are fitted by two normal distributions
    assert not tail.clear
    assert not two_modes([0.2, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95]).clear  # one site is no mode
    assert not two_modes(RNG.standard_normal(40)).clear


def test_constant_or_too_few_values() -> None:
    flat = two_modes([0.7] * 9)
    assert [flat.p, flat.ashman, flat.low, flat.high] == pytest.approx([1.0, 0.0, 0.7, 0.7])
    with pytest.raises(InputError, match="at least 5 values, got 4"):
        two_modes([1, 2, 3, 4])
    with pytest.raises(InputError, match="finite"):
        two_modes([1, 2, 3, 4, np.nan])
    sharp = two_modes([0.0] * 6 + [1.0] * 6)  # two groups without any width
    assert sharp.p < 0.01
    assert np.isfinite(sharp.ashman)


def test_ties_do_not_hide_the_modes() -> None:
    """Every quantile of these is 1, and still the two values are found."""
    found = two_modes([0.5] + [1.0] * 20)
    assert [found.low, found.high, found.share] == pytest.approx([0.5, 1.0, 20 / 21], abs=1e-6)
    assert not found.clear  # one site is no mode
    few = two_modes([0.5] * 2 + [0.7] * 9 + [1.0] * 10)
    assert few.low < few.high
    assert not two_modes(np.r_[np.full(30, 1.0), 1 - 1e-16]).clear


def test_dip_in_closed_form() -> None:
    assert dip_statistic([0.7] * 9) == 0
    assert dip_statistic(np.arange(8.0)) == pytest.approx(1 / 16)
    assert dip_statistic([0.5] + [1.0] * 20) == pytest.approx(1 / 42)  # an atom at the mode costs nothing
    assert dip_statistic([0.0] * 5 + [1.0] * 5) == 0.25
    values = RNG.random(30)
    assert dip_statistic(7 - 1e-5 * values) == pytest.approx(dip_statistic(values), abs=1e-9)
    with pytest.raises(InputError, match="finite"):
        dip_statistic([0.0, np.nan])


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diptest", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathometer\[compare\]'"):
        dip_statistic([0.1, 0.2])
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathometer\[compare\]'"):
        adjusted_rand([1, 2], [1, 2])
