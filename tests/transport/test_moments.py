from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.covariance import LedoitWolf

from fathometer.transport import Ridge, moments
from tests.data import correlated

SHAPES = [(50, 1), (50, 8), (20, 30), (10, 100)]


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_ledoit_wolf_is_scikit_learns(n: int, d: int) -> None:
    x = correlated(n, d)
    oracle = LedoitWolf().fit(x)
    ours = moments(x, ridge=0.0)
    assert ours.shrinkage.item() == pytest.approx(oracle.shrinkage_, abs=1e-13)
    np.testing.assert_allclose(ours.covariance, oracle.covariance_, atol=1e-12)
    np.testing.assert_allclose(ours.mean, oracle.location_, atol=1e-13)
    torch.testing.assert_close(ours.trace, ours.covariance.trace())


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_sample_covariance_is_numpys(n: int, d: int) -> None:
    x = correlated(n, d)
    expected = np.cov(x.T, bias=True).reshape(d, d)
    np.testing.assert_allclose(moments(x, covariance="sample", ridge=0.0).covariance, expected, atol=1e-12)


def test_a_ridge_is_relative_to_the_mean_variance_or_absolute() -> None:
    x = correlated(30, 4)
    plain = moments(x, covariance="sample", ridge=0.0)
    relative = moments(x, covariance="sample", ridge=0.1)
    absolute = moments(x, covariance="sample", ridge=Ridge(0.1, relative=False))
    lifted = (relative.covariance - plain.covariance).diagonal()
    torch.testing.assert_close(lifted, (0.1 * plain.trace / 4).expand(4))
    torch.testing.assert_close(
        (absolute.covariance - plain.covariance).diagonal(), torch.full((4,), 0.1).double()
    )


def test_wide_data_are_never_formed_wide() -> None:
    wide = moments(torch.randn(4, 200_000, dtype=torch.float64))
    assert wide.wide
    assert wide.dense is None
    assert wide.trace.item() == pytest.approx(200_000 * 0.75, rel=0.05)


def test_a_mean_that_dwarfs_the_spread_does_no_harm() -> None:
    x = correlated(40, 3)
    shifted = moments(x + 2.0**40, covariance="sample")  # the sum is rounded to 2⁻¹² relative to 1
    torch.testing.assert_close(
        shifted.covariance, moments(x, covariance="sample").covariance, atol=1e-3, rtol=0
    )
