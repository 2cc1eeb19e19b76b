"""Items on networks trained on the spot: their tests, on evidence whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from fathometer import Site
from papers.affinity import figure_5d, figure_8, figure_9, figure_13, figure_15, figure_16, table_3
from papers.affinity.trained_figures import plot_depth
from papers.images.ensembles import Ensemble
from papers.images.networks import CifarResNet
from papers.item import Claim, Item, NotDecided, RunContext
from tests.compare.soundings import sounding


def resnet(scores: Any, kind: str = "resnet20") -> Ensemble:
    """Trainings with these scores, `[seeds, sites]`, at the sites of a ResNet."""
    rows = np.asarray(scores, float)
    blocks = (rows.shape[1] - 1) // 2
    sites = [Site("", "relu", 1, 0, False)]
    sites += [Site(f"layer1.{b}", "relu", c, 2 * b + c, False) for b in range(blocks) for c in (1, 2)]
    names = [site.name for site in sites]
    plain = {seed: sounding(kind, row) for seed, row in enumerate(rows)}
    return Ensemble(
        kind,
        {
            seed: replace(each, sites=tuple(sites), records=each.records.assign(site=names))
            for seed, each in plain.items()
        },
    )


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


def residual(first: Any, second: Any, deep: Any = None) -> figure_5d.Evidence:
    """A network with and without residual connections."""
    return figure_5d.Evidence(resnet(first), resnet(second), resnet(first if deep is None else deep))


def by_depth(grow: float, first: float = 0.8) -> figure_13.Evidence:
    """ResNets of three depths; the scores at the ends of blocks grow by so much."""
    groups = {
        depth: resnet(made(0.6, first + grow * number, sites=depth - 1), f"resnet{depth}")
        for number, depth in enumerate((20, 32, 44))
    }
    return figure_13.Evidence(groups, groups)


def deviations(other: float) -> pd.DataFrame:
    """Distances of the signatures on other data, of two networks with three seeds."""
    far = {figure_15.CONTROL: 0.01, figure_15.OTHER: other, "Gaussian noise": 0.4, "uniform noise": 0.5}
    return pd.DataFrame(
        [
            {"network": n, "seed": seed, "data": data, "metric": metric, "distance": distance + 0.01 * seed}
            for n in ("VGG-16", "ResNet-20")
            for seed in range(3)
            for metric in figure_15.METRICS
            for data, distance in far.items()
        ]
    )


def clustered(apart: float) -> figure_16.Evidence:
    """Signatures that vary between groups so much, and by 1 between seeds."""
    generator = np.random.default_rng(0)
    return figure_16.Evidence(
        *(figure_16.made(generator, labels, apart) for labels in (figure_16.WAYS, figure_16.KINDS))
    )


def criteria(unit: float = 1.0, **spread: float) -> pd.DataFrame:
    """Six methods, three seeds; each criterion about 2, but for the spread over methods; a unit for norms."""
    generator = np.random.default_rng(0)
    rows = []
    for number in range(6):
        for seed in range(3):
            row: dict[str, Any] = {"method": f"way{number}", "seed": seed}
            for name in table_3.CRITERIA:
                row[name] = 2 + spread.get(name, 0.5) * (number - 2.5) + 0.01 * generator.normal()
            rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(norm=unit * table["norm"])


def sizes(by_size: Mapping[int, Any]) -> figure_8.Evidence:
    return figure_8.Evidence(rising(), by_size)


def trained(initial: Any, before: Any, after: Any) -> figure_9.Evidence:
    return figure_9.Evidence(initial, before, after)


GENERATOR = np.random.default_rng(1)
ONE, OTHER = (0.75 + 0.05 * GENERATOR.normal(size=(3, 19)) for _ in range(2))  # one heap
TWO, EVEN = made(0.6, 0.95), made(0.75, 0.75, noise=0.05)  # two modes, and one
SHIFTED = rising(noise=0.005) + 0.1 * np.outer(np.linspace(-1, 1, 9), np.arange(14) == 3)
FLAT = 0.9 + 0.01 * np.random.default_rng(0).normal(size=(9, 14))
BEFORE = np.linspace(0.6, 0.99, 14) + 0.004 * np.random.default_rng(0).normal(size=(9, 14))
BEFORE[:, -3:] = 0.98
STEADY = {size: rising(3) + 0.001 * np.cos(np.arange(14) + size) for size in (128, 256, 512)}
ONE_FAR = STEADY | {512: STEADY[512] + 0.06 * np.outer(np.arange(3) == 2, np.arange(14) == 5)}
FALLING = {size: rising(3) - 0.001 * size / 128 for size in (128, 256, 1024)}  # little, but always
EACH_ITS_WAY = {128: rising(3), 256: rising(3) + 0.01 * np.array([[1], [-1], [1]])}
GROWING, SHRINKING = by_depth(0.08), by_depth(-0.05, 0.9)

CASES: list[tuple[Item, str, Any, bool]] = [
    (figure_5d.FIGURE_5D, "trend", residual(TWO, EVEN), True),
    (figure_5d.FIGURE_5D, "trend", residual(ONE, OTHER), False),
    (figure_5d.FIGURE_5D, "trend", residual(TWO, TWO), False),
    (figure_5d.FIGURE_5D, "bimodal", residual(TWO, EVEN), True),
    (figure_5d.FIGURE_5D, "bimodal", residual(ONE, OTHER), False),
    (figure_5d.FIGURE_5D, "bimodal", residual(TWO, TWO), False),
    (figure_5d.FIGURE_5D, "deeper", residual(ONE, ONE, made(0.6, 0.95, sites=55)), True),
    (figure_5d.FIGURE_5D, "deeper", residual(TWO, ONE, OTHER), False),
    (figure_5d.FIGURE_5D, "linear", residual(TWO, EVEN), True),
    (figure_5d.FIGURE_5D, "linear", residual(ONE, OTHER), False),
    (figure_8.FIGURE_8, "seeds", figure_8.Evidence(rising(noise=0.005), {}), True),
    (figure_8.FIGURE_8, "seeds", figure_8.Evidence(rising(noise=0.05), {}), False),
    (figure_8.FIGURE_8, "seeds", figure_8.Evidence(SHIFTED, {}), False),
    (figure_8.FIGURE_8, "seeds", figure_8.Evidence(FLAT, {}), False),  # steady, but so are the sites
    (figure_8.FIGURE_8, "size", sizes(STEADY), True),
    (figure_8.FIGURE_8, "size", sizes(FALLING), True),
    (figure_8.FIGURE_8, "size", sizes(ONE_FAR), False),
    (figure_8.FIGURE_8, "trend", sizes(EACH_ITS_WAY), True),
    (figure_8.FIGURE_8, "trend", sizes(FALLING), False),
    (figure_9.FIGURE_9, "rising", trained(BEFORE, FLAT, FLAT), True),
    (figure_9.FIGURE_9, "rising", trained(FLAT, BEFORE, BEFORE), False),
    (figure_9.FIGURE_9, "last", trained(BEFORE, FLAT, FLAT), True),
    (figure_9.FIGURE_9, "last", trained(FLAT, BEFORE, BEFORE), False),
    (figure_9.FIGURE_9, "training", trained(FLAT, BEFORE, BEFORE - 0.2), True),
    (figure_9.FIGURE_9, "training", trained(BEFORE, FLAT, FLAT + 0.01), False),
    (figure_13.FIGURE_13, "separation", GROWING, True),
    (figure_13.FIGURE_13, "separation", SHRINKING, False),
    (figure_13.FIGURE_13, "post", GROWING, True),
    (figure_13.FIGURE_13, "post", SHRINKING, False),
    (figure_13.FIGURE_13, "one", GROWING, True),
    (figure_13.FIGURE_13, "one", SHRINKING, False),
    (figure_13.FIGURE_13, "published", GROWING, True),
    (figure_13.FIGURE_13, "published", SHRINKING, False),
    (figure_15.FIGURE_15, "images", deviations(0.2), True),
    (figure_15.FIGURE_15, "images", deviations(0.45), False),  # between two noises
    (figure_15.FIGURE_15, "dtw", deviations(0.2), True),
    (figure_15.FIGURE_15, "dtw", deviations(0.45), False),
    (figure_16.FIGURE_16, "groups", clustered(3.0), True),
    (figure_16.FIGURE_16, "groups", clustered(0.0), False),
    (figure_16.FIGURE_16, "neighbour", clustered(3.0), True),
    (figure_16.FIGURE_16, "neighbour", clustered(0.0), False),
    (figure_16.FIGURE_16, "small", clustered(4.0), True),
    (figure_16.FIGURE_16, "small", clustered(0.0), False),
    (figure_16.FIGURE_16, "architecture", clustered(3.0), True),
    (figure_16.FIGURE_16, "architecture", clustered(0.0), False),
    (table_3.TABLE_3, "relative", criteria(affinity=0.05), True),
    (table_3.TABLE_3, "relative", criteria(affinity=0.05, cka=0.01), False),
    (table_3.TABLE_3, "relative", criteria(), False),
    (table_3.TABLE_3, "relative", criteria(1e-3, affinity=0.05), True),  # another unit
    (table_3.TABLE_3, "literal", criteria(affinity=0.05), True),
    (table_3.TABLE_3, "literal", criteria(1e-3, affinity=0.05), False),
]


@pytest.mark.parametrize(("item", "name", "evidence", "holds"), CASES)
def test_a_claim_holds_where_it_should_and_nowhere_else(
    item: Item, name: str, evidence: Any, holds: bool
) -> None:
    claim: Claim = item.claims[name]
    numbers = claim.measure(evidence)
    assert bool(claim.holds(numbers)) is holds, claim.sentence(numbers)


def test_every_claim_is_tried_both_ways() -> None:
    for item in {item.name: item for item, *_ in CASES}.values():
        for name in item.claims:
            tried = {holds for of, own, _, holds in CASES if of is item and own == name}
            assert tried == {True, False}, (item.name, name)


def test_numbers_of_claims() -> None:
    assert figure_5d.ashman(np.array([[3.0, 5.0]]), np.array([[0.0, 2.0]])) == pytest.approx([3 / 2**0.5])
    assert figure_8.over_sizes(sizes(ONE_FAR))["moved"][2] == pytest.approx(0.06, abs=0.003)  # type: ignore[index]
    assert figure_8.by_size(sizes(FALLING))["change"] == pytest.approx([-0.007] * 3)
    ratios = figure_15.nearness(deviations(0.2), "euclidean")["ratios"]
    assert ratios == pytest.approx([0.2 / 0.4, 0.21 / 0.41, 0.22 / 0.42] * 2)
    assert figure_16.groups(clustered(3.0).ways)["rand"] == 1


def test_the_chance_of_a_tree_is_that_of_its_rand_index() -> None:
    from sklearn.metrics import adjusted_rand_score

    of = clustered(0.6).ways
    found = figure_16.groups(of)
    cut = fcluster(linkage(squareform(of.matrix), "average"), 6, "maxclust")
    orders = [adjusted_rand_score(GENERATOR.permutation(of.labels), cut) for _ in range(1000)]
    assert found["rand"] == pytest.approx(adjusted_rand_score(of.labels, cut))
    assert found["p"] == pytest.approx(np.mean(np.array(orders) >= found["rand"]), abs=0.05)


def test_every_choice_of_seeds_counts() -> None:
    values = np.ones((2, 2, 5)) * np.array([1, 100, 100, 100, 100])
    values[:, :, 0] = [[1.0, 2.0], [3.0, 4.0]]  # stds of 1, 1.5, 0.5 and 1
    values[1, :, 1:] += 2.4  # a std of 1.2
    found = table_3.spreads(values, relative=False)
    assert found["share"] == 0.75
    assert found["affinity"] == 1.0


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
    assert len(plot_depth(GROWING.groups, found).axes) == 4
    with pytest.raises(NotDecided, match="3 depths"):
        figure_13.strictly(figure_13.Evidence(GROWING.groups, found))
