"""What pictures show, as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import dendrogram

from fathometer import InputError, Provenance, Site, Sounding
from fathometer.compare import best_predictors, cluster, distances, statistics
from fathometer.leaky import grid
from fathometer.report import (
    alignment_table,
    branch_table,
    gauge_table,
    layer_table,
    leaky_path_table,
    matrix_table,
    predictor_table,
    residual_path_table,
    signature_table,
    year_table,
)
from fathometer.report.tables import has_layers, step_edges
from tests.compare.soundings import sounding
from tests.leaky.networks import SMALL, measured_sweep
from tests.report.figures.drawn import network, transformer


def test_a_signature_has_a_row_for_each_network_and_site() -> None:
    named = {"a": network("a", 12), "b": network("b", 5, batches=1, seed=1)}
    table = signature_table(named)
    assert table.groupby("network", sort=False).size().to_dict() == {"a": 12, "b": 5}
    first, second = (table[table["network"] == name] for name in named)
    assert_allclose(first["mean"], named["a"].signature)
    assert_allclose(first["std"], named["a"].std("affinity"))
    assert (second["std"] == 0).all()
    assert second["depth"].to_list() == [0, 0.25, 0.5, 0.75, 1]
    assert first["block"].iloc[0] == "layer0.0"
    gaps = signature_table(network("a", 3, odd=[1.0, np.inf, np.nan]), "odd")
    assert gaps["mean"].isna().to_list() == [False, True, True]


def small_transformer() -> Sounding:
    """Two layers, the second with two experts; a few tokens decide R² of its MLP."""
    sites = (
        Site("h.0.act", "gelu", 1, 0, True, "activation", 0),
        Site("h.0.mlp", "Part", 1, 1, True, "mlp", 0),
        Site("h.0.mlp", "Part", 1, 2, True, "mlp", 0, True),
        Site("h.1.expert1", "gelu", 1, 3, True, "activation", 1),
        Site("h.1.expert2", "gelu", 1, 4, True, "activation", 1),
        Site("h.1.mlp", "Part", 1, 5, True, "mlp", 1),
        Site("pooler", "tanh", 1, 6, True, "activation"),
    )
    nan = np.nan
    columns = {  # a value for each site, of both batches
        "affinity": [0.9, nan, nan, 0.5, 0.7, nan, 0.1, 0.8, nan, nan, 0.6, 1.0, nan, 0.1],
        "r2_heldout": [nan, 0.5, 0.9, nan, nan, 0.8, nan, nan, 0.7, 0.9, nan, nan, 0.8, nan],
        "r2_trimmed": [nan, 0.55, 0.9, nan, nan, 0.3, nan, nan, 0.75, 0.9, nan, nan, 0.5, nan],
        "rank": [1, 2, 3, 4, 6, 8, 9] * 2,
    }
    keys = {"site": [site.name for site in sites] * 2, "batch": [0] * 7 + [1] * 7, "n": 64, "d": 8}
    return Sounding(sites, pd.DataFrame({**keys, **columns}), Provenance(model={"name": "small"}))


def test_layers_have_affinity_of_activations_and_r2_of_parts() -> None:
    table = layer_table(small_transformer()).set_index(["series", "layer"])
    assert table["mean"].round(9).to_dict() == {
        ("activation", 0): 0.85,
        ("activation", 1): 0.7,  # of 0.6 and 0.8, the means of both experts
        ("mlp", 0): 0.6,
        ("mlp", 1): 0.8,
        ("mlp +residual", 0): 0.9,
    }
    root = np.sqrt(2)  # the standard deviation of two values is their difference / √2
    assert_allclose(table["std"], [0.1 / root, 0.2 / root, 0.2 / root, 0, 0], atol=1e-12)
    assert table["trimmed"].dropna().round(9).to_dict() == {("mlp", 1): 0.4}
    assert table["gauge"].to_list() == ["affinity"] * 2 + ["r2_heldout"] * 3
    ranks = layer_table({"a": small_transformer(), "b": transformer("b")}, "rank")
    assert ranks[ranks["network"] == "a"]["mean"].to_list() == [1, 5, 2, 8, 3]
    assert ranks["trimmed"].isna().all()


def test_layers_need_one_stack_and_a_gauge_with_values() -> None:
    assert has_layers(small_transformer())
    assert not has_layers(network("a"))
    one = small_transformer()
    twice = (*one.sites[:6], Site("decoder.1.mlp", "Part", 1, 6, True, "mlp", 1))
    two_stacks = Sounding(twice, one.records.replace({"site": {"pooler": "decoder.1.mlp"}}))
    assert not has_layers(two_stacks)
    with pytest.raises(InputError, match="expected one stack of layers, got several"):
        layer_table(two_stacks)
    with pytest.raises(InputError, match="expected sites with layers, got none"):
        layer_table(network("a"))
    with pytest.raises(InputError, match="'speed' was not measured"):
        layer_table(one, "speed")
    without = Sounding(one.sites, one.records.assign(rank=np.nan))
    with pytest.raises(InputError, match="'rank' has no finite value at any layer"):
        layer_table(without, "rank")


def test_each_gauge_has_the_range_of_its_row() -> None:
    table = gauge_table(small_transformer())
    rows = table.groupby(["series", "gauge"], sort=False)
    assert list(rows.groups) == [
        ("activation", "affinity"),
        ("activation", "rank"),
        ("mlp", "r2_heldout"),
        ("mlp", "r2_trimmed"),
        ("mlp", "rank"),
        ("mlp +residual", "r2_heldout"),
        ("mlp +residual", "r2_trimmed"),
        ("mlp +residual", "rank"),
    ]
    assert rows["row"].first().to_list() == list(range(8))
    ranks = table[(table["series"] == "activation") & (table["gauge"] == "rank")]
    assert ranks[["mean", "low", "high", "share"]].to_numpy().tolist() == [[1, 1, 5, 0], [5, 1, 5, 1]]
    assert (table.loc[table["series"] == "mlp +residual", "share"] == 0).all(), "one layer has no range"


def test_an_alignment_pairs_sites_and_their_values() -> None:
    first, second = network("a"), network("a", seed=1)
    table = alignment_table({"before": first, "after": second})
    assert table.attrs["how"] == "sites"
    assert table.attrs["names"] == ["before", "after"]
    assert_allclose(table["difference"], second.signature.to_numpy() - first.signature.to_numpy())
    assert_allclose(table["std"], np.hypot(first.std("affinity"), second.std("affinity")))
    warped = alignment_table({"a": first, "b": network("b", 7)}, by="dtw")
    assert_allclose(warped["difference"], warped["second_mean"] - warped["first_mean"])
    assert warped["second_order"].is_monotonic_increasing


def test_the_tree_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    tree = cluster(distances([sounding(f"net{i}", rng.random(9)) for i in range(7)]))
    table = branch_table(tree)
    drawn = dendrogram(tree.linkage, no_plot=True)
    theirs = {
        tuple(sorted((x - 5) / 10 for x in xs[1:3])): max(ys)
        for xs, ys in zip(drawn["icoord"], drawn["dcoord"], strict=True)
    }
    mine = {tuple(sorted(part["row"].iloc[1:3])): part["height"].max() for _, part in table.groupby("merge")}
    assert mine.keys() == theirs.keys()
    assert_allclose([mine[key] for key in theirs], list(theirs.values()))
    cells = matrix_table(tree).pivot(index="row", columns="column", values="distance")
    assert_allclose(cells, tree.ordered)


def test_years_hold_min_median_and_max_side_by_side() -> None:
    rng = np.random.default_rng(0)
    named = {f"net{i}": sounding(f"net{i}", rng.random(8)) for i in range(8)}
    facts = pd.DataFrame({"year": [2012, 2012, 2012, 2013, 2014, 2014, np.nan, 2016]}, index=list(named))
    table = year_table(named, facts)
    assert sorted(table.index) == sorted(set(named) - {"net6"})
    for name, row in table.iterrows():
        assert row[["min", "median", "max"]].to_list() == named[str(name)].summary()[:3].to_list()
    assert (table["place"] - table["year"]).abs().max() < 0.5
    assert table["place"].is_unique
    assert table["place"]["net3"] == 2013


def test_a_predictor_fits_its_networks() -> None:
    rng = np.random.default_rng(1)
    named = {f"net{i}": sounding(f"net{i}", rng.random(12)) for i in range(6)}
    facts = pd.DataFrame({"accuracy": rng.random(6), "depth": rng.random(6)}, index=list(named))
    facts.loc["net5", "accuracy"] = np.nan
    families = dict.fromkeys(named, "all")
    numbers = statistics(named)
    found = predictor_table(best_predictors(numbers, facts, families), numbers, facts, families)
    assert [row["kind"] for row, _ in found] == ["signature", "characteristic"]
    for row, table in found:
        assert list(table.index) == [f"net{i}" for i in range(5)]
        slope, level = np.polyfit(table["value"], table["target"], 1)
        assert slope == pytest.approx(row["slope"])
        assert_allclose(table["fit"], slope * table["value"] + level)


def test_steps_end_half_way_to_their_neighbours() -> None:
    assert step_edges([0, 10, 30]).tolist() == [-5, 5, 20, 40]
    assert step_edges([7]).tolist() == [6.5, 7.5]


def test_a_path_has_the_measures_of_points_and_layers() -> None:
    (run,) = measured_sweep(grid(SMALL, effective_depth=[2.0])).runs
    table = leaky_path_table(run)
    assert_allclose(table["p"], run.measures.points["p"])
    assert_allclose(table["p"][:-1], run.measures.layers["p"])
    assert_allclose(table["hamiltonian"][:-1], run.measures.layers["hamiltonian"])
    assert np.isnan(table["hamiltonian"].iloc[-1])


def test_a_residual_path_begins_with_its_input() -> None:
    ranks: dict[str, Any] = {
        "stable_rank": np.array([4.0, 3.0, 2.0]),
        "stable_rank_in": np.array([5.0, 4.0, 3.0]),
    }
    path = network("a", 3, speed=np.array([1.0, 2.0, 3.0]), **ranks)
    table = residual_path_table([path, network("b", 3, **ranks)])
    assert table.groupby(["number", "gauge"]).size().to_dict() == {
        (0, "speed"): 3,
        (0, "stable_rank"): 4,
        (1, "stable_rank"): 4,
    }
    first = table[(table["number"] == 0) & (table["gauge"] == "stable_rank")]
    assert first["mean"].to_list() == [5, 4, 3, 2]
    assert first["order"].to_list() == [0, 1, 2, 3]
    assert_allclose(first["depth"], [0, 1 / 3, 2 / 3, 1])
