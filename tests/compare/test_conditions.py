from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fathometer import InputError
from fathometer.compare import (
    by_name,
    comparable,
    criteria_spread,
    data_deviation,
    facts_of,
    known_facts,
    read_facts,
    robustness,
    signatures_over,
)
from fathometer.models.from_torchvision import torchvision_year
from tests.compare.soundings import sounding
from tests.report.figures.drawn import transformer


def test_deviation_from_the_reference_data() -> None:
    some = [
        sounding("a", [0, 0], data="images"),
        sounding("a", [3, 4], data="noise"),
        sounding("a", [0, 1], data="cifar"),
        sounding("b", [1, 1, 1], data="noise"),
        sounding("b", [1, 1, 2], data="images"),
    ]
    found: Any = data_deviation(some, "images")
    assert found.loc["a"].to_dict() == {"noise": 5, "cifar": 1}
    assert found.loc["b", "noise"] == 1
    assert np.isnan(found.loc["b", "cifar"])
    assert data_deviation(some[:3], "images", metric="paper").loc["a", "cifar"] == 1
    assert data_deviation(some[:3], "images", metric="wasserstein").loc["a", "noise"] == 3.5


def test_a_deviation_needs_a_reference_and_the_same_network() -> None:
    images, noise = sounding("a", [1], data="images"), sounding("a", [2], data="noise")
    with pytest.raises(InputError, match="reference: a: expected a sounding on 'cifar', got images"):
        data_deviation([images, noise], "cifar")
    with pytest.raises(InputError, match="other data besides 'images'"):
        data_deviation([images], "images")
    retrained = sounding("a", [2], data="noise", sha256="other")
    with pytest.raises(InputError, match="trained other: expected a sounding on 'images'"):
        data_deviation([images, retrained], "images")
    with pytest.raises(InputError, match="two soundings with data noise"):
        data_deviation([images, noise, noise], "images")


def test_robustness_over_samples() -> None:
    some = [
        sounding("a", [[0.1, 0.3], [0.5, 0.5]], samples=10),
        sounding("a", [[0.4, 0.4], [0.5, 0.5]], samples=20),
        sounding("b", [0.5], samples=10),
        sounding("b", [0.5], samples=20),
    ]
    found: Any = robustness(some, "samples")
    row = found.loc["a"]
    assert row["values"] == 2
    assert row["std"] == pytest.approx(0.05)  # sites: 0.1 and 0
    assert row["largest"] == pytest.approx(0.2)
    assert row["batch_std"] == pytest.approx(np.std([0.1, 0.3], ddof=1) / 4)
    assert found.loc["b", "std"] == 0
    table: Any = signatures_over(some[:2], "samples")
    assert table.to_dict() == {
        "10": {"relu0": pytest.approx(0.2), "relu1": 0.5},
        "20": {"relu0": pytest.approx(0.4), "relu1": 0.5},
    }


@pytest.mark.parametrize("over", ["seed", "pooling", "weights", "data"])
def test_robustness_over_seed_pooling_weights_and_data(over: str) -> None:
    change = {"seed": 1, "pooling": "sum", "sha256": "1", "data": "noise"}
    key = "sha256" if over == "weights" else over
    some = [sounding("a", [0.5, 0.7]), sounding("a", [0.6, 0.7], **{key: change[key]})]  # type: ignore[arg-type]
    assert robustness(some, over).loc["a", "largest"] == pytest.approx(0.1)


def test_soundings_that_do_not_fit_are_refused() -> None:
    a = sounding("a", [1, 2])
    with pytest.raises(InputError, match="expected one of data, pooling"):
        robustness([a], "colour")
    with pytest.raises(InputError, match="a: expected soundings that differ in seed, got one"):
        robustness([a], "seed")
    with pytest.raises(InputError, match="0 has 2, but 1 has 3 sites, first different at relu2"):
        robustness([a, sounding("a", [1, 2, 3], seed=1)], "seed")
    with pytest.raises(InputError, match="1: 'affinity' has no finite value at relu1"):
        robustness([a, sounding("a", [1, np.nan], seed=1)], "seed")
    with pytest.raises(InputError, match="data: "):
        robustness([a, sounding("a", [1, 2], seed=1, data="noise")], "seed")
    with pytest.raises(InputError, match="one network, got a, b"):
        signatures_over([sounding(name, [1], seed=seed) for name in "ab" for seed in (0, 1)], "seed")


def test_criteria_over_trainings() -> None:
    some = [
        sounding("a", [[0.2, 0.4], [0.6, 0.8]], norm=[100, 300], own=[1, 1]),
        sounding("a", [0.7, 0.7], norm=[400, 400], sha256="1"),
    ]
    found: Any = criteria_spread(some)
    assert found.index.to_list() == ["affinity", "norm"]
    assert found.loc["affinity"].to_list() == pytest.approx([0.6, 0.1, 1 / 6, 2])
    assert found.loc["norm"].to_list() == pytest.approx([300, 100, 1 / 3, 2])
    with pytest.raises(InputError, match="own was not measured in all of these; they share affinity, norm"):
        criteria_spread(some, ["own"])
    with pytest.raises(InputError, match="at least two"):
        criteria_spread(some[:1])
    with pytest.raises(InputError, match="samples: "):
        criteria_spread([some[0], sounding("a", [1, 1], norm=[1, 1], samples=7)])
    holed = [some[0], sounding("a", [0.7, 0.7], norm=[400, np.nan], sha256="1")]
    with pytest.warns(UserWarning, match="left out: .*'norm' has no finite value at relu1"):
        assert criteria_spread(holed).index.to_list() == ["affinity"]


def test_deviation_between_data_without_a_name() -> None:
    def tensor(first: str) -> dict[str, object]:
        return {"name": "Tensor", "sample_shape": [4], "first_sample_sha256": first * 16}

    some = [sounding("a", [0, 0], data=tensor("aaaa")), sounding("a", [3, 4], data=tensor("bbbb"))]
    for reference in ("Tensor aaaaaaaa", "aaaaaaaa"):
        found: Any = data_deviation(some, reference)
        assert found.loc["a"].to_dict() == {"Tensor bbbbbbbb": 5}
    with pytest.raises(InputError, match="expected one of Tensor aaaaaaaa, Tensor bbbbbbbb, got 'Tensor'"):
        data_deviation(some, "Tensor")


def test_noise_is_named_by_its_number_of_samples() -> None:
    def noise(count: int) -> dict[str, object]:
        return {"kind": "random", "name": "random", "sample_shape": [3, 8, 8], "count": count}

    some = [sounding("a", [0, 0], data=noise(96)), sounding("a", [3, 4], data=noise(192))]
    table: Any = signatures_over(some, "data")
    assert table.columns.to_list() == ["random:96", "random:192"]
    found: Any = data_deviation(some, "random:192")
    assert found.loc["a"].to_dict() == {"random:96": 5}
    with pytest.raises(InputError, match="expected one of random:192, random:96, got 'random'"):
        data_deviation(some, "random")
    mixed = [some[0], sounding("a", [3, 4], data="images"), sounding("b", [1], data=noise(192))]
    mixed.append(sounding("b", [2], data="images"))  # another network, on more of it
    assert data_deviation(mixed, "random")["images"].to_dict() == {"a": 5, "b": 1}
    assert data_deviation(mixed[:2], "random:96")["images"].to_dict() == {"a": 5}
    with pytest.raises(InputError, match="on 'random:5', got random, images"):
        data_deviation(mixed[:2], "random:5")
    # More of the same noise is not other data: two networks can be compared.
    assert len(comparable([some[0], sounding("b", [1], data=noise(192))])) == 2


def test_random_weights_are_named_by_their_seed() -> None:
    drawn = [sounding("a", [s, 1], weights="none", sha256=f"h{s}", seed=s) for s in (0, 1)]
    assert signatures_over(drawn, "weights").columns.to_list() == ["seed 0", "seed 1"]
    others = [sounding("b", [s, 1], weights="none", sha256=f"g{s}", seed=s) for s in (0, 1)]
    assert list(by_name([*drawn, *others])) == ["a, seed 0", "a, seed 1", "b, seed 0", "b, seed 1"]
    with pytest.raises(InputError, match=r"differ in seed, got one; .* compare over weights"):
        robustness(drawn, "seed")
    again = [
        *drawn,
        sounding("a", [0, 1], weights="none", sha256="h0", seed=5),
    ]  # two seeds, the same weights
    assert "a, none h0" in next(iter(by_name(again)))


def test_facts_of_torchvisions_own_weights() -> None:
    some = {
        "trained": sounding("torchvision:resnet18", [1], weights="IMAGENET1K_V1"),
        "file": sounding("torchvision:resnet18", [1], weights="resnet18-f37072fd.pth"),
        "random": sounding("torchvision:resnet18", [1], weights="none"),
        "mine": sounding("my.module:resnet18", [1], weights="IMAGENET1K_V1"),
    }
    found: Any = known_facts(some)
    assert found.index.to_list() == ["trained", "file", "random"]
    assert found["accuracy"].iloc[:2].to_list() == [69.758, 69.758]
    assert np.isnan(found.loc["random", "accuracy"])
    assert found["family"].to_list() == ["resnet"] * 3
    assert found.loc["random", "parameters"] == 11689512
    assert found.loc["random", "gflops"] == pytest.approx(1.814)
    assert found["year"].to_list() == [2015] * 3


def test_every_network_of_torchvision_has_a_year() -> None:
    models = pytest.importorskip("torchvision").models
    names = models.list_models(module=models)
    assert [name for name in names if torchvision_year(f"torchvision:{name}") is None] == []
    assert torchvision_year("torchvision:mobilenet_v3_small") == 2019
    assert torchvision_year("torchvision:fcn_resnet50") is torchvision_year("timm:resnet50") is None


def test_facts_of_a_survey_take_precedence() -> None:
    surveyed = sounding("torchvision:resnet18", [1], weights="IMAGENET1K_V1")
    surveyed.provenance.model.update(family="R", facts={"accuracy": 1, "gflops": "?", "colour": "red"})
    some = {"surveyed": surveyed, "plain": sounding("torchvision:vgg11", [1]), "mine": sounding("m", [1])}
    found: Any = known_facts(some)
    assert found.index.to_list() == ["surveyed", "plain"]
    assert found["family"].to_list() == ["R", "vgg"]
    assert found.loc["surveyed", "accuracy"] == 1
    assert "colour" not in found
    # What the survey left open, torchvision fills in, cell by cell.
    assert found.loc["surveyed", "gflops"] == pytest.approx(1.814)
    assert found["year"].to_list() == [2015, 2014]
    nameless = sounding("torchvision:resnet18", [1])
    nameless.provenance.model.update(family="", facts={"depth": 21})
    facts: Any = known_facts([nameless])
    assert facts.loc["resnet18", ["family", "depth"]].to_list() == ["resnet", 21]
    assert known_facts({"mine": some["mine"]}).empty


def test_facts_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("network,family,accuracy,colour,year\n net ,A,70.5,red,2015\nNA,,,,\n")
    table: Any = read_facts(path)
    assert table.index.to_list() == ["net", "NA"]
    found: Any = facts_of([sounding("x:net", [1]), sounding("unknown", [1])], table)
    assert found.to_dict("index") == {"net": {"family": "A", "accuracy": 70.5, "colour": "red", "year": 2015}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name,family\na,b\n", "expected a column 'network', got name"),
        ("network,accuracy\na,high\n", "column 'accuracy': expected numbers, got 'high'"),
        ("network,family\na,b\na,c\n", "'a' appears twice"),
        ("network,family\na,b\n\n,c\n", "expected a name in the column 'network' of every row"),
        ("", "not a CSV"),
    ],
)
def test_a_wrong_file_of_facts_is_refused(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        read_facts(path)


def test_only_the_kinds_of_sites_with_a_value_are_compared() -> None:
    both = [transformer("a", 2, seed=seed) for seed in (0, 1)]
    facts = [replace(one.provenance, settings={"seed": seed}) for seed, one in enumerate(both)]
    both = [replace(one, provenance=known) for one, known in zip(both, facts, strict=True)]
    table = signatures_over(both, "seed")
    assert table.index.to_list() == ["h.0.act", "h.1.act"]
    assert table.iloc[:, 0].to_list() == both[0].mean("affinity").dropna().to_list()
