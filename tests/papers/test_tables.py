from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fathometer.compare import family_table
from papers.affinity.census import Census
from papers.affinity.printed_tables import METRICS, table_1, table_2, table_2_families
from papers.affinity.table_1 import different, follows, from_table_2, lacking_rows, near_rows
from papers.affinity.table_2 import lacking_printed, measured_correlations, near_printed, one_sign, reliable
from tests.compare.soundings import sounding

RNG = np.random.default_rng(2)


def test_the_printed_table_1_does_not_follow_from_table_2() -> None:
    found = follows(from_table_2(), table_1())
    assert found.holds is False
    assert found.numbers["numbers"] == 70
    assert "DenseNets (6 of 10) and EfficientNets (2 of 10)" in found.measured


def test_a_table_that_follows() -> None:
    two = table_2()
    one = family_table(two, table_2_families(), overall="Average").round(2)
    one = one.loc[:, [column for column in one.columns if column[1] != "count"]]
    found = follows(from_table_2(), one)
    assert found.holds
    assert found.numbers["largest"] <= 0.005 + 1e-9


def test_the_largest_correlation_is_another_metric_from_family_to_family() -> None:
    assert different(pd.DataFrame(table_1().drop("Average").xs("mean", axis=1, level=1))).holds
    same = pd.DataFrame({"cka": [0.9, -0.9, 0.8], "r2": [0.1, 0.2, 0.9]}, index=["a", "b", "c"])
    found = different(same)
    assert not found.holds
    assert found.measured.startswith("cka in 2 of 3 families: a cka 0.90, b cka -0.90, c r2 0.90")


def test_a_reliable_metric_is_found() -> None:
    assert reliable(table_2()).holds
    table: Any = pd.DataFrame({"cka": [0.9, 0.8, 0.75, 0.1], "r2": [0.9, -0.9, 0.9, -0.9]})
    found = reliable(table)
    assert not found.holds
    assert found.numbers == {"share_cka": 0.75, "share_r2": 0.5}
    assert reliable(table.assign(cka=np.nan)).holds


def test_signs() -> None:
    assert one_sign(table_2()["r2"]).holds
    assert not one_sign(pd.Series([0.1, 0.2, 0.3, -0.1])).holds
    assert not one_sign(pd.Series([-0.1, -0.2, np.nan])).holds


def networks(
    *, like: float | Mapping[Any, float], names: list[str], weights: str = "IMAGENET1K_V1"
) -> Census:
    """Torchvision's networks, in which the companions go with the score as closely as asked for."""
    score = RNG.random(40)
    noise = RNG.random(40)
    noise -= noise.mean() + np.polyfit(score, noise, 1)[0] * (score - score.mean())
    noise *= score.std() / noise.std()
    wanted = like if isinstance(like, Mapping) else dict.fromkeys(METRICS, like)
    companions = {
        METRICS[metric]: r * (score - score.mean()) + np.sqrt(1 - r**2) * noise
        for metric, r in wanted.items()
    }
    return Census.of(
        {name: sounding(f"torchvision:{name}", score, weights=weights, **companions) for name in names}
    )


def test_measured_correlations_have_the_printed_names() -> None:
    found = measured_correlations(networks(like=0.6, names=["vgg11"]))
    assert found.columns.to_list() == table_2().columns.to_list()
    assert found.to_numpy() == pytest.approx(0.6)


def test_printed_numbers_are_compared_with_torchvisions_own_weights() -> None:
    assert lacking_printed(networks(like=0.5, names=["vgg11"], weights="mine.pth"))
    assert lacking_printed(networks(like=0.5, names=["squeezenet1_1"]))
    near = networks(like=-0.2, names=["vgg13"])
    assert not lacking_printed(near)
    found = near_printed(near)
    off = (table_2().loc["vgg13"] + 0.2).abs()
    assert found.numbers["median"] == pytest.approx(off.median())
    assert not found.holds
    same = networks(like=table_2().loc["densenet121"].to_dict(), names=["densenet121", "densenet161"])
    assert near_printed(same).holds


def test_rows_of_table_1_need_the_whole_family() -> None:
    vggs = ["vgg11", "vgg13", "vgg16", "vgg19"]
    some = networks(like=0.5, names=vggs)
    families = some.facts.assign(family="VGG")
    assert lacking_rows(Census({"vgg11": some.soundings["vgg11"]}, families))
    whole = Census(some.soundings, families)
    assert not lacking_rows(whole)
    means = table_1().loc["VGGs"].xs("mean", level=1)
    assert near_rows(whole).numbers["median"] == pytest.approx((means - 0.5).abs().median())
