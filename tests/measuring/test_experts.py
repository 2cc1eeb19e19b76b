"""Layers of experts: which tokens their sites have, those of rarely used experts, and padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fathometer import measure, watch
from fathometer.models import ensure_torchvision_operators

ensure_torchvision_operators()
transformers: Any = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "intermediate_size": 24, "pad_token_id": 0,
}  # fmt: skip
IDS = torch.randint(3, 64, (16, 32), generator=torch.Generator().manual_seed(0))
OPTIONS: dict[str, Any] = {"reduction": "tokens", "samples": 512}


def mixtral() -> Any:
    torch.manual_seed(0)
    network = transformers.MixtralModel(transformers.MixtralConfig(**SIZES, num_local_experts=4)).eval()
    for layer in network.layers:
        layer.mlp.gate.weight.data *= 20  # so that the router decides
    return network


class Tokens(list[tuple[Tensor, Tensor]]):
    """What the experts of each layer were given: tokens, and the experts that each goes to."""

    def __init__(self, network: Any) -> None:
        for layer in network.layers:
            layer.mlp.experts.register_forward_pre_hook(self._keep)

    def _keep(self, _: nn.Module, given: tuple[Tensor, Tensor, Tensor]) -> None:
        self.append((given[0].clone(), given[1].clone()))


@pytest.mark.parametrize("way", ["grouped_mm", "batched_mm"])
def test_samples_are_of_all_experts(way: str) -> None:
    """Where all experts are one call, tokens are sorted by expert: the first half would be of two experts."""
    network = mixtral()
    network.set_experts_implementation(way)
    given = Tokens(network)
    with torch.no_grad(), watch(network, reduction="tokens", capacity=512) as record:
        network(IDS)
    assert len(record.pairs) == 2
    for (site, pair), (tokens, experts) in zip(record.pairs.items(), given, strict=True):
        assert (len(pair.x), record.rows[site]) == (512, 1024)
        assert torch.allclose(pair.y, nn.functional.silu(pair.x))
        weights = network.get_submodule(site.module.removesuffix(".act_fn")).gate_up_proj[:, :24]
        distances = torch.stack([torch.cdist(pair.x, tokens @ weight.mT).amin(1) for weight in weights])
        kept = torch.bincount(distances.argmin(0), minlength=4) / 512
        assert torch.allclose(kept, torch.bincount(experts.flatten(), minlength=4) / 1024, atol=0.06)


def test_experts_have_no_place_in_the_map() -> None:
    """Their rows are not those of other layers; the blocks around them have the same tokens."""
    options = OPTIONS | {"sites": "activations,block", "gauges": "r2", "map": "cka"}
    with pytest.warns(
        UserWarning, match=r"other samples than most sites: layers\.0\.mlp\.experts\.act_fn, layers"
    ):
        found = measure(mixtral(), IDS, **options).map
    assert found is not None
    names = [name for name in found.index if name.endswith("act_fn")]
    assert found.loc[names].isna().to_numpy().all()
    rest = found.drop(index=names, columns=names)
    assert rest.shape == (2, 2)
    assert rest.notna().to_numpy().all()


def test_padding_that_goes_to_experts_is_warned_of() -> None:
    mask = torch.ones_like(IDS)
    mask[:8, 20:] = 0
    options = OPTIONS | {"samples": 400, "sites": "activations,mlp", "gauges": "norm"}
    with pytest.warns(UserWarning, match=r"padding counts at layers\.0\.mlp\.experts\.act_fn, layers\.1"):
        found = measure(mixtral(), {"input_ids": IDS, "attention_mask": mask}, **options)
    assert {site.name for site in found.sites} >= {"layers.0.mlp", "layers.1.mlp"}
    measure(mixtral(), {"input_ids": IDS, "attention_mask": torch.ones_like(mask)}, **options)


def test_rarely_used_experts_are_named() -> None:
    """An expert with one token is left out; one with few has them all, and is left out of summaries."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_heads": 2, "num_layers": 1}
    config = transformers.SwitchTransformersConfig(
        **sizes, num_sparse_encoder_layers=1, num_experts=3, expert_capacity=64
    )
    network = transformers.SwitchTransformersEncoderModel(config).eval()
    router = network.encoder.block[0].layer[1].mlp.router
    ids = IDS.clone()
    ids[ids < 5] = 5
    ids[0, 0] = 3  # goes to the last expert
    ids[1:10, 0] = 4  # go to the one before
    with torch.no_grad():
        states = torch.stack([torch.ones(16), -torch.ones(16), torch.tensor([1.0, -1] * 8)])
        network.shared.weight[:] = states[0]
        network.shared.weight[3], network.shared.weight[4] = states[2], states[1]
        network.encoder.block[0].layer[0].SelfAttention.o.weight.zero_()
        router.classifier.weight[:] = states[[0, 1, 2]]
        network.shared.weight.add_(0.1 * torch.randn(64, 16))
    with pytest.warns(UserWarning, match=r"fewer than two samples in each batch: .*expert_2\.act"):
        found = measure(network, ids, **OPTIONS, gauges="norm")
    experts = [site.module.split(".")[-2] for site in found.sites]
    assert list(zip(experts, found.records["n"], strict=True)) == [("expert_0", 502), ("expert_1", 9)]
    assert [name.split(".")[-2] for name in found.undersampled] == ["expert_1"]
