"""Networks that accelerate has offloaded to main memory or a disk, or spread over several devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fathometer import InputError, measure, watch
from tests.capture.test_parts import build

accelerate: Any = pytest.importorskip("accelerate")

OPTIONS: dict[str, Any] = {
    "sites": "activations,mlp,attention,block",
    "residual": "both",
    "reduction": "tokens",
    "samples": 42,
    "gauges": "r2,norm",
}


def to_memory(network: nn.Module, _: Path) -> None:
    accelerate.cpu_offload(network, execution_device="cpu")


def to_memory_and_disk(network: nn.Module, folder: Path) -> None:
    places = {name: ("cpu", "disk")[i % 2] for i, (name, _) in enumerate(network.named_children())}
    accelerate.dispatch_model(network, places, main_device="cpu", offload_dir=folder, force_hooks=True)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "mixtral"])
@pytest.mark.parametrize("offload", [to_memory, to_memory_and_disk])
def test_an_offloaded_network_has_the_same_values(
    kind: str, offload: Callable[[nn.Module, Path], None], tmp_path: Path
) -> None:
    """Its weights are other tensors in every pass, which are neither data nor lost to the checksum."""
    network, first = build(kind)
    data = [first, {"input_ids": first["input_ids"].flip(0)}, {"input_ids": first["input_ids"].flip(1)}]
    expected = measure(network, data, **OPTIONS)
    offload(network, tmp_path)
    assert any(weight.is_meta for weight in network.parameters())
    found = measure(network, data, **OPTIONS)
    assert found.records.equals(expected.records)
    assert found.sites == expected.sites
    assert found.provenance.model == expected.provenance.model
    spread = r"^device: this network is spread over several devices \(.*meta\), .*; leave it out$"
    with pytest.raises(InputError, match=spread):
        measure(network, data, device="cpu:0", **OPTIONS)


def test_weights_that_transformers_leaves_on_disk(tmp_path: Path) -> None:
    network, given = build("llama")
    network.save_pretrained(tmp_path / "net")  # type: ignore[operator]
    expected = measure(network, given, **OPTIONS | {"samples": 21})
    size = sum(weight.nbytes for weight in network.parameters())
    again = type(network).from_pretrained(  # type: ignore[attr-defined]
        tmp_path / "net",
        device_map="auto",
        max_memory={"cpu": size * 2 // 3},
        offload_folder=tmp_path,
    )
    assert set(again.hf_device_map.values()) == {"cpu", "disk"}
    found = measure(again, given, **OPTIONS | {"samples": 21})
    assert found.records.equals(expected.records)
    assert found.provenance.model == expected.provenance.model


class Elsewhere(nn.Module):
    """A residual block that moves its input to its own device, as accelerate does between two GPUs."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
        self.device = device

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.device)
        return x + self.mlp(x)


def test_pairs_are_where_the_output_is() -> None:
    """Without a second GPU, `meta` is the other device: shapes and places can be seen there, no numbers."""
    network = nn.Sequential(Elsewhere("cpu"), Elsewhere("meta"))
    with torch.no_grad(), watch(network, sites=["block", "module:1"], residual="both") as record:
        network(torch.randn(6, 5, 4))
    for name, place in {"0": "cpu", "0+residual": "cpu", "1": "meta", "1+residual": "meta"}.items():
        (pair,) = (pair for site, pair in record.pairs.items() if site.name == name)
        assert (pair.x.device.type, pair.y.device.type) == (place, place)
        assert pair.x.shape == pair.y.shape == (6, 4)
