from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch

from fathometer.errors import InputError, NumericalError
from fathometer.gauges import entropy, norm, scale, sparsity
from tests.data import correlated, relu


def test_sparsity_counts_zeros() -> None:
    x = np.array([[-1.0, 2.0, 0.0], [-0.0, 3.0, -1e-300]])
    found = {name: value.item() for name, value in sparsity(x, relu(x)).items()}
    assert found == {
        "before": pytest.approx(1 / 3),
        "after": pytest.approx(2 / 3),
        "change": pytest.approx(1 / 3),
    }


@pytest.mark.parametrize("bins", [1, 7, 256, 1000])
def test_entropy_is_that_of_numpys_histogram(bins: int) -> None:
    x = correlated(100, 8)
    found = entropy(x, relu(x), bins=bins)
    for name, side in (("before", x), ("after", relu(x))):
        expected = scipy.stats.entropy(np.histogram(side, bins)[0])
        assert found[name].item() == pytest.approx(expected, abs=1e-12)
    assert found["change"].item() == pytest.approx((found["after"] - found["before"]).item())


def test_entropy_in_closed_form() -> None:
    x = np.arange(1024.0).reshape(256, 4)
    coin = (x % 2 == 0).astype(float)
    assert entropy(x, coin)["before"].item() == pytest.approx(np.log(256))
    assert entropy(x, coin)["after"].item() == pytest.approx(np.log(2))
    assert entropy(x, np.full_like(x, 0.1))["after"].item() == 0
    assert entropy(x, 1 - coin * 2.0**-53)["after"].item() == 0  # a saturated Tanh
    torch.testing.assert_close(entropy(-8 * x + 16, coin)["before"], entropy(x, coin)["before"])
    vast = np.where(coin > 0, 1.7e308, -1.7e308)  # their range leaves float64
    assert entropy(vast, coin)["before"].item() == pytest.approx(np.log(2))
    for bins in (0, 2.5):
        with pytest.raises(InputError, match="bins: expected a whole number"):
            entropy(x, x, bins=bins)  # type: ignore[arg-type]


def test_norm_is_frobeniuss() -> None:
    x = correlated(30, 4)
    assert norm(x, relu(x)).item() == pytest.approx(np.linalg.norm(np.minimum(x, 0)), rel=1e-14)
    assert norm(x, x).item() == 0
    for size in (1e-200, 1e-20, 1e20, 1e200):
        assert norm(size * x, size * relu(x)).item() == pytest.approx(size * norm(x, relu(x)).item())
    with pytest.raises(NumericalError, match="overflows float64"):
        norm(np.full((4, 2), -1.7e308), np.full((4, 2), 1.7e308))


def test_scale_is_the_median_size_of_the_features_that_are_not_zero() -> None:
    x = correlated(100, 8) * np.array([0, 0, 0, 0, 0, 1, 2, 1e6])  # most are switched off, one is huge
    expected = np.median(np.sqrt((x[:, 5:] ** 2).mean(0)))
    assert scale(x, x)["x"].item() == pytest.approx(expected, rel=1e-12)
    assert scale(np.zeros((5, 2)), np.ones((5, 2)))["x"].item() == 0
    assert scale(1e200 * x, x)["x"].item() == pytest.approx(1e200 * expected, rel=1e-12)
