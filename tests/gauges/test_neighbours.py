from __future__ import annotations

import numpy as np
import pytest
import skdim.id
import torch

from fathometer.gauges import intrinsic_dimension
from tests.data import Matrix, correlated, relu

NAMES = ("twonn_x", "twonn_y", "mle_x", "mle_y")


def by_scikit_dimension(x: Matrix, y: Matrix) -> dict[str, float]:
    estimators = {"twonn": skdim.id.TwoNN(), "mle": skdim.id.MLE()}
    return {
        f"{name}_{side}": float(estimator.fit(samples).dimension_)
        for name, estimator in estimators.items()
        for side, samples in (("x", x), ("y", y))
    }


@pytest.mark.filterwarnings("ignore:n_neighbors >= len")
@pytest.mark.parametrize(("n", "d"), [(300, 10), (200, 40), (512, 26), (60, 200), (15, 4), (6, 2)])
def test_both_estimators_are_scikit_dimensions(n: int, d: int) -> None:
    x = correlated(n, d)
    y = np.tanh(x)
    found = {name: value.item() for name, value in intrinsic_dimension(x, y).items()}
    assert found == pytest.approx(by_scikit_dimension(x, y), rel=1e-6)


def test_samples_that_occur_twice() -> None:
    x = correlated(200, 5)
    repeated = np.concatenate([x, x[:30]])
    found = intrinsic_dimension(repeated, np.repeat(x, 3, 0)[: len(repeated)])
    with pytest.warns(UserWarning, match="Dropping 60 points"):
        expected = skdim.id.TwoNN().fit(repeated).dimension_
    assert found["twonn_x"].item() == pytest.approx(expected, rel=1e-6)
    assert np.isnan(found["twonn_y"].item())  # no sample occurs once
    alone = intrinsic_dimension(x, relu(x))
    for name, dimension in (("mle_x", alone["mle_x"].item()), ("mle_y", 5)):
        assert found[name].item() == pytest.approx(dimension, rel=0.3)


def test_rounding_does_not_tell_equal_samples_apart() -> None:
    x = torch.from_numpy(np.repeat(correlated(60, 5) + 3, 2, 0))
    found = intrinsic_dimension(x.float(), (x * (1 + 1e-7 * torch.arange(120)[:, None].remainder(2))).float())
    assert found["mle_x"].item() == pytest.approx(intrinsic_dimension(x, x)["mle_x"].item(), rel=1e-5)
    assert found["mle_y"].item() == pytest.approx(found["mle_x"].item(), rel=1e-5)
    assert found["twonn_y"].isnan()


def test_the_dimension_of_a_surface_in_many_features() -> None:
    rng = np.random.default_rng(0)
    surface = rng.random((2000, 2)) @ np.linalg.qr(rng.normal(size=(50, 2)))[0].T
    found = intrinsic_dimension(surface, np.sin(3 * surface))
    for name in NAMES:
        assert found[name].item() == pytest.approx(2, abs=0.2)


def test_nothing_to_estimate_from() -> None:
    x, still = correlated(30, 4), np.full((30, 4), 0.1)
    corners = np.eye(30)  # all of one distance to each other
    for a, b in ((still, x[:1].repeat(30, 0)), (corners, corners), (x[:2], x[:2])):
        assert np.isnan([value.item() for value in intrinsic_dimension(a, b).values()]).all()
