from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fathometer.compare import family_table
from papers.affinity.census import Census
from papers.affinity.printed_tables import METRICS, table_2, table_2_families
from papers.affinity.table_1 import TABLE_1, follows, from_table_2, is_different, largest
from papers.affinity.table_2 import TABLE_2, measured_correlations, shares
from papers.item import NotDecided
from papers.verdict import simulate
from tests.compare.soundings import sounding
from tests.papers.networks import FAMILY, YEARS

RNG = np.random.default_rng(2)
SCORE = RNG.random(40)


def test_the_printed_table_1_does_not_follow_from_table_2() -> None:
    claim = TABLE_1.claims["follows"]
    found = claim.measure(None)
    assert not claim.holds(found)
    assert found["numbers"] == 70
    assert found["broken"] == "DenseNets (6 of 10), EfficientNets (2 of 10)"
    assert "anonymous submission" in claim.words


def test_a_table_that_follows() -> None:
    one = family_table(table_2(), table_2_families(), overall="Average").round(2)
    one = one.loc[:, [column for column in one.columns if column[1] != "count"]]
    found = follows(from_table_2(), one)
    assert TABLE_1.claims["follows"].holds(found)
    assert float(found["largest"]) <= 0.005 + 1e-9  # type: ignore[arg-type]


def test_the_largest_correlation_is_another_metric_from_family_to_family() -> None:
    claim = TABLE_1.claims["printed"]
    assert claim.holds(claim.measure(None))
    same = {"a": [0.9, 0, 0, 0, 0.1], "b": [-0.9, 0, 0, 0, 0.2], "c": [0.8, 0, 0, 0, 0.9]}
    assert not is_different(same)
    assert largest(same) == "a: cka 0.90, b: cka -0.90, c: r2 0.90"


def test_a_reliable_metric_is_found() -> None:
    claim = TABLE_2.claims["printed"]
    assert claim.holds(claim.measure(None))
    some = {metric: [0.9, -0.9, 0.9, -0.9] for metric in METRICS} | {"cka": [0.9, 0.8, 0.75, 0.1]}
    assert shares(some) == dict.fromkeys(METRICS, 0.5) | {"cka": 0.75}
    assert not claim.holds(some)


def test_signs() -> None:
    claim = TABLE_2.claims["printed_r2"]
    assert claim.holds(claim.measure(None))
    assert not claim.holds({"r2": [0.1, 0.2, 0.3, -0.1]})
    assert not claim.holds({"r2": [-0.1, -0.2]})


def networks(like: pd.DataFrame, **facts: Any) -> Census:
    """Networks of which each metric goes with the score as closely as asked for."""
    found = {}
    for name in like.index:
        score = SCORE - SCORE.mean()
        noise = RNG.random(40)
        noise -= noise.mean() + np.polyfit(score, noise, 1)[0] * score
        noise *= score.std() / noise.std()
        rows = {
            METRICS[metric]: r * score + np.sqrt(1 - r**2) * noise for metric, r in like.loc[name].items()
        }
        found[str(name)] = sounding(str(name), SCORE, **rows)
        found[str(name)].provenance.model["facts"] = {"trained_on": "imagenet", **facts}
    family = pd.Series({name: FAMILY[name] for name in found})
    known = pd.DataFrame({"family": family, "year": family.map(YEARS)})
    return Census(found, dict.fromkeys(found, SCORE), known)


def as_printed() -> pd.DataFrame:
    """Every other network: 15 of all families."""
    return table_2().loc[[name for name in table_2().index if name in FAMILY]].iloc[::2]


def test_measured_correlations_have_the_printed_names() -> None:
    found = measured_correlations(networks(as_printed()))
    assert found.to_numpy() == pytest.approx(as_printed().to_numpy())
    assert list(found.columns) == list(table_2().columns)


def test_claims_on_measured_networks() -> None:
    right = networks(as_printed())
    wrong = networks(as_printed().assign(cka=0.9, r2=0.5))
    for claim in (TABLE_1.claims["measured"], TABLE_2.claims["measured"], TABLE_2.claims["measured_r2"]):
        numbers = claim.measure(right)
        assert claim.holds(numbers), claim.sentence(numbers)
        assert not claim.holds(claim.measure(wrong))
        with pytest.raises(NotDecided, match="4 families or more"):
            claim.measure(right.only(right.named(("VGG", "ResNet"))))
        size, power = simulate(claim, numbers, 50)
        assert size < 0.1
        assert power > 0.8


def test_few_networks_cannot_tell_signs_from_chance() -> None:
    claim = TABLE_2.claims["measured_r2"]
    few = networks(table_2().loc[["alexnet", "vgg16", "inception_v3", "resnet50"]])
    assert simulate(claim, claim.measure(few), 200)[1] < 0.8


def test_printed_numbers_are_compared_with_whole_networks_of_imagenet() -> None:
    claim = TABLE_2.claims["numbers"]
    numbers = claim.measure(networks(as_printed()))
    assert claim.holds(numbers)
    assert numbers["count"] == 5 * len(as_printed())
    assert not claim.holds(claim.measure(networks(as_printed().assign(cka=0.1, norm=0.2, r2=0.3))))
    for facts in ({"trained_on": "cifar10"}, {"notes": ["convolutional trunk alone"]}):
        with pytest.raises(NotDecided, match="trained on ImageNet"):
            claim.measure(networks(as_printed(), **facts))
