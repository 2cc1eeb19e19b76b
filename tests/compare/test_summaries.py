from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, skew
from sklearn.mixture import GaussianMixture

from fathometer import InputError
from fathometer.compare import signature_statistics, statistics, two_modes
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
    heaps = [
        share * norm.pdf(values, mode, ours.width)
        for share, mode in ((1 - ours.share, ours.low), (ours.share, ours.high))
    ]
    likelihood = np.log(np.sum(heaps, axis=0)).mean()
    assert likelihood >= theirs.score(values[:, None]) - 1e-5
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
    assert tail.ashman > 2  # one heap and one value far away are fitted by two normal distributions
    assert not tail.clear
    assert not two_modes([0.2, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95]).clear  # one site is no mode
    assert not two_modes(RNG.standard_normal(40)).clear


@pytest.mark.parametrize("shape", ["uniform", "triangular", "exponential", "beta"])
def test_what_is_not_normal_is_not_bimodal(shape: str) -> None:
    draw: Any = {
        "uniform": RNG.random,
        "triangular": lambda size: RNG.triangular(0, 0.3, 1, size),
        "exponential": RNG.standard_exponential,
        "beta": lambda size: RNG.beta(8, 1.5, size),
    }[shape]
    found = [signature_statistics(sample)["bimodal"] for sample in draw((60, 55))]
    assert np.mean(found) <= 0.11  # 0.05 and two standard errors


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
    assert np.isfinite(sharp.ashman)


def test_ties_do_not_hide_the_modes() -> None:
    """Every quantile of these is 1, and still the two values are found."""
    found = two_modes([0.5] + [1.0] * 20)
    assert [found.low, found.high, found.share] == pytest.approx([0.5, 1.0, 20 / 21], abs=1e-6)
    assert not found.clear  # one site is no mode
    few = two_modes([0.5] * 2 + [0.7] * 9 + [1.0] * 10)
    assert few.low < few.high
    assert not two_modes(np.r_[np.full(30, 1.0), 1 - 1e-16]).clear


def test_what_rounding_leaves_of_a_constant_has_no_skewness_at_any_scale() -> None:
    assert signature_statistics([1.0, 1.0, 1 - 1e-16])["skewness"] == 0
    tiny = signature_statistics(np.array([1.0, 2.0, 6.0]) * 1e-30)
    assert tiny["skewness"] == pytest.approx(skew([1.0, 2.0, 6.0]))
