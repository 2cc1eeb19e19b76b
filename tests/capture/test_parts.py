from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fathometer import InputError, Sounding, load, measure, watch
from fathometer.capture import Residual, Watch
from fathometer.capture.axes import tensors_in
from tests.zoo.tiny import TRANSFORMERS

WORDS = ["mlp", "attention", "block"]


def build(kind: str, **changes: Any) -> tuple[nn.Module, dict[str, Tensor]]:
    """A small network of transformers with random weights, and its input."""
    from fathometer.models import ensure_torchvision_operators

    ensure_torchvision_operators()
    transformers = pytest.importorskip("transformers")
    entry = TRANSFORMERS[kind]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(kind, **{**entry.config, **changes})
        return transformers.AutoModel.from_config(config).eval(), entry.inputs()


def watched(kind: str, residual: Residual = "both", sites: Any = WORDS, **changes: Any) -> Watch:
    """The record of one pass, whose output must be what it was."""
    network, given = build(kind, **changes)
    with torch.no_grad():
        expected = next(tensors_in(network(**given)))
        with watch(network, sites=sites, residual=residual, reduction="tokens") as record:
            assert torch.equal(next(tensors_in(network(**given))), expected)
    return record


TWO_SIDED = {
    "mlp": 4,
    "attention": 6,
    "block": 4,
}  # two layers in encoder and decoder, which has cross-attention
COUNTS: dict[str, dict[str, int]] = {
    "mamba": {"mlp": 0}, "mamba2": {"mlp": 0},
    "t5": TWO_SIDED, "bart": TWO_SIDED, "whisper": TWO_SIDED,
    "swin": {"mlp": 2, "attention": 2, "block": 2},
    "clip": {"mlp": 6, "attention": 6, "block": 6},
    "convnext": {"mlp": 0, "attention": 0}, "convnextv2": {"mlp": 0, "attention": 0},
    "resnet": {"mlp": 0, "attention": 0, "block": 1},  # the other block changes the number of positions
    "mobilenet_v2": {"mlp": 0, "attention": 0, "block": 10},
}  # fmt: skip
"""Where there is not one of each in each of three layers."""

NAMES = {
    "bert": ["encoder.layer.2.mlp", "encoder.layer.2.attention", "encoder.layer.2"],
    "albert": [
        "encoder.albert_layer_groups.0.albert_layers.0.mlp#3",
        "encoder.albert_layer_groups.0.albert_layers.0.attention#3",
        "encoder.albert_layer_groups.0#3",
    ],
    "bloom": ["h.2.mlp", "h.2.self_attention", "h.2"],
    "opt": ["decoder.layers.2.mlp", "decoder.layers.2.self_attn", "decoder.layers.2"],
    "falcon": ["h.2.mlp", "h.2.self_attention", "h.2"],
    "mixtral": ["layers.2.mlp", "layers.2.self_attn", "layers.2"],
    "rwkv": ["blocks.2.feed_forward", "blocks.2.attention", "blocks.2"],
}
"""Parts of the last layer."""

SMOKE = ("bert", "gpt2", "falcon", "mixtral", "mamba", "t5", "convnext")


@pytest.mark.parametrize(
    "kind", [kind if kind in SMOKE else pytest.param(kind, marks=pytest.mark.slow) for kind in TRANSFORMERS]
)
def test_parts_of_every_family(kind: str) -> None:
    counts = {"mlp": 3, "attention": 3, "block": 3} | COUNTS.get(kind, {})
    last = []
    for word, count in counts.items():
        if not count:
            with pytest.raises(InputError, match=f"no {word} found in the .* give module:NAME"):
                watched(kind, sites=word)
            continue
        record = watched(kind, sites=word)
        for residual in (False, True):
            found = [site for site in record.pairs if site.residual is residual]
            assert len(found) == count
            assert {site.kind for site in found} == {word}
        plain = [site for site in record.pairs if not site.residual]
        layers = sorted({site.layer for site in plain if site.layer is not None})
        assert layers == list(range(layers[-1] + 1)) or "block" in COUNTS.get(kind, {})
        last += [site.name for site in plain if site.layer == layers[-1]]
    assert last == NAMES.get(kind, last)


class Calls(dict[str, tuple[Tensor, Tensor]]):
    """Input and output of modules, as tokens, by plain hooks."""

    def __init__(self, network: nn.Module, given: dict[str, Tensor], *paths: str) -> None:
        for path in paths:
            network.get_submodule(path).register_forward_hook(self._keeper(path), with_kwargs=True)
        with torch.no_grad():
            network(**given)

    def _keeper(self, path: str) -> Any:
        def keep(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            given = args[0] if args else kwargs["hidden_states"]
            output = output[0] if isinstance(output, tuple) else output
            self[path] = given.flatten(0, 1).clone(), output.flatten(0, 1).clone()

        return keep


def pairs(record: Watch) -> dict[str, tuple[Tensor, Tensor]]:
    return {site.name: (pair.x, pair.y) for site, pair in record.pairs.items()}


def close(found: tuple[Tensor, Tensor], x: Tensor, y: Tensor) -> bool:
    return torch.allclose(found[0], x, atol=1e-5) and torch.allclose(found[1], y, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "block", "attention", "mlp"),
    [("llama", "layers.1", "self_attn", "mlp"), ("gpt2", "h.1", "attn", "mlp")],
)
def test_pairs_of_a_block_that_normalises_first(kind: str, block: str, attention: str, mlp: str) -> None:
    found = pairs(watched(kind))
    a, m = f"{block}.{attention}", f"{block}.{mlp}"
    calls = Calls(*build(kind), block, a, m)
    x, y = calls[block]
    middle = x + calls[a][1]
    assert close(found[a], *calls[a])
    assert close(found[m], *calls[m])
    assert close(found[f"{a}+residual"], x, middle)
    assert close(found[f"{m}+residual"], middle, middle + calls[m][1])
    assert close(found[block], x, y - x)
    assert close(found[f"{block}+residual"], x, y)


def test_pairs_of_a_block_that_normalises_last() -> None:
    """The MLP of BERT is two modules; what it adds is added before the normalisation."""
    found = pairs(watched("bert"))
    block = "encoder.layer.1"
    names = ("intermediate", "output.dense", "attention.self", "attention.output.dense")
    calls = Calls(*build("bert"), block, *(f"{block}.{name}" for name in names))
    x, added = calls[f"{block}.intermediate"][0], calls[f"{block}.output.dense"][1]
    assert close(found[f"{block}.mlp"], x, added)
    assert close(found[f"{block}.mlp+residual"], x, x + added)
    x, added = calls[f"{block}.attention.self"][0], calls[f"{block}.attention.output.dense"][1]
    assert close(found[f"{block}.attention"], x, added)
    assert close(found[f"{block}.attention+residual"], x, x + added)
    assert close(found[f"{block}+residual"], *calls[block])


@pytest.mark.parametrize(("kind", "attention"), [("gpt_neox", "attention"), ("phi", "self_attn")])
def test_parts_side_by_side_are_each_added_to_the_stream(kind: str, attention: str) -> None:
    found = pairs(watched(kind))
    calls = Calls(*build(kind), "layers.1", f"layers.1.{attention}", "layers.1.mlp")
    x, _ = calls["layers.1"]
    for name in (attention, "mlp"):
        assert close(found[f"layers.1.{name}+residual"], x, x + calls[f"layers.1.{name}"][1])
    assert close(found["layers.1+residual"], *calls["layers.1"])


def test_kind_and_layer_are_columns_that_are_saved(tmp_path: Any) -> None:
    network, given = build("gpt2")
    sounding = measure(
        network, [given], sites="activations,mlp,block", residual="both", reduction="tokens", samples=20,
        gauges="r2,stable_rank",
    )  # fmt: skip
    for suffix in ("json", "parquet"):
        sounding.save(tmp_path / f"s.{suffix}")
        again = load(tmp_path / f"s.{suffix}")
        assert isinstance(again, Sounding)
        assert again.sites == sounding.sites
        found = {row["site"]: (row["kind"], row["layer"]) for row in again.records.to_dict("records")}
        assert found["h.2.mlp"] == ("mlp", 2)
        assert found["h.0.mlp.act"] == ("activation", 0)
        assert found["h.1+residual"] == ("block", 1)
    assert sounding.provenance.settings["residual"] == "both"
    assert [site.name for site in sounding.sites if site.layer == 1] == [
        "h.1", "h.1+residual", "h.1.mlp", "h.1.mlp+residual", "h.1.mlp.act"
    ]  # fmt: skip
    plain = measure(network, [given], reduction="tokens", samples=20, gauges="r2")
    assert "residual" not in plain.provenance.settings
    assert plain.records["layer"].isna().all()


def test_parts_of_torch_layers_and_vision_transformers() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, norm_first=True)
    network = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    x = torch.randn(4, 5, 16)
    with torch.no_grad():
        expected = network(x)  # by one kernel
        with watch(network, sites=WORDS, residual="both", reduction="tokens") as record:
            assert torch.equal(network(x), expected)
    last = [site.name for site in record.pairs if site.layer == 2 and not site.residual]
    assert last == ["layers.2", "layers.2.self_attn", "layers.2.mlp"]
    found = pairs(record)
    assert close(found["layers.2.self_attn+residual"][:1] * 2, *found["layers.2"][:1] * 2)
    assert close(
        found["layers.2.mlp+residual"], found["layers.2.self_attn+residual"][1], expected.flatten(0, 1)
    )
    with pytest.raises(InputError, match="only the network itself adds its input to its output, once"):
        measure(layer, x, sites="mlp", samples=4)

    from fathometer.models import load_model

    swin = load_model("torchvision:swin_t", "none").module
    with torch.no_grad(), watch(swin, sites=WORDS, residual="both", reduction="tokens") as record:
        swin(torch.randn(1, 3, 64, 64))
    assert len(record.pairs) == 3 * 2 * 12
    assert {pair.x.shape[1] for pair in record.pairs.values()} == {96, 192, 384, 768}
    found = pairs(record)
    for site in record.pairs:  # channels are last, and rows of both sides belong together
        if site.kind == "block" and site.residual:
            name = site.name.removesuffix("+residual")
            assert close(
                found[f"{name}.mlp+residual"], found[f"{name}.attn+residual"][1], found[site.name][1]
            )


def test_a_kind_that_there_is_none_of_is_named() -> None:
    network, given = build("mamba")
    options: dict[str, Any] = {"reduction": "tokens", "samples": 20, "gauges": "r2"}
    with pytest.warns(UserWarning, match="mlp is not measured: no mlp found in the 3 blocks"):
        found = measure(network, [given], sites="mlp,attention", **options)
    assert {site.kind for site in found.sites} == {"attention"}
    with pytest.raises(InputError, match=r"sites: no mlp found.*layers\.0\.mixer, which mixes positions"):
        measure(network, [given], sites="mlp", **options)
    plain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with pytest.raises(InputError, match=r"no residual blocks found: .* give module:NAME"):
        measure(plain, torch.randn(20, 4), sites="mlp,block", samples=20)


def test_padding_is_left_out_of_parts() -> None:
    network, given = build("gpt2")
    mask = torch.ones_like(given["input_ids"])
    mask[0, 4:] = 0
    options: dict[str, Any] = {"sites": WORDS, "residual": "both", "reduction": "tokens"}
    with torch.no_grad():
        with watch(network, **options) as masked:
            network(**given, attention_mask=mask)
        with watch(network, **options) as whole:
            network(**given)
    kept = mask.flatten().bool()
    shorter, longer = pairs(masked), pairs(whole)
    assert all(len(x) == 18 for x, _ in shorter.values())
    for name in ("h.0.mlp", "h.0.mlp+residual", "h.0"):  # attention looks back only, so that nothing changes
        assert close(shorter[name], *(side[kept] for side in longer[name]))


def test_padding_is_left_out_where_texts_and_tokens_are_one_axis() -> None:
    """The MLP of OPT, and its residual sum, have the tokens of all texts one after the other."""
    network, given = build("opt")
    mask = torch.ones_like(given["input_ids"])
    mask[0, 4:] = 0
    with torch.no_grad(), watch(network, sites="mlp", residual="both", reduction="tokens") as record:
        network(**given, attention_mask=mask)
    assert not record.left_out
    assert [len(pair.x) for pair in record.pairs.values()] == [18] * 6
    assert not record.with_padding


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_decoder_has_a_mask_of_its_own(kind: str) -> None:
    """Also where both texts have the same length."""
    network, given = build(kind)
    text = given["input_ids"]
    mask, decoder_mask = torch.ones_like(text), torch.ones_like(text)
    mask[0, 4:], decoder_mask[:, 5:] = 0, 0

    def counts(**inputs: Tensor) -> dict[str, set[int]]:
        with torch.no_grad(), watch(network, sites="mlp", residual="both", reduction="tokens") as record:
            network(input_ids=text, attention_mask=mask, **inputs)
        found: dict[str, set[int]] = {}
        for site, pair in record.pairs.items():
            found.setdefault(site.module.split(".")[0], set()).add(len(pair.x))
        return found

    both = {"decoder_input_ids": text, "decoder_attention_mask": decoder_mask}
    assert counts(**both) == {"encoder": {18}, "decoder": {15}}
    assert counts(decoder_input_ids=text) == {"encoder": {18}, "decoder": {21}}
    if kind == "bart":  # which gives the text of the encoder to the decoder, too
        assert counts() == {"encoder": {18}, "decoder": {18}}


def test_a_part_is_not_measured_a_second_time_as_a_module() -> None:
    record = watched("gpt2", "without", sites=["mlp", "module:h.*.mlp", "module:h.0.attn"])
    assert [site.name for site in record.pairs] == ["h.0.attn", "h.0.mlp", "h.1.mlp", "h.2.mlp"]
    assert [len(pair.x) for pair in record.pairs.values()] == [21] * 4
    assert record.rows == dict.fromkeys(record.pairs, 21)


def test_the_search_leaves_no_trace() -> None:
    """Neither in the random numbers, nor in training flags, nor in a cache that is given."""
    transformers = pytest.importorskip("transformers")
    network, given = build("gpt2")
    network.train()
    torch.manual_seed(1)
    expected = network(**given).last_hidden_state
    cache = transformers.DynamicCache(config=network.config)
    torch.manual_seed(1)
    with watch(network, sites="mlp") as record:
        output = network(**given, past_key_values=cache).last_hidden_state
    assert torch.equal(output, expected)
    assert all(module.training for module in network.modules())
    assert cache.get_seq_length() == 7
    assert record.samples == 3


def test_softmax_inside_a_kernel_is_warned_of() -> None:
    network, given = build("gpt2")
    options: dict[str, Any] = {"activations": [torch.softmax], "samples": 20, "gauges": "r2"}
    with pytest.warns(UserWarning, match=r'no call of softmax was seen.*attn_implementation="eager"'):
        measure(network, [given], reduction="tokens", **options)
    eager, given = build("gpt2", attn_implementation="eager")
    found = measure(eager, [given], reduction="tokens", **options)
    assert [site.name for site in found.sites if site.operator == "softmax"]


def test_unequal_widths_are_measured_by_linear_fits() -> None:
    network, given = build("bert")
    options: dict[str, Any] = {"sites": "module:BertIntermediate", "reduction": "tokens", "samples": 21}
    reason = r"not measured at encoder\.layer\.0\.intermediate, .*, whose width changes: affinity; use r2, "
    with pytest.warns(UserWarning, match=reason):
        found = measure(network, [given], gauges="r2,affinity", **options)
    assert found.gauges == ["r2"]
    assert found.records["r2"].between(0, 1).all()
    with pytest.warns(UserWarning, match=reason):
        both = measure(
            network, [given], gauges="r2,affinity", **options | {"sites": "gelu,module:BertIntermediate"}
        )
    measure(network, [given], gauges="r2", **options)  # nothing is left out
    missing = both.mean("affinity").isna()
    assert [site.operator for site in both.sites if missing[site.name]] == ["BertIntermediate"] * 3
    with pytest.raises(
        InputError, match=r"no site to measure; .*its width changes \(\[21, 32\] .*r2, r2_held"
    ):
        measure(network, [given], gauges="affinity", **options)


def test_sites_with_fewer_samples_are_left_out_of_summaries(tmp_path: Any) -> None:
    from fathometer.compare import signatures

    network, _ = build("bert")
    data = [{"input_ids": torch.randint(3, 50, (16, 7))} for _ in range(8)]
    sounding = measure(network, data, reduction="tokens", samples=112, gauges="affinity")
    assert sounding.records.groupby("site")["n"].first()["pooler.activation"] == 16
    assert sounding.undersampled == ("pooler.activation",)
    assert sounding.summary()["max"] == sounding.signature.iloc[:3].max()
    with pytest.warns(UserWarning, match=r"left out, with fewer samples: pooler\.activation"):
        assert [len(values) for values in signatures([sounding]).values()] == [3]
    again = load(sounding.save(tmp_path / "s.json"))
    assert isinstance(again, Sounding)
    assert again.undersampled == sounding.undersampled
