from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from rich.console import Console
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics.pairwise import cosine_similarity
from torch import nn

from fathometer import measure
from fathometer.cli.tables import sounding_view
from fathometer.gauges import Gauge, anisotropy, dead, saturated
from fathometer.report.page.sounding import sounding_data
from fathometer.testing import check_gauge
from tests.data import correlated, relu


@pytest.mark.parametrize(("n", "d"), [(80, 5), (40, 1), (20, 50), (2, 3)])
def test_anisotropy_is_the_mean_of_scikit_learns_cosines(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    y[n // 2] = 0
    found = anisotropy(x, y)
    for name, side in (("x", x), ("y", y)):
        cosines = cosine_similarity(side)
        np.fill_diagonal(cosines, 0)
        assert found[name].item() == pytest.approx(cosines.sum() / (n * (n - 1)), rel=1e-6, abs=1e-12)


def test_anisotropy_at_its_ends() -> None:
    x = np.eye(6)
    simplex = x - x.mean(0)
    found = anisotropy(simplex, np.arange(1, 7)[:, None] * np.ones((6, 6)))
    assert found["x"].item() == pytest.approx(-1 / 5)
    assert found["y"].item() == pytest.approx(1)
    assert anisotropy(x, np.zeros((6, 6)))["y"].item() == 0


def test_dead_features_are_those_without_variance() -> None:
    x = correlated(60, 9)
    x[:, 2] = 0.1
    y = relu(x - 2)
    found = dead(x, y)
    for name, side in (("x", x), ("y", y)):
        alive = VarianceThreshold(1e-20).fit(side).get_support()
        assert found[name].item() == pytest.approx(1 - alive.mean())
    below_one = torch.nextafter(torch.tensor(1.0), torch.tensor(0.0))
    flips = torch.where(torch.from_numpy(x) > 0, torch.tensor(1.0), below_one)
    assert dead(flips, flips.double())["x"].item() == 1  # rounding in float32, not in float64
    assert dead(flips, flips.double())["y"].item() < 1


def test_saturated_features_of_known_bounds() -> None:
    x = torch.linspace(-3, 3, 61).double()[:, None] * torch.tensor([0.1, 1.0, 5.0, 40.0])
    assert saturated(x, x.tanh(), bounds=(-1, 1)).item() == 0.5  # |x| > 2.65 for half of the samples
    assert saturated(x, x.sigmoid(), bounds=(0, 1)).item() == 0.5  # |x| > 5.3
    assert saturated(x, torch.nn.functional.relu6(x), bounds=(0, 6)).item() == 1  # half are off, and 0
    assert saturated(x, x.tanh()).isnan()
    check_gauge(Gauge("stuck", partial(saturated, bounds=(-1.0, 1.0)), (0, 1), batched=True))


def test_measure_knows_the_bounds_of_operators() -> None:
    torch.manual_seed(0)
    first = nn.Linear(4, 30)
    with torch.no_grad():
        first.weight[:12] *= 1e4
    net = nn.Sequential(first, nn.Tanh(), nn.Linear(30, 30), nn.ReLU(), nn.Linear(30, 30), nn.Sigmoid())
    sounding = measure(net, torch.randn(200, 4), samples=100, gauges="saturated,norm")
    found = sounding.mean("saturated")
    assert found["1"] == pytest.approx(0.4)
    assert np.isnan(found["3"])
    assert found["5"] == 0
    sums = measure(net, torch.randn(200, 4), samples=100, gauges="dead,saturated", reduction="sum")
    assert np.isnan(sums.mean("saturated")["1"])  # a sum over positions may lie outside of the range
    with (console := Console(width=90)).capture() as shown:
        console.print(sounding_view(sounding, "saturated"))
    assert "– " in next(line for line in shown.get().splitlines() if "relu" in line)


def test_the_report_offers_gauges_that_have_values() -> None:
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
    sounding = measure(net, torch.randn(50, 4), samples=50, gauges="saturated,alpha,norm")
    assert sounding.gauges == ["saturated", "alpha_x", "alpha_y", "norm"]
    assert sounding_data(sounding, "net")["gauges"] == ["norm"]
