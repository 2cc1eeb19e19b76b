from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_samples

from fathometer import InputError
from fathometer.compare import (
    Distances,
    adjusted_rand,
    cluster,
    distances,
    family_agreement,
    signature_distances,
    stability,
)
from tests.compare.soundings import sounding

RNG = np.random.default_rng(2)
LINE = {name: np.array([value]) for name, value in {"a": 0.0, "far": 10.0, "b": 1.0, "c": 3.0}.items()}


def test_four_points_on_a_line() -> None:
    tree = cluster(signature_distances(LINE))
    assert tree.linkage[:, 2].tolist() == [1.0, 2.5, pytest.approx((10 + 9 + 7) / 3)]
    assert tree.merges == [frozenset("ab"), frozenset("abc"), frozenset(["a", "b", "c", "far"])]
    assert tree.names in (("a", "b", "c", "far"), ("far", "c", "b", "a"))
    cut = tree.cut(2)
    assert cut["a"] == cut["b"] == cut["c"] != cut["far"]
    assert sorted(cut.unique()) == [1, 2]
    ordered = tree.ordered.to_numpy()
    expected = np.array([[0, 1, 3, 10], [1, 0, 2, 9], [3, 2, 0, 7], [10, 9, 7, 0]])  # from a to far
    assert ordered.tolist() in (expected.tolist(), expected[::-1, ::-1].tolist())


@pytest.mark.parametrize("method", ["average", "complete", "single", "ward"])
def test_the_tree_matches_scipy(method: str) -> None:
    points = RNG.random((12, 3))
    condensed = pdist(points)
    square = squareform(condensed)
    tree = cluster(Distances(tuple("abcdefghijkl"), square, "paper", "affinity"), method)  # type: ignore[arg-type]
    expected = linkage(condensed, method)
    assert np.allclose(tree.linkage[:, 2], expected[:, 2], rtol=1e-12)
    assert tree.cophenetic == pytest.approx(cophenet(expected, condensed)[0], abs=1e-12)
    assert np.allclose(tree.distances.condensed, condensed)


def test_too_few_networks_or_clusters_are_refused() -> None:
    pair = signature_distances({"a": np.zeros(1), "b": np.ones(1)})
    assert math.isnan(cluster(pair).cophenetic)
    with pytest.raises(InputError, match="at least two"):
        cluster(signature_distances({"a": np.zeros(1)}))
    with pytest.raises(InputError, match="1 to 2, got 3"):
        cluster(pair).cut(3)


def test_each_network_has_a_nearest_neighbour_and_a_silhouette() -> None:
    values = {"a1": 0.0, "a2": 1.0, "b1": 10.0, "b2": 12.0, "astray": 9.0, "single": 30.0}
    families = {name: name[0] for name in values} | {"astray": "a", "single": "s"}
    found: Any = family_agreement(
        signature_distances({k: np.array([v]) for k, v in values.items()}), families
    )
    table: Any = found.set_index("network")
    assert table["nearest"].to_dict() == {
        "a1": "a2", "a2": "a1", "b1": "astray", "b2": "b1", "astray": "b1", "single": "b2"
    }  # fmt: skip
    assert table["same"].to_list() == [True, True, False, True, False, None]
    points = np.array(list(values.values()))[:, None]
    theirs = silhouette_samples(points, list(families.values()))
    ours = table["silhouette"].to_numpy()
    assert np.allclose(ours[:-1], theirs[:-1])
    assert math.isnan(ours[-1])
    with pytest.raises(InputError, match="two families"):
        family_agreement(signature_distances(LINE), {"a": "x", "b": "x"})


def stability_of(soundings: Any, **options: Any) -> Any:
    return stability(cluster(distances(soundings)), soundings, **options)


def test_stability_finds_merges_that_are_noise() -> None:
    """Two networks far away, and three whose order is a matter of batches."""
    noisy = {n: sounding(n, 0.5 + 0.01 * RNG.standard_normal((6, 8))) for n in ("x", "y", "z")}
    sure = {n: sounding(n, v + 1e-6 * RNG.random((6, 8))) for n, v in (("far", 0.9), ("near", 0.91))}
    found = stability_of({**noisy, **sure}, draws=60, clusters=2)
    returns = {
        frozenset(m.split(", ")): r
        for m, r in zip(found.merges["members"], found.merges["returns"], strict=True)
    }
    assert returns[frozenset({"far", "near"})] == 1
    assert returns[frozenset({"x", "y", "z"})] == 1
    (pair,) = (r for members, r in returns.items() if len(members) == 2 and "far" not in members)
    assert 0.2 < pair < 0.95
    assert found.pairs.loc["x", "y"] == 1
    assert found.pairs.loc["x", "far"] == 0
    assert found.single_batch == ()
    again = stability_of({**noisy, **sure}, draws=60, clusters=2)
    assert again.merges.equals(found.merges)
    assert not stability_of({**noisy, **sure}, draws=60, seed=1).merges.equals(found.merges)


def test_networks_with_one_batch_are_named_or_refused() -> None:
    a, b = sounding("a", [0.1, 0.2]), sounding("b", [0.3, 0.5])
    many = sounding("c", RNG.random((2, 3)))
    assert stability_of([a, b, many], draws=3).single_batch == ("a", "b")
    with pytest.raises(InputError, match="several batches"):
        stability_of([a, b])
    with pytest.raises(InputError, match="draws"):
        stability_of([a, many], draws=0)
    tree = cluster(signature_distances({"a": np.zeros(1), "other": np.ones(1)}))
    with pytest.raises(InputError, match="expected the soundings of the tree, a, other; got a, c"):
        stability(tree, [a, many])


def test_networks_that_saw_the_same_batches_are_drawn_together() -> None:
    """A hard batch is hard for all: drawn together, c stays where it is between a and b."""
    batch = 0.2 * RNG.standard_normal((1, 8))
    levels = {"a": 0.1, "b": 0.2, "c": 0.35}
    paired = {n: sounding(n, np.full((4, 1), level) + batch) for n, level in levels.items()}
    found = stability_of(paired, draws=60)
    assert found.merges["returns"].to_list() == [1, 1]
    apart = {n: sounding(n, s.records.pivot(index="site", columns="batch", values="affinity"), seed=seed)
             for seed, (n, s) in enumerate(paired.items())}  # fmt: skip
    found = stability_of(apart, draws=60)
    assert found.merges["returns"].iloc[0] < 0.9


def test_adjusted_rand_takes_any_labels() -> None:
    assert adjusted_rand([1, 1, 1], ["x", "x", "x"]) == 1
    assert adjusted_rand([1, 1, 2, 2], ["x", "y", "x", "y"]) == pytest.approx(-0.5)
    with pytest.raises(InputError, match="two partitions of the same"):
        adjusted_rand([1, 2], [1, 2, 3])


def test_a_site_missing_from_some_batches_is_resampled() -> None:
    holed = RNG.random((3, 4))
    holed[1, :3] = np.nan
    found = stability_of([sounding("a", holed), sounding("b", RNG.random((3, 4)))], draws=20)
    assert found.merges["returns"].to_list() == [1.0]


def test_stability_of_a_gauge_with_several_values() -> None:
    values = np.random.default_rng(0).random((3, 4, 2))
    found = {name: sounding(name, one, stable_rank_x=one) for name, one in zip("abc", values, strict=True)}
    trees = [cluster(distances(found, gauge)) for gauge in ("stable_rank", "stable_rank_x")]
    merges, same = (stability(tree, found, draws=5).merges for tree in trees)
    assert merges.equals(same)
