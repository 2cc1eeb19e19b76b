"""Similarity maps of one network and of two: what is compared, kept, resumed and refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from ckatorch import cka_batch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fathometer import InputError, load, measure, similarity_map, watch
from fathometer.capture import Pooling
from fathometer.errors import TooFewSamplesError


def network(*widths: int, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    sizes = zip((8, *widths), widths, strict=False)
    return nn.Sequential(*(layer for one, other in sizes for layer in (nn.Linear(one, other), nn.ReLU())))


def inputs(count: int = 1024) -> Tensor:
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(3))


def outputs(net: nn.Module, x: Tensor) -> list[Tensor]:
    """What every ReLU gives, in batches of 256."""
    with torch.no_grad(), watch(net) as record:
        net(x)
    return [pair.y.reshape(-1, 256, pair.y.shape[1]) for pair in record.pairs.values()]


def expected(one: list[Tensor], other: list[Tensor]) -> np.ndarray:
    return np.array([[float(cka_batch(x, y)) for y in other] for x in one])


def test_a_map_is_that_of_ckatorch_in_the_same_pass(tmp_path: Path) -> None:
    net, x = network(16, 40, 8), inputs()
    sounding = measure(net, x, samples=512, map="cka")
    assert sounding.map is not None
    assert list(sounding.map.index) == list(sounding.map.columns) == ["1", "3", "5"]
    np.testing.assert_allclose(sounding.map, expected(outputs(net, x), outputs(net, x)), atol=1e-6)
    pd.testing.assert_frame_equal(sounding.table, measure(net, x, samples=512).table)
    for name in ("a.json", "a.parquet"):
        pd.testing.assert_frame_equal(load(sounding.save(tmp_path / name)).map, sounding.map)
    assert measure(net, x, samples=512).map is None


def test_two_networks_with_their_own_inputs(tmp_path: Path) -> None:
    one, other, x = network(16, 40), network(30, 20, 10, seed=1).double(), inputs()
    found = similarity_map(one, other, x, samples=512, batch_size=100, second_data=x.double() * 2)
    assert list(found.values.index) == ["1", "3"]
    assert list(found.values.columns) == ["1", "3", "5"]
    other_outputs = outputs(other, x.double() * 2)
    np.testing.assert_allclose(found.values, expected(outputs(one, x), other_outputs), atol=1e-6)
    assert found.nearest["cka"].to_list() == found.values.max(axis=1).to_list()
    assert found.provenance.model["second"]["dtype"] == "torch.float64"
    assert found.provenance.data["samples_measured"] == 1024
    again = load(found.save(tmp_path / "map.json"))
    pd.testing.assert_frame_equal(again.values, found.values)
    assert (again.first, again.second, again.provenance) == (found.first, found.second, found.provenance)


def test_one_loader_feeds_both_networks() -> None:
    """A loader that shuffles differently in every pass: both see the same samples."""
    net, x = network(16, 12), inputs()
    labels = net(x).argmax(1)
    loader = DataLoader(TensorDataset(x, labels), batch_size=64, shuffle=True)
    found = similarity_map(net, copy.deepcopy(net), loader, samples=256)
    np.testing.assert_allclose(np.diagonal(found.values), 1, atol=1e-12)
    assert found.outcome == "accuracy: Sequential (first) 1.000, Sequential (second) 1.000"
    labels[900:] = (labels[900:] + 1) % 12  # of samples that fill no batch
    found = similarity_map(net, copy.deepcopy(net), [(x, labels)], samples=300)
    assert found.outcome == "accuracy: Sequential (first) 1.000, Sequential (second) 1.000"
    found = similarity_map(net, copy.deepcopy(net), [(x, labels[:256])], samples=256)  # too few to be paired
    assert "accuracy" not in found.provenance.model["first"]
    assert found.provenance.model["first"]["no_accuracy"] == "a batch of 1024 inputs has 256 labels"


class Reader(nn.Module):
    """Reads token ids, as language models do; what it makes of padding must not count."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(30, width), nn.Linear(width, width)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        del attention_mask
        return self.mix(self.embed(input_ids)).relu().sigmoid()


@pytest.mark.parametrize("reduction", ["mean", "tokens"])
def test_padding_is_left_out_for_both_networks(reduction: Pooling) -> None:
    torch.manual_seed(0)
    one, other = Reader(12), Reader(7)
    ids, lengths = torch.randint(0, 30, (64, 9)), torch.randint(4, 10, (64, 1))
    mask = (torch.arange(9) < lengths).long()
    texts = [{"input_ids": ids[i : i + 16], "attention_mask": mask[i : i + 16]} for i in range(0, 64, 16)]
    padded = [{**text, "input_ids": text["input_ids"] * text["attention_mask"]} for text in texts]
    first, second = (
        similarity_map(one, other, data, samples=64, reduction=reduction).values for data in (texts, padded)
    )
    pd.testing.assert_frame_equal(first, second)
    alone = measure(one, texts, samples=64, reduction=reduction, gauges="affinity", map="cka").map
    assert alone is not None
    twice = similarity_map(one, copy.deepcopy(one), texts, samples=64, reduction=reduction)
    pd.testing.assert_frame_equal(twice.values, alone)
    texts[0]["attention_mask"] = mask[16:32]
    with pytest.raises(InputError, match="compare networks that share a tokenizer"):
        similarity_map(one, other, texts, second_data=padded, samples=64, reduction=reduction)


def test_other_tokens_are_not_the_same_samples() -> None:
    one, other, ids = Reader(12), Reader(7), torch.randint(0, 30, (64, 9))
    with pytest.raises(InputError, match="compare networks that share a tokenizer"):
        similarity_map(one, other, [{"input_ids": ids}], second_data=[{"input_ids": ids + 1}], samples=64)


def test_a_resumed_map_is_the_same(tmp_path: Path) -> None:
    net, x, journal = network(16, 40, 8), inputs(), tmp_path / "run.journal"
    whole = measure(net, x, samples=256, map="cka", gauges="affinity")
    measure(net, x, samples=256, map="cka", gauges="affinity", journal=journal, batches=2)
    resumed = measure(net, x, samples=256, map="cka", gauges="affinity", journal=journal)
    assert whole.map is not None
    assert resumed.map is not None
    assert whole.map.equals(resumed.map)


class Routed(nn.Module):
    """Sends some rows through an expert: its samples are not those of the other sites."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.expert = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x).relu()
        tokens = torch.cat((x[x[:, 0] > 0], x))  # more rows than samples: the first ones would be kept
        return self.expert(tokens).tanh()[: len(x)].sigmoid() + x.tanh()


def test_sites_that_see_other_samples_are_left_out() -> None:
    with pytest.warns(UserWarning, match="other samples than most sites: /tanh"):
        sounding = measure(Routed(), inputs(), samples=512, map="cka", gauges="affinity", batch_size=512)
    assert sounding.map is not None
    missing = sounding.map.isna().all()
    assert list(missing[missing].index) == ["/tanh"]
    assert sounding.map.at["/relu", "/tanh#2"] == pytest.approx(1, abs=0.1)


def test_sites_that_do_not_vary_are_named() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Threshold(99, 1))
    with pytest.warns(UserWarning, match="not in the map, since they do not vary: 2"):
        sounding = measure(net, inputs(64), samples=64, map="cka", gauges="affinity")
    assert sounding.map is not None
    assert sounding.map.isna().to_numpy().tolist() == [[False, True], [True, True]]


def test_too_few_samples_are_refused_and_a_small_rest_adds_nothing() -> None:
    net, x = network(16, 12), inputs(34)
    with pytest.raises(InputError, match="samples: expected at least 4 for a map, got 3"):
        measure(net, x, samples=3, map="cka")
    with pytest.raises(TooFewSamplesError, match="at least 4 samples"):
        measure(net, x[:3], samples=16, map="cka", leftover="keep")
    with pytest.raises(InputError, match="map: expected cka, got 'svcca'"):
        measure(net, x, map="svcca")
    kept, dropped = (
        measure(net, x, samples=16, map="cka", leftover=leftover) for leftover in ("keep", "drop")
    )
    assert kept.map is not None
    assert dropped.map is not None
    assert kept.map.equals(dropped.map)


def test_two_networks_must_be_two_and_see_the_same_samples() -> None:
    net, x = network(16), inputs(64)
    with pytest.raises(InputError, match="share modules"):
        similarity_map(net, net, x, samples=32)
    with pytest.raises(
        InputError, match="second_data: expected the same samples twice, got batches of 32 and 16"
    ):
        similarity_map(net, network(12), x, second_data=x[:48], samples=32)
    with pytest.raises(InputError, match="the second network has no site"):
        similarity_map(net, nn.Linear(8, 2), x, samples=32)
    with pytest.raises(InputError, match="gauges: has no effect here"):
        similarity_map(net, network(12), x, gauges="affinity")


def test_a_broken_map_is_refused(tmp_path: Path) -> None:
    sounding = measure(network(16, 12), inputs(64), samples=64, map="cka", gauges="affinity")
    plain = json.loads(sounding.save(tmp_path / "a.json").read_text())
    for broken in ([[1.0]], [[1.0, 0.5], [0.5]], [[1.0, 7.0], [7.0, 1.0]], [["x", 1], [1, 1]]):
        (tmp_path / "a.json").write_text(json.dumps({**plain, "map": broken}))
        with pytest.raises(InputError, match="broken, the parts do not fit"):
            load(tmp_path / "a.json")
    cross = similarity_map(network(16), network(12), inputs(64), samples=64)
    plain = json.loads(cross.save(tmp_path / "b.json").read_text())
    parts: list[dict[str, Any]] = [
        {"values": [[2.0]]},
        {"values": [[1.0, 1.0]]},
        {"first": []},
        {"second": 2 * plain["second"]},
    ]
    for part in parts:
        (tmp_path / "b.json").write_text(json.dumps({**plain, **part}))
        with pytest.raises(InputError, match="broken, the parts do not fit"):
            load(tmp_path / "b.json")
