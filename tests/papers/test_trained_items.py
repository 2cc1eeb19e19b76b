"""Items on networks trained on the spot: their tests, on scores whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer import Site
from fathometer.compare import signature_distances
from fathometer.errors import InputError
from papers.affinity import figure_5d, figure_8, figure_9, figure_13, figure_15, figure_16, table_3
from papers.affinity.trained_figures import plot_depth, plot_deviation
from papers.images.ensembles import Ensemble
from papers.images.networks import CifarResNet
from papers.item import Answer, RunContext
from tests.compare.soundings import sounding
from tests.papers.networks import at_sites


def resnet(scores: Any, kind: str = "resnet20") -> Ensemble:
    """Trainings with these scores, `[seeds, sites]`, at the sites of a ResNet."""
    rows = np.asarray(scores, float)
    blocks = (rows.shape[1] - 1) // 2
    sites = [Site("", "relu", 1, 0, False)]
    sites += [Site(f"layer1.{b}", "relu", c, 2 * b + c, False) for b in range(blocks) for c in (1, 2)]
    return Ensemble(kind, {seed: at_sites(sounding(kind, row), sites) for seed, row in enumerate(rows)})


def made(inside: float, end: float, sites: int = 19, seeds: int = 3, noise: float = 0.02) -> Any:
    """Scores around two values, in turn."""
    generator = np.random.default_rng(0)
    scores = np.where(np.arange(sites) % 2 == 0, end, inside) + noise * generator.normal(size=(seeds, sites))
    scores[:, 0] = inside
    return scores


def rising(seeds: int = 9, noise: float = 0.0, sites: int = 14) -> Any:
    """Scores that rise along depth."""
    generator = np.random.default_rng(0)
    return np.linspace(0.5, 0.9, sites) + noise * generator.normal(size=(seeds, sites))


def by_depth(grow: float, first: float = 0.8) -> dict[int, Ensemble]:
    """ResNets of three depths; the scores at the ends of blocks grow by so much."""
    return {
        depth: resnet(made(0.6, first + grow * number, sites=depth - 1), f"resnet{depth}")
        for number, depth in enumerate((20, 32, 44))
    }


def deviations(other: float, metric: str = "euclidean") -> pd.DataFrame:
    """Distances of the signatures on other data, of two networks with three seeds."""
    distances = {"training images": 0.01, "ImageNet": other, "Gaussian noise": 0.4, "uniform noise": 0.5}
    return pd.DataFrame(
        [
            {"network": n, "seed": seed, "data": data, "metric": metric, "distance": far + 0.01 * seed}
            for n in ("VGG-16", "ResNet-20")
            for seed in range(3)
            for data, far in distances.items()
        ]
    )


def zoo_table(**near: float) -> pd.DataFrame:
    """Networks of ImageNet whose signatures on CIFAR-10 are so far from those on ImageNet."""
    return pd.DataFrame(
        [
            {"network": name, "seed": 0, "data": data, "metric": metric, "distance": far}
            for name, cifar in near.items()
            for metric in figure_15.METRICS
            for data, far in (("CIFAR-10", cifar), ("noise", 0.5))
        ]
    )


def ways(apart: float, noise: float = 0.01) -> dict[str, Any]:
    """Signatures of six methods, so far apart, with noise between three seeds."""
    generator = np.random.default_rng(0)
    return {
        f"way{number} {seed}": 0.7 + apart * number + noise * generator.normal(size=19)
        for number in range(6)
        for seed in range(3)
    }


def methods(apart: float) -> tuple[Any, dict[str, str]]:
    """Their distances, and which method each has."""
    series = ways(apart)
    return signature_distances(series), {name: name.split()[0] for name in series}


def kinds(shift: float) -> tuple[Any, dict[str, str]]:
    """Distances of one architecture in six ways and another, so far away."""
    series = ways(0.002)
    others = {f"plain20 {seed}": 0.7 + shift + 0.001 * seed + np.zeros(19) for seed in range(3)}
    of_kind = dict.fromkeys(series, "resnet20") | dict.fromkeys(others, "plain20")
    return signature_distances(series | others), of_kind


def criteria(unit: float = 1.0, **spread: float) -> tuple[pd.DataFrame]:
    """Six methods, three seeds; each criterion about 2, but for the spread over methods; a unit for norms."""
    generator = np.random.default_rng(0)
    rows = []
    for number in range(6):
        for seed in range(3):
            row: dict[str, Any] = {"method": f"way{number}", "seed": seed}
            for name in table_3.CRITERIA:
                far = spread.get(name, 0.5)
                row[name] = 2 + far * (number - 2.5) + 0.01 * generator.normal()
            rows.append(row)
    table = pd.DataFrame(rows)
    return (table.assign(norm=unit * table["norm"]),)


GENERATOR = np.random.default_rng(1)
ONE, OTHER = (0.75 + 0.05 * GENERATOR.normal(size=(3, 19)) for _ in range(2))  # one mode
TWO, EVEN = made(0.6, 0.95), made(0.75, 0.75, noise=0.05)  # two modes, and one
SOME = np.concatenate([TWO[:1], ONE[1:2], TWO[2:]])  # one training has one mode
DEEP = resnet(made(0.6, 0.95, sites=55), "resnet56")
SHIFTED = rising(noise=0.005) + 0.1 * np.outer(np.linspace(-1, 1, 9), np.arange(14) == 3)
FLAT = 0.9 + 0.01 * np.random.default_rng(0).normal(size=(9, 14))
BEFORE = np.linspace(0.6, 0.99, 14) + 0.004 * np.random.default_rng(0).normal(size=(9, 14))
BEFORE[:, -3:] = 0.98
AFTER = BEFORE - 0.2 - 0.1 * np.sin(np.arange(14))
SIZES = {size: rising(3) + 0.001 * np.cos(np.arange(14) + size) for size in (128, 256, 512)}
ONE_FAR = SIZES | {512: SIZES[512] + 0.06 * np.outer(np.arange(3) == 2, np.arange(14) == 5)}
FALLING = {size: rising(3) - 0.001 * size / 128 for size in (128, 256, 1024)}  # little, but always
EACH_ITS_WAY = {128: rising(3), 256: rising(3) + 0.01 * np.array([[1], [-1], [1]])}
GROWING, SHRINKING = (by_depth(0.08),), (by_depth(-0.05, 0.9),)


def gaps(*scores: Any) -> tuple[Any, ...]:
    return tuple(resnet(each).gaps for each in scores)


CASES: list[tuple[Callable[..., Answer], tuple[Any, ...], bool]] = [
    (figure_5d.trend, gaps(TWO, EVEN), True),
    (figure_5d.trend, gaps(ONE, OTHER), False),
    (figure_5d.trend, gaps(TWO, TWO), False),
    (figure_5d.bimodal, (TWO, EVEN), True),
    (figure_5d.bimodal, (ONE, OTHER), False),
    (figure_5d.bimodal, (TWO, TWO), False),
    (figure_5d.bimodal, (SOME, EVEN), False),
    (figure_5d.pooled, (TWO, EVEN), True),
    (figure_5d.pooled, (ONE, OTHER), False),
    (figure_5d.pooled, (TWO, TWO), False),
    (figure_5d.deeper, (DEEP,), True),
    (figure_5d.deeper, (resnet(ONE),), False),
    (figure_5d.linear, (resnet(TWO), DEEP), True),
    (figure_5d.linear, (resnet(ONE), resnet(OTHER)), False),
    (figure_8.steady_over_seeds, (rising(noise=0.005),), True),
    (figure_8.steady_over_seeds, (rising(noise=0.05),), False),
    (figure_8.steady_over_seeds, (SHIFTED,), False),
    (figure_8.steady_over_seeds, (FLAT,), False),  # steady, but so are the sites
    (figure_8.steady_over_sizes, (SIZES,), True),
    (figure_8.steady_over_sizes, (FALLING,), True),
    (figure_8.steady_over_sizes, (ONE_FAR,), False),
    (figure_8.no_trend, (EACH_ITS_WAY,), True),
    (figure_8.no_trend, (FALLING,), False),
    (figure_9.rising, (BEFORE,), True),
    (figure_9.rising, (FLAT,), False),
    (figure_9.last_layers, (BEFORE,), True),
    (figure_9.last_layers, (FLAT,), False),
    (figure_9.more_nonlinear, (BEFORE, AFTER), True),
    (figure_9.more_nonlinear, (FLAT, FLAT + 0.01), False),
    (figure_9.more_nonlinear, (FLAT, FLAT + 0.1 * GENERATOR.normal(size=(9, 14))), False),
    (figure_9.not_monotone, (BEFORE, AFTER), True),
    (figure_9.not_monotone, (FLAT, FLAT - np.linspace(0, 0.5, 14)), False),  # ever more along depth
    (figure_13.separation, GROWING, True),
    (figure_13.separation, SHRINKING, False),
    (figure_13.post_residual, GROWING, True),
    (figure_13.post_residual, SHRINKING, False),
    (figure_13.near_one, GROWING, True),
    (figure_13.near_one, SHRINKING, False),
    (figure_13.grows_strictly, GROWING, True),
    (figure_13.grows_strictly, SHRINKING, False),
    (figure_15.nearer_than_noise, (deviations(0.2), "euclidean"), True),
    (figure_15.nearer_than_noise, (deviations(0.45), "euclidean"), False),  # between two noises
    (figure_15.zoo_nearer, (zoo_table(alexnet=0.2, vgg16=0.3),), True),
    (figure_15.zoo_nearer, (zoo_table(alexnet=0.2, vgg16=0.6),), False),
    (figure_16.in_groups, methods(0.05), True),
    (figure_16.in_groups, methods(0.0), False),
    (figure_16.own_neighbours, methods(0.05), True),
    (figure_16.own_neighbours, methods(0.0), False),
    (figure_16.small_distances, kinds(0.3), True),
    (figure_16.small_distances, kinds(0.01), False),
    (relative := partial(table_3.steadiest, relative=True), criteria(affinity=0.05), True),
    (relative, criteria(affinity=0.05, cka=0.01), False),
    (relative, criteria(), False),
    (relative, criteria(1e-3, affinity=0.05), True),  # another unit
    (literal := partial(table_3.steadiest, relative=False), criteria(affinity=0.05), True),
    (literal, criteria(1e-3, affinity=0.05), False),
]


@pytest.mark.parametrize(("test", "given", "holds"), CASES)
def test_a_claim_holds_where_it_should_and_nowhere_else(
    test: Callable[..., Answer], given: tuple[Any, ...], holds: bool
) -> None:
    found = test(*given)
    assert found.holds is holds, found.measured


def test_numbers_of_answers() -> None:
    assert figure_5d.linear(resnet(TWO), DEEP).numbers["upper"] == pytest.approx(0.95, abs=0.01)
    assert figure_8.steady_over_sizes(ONE_FAR).numbers["largest"] == pytest.approx(0.06, abs=0.003)
    assert figure_8.no_trend(FALLING).numbers["change"] == pytest.approx(-0.007)
    found = figure_15.nearer_than_noise(deviations(0.2), "euclidean")
    assert found.numbers["VGG-16_ratio_gaussian"] == pytest.approx(0.2 / 0.4, abs=0.02)
    assert figure_16.in_groups(*methods(0.05)).numbers["adjusted_rand"] == 1


def test_every_choice_of_seeds_counts() -> None:
    values = pd.DataFrame({"method": ["a", "a", "b", "b"], "seed": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})
    assert sorted(table_3.choices_of(values, ["x"], relative=False)["x"]) == [0.5, 1, 1, 1.5]
    assert sorted(table_3.choices_of(values, ["x"], relative=True)["x"].round(3)) == [0.2, 0.333, 0.5, 0.6]


def test_published_weights_are_found_and_measured_once(tmp_path: Path) -> None:
    folder, shared = tmp_path / "weights", tmp_path / "shared"
    for path in (folder, shared):
        path.mkdir()
    torch.manual_seed(0)
    for depth in (8, 14):
        state = {f"module.{name}": value for name, value in CifarResNet(depth).state_dict().items()}
        torch.save({"state_dict": state, "best_prec1": 9.9}, folder / f"resnet{depth}-0a1b.th")
    (folder / "notes.txt").write_text("not a network")
    pixels = np.random.default_rng(0).integers(0, 256, (500, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "cifar10_test.npz", x=pixels, y=np.zeros(500, np.uint8))
    sources = {"cifar10": tmp_path, "resnets": folder}
    context = RunContext("paper", "cpu", tmp_path, shared, sources)  # type: ignore[arg-type]
    found = figure_13.published(context)
    assert list(found) == [8, 14]
    assert found[14].scores.shape == (1, 13)
    (folder / "resnet8-0a1b.th").write_bytes(b"not read again")
    assert figure_13.published(context)[8].scores.tolist() == found[8].scores.tolist()
    assert figure_13.published(replace(context, scale="small")) == {}
    assert figure_13.published(replace(context, sources={})) == {}
    assert len(plot_depth(by_depth(0.05), found).axes) == 5


def test_a_figure_of_networks_of_imagenet_has_four_panels() -> None:
    table = pd.concat([deviations(0.2), deviations(0.2, "dtw")])
    assert len(plot_deviation(table, zoo_table(alexnet=0.2)).axes) == 4


def test_without_networks_of_imagenet_nothing_is_decided(tmp_path: Path) -> None:
    table, why = figure_15.zoo_deviations(RunContext("small", "cpu", tmp_path, tmp_path))
    assert table.empty
    assert "--plan" in why
    plan = tmp_path / "plan.toml"
    plan.write_text('[data]\nimagenet = "nowhere"\n[families.Some]\nmodels = ["torchvision:no_such_net"]\n')
    sources: Any = {"plan": plan, "cifar10": tmp_path}
    table, why = figure_15.zoo_deviations(RunContext("paper", "cpu", tmp_path, tmp_path, sources))
    assert table.empty
    assert "nowhere" in why


def test_too_few_images_of_imagenet_are_refused(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 40)).save(tmp_path / "one.png")
    context = RunContext("paper", "cpu", tmp_path, tmp_path, {"imagenet": tmp_path})
    with pytest.raises(InputError, match="at least 500 images, got 1"):
        figure_15.other_data(context)
