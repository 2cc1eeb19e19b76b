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
from tests.data import correlated, relu
from tests.reference import dense_covariance, dense_map

SHAPES = [(60, 1), (60, 7), (30, 40), (8, 50)]


@pytest.mark.parametrize("method", ["eigh", "polar"])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_map_is_that_of_three_matrix_roots(n: int, d: int, method: str) -> None:
    x = correlated(n, d)
    y = relu(x)
    of_x, of_y = moments(x), moments(y)
    ours = affine_map(of_x, of_y, method=method)  # type: ignore[arg-type]
    sigmas = [dense_covariance(z, "ledoit-wolf", of_x.ridge) for z in (x, y)]
    matrix = dense_map(*sigmas)
    np.testing.assert_allclose(ours.matrix, matrix, atol=1e-8)
    expected = (x - x.mean(0)) @ matrix + y.mean(0)
    np.testing.assert_allclose(ours(x), expected, atol=1e-8)
    np.testing.assert_allclose(x @ matrix + ours.offset.numpy(), expected, atol=1e-8)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_map_carries_one_law_to_the_other(n: int, d: int) -> None:
    x = correlated(n, d)
    of_x, of_y = moments(x), moments(relu(x))
    a = affine_map(of_x, of_y).matrix
    torch.testing.assert_close(a @ of_x.covariance @ a, of_y.covariance, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_bures_distance_is_pots(n: int, d: int) -> None:
    x, y = correlated(n, d), correlated(n, d, seed=1)
    of_x, of_y = moments(x), moments(y)
    oracle = ot.gaussian.bures_wasserstein_distance(
        *(m.numpy() for m in (of_x.mean, of_y.mean, of_x.covariance, of_y.covariance))
    )
    assert bures_wasserstein(of_x, of_y).item() == pytest.approx(float(oracle), rel=1e-8)


def test_bures_between_samples_of_different_size() -> None:
    of_x, of_y = moments(correlated(8, 40)), moments(correlated(30, 40, seed=1))
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


def test_the_gelbrich_bound_is_attained_by_affine_maps() -> None:
    x = correlated(80, 6)
    y = 2 * x + 1
    of_x, of_y = (moments(z, covariance="sample") for z in (x, y))
    assert float(gelbrich_bound(of_x, of_y)) == pytest.approx(float(wasserstein2(x, y)), rel=1e-9)


def test_a_batch_is_its_items() -> None:
    x = np.stack([correlated(8, 50, seed) for seed in range(3)])
    of_x, of_y = moments(x), moments(relu(x))
    together = bures_wasserstein(of_x, of_y)
    moved = affine_map(of_x, of_y)(x)
    for i in range(3):
        single_x, single_y = moments(x[i]), moments(relu(x[i]))
        torch.testing.assert_close(together[i], bures_wasserstein(single_x, single_y))
        torch.testing.assert_close(moved[i], affine_map(single_x, single_y)(x[i]))


def test_two_spaces_do_not_mix() -> None:
    with pytest.raises(InputError, match=r"one space, got means of shape \[3\] and \[4\]"):
        affine_map(moments(correlated(9, 3)), moments(correlated(9, 4)))


def test_a_map_takes_one_row_or_many_of_the_width_it_was_made_for() -> None:
    x = correlated(9, 3)
    t = affine_map(moments(x), moments(relu(x)))
    torch.testing.assert_close(t(x[:1]), t(x)[:1])
    with pytest.raises(InputError, match="expected 3 features"):
        t(x[:, :2])


def test_constant_samples_have_a_distance_but_no_map() -> None:
    x = correlated(9, 3)
    still, moving = moments(np.ones((9, 3))), moments(x)
    expected = float(np.sqrt(((x.mean(0) - 1) ** 2).sum() + float(moving.trace)))
    assert float(bures_wasserstein(still, moving)) == pytest.approx(expected)
    assert float(bures_wasserstein(moving, still)) == pytest.approx(expected)
    with pytest.raises(InputError, match="expected a source that varies"):
        affine_map(still, moving)


def test_moments_are_asked_for_where_samples_come() -> None:
    x = correlated(9, 3)
    with pytest.raises(InputError, match=r"expected moments\(x\), moments\(y\), got ndarray"):
        affine_map(x, x)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="method: expected one of eigh, polar"):
        affine_map(moments(x), moments(x), method="foo")  # type: ignore[arg-type]


@pytest.mark.parametrize("covariance", ["sample", "ledoit-wolf"])
@pytest.mark.parametrize("constant", ["x", "y", "both"])
def test_a_batch_with_a_constant_item_gives_what_each_item_gives(constant: str, covariance: str) -> None:
    x = torch.stack([torch.from_numpy(correlated(40, 4, seed=seed)) for seed in range(3)])
    y = x.relu()
    if constant in ("x", "both"):
        x[1] = 1.0
    if constant in ("y", "both"):
        y[1] = -2.0
    of_x, of_y = (moments(side, covariance=covariance) for side in (x, y))  # type: ignore[arg-type]
    singly = [
        bures_wasserstein(*(moments(side[i], covariance=covariance) for side in (x, y)))  # type: ignore[arg-type]
        for i in range(3)
    ]
    torch.testing.assert_close(bures_wasserstein(of_x, of_y), torch.stack(singly))
