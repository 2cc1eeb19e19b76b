from __future__ import annotations

import pytest
import torch

from fathometer.capture import watch


def test_swin_keeps_channels_last_and_its_tables_of_positions_are_no_sites() -> None:
    from fathometer.models import load_model

    module = load_model("torchvision:swin_v2_t", "none").module
    for count in (1, 2):
        with torch.no_grad(), watch(module) as record:
            module(torch.randn(count, 3, 64, 64))
        assert {site.operator for site in record.pairs} == {"gelu"}
        widths = [pair.x.shape[1] for pair in record.pairs.values()]
        assert widths == [384] * 2 + [768] * 2 + [1536] * 6 + [3072] * 2


@pytest.mark.parametrize(
    ("kind", "operator"), [("gpt2", "newgelu"), ("llama", "silu"), ("bert", "gelu"), ("mixtral", "silu")]
)
def test_transformers_show_one_call_a_block(kind: str, operator: str) -> None:
    from fathometer.models import ensure_torchvision_operators

    ensure_torchvision_operators()
    transformers = pytest.importorskip("transformers")
    sizes = (
        {"n_layer": 3, "n_embd": 32, "n_head": 2}
        if kind == "gpt2"
        else {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48}
    )
    sizes |= {"num_key_value_heads": 2} if kind in ("llama", "mixtral") else {}
    config = transformers.AutoConfig.for_model(kind, vocab_size=50, **sizes)
    model = transformers.AutoModel.from_config(config).eval()
    tokens = torch.randint(0, 50, (3, 7))
    with torch.no_grad():
        expected = model(tokens).last_hidden_state
        with watch(model) as record:
            assert torch.equal(model(tokens).last_hidden_state, expected)
    found = [site for site in record.sites if site.operator == operator]
    if kind == "mixtral":  # every expert that was chosen
        assert {site.module.split(".")[1] for site in found} == {"0", "1", "2"}
        return
    assert len(found) == 3
    assert len(record.sites) == (4 if kind == "bert" else 3)  # and the pooler's tanh
    width = 128 if kind == "gpt2" else 48
    assert {tuple(record.pairs[site].x.shape) for site in found} == {(3, width)}


def test_timm_composites_count_once() -> None:
    from fathometer.models import ensure_torchvision_operators

    ensure_torchvision_operators()
    pytest.importorskip("timm")
    from timm.layers.activations import HardMish, QuickGELU

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), QuickGELU(), HardMish(inplace=True))
    x = torch.randn(5, 4)
    expected = model(x)
    with watch(model) as record:
        assert torch.equal(model(x), expected)
    assert [(site.name, site.operator) for site in record.sites] == [("1", "quickgelu"), ("2", "hardmish")]
    assert len(record.pairs) == 2
