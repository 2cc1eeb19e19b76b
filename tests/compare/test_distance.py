from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from fathometer import InputError, Sounding
from fathometer.compare import Distances, by_name, comparable, distances, signature_distances
from tests.compare.soundings import sounding

RNG = np.random.default_rng(1)


def test_euclidean_and_wasserstein_distances_in_closed_form() -> None:
    given = {"a": np.array([0.0, 0.0]), "b": np.array([3.0, 4.0]), "c": np.array([4.0, 3.0])}
    assert signature_distances(given, "euclidean").frame.loc["a", "b"] == 5
    found: Any = signature_distances(given, "wasserstein").frame
    assert found.loc["a", "b"] == 3.5
    assert found.loc["b", "c"] == 0  # order is ignored


def test_wasserstein_is_scipys_for_any_lengths() -> None:
    given = {str(n): RNG.random(n) for n in (3, 7, 20)}
    found: Any = signature_distances(given, "wasserstein").matrix
    assert found[0, 2] == wasserstein_distance(given["3"], given["20"])
    # A metric: the triangle inequality holds.
    assert found[0, 2] <= found[0, 1] + found[1, 2] + 1e-15


def test_distances_of_soundings_are_of_their_means() -> None:
    a, b = RNG.random((5, 4)), RNG.random((7, 2))
    found = distances([sounding("a", a), sounding("torchvision:b", b)])
    assert found.names == ("a", "b")
    assert found.gauge == "affinity"
    assert found.matrix[0, 1] == signature_distances({"a": a.mean(1), "b": b.mean(1)}).matrix[0, 1]


def test_sites_after_a_sum_are_aligned_with_each_other_alone() -> None:
    shallow, deep = np.array([0.2, 0.9] * 3), np.array([0.2, 0.9] * 3 + [0.9, 0.2])
    roles = {"a": shallow > 0.5, "b": deep > 0.5, "none": np.zeros(6, bool)}
    given = {"a": shallow, "b": deep, "none": shallow}
    found: Any = signature_distances(given, "normalised", roles=roles).frame
    assert found.loc["a", "b"] == 0  # apart, both parts are constant
    plain: Any = signature_distances(given, "normalised").frame
    assert plain.loc["a", "b"] > 0
    assert found.loc["none", "b"] == plain.loc["none", "b"] > 0  # one of them has no such sites
    two = {"a": np.array([0.2, 0.9, 0.2, 0.9]), "b": np.array([0.4, 0.8])}
    branch = signature_distances(two, roles={name: values > 0.5 for name, values in two.items()})
    assert branch.matrix[0, 1] == pytest.approx(np.sqrt((0.2**2 + 0.1**2) / 2))


def test_bad_matrices_are_refused() -> None:
    for bad, words in ((np.array([[0, 1], [2, 0]]), "symmetric"), (np.full((2, 2), np.nan), "finite")):
        with pytest.raises(InputError, match=words):
            Distances(("a", "b"), bad, "paper", "affinity")
    with pytest.raises(ValueError, match="read-only"):
        signature_distances({"a": np.ones(2), "b": np.ones(2)}).matrix[0, 0] = 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": "noise"}, r"data: photos in most, but not in odd \(noise\)"),
        ({"pooling": "sum"}, r"pooling: mean in most, but not in odd \(sum\)"),
    ],
)
def test_a_mismatch_is_named(change: dict[str, object], words: str) -> None:
    three = [sounding("a", [1, 2]), sounding("b", [1, 3]), sounding("odd", [1, 4], **change)]  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        distances(three)
    with pytest.warns(UserWarning, match=words):
        assert distances(three, allow_mismatch=True).names == ("a", "b", "odd")


def test_two_that_differ_are_both_named() -> None:
    pair = [sounding("a", [1, 2]), sounding("b", [1, 3], data="noise")]
    with pytest.raises(InputError, match=r"these soundings differ: data: a: photos; b: noise; measure"):
        distances(pair)
    with pytest.raises(InputError, match="alike: expected one of data, pooling, samples, seed, weights"):
        comparable(pair, alike=["colour"])


def unnamed(first: str, *shape: int, name: str = "Tensor", **more: str) -> dict[str, Any]:
    return {"name": name, "sample_shape": list(shape or (4,)), "first_sample_sha256": first * 16, **more}


def text(length: int) -> dict[str, Any]:
    return unnamed("2", length, name="book.txt", kind="text")


def photos(content: str) -> dict[str, Any]:
    return {"kind": "images", "name": "photos", "sample_shape": [3, 8, 8], "sha256": content * 16}


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (unnamed("aaaa"), unnamed("bbbb"), "data: a: Tensor aaaaaaaa; b: Tensor bbbbbbbb"),
        (unnamed("aaaa"), unnamed("aaaa", 8), "data: a: Tensor 4; b: Tensor 8"),
        (unnamed("aa", 3, 8, 8), unnamed("bb", 3, 9, 9), "a: Tensor 3×8×8; b: Tensor 3×9×9"),
        (text(128), text(64), "a: book.txt 128; b: book.txt 64"),
        (photos("aaaa"), photos("bbbb"), "a: photos aaaaaaaa; b: photos bbbbbbbb"),
        (text(4) | {"fingerprint": "01"}, text(4) | {"fingerprint": "02"}, "a: book.txt 01; b: book.txt 02"),
    ],
)
def test_different_data_of_one_name_are_distinguished(
    one: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        distances([sounding("a", [1, 2], data=one), sounding("b", [1, 3], data=other)])


def test_data_that_may_be_the_same_are_compared() -> None:
    photos = {"kind": "images", "name": "photos", "sample_shape": [3, 224, 224], "first_sample_sha256": "a"}
    larger = photos | {"sample_shape": [3, 299, 299], "first_sample_sha256": "b"}  # another preprocessing
    pair = [sounding("a", [1, 2], data=photos), sounding("b", [1, 3], data=larger)]
    assert distances(pair, metric="paper").matrix[0, 1] == 1
    # Another seed may have put another sample first; an older file does not know it.
    distances([sounding("a", [1], data=unnamed("aaaa")), sounding("b", [1], data=unnamed("bbbb"), seed=1)])
    distances([sounding("a", [1], data=unnamed("aaaa")), sounding("b", [1], data="Tensor")])


def test_a_missing_gauge_is_named_or_left_out() -> None:
    some = [sounding("a", [1, 2], cka=[1, 2]), sounding("b", [1, 2], cka=[2, 2]), sounding("bare", [1, 2])]
    with pytest.raises(InputError, match="'cka' was not measured in bare"):
        distances(some, "cka")
    with pytest.warns(UserWarning, match="left out of the comparison: 'cka' was not measured in bare"):
        assert distances(some, "cka", allow_mismatch=True).names == ("a", "b")
    with pytest.raises(InputError, match="'rank' was not measured; choose from affinity, cka"):
        comparable(some, "rank", allow_mismatch=True)


def test_names_distinguish_soundings_of_one_network() -> None:
    again = [
        sounding("hub:net", [1], data="x"),
        sounding("net", [1], data="y"),
        sounding("net", [1], data="y", samples=5),
        sounding("other", [1]),
        sounding("other", [1]),
    ]
    assert list(by_name(again)) == ["net, x", "net, y, 100", "net, y, 5", "other", "other #2"]
    assert list(by_name({"mine": again[0]})) == ["mine"]
    with pytest.raises(InputError, match="at least one"):
        by_name([])
    with pytest.raises(InputError, match="expected a Sounding, got str"):
        by_name(["file.json"])  # type: ignore[list-item]


def test_paths_and_activations_are_not_compared() -> None:
    def path(name: str, sigma: object) -> Sounding:
        found = sounding(name, [0.5, 0.6])
        found.provenance.settings["path"] = {"sigma": sigma}
        return found

    plain, relu, tanh = sounding("a", [0.5, 0.6]), path("b", "relu"), path("c", "tanh")
    with pytest.raises(InputError, match="pairs: a: activations; b: residual path, σ relu"):
        comparable([plain, relu])
    with pytest.raises(InputError, match="pairs: b: residual path, σ relu; c: residual path, σ tanh"):
        comparable([relu, tanh])
    assert len(comparable([relu, path("d", "relu")])) == 2
    assert len(comparable([path("e", {"h.0": "gelu"}), path("f", {"h.0": "relu"})])) == 2
    with pytest.warns(UserWarning, match="compared although they differ: pairs"):
        comparable([plain, relu], allow_mismatch=True)
