from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from fathometer import measure
from fathometer.gauges import neural_collapse
from fathometer.testing import Promises, check_gauge
from tests.data import Matrix, correlated

Labels = npt.NDArray[np.integer]
NAMES = ("nc1", "nc2_norms", "nc2_angles")


def dense(y: Matrix, labels: Labels) -> dict[str, float]:
    """The formulas of the paper, with d × d covariances and a pseudo-inverse."""
    classes = np.unique(labels)
    means = np.stack([y[labels == c].mean(0) for c in classes])
    centred = means - means.mean(0)
    within = y - means[np.searchsorted(classes, labels)]
    between = centred.T @ centred / len(classes)
    norms = np.linalg.norm(centred, axis=1)
    cosines = (centred / norms[:, None]) @ (centred / norms[:, None]).T
    off = ~np.eye(len(classes), dtype=bool)
    inverse = np.linalg.pinv(between, rcond=1e-10, hermitian=True)
    return {
        "nc1": np.trace(within.T @ within / len(y) @ inverse) / len(classes),
        "nc2_norms": norms.std() / norms.mean(),
        "nc2_angles": np.abs(cosines[off] + 1 / (len(classes) - 1)).mean(),
    }


def numbers(y: Matrix, labels: Labels) -> dict[str, float]:
    found = neural_collapse(y, y, labels=torch.from_numpy(labels))
    return {name: value.item() for name, value in found.items()}


@pytest.mark.parametrize(
    ("n", "d", "classes"), [(200, 10, 4), (60, 200, 10), (50, 3, 8), (30, 20, 2), (40, 1, 3)]
)
def test_collapse_is_the_dense_formula(n: int, d: int, classes: int) -> None:
    y = correlated(n, d)
    labels = np.random.default_rng(0).integers(classes, size=n) * 7
    assert numbers(y, labels) == pytest.approx(dense(y, labels), rel=1e-6)


def test_classes_of_one_sample_are_left_out() -> None:
    y, labels = correlated(50, 12), np.arange(50) % 4
    more = np.concatenate([y, correlated(3, 12, seed=1)])
    assert numbers(more, np.append(labels, [90, 91, 92])) == pytest.approx(dense(y, labels), rel=1e-6)


def test_a_collapsed_layer_and_one_that_says_nothing_about_its_classes() -> None:
    labels = np.arange(400) % 4
    simplex = np.eye(4)[labels] @ np.linalg.qr(correlated(7, 4))[0].T
    assert list(numbers(simplex, labels).values()) == pytest.approx([0, 0, 0], abs=1e-6)
    noise = np.random.default_rng(0).normal(size=(400, 7))
    near = numbers(simplex + 0.01 * noise, labels)
    assert 0 < near["nc1"] < 0.001
    assert numbers(noise, labels)["nc1"] > 10


def test_without_enough_labels_there_is_no_number() -> None:
    y = correlated(20, 3)
    for labels in (np.zeros(20, int), np.arange(20)):
        assert np.isnan(list(numbers(y, labels).values())).all()
    assert neural_collapse(y, y)["nc1"].isnan()
    assert np.isnan(list(numbers(np.ones((20, 3)), np.arange(20) % 2).values())).all()
    equal_means = np.concatenate([y, np.random.default_rng(0).permutation(y)])
    assert np.isnan(list(numbers(equal_means, np.arange(40) // 20).values())).all()
    one_in_the_middle = numbers(np.concatenate([y - 1, y, y + 1]), np.arange(60) // 20)
    assert [np.isnan(one_in_the_middle[name]) for name in NAMES] == [False, False, True]


def test_it_passes_the_checks_with_labels_from_the_inputs() -> None:
    def collapse(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        return neural_collapse(x, y, labels=(x[:, 0] > x[:, 0].median()).long())

    check_gauge(collapse, Promises(missing=True))


def test_measure_reads_it_where_the_data_have_labels() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    x, labels = torch.randn(60, 5), torch.arange(60) % 3
    found = measure(net, [(x, labels)], samples=60, gauges="standard")
    with torch.no_grad():
        y = net[:2](x)
    expected = neural_collapse(y, y, labels=labels)
    for name in NAMES:
        assert found.mean(f"neural_collapse_{name}")["1"] == pytest.approx(expected[name].item(), rel=1e-5)
    assert "neural_collapse_nc1" not in measure(net, x, samples=60).gauges
