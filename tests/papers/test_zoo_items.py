"""Items on networks of ImageNet: their tests, on scores whose answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
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
from papers.affinity.census import EARLY, LATER, Census, Test, judged, needs
from papers.item import Answer
from papers.roles import block_roles, kinds_of
from tests.compare.soundings import sounding
from tests.papers.networks import at_sites, census, history, relus

CUBE = 0.1 * np.linspace(0, 1, 20) ** 3


@cache
def as_said() -> Census:
    return census(history())


def changed(**scores: Any) -> Census:
    """The history, with other scores for some networks."""
    return census({**history(), **scores})


def constant(value: float, *families: str) -> Census:
    """The history, with the same score at all sites of some families."""
    return changed(**{name: np.full(9, value) for name in as_said().members(*families)})


def only(*families: str) -> Census:
    return as_said().only(as_said().members(*families))


def without(family: str) -> Census:
    return as_said().only(name for name in as_said().soundings if as_said().families[name] != family)


@cache
def scattered() -> Census:
    """Networks whose families say nothing about their scores."""
    rng = np.random.default_rng(7)
    return census({name: rng.random() * 0.5 + 0.3 * rng.random(12) for name in history()})


def other_years() -> Census:
    """The history with its years in the opposite order."""
    years = 2031 - as_said().facts["year"]
    return Census(as_said().soundings, as_said().facts.assign(year=years.where(years < 2020, 2019)))


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


def by_spread() -> Census:
    return accuracies(lambda of: 50 + 100 * of.statistics["spread"])


def by_size() -> Census:
    return accuracies(lambda of: 50 + of.facts["parameters"] / 1e6)


def by_median_after_vit() -> Census:
    """The accuracy goes with the spread at first, and with the median from the ViTs on."""
    numbers = noisy().statistics
    late = numbers.index.str.startswith(("vit", "swin", "convnext"))
    return accuracies(lambda _: numbers["median"].where(late, numbers["spread"]))


def blocks(after: float, inside: float) -> Census:
    """A ResNet with these scores after the sum and inside its two blocks."""
    found = census({"resnet50": [0.5, inside, after, inside, after]})
    names = ["relu", "layer1.0.relu", "layer1.0.relu2", "layer1.1.relu", "layer1.1.relu2"]
    return Census({"resnet50": at_sites(found.soundings["resnet50"], relus(names))}, found.facts)


def transitions(first: int, last: int) -> Census:
    """A DenseNet whose sites from `first` to `last` are in transitions."""
    dense = as_said().only(["densenet121"])
    names = [f"{'transition' if first <= place <= last else 'dense'}{place}" for place in range(20)]
    return Census({"densenet121": at_sites(dense.soundings["densenet121"], relus(names))}, dense.facts)


RELATIVES = ("ResNet", "ViT", "Swin", "DenseNet", "EfficientNet")
SIGNATURE = ("Residual", "ViTs", "Post-ViT")
Made = Callable[[], Census]
CASES: dict[str, tuple[Test, Made, Made]] = {
    "3 maximum and spread": (partial(figure_3.trend, columns=("max", "spread")), as_said, other_years),
    "3 median": (partial(figure_3.trend, columns=("median",)), as_said, other_years),
    "3 early": (figure_3.early_spread, as_said, lambda: changed(vgg11=np.linspace(0.3, 1, 9))),
    "3 ViTs": (figure_3.vit_median, as_said, lambda: changed(vit_b_16=np.full(9, 0.9))),
    "3 Swins": (figure_3.near_early, as_said, lambda: changed(swin_t=np.full(9, 0.3))),
    "4 R²": (partial(figure_4.better, groups=SIGNATURE, by="r2"), by_spread, by_size),
    "4 left out": (partial(figure_4.better, groups=SIGNATURE, by="r2_left_out"), by_spread, by_size),
    "4 parameters": (figure_4.parameters_best, by_size, by_spread),
    "4 shift": (
        figure_4.shift,
        by_median_after_vit,
        lambda: accuracies(lambda of: -of.statistics["spread"]),
    ),
    "4 no shift": (figure_4.shift, by_median_after_vit, lambda: accuracies(lambda of: of.statistics["max"])),
    "5a agreement": (figure_5a.agreement, as_said, scattered),
    "5a clusters": (
        figure_5a.own_clusters,
        lambda: only(*RELATIVES),
        lambda: changed(resnet18=np.full(9, 0.3)),
    ),
    "5a Swins": (figure_5a.swin_neighbours, lambda: without("ConvNeXt"), as_said),
    "5b away": (
        figure_5b.moving_away,
        as_said,
        lambda: constant(0.72, "ViT", "EfficientNet", "MNASNet"),
    ),
    "5b back": (figure_5b.coming_back, as_said, lambda: constant(0.1, "Swin")),
    "5c wide": (figure_5c.wider, as_said, lambda: changed(alexnet=np.linspace(0, 1, 9))),
    "5c bimodal": (figure_5c.bimodal, as_said, lambda: changed(resnet50=np.linspace(0.4, 1, 30))),
    "5c skewed": (figure_5c.skewed, as_said, lambda: changed(densenet121=0.3 + CUBE)),
    "10 AlexNet": (figure_10.stable, as_said, lambda: changed(alexnet=np.linspace(0.5, 0.9, 7))),
    "10 VGGs": (figure_10.vgg_lower, as_said, lambda: changed(vgg19=np.full(9, 0.8))),
    "10 GoogLeNet": (
        figure_10.googlenet_range,
        as_said,
        lambda: changed(googlenet=np.linspace(0.5, 0.9, 9)),
    ),
    "10 Inception": (
        figure_10.inception_max,
        as_said,
        lambda: changed(inception_v3=np.linspace(0.6, 0.8, 9)),
    ),
    "10 sum": (figure_10.close_to_one, lambda: blocks(0.97, 0.6), lambda: blocks(0.85, 0.6)),
    "10 hidden": (figure_10.much_lower, lambda: blocks(0.97, 0.6), lambda: blocks(0.97, 0.9)),
    "10 DenseNets": (figure_10.linearizers, lambda: transitions(16, 19), lambda: transitions(0, 3)),
    "11 unseen": (figure_11.unseen, as_said, lambda: changed(vit_h_14=np.full(9, 0.8))),
    "11 rising": (figure_11.rising, as_said, lambda: changed(vit_l_16=np.linspace(0.5, 0.3, 20))),
    "11 plateau": (figure_11.plateau, as_said, lambda: changed(vit_l_32=np.linspace(0.3, 0.5, 20))),
    "12 VGGs": (figure_12.unchanged, as_said, lambda: changed(vgg19=np.linspace(0.5, 0.95, 18))),
    "12 ResNets": (
        figure_12.less_than_resnets,
        lambda: changed(resnet18=np.full(9, 0.7)),
        lambda: changed(vgg19=np.linspace(0.5, 0.95, 18)),
    ),
    "14 nearer": (figure_14.nearer_within, as_said, scattered),
    "14 every": (figure_14.every_network, lambda: only(*RELATIVES[:4]), scattered),
}


@pytest.mark.parametrize("name", CASES)
def test_a_claim_holds_where_it_should_and_nowhere_else(name: str) -> None:
    test, right, wrong = CASES[name]
    found = test(right())
    assert found.holds is True, found.measured
    found = test(wrong())
    assert found.holds is False, found.measured


def test_numbers_and_words_of_answers() -> None:
    assert "over 8 architectures" in figure_3.trend(as_said(), ("max",)).measured  # two are Inceptions
    assert figure_3.near_early(changed(swin_t=np.full(9, 0.3))).numbers["nearer"] == 5
    assert figure_12.differences({"a": np.array([0.2, 0.8]), "b": np.array([0.2, 0.8])}) == {"a – b": 0}
    assert figure_10.linearizers(as_said()).holds is None  # no module is called transition


def test_what_is_missing_is_named() -> None:
    assert not figure_4.needs_groups(*figure_4.GROUPS)(by_spread())
    assert not figure_5a.lacking_relatives(as_said())
    assert figure_5a.lacking_relatives(as_said().only(["vgg11", "vgg13", "alexnet"])).endswith("(here 1)")
    assert not figure_5b.lacking_years(as_said())
    assert not figure_10.lacking_blocks(blocks(0.97, 0.6))
    assert figure_10.lacking_blocks(census({"resnet50": [0.5, 0.6]}))
    assert not needs(*EARLY, *LATER, networks=figure_11.VITS)(as_said())


def test_without_trained_networks_nothing_is_decided() -> None:
    def test(of: Census) -> Answer:
        return Answer(True, f"{len(of)} networks", {"networks": len(of)})

    random = census(history(), weights="none")
    assert judged(as_said(), needs("VGG", least=4), test).holds is True
    found = judged(random, needs("VGG", least=4), test)
    assert found.holds is None
    assert found.measured == "not decided: random weights; with these: 34 networks"
    some = as_said().only(["vgg11", "vgg13"])
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


def test_figure_4_uses_the_accuracy_that_torchvision_states_for_random_weights() -> None:
    random = census({"resnet18": [0.1, 0.2], "densenet121": [0.1, 0.2]}, weights="none")
    facts: Any = figure_4.with_accuracies(random).facts
    assert facts.loc["resnet18", "accuracy"] == pytest.approx(69.758)
    trained = census({"resnet18": [0.1, 0.2]})
    assert math.isnan(figure_4.with_accuracies(trained).facts.loc["resnet18", "accuracy"])  # type: ignore[arg-type]


def test_roles_and_kinds_of_sites() -> None:
    assert not np.array(block_roles(sounding("plain", [0.5, 0.6]).sites)).any()
    found = block_roles(blocks(0.9, 0.6).soundings["resnet50"].sites)
    assert found.ends.tolist() == [False, False, True, False, True]
    assert found.inside.tolist() == [False, True, False, True, False]
    names = ["features.relu0", "block1.layer1.relu1", "features.transition1.relu", "layer2.relu1"]
    assert kinds_of(relus(names)) == ["others", "relu1", "others", "relu1"]
    many = relus([f"part{place % 8}.act" for place in range(16)])
    assert set(kinds_of(many)) == {"relu"}  # one kind says nothing
