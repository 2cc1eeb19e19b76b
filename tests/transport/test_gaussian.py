from __future__ import annotations

import numpy as np
import ot
import pytest
import torch

from fathometer.errors import InputError
from fathometer.transport import (
    affine_map,
    affine_residual_bound,
    bures_wasserstein,
    gelbrich_bound,
    moments,
    normal_gap_bound,
    wasserstein2,
)
from fathometer.transport.moments import CovarianceKind
from tests.data import correlated, relu
from tests.reference import dense_covariance, dense_map

SHAPES = [(60, 1), (60, 7), (30, 40), (8, 50)]


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_map_is_that_of_three_matrix_roots(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    of_x, of_y = moments(x), moments(y)
    ours = affine_map(of_x, of_y)
    sigmas = [dense_covariance(z, "ledoit-wolf", of_x.ridge) for z in (x, y)]
    matrix = dense_map(*sigmas)
    np.testing.assert_allclose(ours.matrix, matrix, atol=1e-8)
    expected = (x - x.mean(0)) @ matrix + y.mean(0)
    np.testing.assert_allclose(ours(x), expected, atol=1e-8)
    np.testing.assert_allclose(x @ matrix + ours.offset.numpy(), expected, atol=1e-8)
    torch.testing.assert_close(ours(x[:1]), ours(x)[:1])
    carried = ours.matrix @ of_x.covariance @ ours.matrix
    torch.testing.assert_close(carried, of_y.covariance, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("n", "m", "d"), [*((n, n, d) for n, d in SHAPES), (8, 30, 40)])
def test_the_bures_distance_is_pots(n: int, m: int, d: int) -> None:
    of_x, of_y = moments(correlated(n, d)), moments(correlated(m, d, seed=1))
    oracle = ot.gaussian.bures_wasserstein_distance(
        *(m.numpy() for m in (of_x.mean, of_y.mean, of_x.covariance, of_y.covariance))
    )
    assert bures_wasserstein(of_x, of_y).item() == pytest.approx(float(oracle), rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_of_the_paper_hold(seed: int) -> None:
    x = correlated(80, 6, seed)
    y = relu(x)
    of_x, of_y = (moments(z, covariance="sample") for z in (x, y))
    exact = float(wasserstein2(x, y))
    lower, gap = float(gelbrich_bound(of_x, of_y)), float(normal_gap_bound(of_x, of_y))
    assert lower <= exact + 1e-9
    assert abs(lower - exact) <= gap
    assert float(wasserstein2(affine_map(of_x, of_y)(x), y)) <= float(affine_residual_bound(of_y))
    affine = moments(2 * x + 1, covariance="sample")  # the lower bound is attained
    assert float(gelbrich_bound(of_x, affine)) == pytest.approx(float(wasserstein2(x, 2 * x + 1)), rel=1e-9)


@pytest.mark.parametrize("covariance", ["sample", "ledoit-wolf"])
@pytest.mark.parametrize("constant", ["x", "y", "xy", ""])
@pytest.mark.parametrize(("n", "d"), [(40, 4), (8, 50)])
def test_a_batch_also_with_a_constant_item_is_its_items(
    n: int, d: int, constant: str, covariance: CovarianceKind
) -> None:
    x = torch.stack([torch.from_numpy(correlated(n, d, seed)) for seed in range(3)])
    y = x.relu()
    if "x" in constant:
        x[1] = 1.0
    if "y" in constant:
        y[1] = -2.0
    together = [moments(side, covariance=covariance) for side in (x, y)]
    for i in range(3):
        alone = [moments(side[i], covariance=covariance) for side in (x, y)]
        torch.testing.assert_close(bures_wasserstein(*together)[i], bures_wasserstein(*alone))
        if i == 1 and constant in ("x", "y"):  # only means and the trace of the other count
            spread = sum((side.trace for side in alone), torch.zeros(()))
            expected = ((alone[0].mean - alone[1].mean).square().sum() + spread).sqrt()
            torch.testing.assert_close(bures_wasserstein(*alone), expected)
        if "x" not in constant:
            torch.testing.assert_close(affine_map(*together)(x)[i], affine_map(*alone)(x[i]))


def test_constant_samples_have_no_gap() -> None:
    still, fine = moments(np.ones((9, 3))), moments(correlated(9, 3))
    assert normal_gap_bound(still, still) == normal_gap_bound(still, fine) == 0


def test_impossible_maps_are_refused() -> None:
    x = correlated(9, 3)
    fine = moments(x)
    for source, target, message in (
        (fine, moments(correlated(9, 4)), r"one space, got means of shape \[3\] and \[4\]"),
        (x, fine, r"expected moments\(x\), moments\(y\), got ndarray"),
        (moments(np.ones((9, 3))), fine, "expected a source that varies"),
    ):
        with pytest.raises(InputError, match=message):
            affine_map(source, target)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected 3 features"):
        affine_map(fine, fine)(x[:, :2])
