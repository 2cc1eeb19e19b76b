"""Items on networks trained on the spot: their tests, on scores whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from papers.item import RunContext
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


# --- 5D


def test_two_clear_modes_are_found() -> None:
    residual, plain = resnet(made(0.6, 0.95)), resnet(made(0.75, 0.75, noise=0.05), "plain20")
    assert figure_5d.trend(residual.gaps, plain.gaps).holds
    assert figure_5d.bimodal(residual.scores, plain.scores).holds
    assert figure_5d.pooled(residual.scores, plain.scores).holds
    deep = resnet(made(0.6, 0.95, sites=55), "resnet56")
    assert figure_5d.deeper(deep).holds
    found = figure_5d.linear(residual, deep)
    assert found.holds
    assert found.numbers["upper"] == pytest.approx(0.95, abs=0.01)
    assert "ResNet-20" in found.measured


def test_one_mode_or_two_in_both_kinds_of_networks_is_no_effect() -> None:
    generator = np.random.default_rng(1)
    one, other = (0.75 + 0.05 * generator.normal(size=(3, 19)) for _ in range(2))
    both = made(0.6, 0.95)
    for residual, plain in ((one, other), (both, both)):
        assert not figure_5d.trend(resnet(residual).gaps, resnet(plain).gaps).holds
        assert not figure_5d.bimodal(residual, plain).holds
        assert not figure_5d.pooled(residual, plain).holds
    assert not figure_5d.deeper(resnet(one)).holds
    assert not figure_5d.linear(resnet(one), resnet(other)).holds
    both[1] = one[1]  # one training with one mode
    assert not figure_5d.bimodal(both, made(0.75, 0.75, noise=0.05)).holds


# --- 8


def rising(seeds: int = 9, noise: float = 0.0, sites: int = 14) -> Any:
    generator = np.random.default_rng(0)
    return np.linspace(0.5, 0.9, sites) + noise * generator.normal(size=(seeds, sites))


def test_steady_seeds() -> None:
    assert figure_8.steady_over_seeds(rising(noise=0.005)).holds
    assert not figure_8.steady_over_seeds(rising(noise=0.05)).holds
    one_site = rising(noise=0.005)
    one_site[:, 3] += np.linspace(-0.1, 0.1, 9)
    assert not figure_8.steady_over_seeds(one_site).holds
    flat = 0.7 + 0.005 * np.random.default_rng(0).normal(size=(9, 14))  # steady, but so are the sites
    assert not figure_8.steady_over_seeds(flat).holds


def test_steady_sizes() -> None:
    base = rising(3)
    sizes = {size: base + 0.001 * np.cos(np.arange(14) + size) for size in (128, 256, 512)}
    assert figure_8.steady_over_sizes(sizes).holds
    sizes[512] = sizes[512].copy()
    sizes[512][2, 5] += 0.06
    found = figure_8.steady_over_sizes(sizes)
    assert not found.holds
    assert found.numbers["largest"] == pytest.approx(0.06, abs=0.003)


def test_a_small_trend_is_a_trend() -> None:
    base = rising(3)
    sizes = {size: base - 0.001 * size / 128 for size in (128, 256, 1024)}
    assert figure_8.steady_over_sizes(sizes).holds
    found = figure_8.no_trend(sizes)
    assert found.holds is False
    assert found.numbers["change"] == pytest.approx(-0.007)
    apart = base + 0.01 * np.array([[1], [-1], [1]])  # each training its own way
    assert figure_8.no_trend({128: base, 256: apart}).holds


# --- 9


def test_before_and_after_as_the_paper_has_it() -> None:
    before = np.linspace(0.6, 0.99, 14) + 0.004 * np.random.default_rng(0).normal(size=(9, 14))
    before[:, -3:] = 0.98
    after = before - 0.2 - 0.1 * np.sin(np.arange(14))
    assert figure_9.rising(before).holds
    assert figure_9.last_layers(before).holds
    assert figure_9.more_nonlinear(before, after).holds
    found = figure_9.not_monotone(before, after)
    assert found.holds
    assert found.numbers["falls"] > 0 < found.numbers["rises"]


def test_before_and_after_otherwise() -> None:
    flat = 0.9 + 0.01 * np.random.default_rng(0).normal(size=(9, 14))
    assert not figure_9.rising(flat).holds
    assert not figure_9.last_layers(flat).holds
    assert not figure_9.more_nonlinear(flat, flat + 0.01).holds
    assert not figure_9.more_nonlinear(flat, flat + 0.1 * np.random.default_rng(1).normal(size=(9, 14))).holds
    assert not figure_9.not_monotone(flat, flat - np.linspace(0, 0.5, 14)).holds  # ever more along depth


# --- 13


def by_depth(grow: float, first: float = 0.8) -> dict[int, Ensemble]:
    return {
        depth: resnet(made(0.6, first + grow * number, sites=depth - 1), f"resnet{depth}")
        for number, depth in enumerate((20, 32, 44))
    }


def test_growth_with_depth() -> None:
    groups = by_depth(0.08)
    assert figure_13.separation(groups).holds
    assert figure_13.post_residual(groups).holds
    found = figure_13.near_one(groups)
    assert found.holds
    assert found.measured.startswith("ResNet-44")
    assert figure_13.grows_strictly(groups).holds


def test_no_growth_with_depth() -> None:
    groups = by_depth(-0.05, 0.9)
    assert not figure_13.separation(groups).holds
    assert not figure_13.post_residual(groups).holds
    assert not figure_13.near_one(groups).holds
    assert not figure_13.grows_strictly(groups).holds


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


# --- 15


def deviation_table(other: float, seeds: int = 3, metric: str = "euclidean") -> pd.DataFrame:
    distances = {"training images": 0.01, "ImageNet": other, "Gaussian noise": 0.4, "uniform noise": 0.5}
    return pd.DataFrame(
        [
            {"network": n, "seed": seed, "data": data, "metric": metric, "distance": far + 0.01 * seed}
            for n in ("VGG-16", "ResNet-20")
            for seed in range(seeds)
            for data, far in distances.items()
        ]
    )


def test_images_nearer_than_noise() -> None:
    found = figure_15.nearer_than_noise(deviation_table(0.2), "euclidean")
    assert found.holds
    assert found.numbers["VGG-16_ratio_gaussian"] == pytest.approx(0.2 / 0.4, abs=0.02)
    assert not figure_15.nearer_than_noise(deviation_table(0.45), "euclidean").holds  # between two noises


def zoo_table(near: Mapping[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"network": name, "seed": 0, "data": data, "metric": metric, "distance": far}
            for name, cifar in near.items()
            for metric in figure_15.METRICS
            for data, far in (("CIFAR-10", cifar), ("noise", 0.5))
        ]
    )


def test_networks_of_imagenet() -> None:
    assert figure_15.zoo_nearer(zoo_table({"alexnet": 0.2, "vgg16": 0.3})).holds
    found = figure_15.zoo_nearer(zoo_table({"alexnet": 0.2, "vgg16": 0.6}))
    assert not found.holds
    assert "1 of 2" in found.measured
    figure = plot_deviation(
        pd.concat([deviation_table(0.2), deviation_table(0.2, metric="dtw")]), zoo_table({"alexnet": 0.2})
    )
    assert len(figure.axes) == 4


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


# --- 16, 17 and Table 3


def ways(apart: float, noise: float = 0.01, seeds: int = 3) -> dict[str, Any]:
    """Signatures of six methods, so far apart, with noise between seeds."""
    generator = np.random.default_rng(0)
    return {
        f"way{number} {seed}": 0.7 + apart * number + noise * generator.normal(size=19)
        for number in range(6)
        for seed in range(seeds)
    }


def of_method(names: Mapping[str, Any]) -> dict[str, str]:
    return {name: name.split()[0] for name in names}


def test_methods_apart_are_found() -> None:
    series = ways(0.05)
    near = signature_distances(series)
    found = figure_16.in_groups(near, of_method(series))
    assert found.holds
    assert found.numbers["adjusted_rand"] == 1
    assert figure_16.own_neighbours(near, of_method(series)).holds


def test_methods_that_are_one_are_not_found() -> None:
    series = ways(0.0)
    near = signature_distances(series)
    assert not figure_16.in_groups(near, of_method(series)).holds
    assert not figure_16.own_neighbours(near, of_method(series)).holds


@pytest.mark.parametrize(("shift", "holds"), [(0.3, True), (0.01, False)])
def test_other_architectures(shift: float, holds: bool) -> None:
    series = ways(0.002)
    others = {f"plain20 {seed}": 0.7 + shift + 0.001 * seed + np.zeros(19) for seed in range(3)}
    kinds = dict.fromkeys(series, "resnet20") | dict.fromkeys(others, "plain20")
    found = figure_16.small_distances(signature_distances(series | others), kinds)
    assert found.holds is holds
    assert "plain 20" in found.measured


def criteria(**spread: float) -> pd.DataFrame:
    """Six methods, three seeds; each criterion about 2, but for the spread over methods."""
    generator = np.random.default_rng(0)
    rows = []
    for number in range(6):
        for seed in range(3):
            row: dict[str, Any] = {"method": f"way{number}", "seed": seed}
            for name in table_3.CRITERIA:
                far = spread.get(name, 0.5)
                row[name] = 2 + far * (number - 2.5) + 0.01 * generator.normal()
            rows.append(row)
    return pd.DataFrame(rows)


def test_the_steadiest_criterion() -> None:
    assert table_3.steadiest(criteria(affinity=0.05), relative=True).holds
    assert table_3.steadiest(criteria(affinity=0.05), relative=False).holds
    assert not table_3.steadiest(criteria(affinity=0.05, cka=0.01), relative=True).holds
    assert not table_3.steadiest(criteria(), relative=True).holds
    values = criteria(affinity=0.05)
    values["norm"] /= 1000  # another unit
    assert table_3.steadiest(values, relative=True).holds
    assert not table_3.steadiest(values, relative=False).holds


def test_every_choice_of_seeds_counts() -> None:
    values = pd.DataFrame({"method": ["a", "a", "b", "b"], "seed": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})
    assert sorted(table_3.choices_of(values, ["x"], relative=False)["x"]) == [0.5, 1, 1, 1.5]
    assert sorted(table_3.choices_of(values, ["x"], relative=True)["x"].round(3)) == [0.2, 0.333, 0.5, 0.6]
