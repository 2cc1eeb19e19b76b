from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import skew
from sklearn.mixture import GaussianMixture

from fathometer import InputError
from fathometer.compare import signature_statistics, statistics, two_modes
from fathometer.compare.modes import _fit, _null_ratios
from tests.compare.soundings import sounding

RNG = np.random.default_rng(3)


def test_statistics_are_numpys_and_scipys() -> None:
    values = RNG.random(23) ** 2
    found: Any = signature_statistics(values)
    expected = [values.min(), values.max(), values.mean(), np.median(values), values.std(), np.ptp(values)]
    names = ["min", "max", "mean", "median", "std", "spread"]
    assert [found[name] for name in names] == pytest.approx(expected, abs=1e-15)
    assert found["skewness"] == pytest.approx(skew(values), abs=1e-13)
    assert found["sites"] == 23


def test_a_row_for_each_network_of_any_gauge() -> None:
    table: Any = statistics(
        [sounding("a", [1, 1, 1], rank=[1, 2, 6]), sounding("b", [1, 1], rank=[3, 3])], "rank"
    )
    assert table.loc["a", "mean"] == 3
    assert table.loc["b", "skewness"] == 0
    assert table["sites"].to_list() == [3, 2]
    assert table["ashman"].isna().all()  # fewer than five sites
    assert table["bimodal"].to_list() == [False, False]


@pytest.mark.parametrize("apart", [0.0, 2.0, 6.0])
def test_the_fit_is_at_least_as_good_as_scikit_learns(apart: float) -> None:
    values = np.concatenate([RNG.standard_normal(25), apart + RNG.standard_normal(15)])
    ours = two_modes(values)
    theirs = GaussianMixture(
        2, covariance_type="tied", n_init=10, tol=1e-9, max_iter=2000, reg_covar=1e-9, random_state=0
    )
    theirs.fit(values[:, None])
    one = -0.5 * len(values) * (np.log(2 * np.pi * values.var()) + 1)
    ratio = 2 * (theirs.score(values[:, None]) * len(values) - one)
    assert ours.ratio >= ratio - 1e-3
    if apart == 6:
        low, high = sorted(theirs.means_[:, 0])
        assert [ours.low, ours.high] == pytest.approx([low, high], abs=1e-4)
        assert ours.ashman == pytest.approx((high - low) / np.sqrt(theirs.covariances_[0, 0]), rel=1e-3)
        assert ours.share == pytest.approx(theirs.weights_[np.argmax(theirs.means_[:, 0])], abs=1e-4)


def test_two_heaps_are_seen_and_one_is_not() -> None:
    two = two_modes(np.concatenate([RNG.normal(0.5, 0.03, 30), RNG.normal(0.9, 0.03, 30)]))
    assert two.p < 0.01
    assert two.ashman > 8
    assert two.low == pytest.approx(0.5, abs=0.02)
    assert two.high == pytest.approx(0.9, abs=0.02)
    assert two.share == pytest.approx(0.5, abs=0.01)
    assert two.clear
    tail = two_modes(np.r_[RNG.normal(0.9, 0.02, 40), 0.5])
    assert tail.p < 0.01  # not normal, but one heap and one value far away
    assert not tail.clear
    assert not two_modes([0.2, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95]).clear  # one site is no mode
    assert not two_modes(RNG.standard_normal(40)).clear


def test_the_test_keeps_its_level() -> None:
    """Of normal samples it rejects about one in twenty, and p is spread evenly."""
    samples = RNG.standard_normal((400, 30))
    samples = (samples - samples.mean(1, keepdims=True)) / samples.std(1, keepdims=True)
    ratios = _fit(samples)[0]
    ps = np.array([(1 + (_null_ratios(30) >= ratio).sum()) / 500 for ratio in ratios])
    assert ps[0] == two_modes(samples[0]).p
    assert 0.02 <= (ps <= 0.05).mean() <= 0.09
    assert 0.42 <= (ps <= 0.5).mean() <= 0.58


def test_the_fit_moves_with_shift_and_scale() -> None:
    values = RNG.random(20)
    plain, moved = two_modes(values), two_modes(5 - 1e-4 * values)
    assert moved.p == plain.p
    assert moved.ashman == pytest.approx(plain.ashman, rel=1e-5)
    assert moved.low == pytest.approx(5 - 1e-4 * plain.high)
    assert moved.share == pytest.approx(1 - plain.share, abs=1e-5)


def test_nothing_varies_or_too_little_is_there() -> None:
    flat = two_modes([0.7] * 9)
    assert [flat.p, flat.ashman, flat.low, flat.high] == pytest.approx([1.0, 0.0, 0.7, 0.7])
    with pytest.raises(InputError, match="at least 5 values, got 4"):
        two_modes([1, 2, 3, 4])
    with pytest.raises(InputError, match="finite"):
        two_modes([1, 2, 3, 4, np.nan])
    sharp = two_modes([0.0] * 6 + [1.0] * 6)  # two heaps without any width
    assert sharp.p < 0.01
    assert np.isfinite([sharp.ratio, sharp.ashman]).all()
