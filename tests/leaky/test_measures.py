from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from fathometer.errors import InputError
from fathometer.gauges import affinity_score, cost_of_identity, stable_rank_of
from fathometer.leaky.energy import balance, criticality, exact_cost, gamma_of, hamiltonians, kernel_products
from fathometer.leaky.measures import CRITICAL, bottleneck_rank, measure_path, stable_ranks
from fathometer.leaky.model import LeakyResNet, with_ones
from fathometer.leaky.path import path_of, path_through
from tests.leaky.test_energy import critical_path, drawn

HAMILTONIANS = ["hamiltonian", "hamiltonian_plain", "hamiltonian_averaged"]


def test_points_are_measured_one_by_one() -> None:
    path = critical_path(4, samples=30)
    found = measure_path(path, gamma0=1e-2).points
    assert found["point"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(found["p"], [0, 0.25, 0.5, 0.75, 1])
    momenta, _ = path.require_momenta()
    for i, (a, b) in enumerate(zip(path.representations, momenta, strict=True)):
        row, s = found.loc[i], a.relu()
        expected = {
            "cost_of_identity": cost_of_identity(a.mT, s.mT, gamma=1e-2).item(),
            "cost_of_identity_exact": exact_cost(a, s).item(),
            "stable_rank": stable_rank_of(a.mT).item(),
            "negative": ((a - s).norm() / a.norm()).item(),
            "norm": a.norm().item(),
            "momentum_norm": b.norm().item(),
            "momentum_sigma": (b @ with_ones(s).mT).norm().item(),
            "affinity": float(affinity_score(a.mT, s.mT)),
        }
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-7), name
        assert row["cost_of_identity_exact"] == math.inf


def test_layers_hold_energies_in_units_of_dimensions() -> None:
    path, depth = critical_path(6, 1.5), 1.5
    found = measure_path(path, gamma0=1e-2, affinity=False).layers
    for name, energy in zip(HAMILTONIANS, hamiltonians(path), strict=True):
        np.testing.assert_allclose(found[name], -2 / depth * energy, rtol=1e-12)
    products = kernel_products(path, gamma_of(path.images[:-1], 1e-2))
    np.testing.assert_allclose(found["kinetic"], products.velocity_norm2 / depth**2, rtol=1e-12)
    np.testing.assert_allclose(found["potential"], products.position_norm2, rtol=1e-12)
    np.testing.assert_allclose(found["hamiltonian_stable"], found["potential"] - found["kinetic"], rtol=1e-9)
    _, weights = path.require_momenta()
    a = path.representations
    np.testing.assert_allclose(found["move"], [(a[i + 1] - a[i]).norm() / a[i + 1].norm() for i in range(6)])
    np.testing.assert_allclose(found["weight_norm"], [w.norm() for w in weights])
    np.testing.assert_allclose(found["bias_norm"], [w[:, -1].norm() for w in weights])
    np.testing.assert_allclose(found["weight_stable_rank"], stable_rank_of(weights), rtol=1e-6)
    assert found["crit"].max() < 1e-12
    assert found["layer"].tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(found["p"], path.places[:-1])
    np.testing.assert_allclose(found["step"], path.steps)


def test_the_summary_is_made_from_the_tables() -> None:
    path = critical_path(6)
    found = measure_path(path, gamma0=1e-2)
    points, layers, summary = found.points, found.layers, found.summary
    for name in ("hamiltonian", "hamiltonian_stable"):
        column = sorted(layers[name])
        assert summary[name] == pytest.approx((column[2] + column[3]) / 2)
        assert (summary[f"{name}_min"], summary[f"{name}_max"]) == (column[0], column[-1])
    for name in ("cost_of_identity", "stable_rank", "negative"):
        assert summary[name] == points[name].min()
    length = sum(move.norm().item() for move in path.representations.diff(dim=0))
    assert summary["length"] == pytest.approx(length)
    assert summary["length_per_root_n"] == pytest.approx(length / math.sqrt(7))
    assert summary["length_kernel"] == pytest.approx((layers["step"] * layers["kinetic"] ** 0.5).sum())
    assert summary["balance_error"] == balance(path).error < 1e-6
    assert summary["momentum"] <= summary["momentum_max"] == points["momentum_norm"].max()
    _, weights = path.require_momenta()
    assert (summary["rank"], summary["gap"], summary["rank_layer"]) == bottleneck_rank(
        torch.linalg.svdvals(weights), 1.0
    )
    narrow = points[points["cost_of_identity"] <= points["cost_of_identity"].min() + 0.5]
    assert summary["affinity"] == narrow["affinity"].max()
    assert {type(value) for value in summary.values()} <= {int, float}
    assert found.gamma0 == 1e-2
    assert found.weight_spectra is not None
    np.testing.assert_allclose((found.spectra**2).sum(1), points["norm"] ** 2)
    np.testing.assert_allclose((found.weight_spectra**2).sum(1), layers["weight_norm"] ** 2)


def test_an_identity_network() -> None:
    # A stays as it is: everything is its rank, and no energy is in motion
    a = drawn(8, 3).abs() @ drawn(3, 25, seed=1).abs()
    found = measure_path(path_through(a.expand(5, -1, -1), 6.0), gamma0=1e-9)
    assert found.points["cost_of_identity"].tolist() == pytest.approx([3] * 5, rel=1e-4)
    assert found.points["cost_of_identity_exact"].tolist() == pytest.approx([3] * 5, rel=1e-8)
    assert found.points["affinity"].tolist() == pytest.approx([1] * 5, abs=1e-6)
    assert found.points["negative"].tolist() == [0] * 5
    assert found.layers["hamiltonian_stable"].tolist() == pytest.approx([3] * 4, rel=1e-3)
    assert found.layers["kinetic"].tolist() == found.layers["move"].tolist() == [0] * 4
    assert found.summary["length"] == found.summary["length_kernel"] == 0


def test_without_momenta_what_is_not_known_is_nan() -> None:
    path = path_through(drawn(4, 3, 12), 2.0)
    found, whole = measure_path(path), measure_path(critical_path(3))
    assert list(found.layers) == list(whole.layers)
    assert list(found.points) == list(whole.points)
    assert found.weight_spectra is None
    unknown = [*HAMILTONIANS, "weight_norm", "bias_norm", "crit", "weight_stable_rank"]
    assert found.layers[unknown].isna().all(axis=None)
    assert found.layers.drop(columns=unknown).notna().all(axis=None)
    assert found.points[["momentum_norm", "momentum_sigma"]].isna().all(axis=None)
    assert all(
        math.isnan(found.summary[name]) for name in ("hamiltonian", "rank", "gap", "crit", "balance_error")
    )
    assert found.summary["hamiltonian_stable"] == found.layers["hamiltonian_stable"].median()


def test_a_plain_resnet_has_no_energies_and_softplus_no_balance() -> None:
    found = measure_path(dataclasses.replace(critical_path(3), effective_depth=0.0))
    energetic = [*HAMILTONIANS, "hamiltonian_stable", "kinetic", "potential", "crit"]
    assert found.layers[energetic].isna().all(axis=None)
    assert found.layers["move"].notna().all()
    assert math.isnan(found.summary["rank"])
    assert found.summary["length"] > 0
    smooth = measure_path(critical_path(3, sigma="softplus"))
    assert math.isnan(smooth.summary["balance_error"])
    assert math.isfinite(smooth.summary["hamiltonian"])


def test_a_network_that_is_not_critical_warns() -> None:
    net = LeakyResNet(3, 3, width=6, effective_depth=2.0, steps=4)
    path = path_of(net, drawn(20, 3), drawn(20, 3, seed=1), 0.1)
    with pytest.warns(UserWarning, match="not at a critical point: median"):
        found = measure_path(path)
    assert found.summary["crit"] == pytest.approx(np.median(criticality(path).numpy()))
    assert found.summary["crit"] > CRITICAL
    assert found.layers["hamiltonian"].notna().all()
    assert net.weights.dtype == torch.float32
    assert {str(kind) for kind in [*found.points.dtypes, *found.layers.dtypes]} == {"float64", "int64"}


def test_a_collapsed_network_can_be_measured_but_not_nan() -> None:
    path = critical_path(3)
    dead = dataclasses.replace(path, representations=path.representations.clone())
    dead.representations[1] = -1 - dead.representations[1].abs()
    found = measure_path(dead)
    assert found.points.loc[1, "cost_of_identity"] == math.inf
    assert found.layers.loc[1, "potential"] == math.inf
    assert found.points.loc[1, "negative"] == 1
    dead.representations[2, 0, 0] = math.nan
    with pytest.raises(InputError, match="representations: expected finite values, got 1 NaN"):
        measure_path(dead)


def test_the_rank_is_read_in_the_layer_of_smallest_nuclear_stable_rank() -> None:
    rotation = torch.linalg.qr(drawn(6, 6))[0]
    # singular values of two layers of a trained network: the first has the least ‖W‖_F²/‖W‖_op², but no gap
    values = torch.tensor(
        [[11, 7.7, 2.2, 0.2, 0, 0], [9.3, 9.1, 0.04, 0.02, 0, 0], [9, 8, 7, 6, 5, 4]]
    ).double()
    weights = rotation @ torch.diag_embed(values) @ rotation.mT
    common = values.square().sum(1) / values[:, 0].square()
    assert common.argmin() == 0
    rank, gap, layer = bottleneck_rank(torch.linalg.svdvals(weights), 8.0)
    assert (rank, layer) == (2, 2)
    assert gap == pytest.approx(9.1 / 0.04)
    torch.testing.assert_close(stable_ranks(values), stable_rank_of(weights), rtol=1e-6, atol=0)


def test_gaps_at_the_ends() -> None:
    ones = torch.ones(2, 4)
    assert bottleneck_rank(3 * ones, 4.0) == (4, math.inf, 1)
    nothing = bottleneck_rank(ones, 4.0)
    assert nothing.rank == 0
    assert math.isnan(nothing.gap)
    assert bottleneck_rank(torch.tensor([[3.0, 3.0, 0.0]]), 4.0) == (2, math.inf, 1)
