from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from papers.affinity import (
    figure_3,
    figure_4,
    figure_5a,
    figure_5b,
    figure_5c,
    figure_10,
    figure_11,
    figure_12,
    figure_14,
)
from papers.affinity.census import EARLY, LATER, Census, judged, needs
from papers.item import Answer
from papers.roles import block_roles, kinds_of
from tests.compare.soundings import sounding
from tests.papers.networks import at_sites, census, history, relus

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def as_said() -> Census:
    return census(history())


def changed(**scores: Any) -> Census:
    """The history, with other scores for some networks."""
    return census({**history(), **scores})


def test_without_trained_networks_nothing_is_decided() -> None:
    def test(of: Census) -> Answer:
        return Answer(True, f"{len(of)} networks", {"networks": len(of)})

    trained, random = census(history()), census(history(), weights="none")
    assert judged(trained, needs("VGG", least=4), test).holds is True
    found = judged(random, needs("VGG", least=4), test)
    assert found.holds is None
    assert found.measured == "not decided: random weights; with these: 34 networks"
    some = trained.only(["vgg11", "vgg13"])
    found = judged(some, needs("VGG", "ViT", least=3, networks=["alexnet"]), test)
    assert found == Answer(None, "not decided: needs trained alexnet, VGG and ViT (3 or more of each)")
    found = judged(some, needs("VGG", least=3), test, beside=test)
    assert found.holds is None
    assert found.measured.endswith("trained VGG (3 or more); measured: 2 networks")


def test_families_go_by_their_name_whatever_its_capitals() -> None:
    some = census(history())
    some.facts.loc[some.members("ViT"), "family"] = "vit"
    renamed = Census(some.soundings, some.facts)
    assert len(renamed.members("ViT")) == 5
    assert renamed.representatives()[0] == "alexnet"


@pytest.mark.parametrize("columns", [("max", "spread"), ("median",)])
def test_figure_3_a_trend(as_said: Census, columns: tuple[str, ...]) -> None:
    found = figure_3.trend(as_said, columns)
    assert found.holds, found.measured
    assert "over 8 architectures" in found.measured  # GoogLeNet and Inception v3 are two
    turned = as_said.facts.assign(year=2031 - as_said.facts["year"])
    early = turned["year"] < 2020
    assert not figure_3.trend(
        Census(as_said.soundings, turned.assign(year=turned["year"].where(early, 2019))), columns
    ).holds


def test_figure_3_early_convnets_vits_and_swins(as_said: Census) -> None:
    assert figure_3.early_spread(as_said).holds
    assert not figure_3.early_spread(changed(vgg11=np.linspace(0.3, 1, 9))).holds
    assert figure_3.vit_median(as_said).holds
    assert not figure_3.vit_median(changed(vit_b_16=np.full(9, 0.9))).holds
    assert figure_3.near_early(as_said).holds
    found = figure_3.near_early(changed(swin_t=np.full(9, 0.3)))
    assert not found.holds
    assert found.numbers["nearer"] == 5


@cache
def noisy() -> Census:
    """The history with some noise, so that no two statistics are one."""
    noise = np.random.default_rng(3)
    return census({name: of + 0.02 * noise.random(len(of)) for name, of in history().items()})


def accuracies(of: Callable[[Census], pd.Series[float]]) -> Census:
    """The same with an accuracy from its numbers."""
    found = Census(noisy().soundings, noisy().facts.assign(accuracy=of(noisy())))
    vars(found)["statistics"] = noisy().statistics  # which take a second
    return found


def test_figure_4_what_predicts_is_found() -> None:
    groups = ("Residual", "ViTs", "Post-ViT")
    by_spread = accuracies(lambda of: 50 + 100 * of.statistics["spread"])
    for by in ("r2", "r2_left_out"):
        found = figure_4.better(by_spread, groups, by)
        assert found.holds, found.measured
    assert figure_4.parameters_best(by_spread).holds is False
    assert not figure_4.needs_groups(*figure_4.GROUPS)(by_spread)
    by_size = accuracies(lambda of: 50 + of.facts["parameters"] / 1e6)
    assert figure_4.parameters_best(by_size).holds
    assert not figure_4.better(by_size, groups, "r2").holds


def test_figure_4_spread_before_vit_and_the_median_after() -> None:
    def late(name: str) -> bool:
        return name.startswith(("vit", "swin", "convnext"))

    def mixed(of: Census) -> pd.Series[float]:
        numbers = of.statistics
        return pd.Series(
            {name: numbers.loc[name, "median" if late(str(name)) else "spread"] for name in numbers.index}
        )

    assert figure_4.shift(accuracies(mixed)).holds
    assert not figure_4.shift(accuracies(lambda of: -of.statistics["spread"])).holds
    assert not figure_4.shift(accuracies(lambda of: of.statistics["max"])).holds


def test_figure_4_random_weights_are_held_against_what_torchvision_states() -> None:
    random = census({"resnet18": [0.1, 0.2], "densenet121": [0.1, 0.2]}, weights="none")
    facts: Any = figure_4.with_accuracies(random).facts
    assert facts.loc["resnet18", "accuracy"] == pytest.approx(69.758)
    trained = census({"resnet18": [0.1, 0.2]})
    assert math.isnan(figure_4.with_accuracies(trained).facts.loc["resnet18", "accuracy"])  # type: ignore[arg-type]


def scattered() -> Census:
    """Networks whose families say nothing about their scores."""
    return census({name: RNG.random() * 0.5 + 0.3 * RNG.random(12) for name in history()})


def test_figure_5a_families(as_said: Census) -> None:
    assert not figure_5a.lacking_relatives(as_said)
    found = figure_5a.agreement(as_said)
    assert found.holds, found.measured
    apart = as_said.only([*as_said.members("ResNet", "ViT", "Swin", "DenseNet", "EfficientNet")])
    assert figure_5a.own_clusters(apart).holds
    assert not figure_5a.own_clusters(changed(resnet18=np.full(9, 0.3))).holds
    noise = scattered()
    assert not figure_5a.agreement(noise).holds
    assert not figure_5a.own_clusters(noise).holds
    assert figure_5a.lacking_relatives(as_said.only(["vgg11", "vgg13", "alexnet"])).endswith("(here 1)")


def test_figure_5a_swins(as_said: Census) -> None:
    assert figure_5a.swin_neighbours(as_said.only(n for n in as_said.soundings if "convnext" not in n)).holds
    assert not figure_5a.swin_neighbours(as_said).holds  # ConvNeXts are the nearest here


def test_figure_5b_away_and_back(as_said: Census) -> None:
    assert not figure_5b.lacking_years(as_said)
    found = figure_5b.moving_away(as_said)
    assert found.holds, found.measured
    assert figure_5b.coming_back(as_said).holds
    away = {name: np.full(9, 0.1) for name in as_said.members("Swin")}
    assert not figure_5b.coming_back(changed(**away)).holds
    last = {name: np.full(9, 0.72) for name in as_said.members("ViT", "EfficientNet", "MNASNet")}
    assert not figure_5b.moving_away(changed(**last)).holds


def test_figure_5c_distributions(as_said: Census) -> None:
    assert figure_5c.wider(as_said).holds
    assert not figure_5c.wider(changed(alexnet=np.linspace(0, 1, 9))).holds
    assert figure_5c.bimodal(as_said).holds
    assert not figure_5c.bimodal(changed(resnet50=np.linspace(0.4, 1, 30))).holds
    assert figure_5c.skewed(as_said).holds
    assert not figure_5c.skewed(changed(densenet121=0.3 + 0.1 * np.linspace(0, 1, 20) ** 3)).holds


def test_figure_14(as_said: Census) -> None:
    assert figure_14.nearer_within(as_said).holds
    noise = scattered()
    assert not figure_14.nearer_within(noise).holds
    assert not figure_14.every_network(noise).holds
    apart = as_said.only([*as_said.members("ResNet", "ViT", "Swin", "DenseNet")])
    assert figure_14.every_network(apart).holds


def test_residual_blocks_and_what_is_after_the_sum() -> None:
    names = ["relu", "layer1.0.relu", "layer1.0.relu2", "layer1.1.relu", "layer1.1.relu2"]
    found = block_roles(relus(names))
    assert found.ends.tolist() == [False, False, True, False, True]
    assert found.inside.tolist() == [False, True, False, True, False]
    assert not np.array(block_roles(sounding("plain", [0.5, 0.6]).sites)).any()


def test_kinds_of_sites() -> None:
    names = [
        "features.relu0",
        "denseblock1.denselayer1.relu1",
        "features.transition1.relu",
        "denselayer2.relu1",
    ]
    assert kinds_of(relus(names)) == ["others", "relu1", "others", "relu1"]
    many = relus([f"part{place % 8}.act" for place in range(16)])
    assert set(kinds_of(many)) == {"relu"}  # one kind says nothing


def blocks(after: float, inside: float) -> Census:
    found = census({"resnet50": [0.5, inside, after, inside, after]})
    names = ["relu", "layer1.0.relu", "layer1.0.relu2", "layer1.1.relu", "layer1.1.relu2"]
    return Census({"resnet50": at_sites(found.soundings["resnet50"], relus(names))}, found.facts)


def test_figure_10_resnets() -> None:
    close = blocks(0.97, 0.6)
    assert not figure_10.lacking_blocks(close)
    assert figure_10.close_to_one(close).holds
    assert figure_10.much_lower(close).holds
    assert not figure_10.close_to_one(blocks(0.85, 0.6)).holds
    assert not figure_10.much_lower(blocks(0.97, 0.9)).holds
    assert figure_10.lacking_blocks(census({"resnet50": [0.5, 0.6]}))


def test_figure_10_convnets(as_said: Census) -> None:
    assert figure_10.stable(as_said).holds
    assert not figure_10.stable(changed(alexnet=np.linspace(0.5, 0.9, 7))).holds
    assert figure_10.vgg_lower(as_said).holds
    assert not figure_10.vgg_lower(changed(vgg19=np.full(9, 0.8))).holds
    assert figure_10.googlenet_range(as_said).holds
    assert not figure_10.googlenet_range(changed(googlenet=np.linspace(0.5, 0.9, 9))).holds
    assert figure_10.inception_max(as_said).holds
    assert not figure_10.inception_max(changed(inception_v3=np.linspace(0.6, 0.8, 9))).holds
    assert figure_10.linearizers(as_said).holds is None  # no module is called transition
    dense = as_said.only(["densenet121"])
    names = [f"transition{place}" if place > 15 else f"dense{place}" for place in range(20)]
    named = Census({"densenet121": at_sites(dense.soundings["densenet121"], relus(names))}, dense.facts)
    assert figure_10.linearizers(named).holds


def test_figure_11(as_said: Census) -> None:
    assert not needs(*EARLY, *LATER, networks=figure_11.VITS)(as_said)
    assert figure_11.unseen(as_said).holds
    assert not figure_11.unseen(changed(vit_h_14=np.full(9, 0.8))).holds
    assert figure_11.rising(as_said).holds
    assert not figure_11.rising(changed(vit_l_16=np.linspace(0.5, 0.3, 20))).holds
    assert figure_11.plateau(as_said).holds
    assert not figure_11.plateau(changed(vit_l_32=np.linspace(0.3, 0.5, 20))).holds


def test_figure_12(as_said: Census) -> None:
    assert figure_12.unchanged(as_said).holds
    assert figure_12.less_than_resnets(changed(resnet18=np.full(9, 0.7))).holds
    deeper = changed(vgg19=np.linspace(0.5, 0.95, 18))
    assert not figure_12.unchanged(deeper).holds
    assert not figure_12.less_than_resnets(deeper).holds
    same = np.array([0.2, 0.4, 0.8])
    assert figure_12.differences({"a": same, "b": same}) == {"a – b": 0}
