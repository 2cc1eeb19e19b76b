"""Items about trained networks: their predicates, on scores whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError
from papers.affinity import census as census_module
from papers.affinity.census import SEVERAL, Census, Group, census_of, take_census
from papers.affinity.figure_3 import FIGURE_3
from papers.affinity.figure_4 import FIGURE_4
from papers.affinity.figure_5a import FIGURE_5A
from papers.affinity.figure_5b import FIGURE_5B
from papers.affinity.figure_5c import FIGURE_5C
from papers.affinity.figure_10 import FIGURE_10
from papers.affinity.figure_11 import FIGURE_11
from papers.affinity.figure_12 import FIGURE_12
from papers.affinity.figure_14 import FIGURE_14
from papers.item import Item, NotDecided, RunContext
from papers.roles import block_roles, kinds_of
from papers.verdict import simulate
from tests.compare.soundings import sounding
from tests.papers.networks import census, history, relus

CUBE = 0.1 * np.linspace(0, 1, 20) ** 3
FIGURES = (FIGURE_3, FIGURE_4, FIGURE_5A, FIGURE_5B, FIGURE_5C, FIGURE_10, FIGURE_11, FIGURE_12, FIGURE_14)

CLAIMS = {
    f"{item.name.removeprefix('affinity-figure-')} {name}": claim
    for item in FIGURES
    for name, claim in item.claims.items()
}


@cache
def as_said() -> Census:
    return census(history())


def changed(**scores: Any) -> Census:
    """The history, with other scores for some networks."""
    made, said = census(scores), as_said()
    return Census({**said.soundings, **made.soundings}, {**said.scores, **made.scores}, said.facts)


def constant(value: float, *families: str) -> Census:
    """The history, with nearly the same score at all sites of some families."""
    names = [name for name, family in as_said().families.items() if family in families]
    return changed(**{name: value + 0.001 * np.arange(9) for name in names})


def only(*families: str) -> Census:
    return as_said().only(name for name, family in as_said().families.items() if family in families)


def without(*families: str) -> Census:
    return as_said().only(name for name, family in as_said().families.items() if family not in families)


@cache
def scattered() -> Census:
    """Networks whose families say nothing about their scores."""
    rng = np.random.default_rng(7)
    return census({name: rng.random() * 0.5 + 0.3 * rng.random(12) for name in history()})


def other_years() -> Census:
    """The history with its years in the opposite order."""
    years = 2031 - as_said().facts["year"]
    return replace(as_said(), facts=as_said().facts.assign(year=years.where(years < 2020, 2019)))


@cache
def noisy() -> Census:
    """The history with some noise, so that no two statistics are one."""
    noise = np.random.default_rng(3)
    return census({name: of + 0.02 * noise.random(len(of)) for name, of in history().items()})


def accuracies(of: Callable[[pd.DataFrame], pd.Series[float]]) -> Census:
    """The same with an accuracy from its numbers."""
    return replace(noisy(), facts=noisy().facts.assign(accuracy=of(noisy().table)))


def by(column: str) -> Census:
    return accuracies(lambda table: 50 + 10 * table[column] / table[column].std())


def by_both() -> Census:
    """The accuracy goes with spread and depth alike."""
    early = only("AlexNet", "VGG", "Inception")
    depth = early.table["spread"].rank() + np.arange(len(early.soundings)) / 100
    return replace(early, facts=early.facts.assign(accuracy=early.table["spread"], depth=depth))


def deep(**of: Any) -> Census:
    return changed(densenet121=np.full(20, 0.99) - CUBE, **of)


Made = Callable[[], Census]
CASES: dict[str, tuple[Made, Made]] = {
    "3 spread": (as_said, other_years),
    "3 maximum": (lambda: without("DenseNet"), other_years),
    "3 median": (lambda: without("DenseNet"), other_years),
    "3 early": (as_said, lambda: changed(vgg11=np.linspace(0.3, 1, 9))),
    "3 vit": (as_said, lambda: changed(vit_b_16=np.linspace(0.9, 0.91, 9))),
    "3 priors": (as_said, lambda: changed(swin_t=np.linspace(0.3, 0.31, 9))),
    "4 signature_Residual": (lambda: by("spread"), lambda: by("parameters")),
    "4 signature_ViTs": (lambda: by("median"), lambda: by("parameters")),
    "4 signature_Post-ViT": (lambda: by("median"), lambda: by("parameters")),
    "4 nas": (lambda: by("parameters"), lambda: by("spread")),
    "4 early": (by_both, lambda: by("parameters")),
    "4 shift_Residual": (
        lambda: by("spread"),
        lambda: accuracies(lambda table: -table["spread"]),
    ),
    "4 shift_ViTs": (lambda: by("median"), lambda: by("max")),
    "5a families": (as_said, scattered),
    "5a whole": (
        lambda: only("ResNet", "ViT", "Swin", "EfficientNet"),
        lambda: changed(resnet18=np.linspace(0.3, 0.31, 9)),
    ),
    "5a across": (lambda: without("ConvNeXt"), as_said),
    "5b falls": (as_said, lambda: constant(0.72, "ViT", "EfficientNet", "MNASNet")),
    "5b back": (as_said, lambda: constant(0.1, "Swin")),
    "5c wide": (as_said, lambda: changed(alexnet=np.linspace(0, 1, 9))),
    "5c bimodal": (as_said, lambda: constant(0.7, "ResNet")),
    "5c vit": (lambda: only("ViT"), lambda: changed(vit_b_16=0.5 - CUBE)),
    "5c densenet": (as_said, lambda: changed(densenet121=0.3 + CUBE)),
    "5c efficientnet": (as_said, lambda: changed(efficientnet_b1=0.3 + CUBE)),
    "10 alexnet": (as_said, lambda: changed(alexnet=np.linspace(0.5, 0.9, 7))),
    "10 vgg": (as_said, lambda: changed(vgg19=np.linspace(0.8, 0.81, 9))),
    "10 googlenet_least": (as_said, lambda: changed(googlenet=np.linspace(0.5, 0.9, 9))),
    "10 googlenet_largest": (as_said, lambda: changed(googlenet=np.linspace(0.6, 1, 9))),
    "10 inception": (as_said, lambda: changed(inception_v3=np.linspace(0.6, 0.8, 9))),
    "10 sum": (as_said, lambda: constant(0.7, "ResNet")),
    "10 hidden": (as_said, lambda: constant(0.95, "ResNet")),
    "10 transitions": (as_said, deep),
    "10 densenet": (as_said, deep),
    "11 unseen": (as_said, lambda: changed(vit_h_14=np.linspace(0.8, 0.81, 9))),
    "11 rising": (as_said, lambda: changed(vit_l_16=np.linspace(0.5, 0.3, 20))),
    "11 plateau": (as_said, lambda: changed(vit_l_32=np.linspace(0.3, 0.5, 20))),
    "12 depth": (as_said, lambda: changed(vgg19=np.linspace(0.5, 0.95, 18))),
    "12 resnets": (
        lambda: changed(resnet18=np.linspace(0.7, 0.71, 9)),
        lambda: changed(vgg19=np.linspace(0.5, 0.95, 18)),
    ),
    "14 within": (as_said, scattered),
    "14 every": (lambda: only("ResNet", "ViT", "Swin", "DenseNet"), scattered),
}


@pytest.mark.parametrize("name", CASES)
def test_a_claim_holds_where_it_should_and_nowhere_else(name: str) -> None:
    claim = CLAIMS[name]
    for made, expected in zip(CASES[name], (True, False), strict=True):
        numbers = claim.measure(made())
        assert bool(claim.holds(numbers)) is expected, claim.sentence(numbers)
        assert claim.sentence(numbers)


@pytest.mark.parametrize("item", FIGURES, ids=lambda item: item.name)
def test_a_claim_without_its_networks_is_not_decided(item: Item) -> None:
    none = only("SqueezeNet")
    for claim in item.claims.values():
        with pytest.raises(NotDecided, match="needs"):
            claim.measure(none)


@pytest.mark.parametrize("name", [name for name, claim in CLAIMS.items() if claim.simulation])
def test_statistical_tests_find_the_effect_more_often_than_chance(name: str) -> None:
    size, power = simulate(CLAIMS[name], CLAIMS[name].measure(noisy()), 20)
    assert power >= size


def test_every_claim_of_the_paper_is_tried_both_ways() -> None:
    tried = {name.replace("_all", "") for name in CLAIMS} - {*CASES}
    assert tried == {
        "4 shift_Pre-residual",
        "4 shift_NAS-based",
        "4 shift_Post-ViT",
    }  # as the other two groups


def test_all_networks_take_part_where_a_claim_says_so() -> None:
    claims = FIGURE_3.claims
    ours, theirs = (claims[name].measure(as_said()) for name in ("spread_all", "spread"))
    assert claims["spread_all"].kind == "ours"
    assert len(ours["years"]) == len(theirs["years"]) + 1  # type: ignore[arg-type]
    with pytest.raises(NotDecided, match="no networks of other families"):
        claims["spread_all"].measure(without("SqueezeNet"))


def test_what_is_missing_is_named() -> None:
    few = as_said().only(["alexnet", "vgg16", "vit_b_16"])
    with pytest.raises(NotDecided, match=r"needs trained ViT \(2 networks or more\); there are vit_b_16"):
        few.group(Group(("ViT",), SEVERAL))
    with pytest.raises(NotDecided, match="needs trained networks of 2 of VGG, Swin, ResNet"):
        few.group(Group(("VGG", "Swin", "ResNet"), families=2))
    assert few.group(Group(("VGG", "AlexNet"))) == ["alexnet", "vgg16"]


def test_a_figure_shows_all_networks_or_one_of_each_family() -> None:
    assert list(only("VGG").shown()) == ["vgg11", "vgg13", "vgg16", "vgg19"]
    shown = as_said().shown()
    assert len(shown) == 11
    assert {"vgg16", "resnet152", "swin_b", "squeezenet1_1"} <= set(shown)


def test_soundings_of_a_set_are_read_with_their_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census_module, "SOUNDINGS", tmp_path)
    context = RunContext("imagenet", "cpu", tmp_path, tmp_path)
    with pytest.raises(InputError, match=r"papers\.networks measure"):
        take_census(context)
    (tmp_path / "imagenet").mkdir()
    for name, family, year in (("new", "ViT", 2020), ("old", "AlexNet", 2012)):
        made = sounding(name, [0.5, 0.7, 0.6])
        made.provenance.model.update(family=family, facts={"year": year, "notes": ["8 bit"]})
        made.save(tmp_path / "imagenet" / f"{name}.json")
    found = take_census(context)
    assert found.families == {"old": "AlexNet", "new": "ViT"}
    assert context.facts == {"count": 2, "networks": "old, new", "peculiar": "old, new: 8 bit"}
    assert (tmp_path / "networks.csv").exists()


def test_lite_networks_are_not_the_papers() -> None:
    made = {name: sounding(name, [0.5, 0.7, 0.6]) for name in ("efficientnet_lite0", "efficientnet_b0")}
    for each in made.values():
        each.provenance.model.update(family="EfficientNet", facts={"year": 2019})
    assert list(census_of(made).of_paper.soundings) == ["efficientnet_b0"]


def test_roles_and_kinds_of_sites() -> None:
    assert not np.array(block_roles(sounding("plain", [0.5, 0.6]).sites)).any()
    found = block_roles(relus(["relu", "layer1.0.relu", "layer1.0.relu2", "layer1.1.relu", "layer1.1.relu2"]))
    assert found.ends.tolist() == [False, False, True, False, True]
    assert found.inside.tolist() == [False, True, False, True, False]
    names = ["features.relu0", "block1.layer1.relu1", "features.transition1.relu", "layer2.relu1"]
    assert kinds_of(relus(names)) == ["others", "relu1", "others", "relu1"]
    many = relus([f"part{place % 8}.act" for place in range(16)])
    assert set(kinds_of(many)) == {"relu"}  # one kind says nothing
