"""What may be given as data, and what is said of everything else."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, Subset, SubsetRandomSampler, TensorDataset

from fathometer import (
    InputError,
    OutOfMemoryError,
    Sounding,
    linearize,
    measure,
    recover,
    residual_path,
    similarity_map,
)
from fathometer.linearizing import site_costs
from fathometer.measuring.identity import count_samples

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of quantisation in torch
]

MLP = nn.Sequential(nn.Linear(16, 8), nn.ReLU())
CONV = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())


class Stream(IterableDataset[Tensor]):
    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._x)


@pytest.mark.parametrize(("net", "shape"), [(MLP, (16,)), (CONV, (3, 8, 8)), (MLP, (10, 16))])
def test_an_iterable_dataset_yields_samples(net: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(128, *shape)
    expected = measure(net, x, samples=64, gauges="affinity")
    found = measure(net, Stream(x), samples=64, gauges="affinity")
    assert found.provenance.data["samples_measured"] == 128
    pd.testing.assert_frame_equal(found.records, expected.records)


def totals(data: Any, **options: Any) -> tuple[int | None, Sounding]:
    told: list[int | None] = []
    sounding = measure(
        MLP, data, samples=20, gauges="norm", progress=lambda _, total: told.append(total), **options
    )
    return told[-1], sounding


def test_the_total_counts_the_samples_that_are_read() -> None:
    data = TensorDataset(torch.randn(100, 16))
    subset = Subset(data, range(60))
    total, sounding = totals(subset)
    assert total == 60
    assert sounding.provenance.data["name"] == "Subset of TensorDataset"
    assert sounding.provenance.data["count"] == 60
    total, sounding = totals(DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(range(40))))
    assert total == 40
    assert sounding.provenance.data["sampler"] == "SubsetRandomSampler"
    assert totals(DataLoader(data, batch_size=8), leftover="keep")[0] == 100
    assert totals(DataLoader(data, batch_size=8, drop_last=True), leftover="keep")[0] == 96
    assert totals(data)[0] == totals(torch.randn(100, 16))[0] == 100
    assert totals([torch.randn(50, 16)] * 2)[0] is None
    assert count_samples(DataLoader(data, batch_size=None)) is None
    assert count_samples(DataLoader(Stream(torch.randn(9, 16)), batch_size=3)) is None


def test_whole_numbers_of_numpy_are_accepted() -> None:
    options: dict[str, Any] = {"samples": np.int64(64), "batches": np.int32(1), "batch_size": np.int64(32)}
    assert measure(MLP, torch.randn(64, 16), gauges="norm", **options).provenance.settings["samples"] == 64


@pytest.mark.parametrize(
    ("net", "data", "message"),
    [
        (MLP, pd.DataFrame(np.ones((64, 16))), r"got a DataFrame; give torch.tensor\(frame.to_numpy\(\)"),
        (MLP, list(torch.randn(64, 16)), r"got a vector; where each item is one sample, give DataLoader"),
        (CONV, [(torch.randn(3, 8, 8), 1)] * 64, "got a sample with its label"),
        (CONV, list(torch.randn(64, 3, 8, 8)), r"got one sample of shape \[3, 8, 8\]; give DataLoader"),
        (MLP, torch.tensor(1.0), "got a tensor without axes"),
        (MLP, torch.eye(16).to_sparse(), "got a tensor of layout torch.sparse_coo; `.to_dense"),
        (MLP, np.array(["a", "b"]), "an array of numbers, got <U1"),
        (MLP, "folder", "a DataLoader"),
    ],
)
def test_other_data_are_refused_with_advice(net: nn.Module, data: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^data: expected .*{message}"):
        measure(net, data, samples=32)


def test_batches_of_scalars_and_of_numbers_are_no_single_samples() -> None:
    assert len(measure(nn.ReLU(), torch.randn(64), samples=32, gauges="norm").records) == 2
    embedding = nn.Sequential(nn.Embedding(9, 4), nn.ReLU())
    ids = [torch.arange(32) % 9] * 2
    assert len(measure(embedding, ids, samples=32, gauges="norm").records) == 2


def test_an_exported_network_is_measured() -> None:
    net, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(64, 8)
    exported = torch.export.export(net, (x,)).module()
    expected = measure(net, x, samples=64, batch_size=64, gauges="affinity").records["affinity"]
    found = measure(exported, x, samples=64, batch_size=64, gauges="affinity").records["affinity"]
    assert found.to_list() == expected.to_list()


class Buffered(nn.Module):
    def __init__(self, buffer: Tensor) -> None:
        super().__init__()
        self.linear, self.activation = nn.Linear(16, 16), nn.ReLU()
        self.register_buffer("buffer", buffer)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.linear(x))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to_sparse(),
        lambda x: x.to_sparse_csr(),
        lambda x: x.to_sparse_csc(),
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        lambda x: torch.quantize_per_channel(x, torch.ones(4), torch.zeros(4), 0, torch.qint8),
        lambda x: x.to(torch.complex64).conj(),
    ],
)
def test_weights_of_every_kind_are_hashed(make: Any) -> None:
    torch.manual_seed(0)
    nets = [Buffered(make(values)) for values in (torch.eye(4), torch.eye(4), 3 * torch.eye(4))]
    for net in nets[1:]:
        net.linear.load_state_dict(nets[0].linear.state_dict())
    x = torch.randn(64, 16)
    hashes = [measure(net, x, samples=64, gauges="norm").provenance.model["checksum"] for net in nets]
    assert hashes[0] == hashes[1] != hashes[2]


def test_tensors_without_memory_and_packed_weights_are_hashed() -> None:
    x = torch.randn(64, 16)
    assert measure(Buffered(torch.empty(3, device="meta")), x, samples=64, gauges="norm").sites
    hashes = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
        packed = torch.ao.quantization.quantize_dynamic(net, {nn.Linear})
        hashes.append(measure(packed, x, samples=64, gauges="norm").provenance.model["checksum"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_data_are_known_by_their_contents() -> None:
    x = torch.randn(64, 16)
    other = torch.cat((x[:1], 2 * x[1:]))
    forms: list[Any] = [
        *(lambda x: x, lambda x: x.numpy(), TensorDataset, lambda x: DataLoader(TensorDataset(x))),
        *(lambda x: list(x.split(32)), lambda x: [(part, torch.ones(len(part))) for part in x.split(32)]),
    ]
    for form in forms:
        found = [measure(MLP, form(data), samples=64, gauges="norm").provenance for data in (x, x, other)]
        assert found[0].fingerprint() == found[1].fingerprint() != found[2].fingerprint()
        assert found[0].differences(found[2]) == ["data"]
        assert found[0].data.get("count", 64) == 64


def test_more_samples_than_there_are_need_no_memory() -> None:
    x = torch.randn(128, 16)
    sounding = measure(MLP, x, samples=10**12, leftover="keep", gauges="norm")
    assert sounding.records["n"].to_list() == [128]
    with pytest.raises(OutOfMemoryError, match="use a smaller batch size or fewer samples"):
        measure(MLP, [x], samples=10**15, leftover="keep", gauges="norm")


def read_only(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x.setflags(write=False)
    return x


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", [lambda x: x[::-1][::-1][::-1], lambda x: x.astype(">f4"), read_only])
def test_numpy_arrays_of_every_layout_are_measured(form: Any) -> None:
    x = form(np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32))
    found, expected = (
        measure(MLP, data, samples=32, gauges="norm") for data in (x, np.array(x, dtype=np.float32))
    )
    pd.testing.assert_frame_equal(found.records, expected.records)
    assert found.provenance.fingerprint() == expected.provenance.fingerprint()


class Residual(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x).relu()


def on_inputs(model: nn.Module, item: Any) -> Tensor:
    assert isinstance(item, tuple | list)
    found: Tensor = model(item[0])
    return found


def curve(net: nn.Module, data: Any) -> pd.DataFrame:
    found: Any = linearize(net, data, budget=1, test=data).linearized
    return found.curve.drop(columns="seconds")


LABELLED: dict[str, Any] = {
    "measure": lambda net, data: measure(net, data, samples=64).records,
    "residual_path": lambda net, data: residual_path(net, data, samples=64, call=on_inputs).records,
    "similarity_map": lambda net, data: pd.Series(
        similarity_map(net, deepcopy(net), data, samples=64).provenance.model["second"]
    ),
    "linearize": curve,
    "site_costs": site_costs,
    "recover": lambda net, data: pd.Series(recover(linearize(net, data), net, data, epochs=2)),
}


@pytest.mark.parametrize("name", LABELLED)
def test_a_pair_of_all_inputs_and_their_labels_is_a_data_set(name: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(Residual(5, 5), Residual(5, 5), nn.Linear(5, 3))
    x, y = torch.randn(96, 5), torch.arange(96) % 3
    found, expected = (LABELLED[name](net, data) for data in ((x, y), TensorDataset(x, y)))
    compare = pd.testing.assert_frame_equal if found.ndim == 2 else pd.testing.assert_series_equal
    compare(found, expected)
