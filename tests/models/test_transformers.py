from __future__ import annotations

import copy
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

from fathometer import InputError, MissingExtraError, measure
from fathometer.models import LoadedModel, ensure_torchvision_operators, load_model
from tests.models.files import write_gguf

ensure_torchvision_operators()
transformers: Any = pytest.importorskip("transformers")

USUAL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 32},
    "llama": {**USUAL, "num_key_value_heads": 2},
    "bert": USUAL,
}


def tiny_config(kind: str) -> Any:
    words = {"vocab_size": 40, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    return transformers.AutoConfig.for_model(kind, **words, **SIZES[kind])


def tiny_tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {w: i for i, w in enumerate(["[UNK]", "<s>", "deep", "calls", "unto"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", bos_token="<s>", model_max_length=4
    )


def output(model: LoadedModel) -> torch.Tensor:
    given = torch.ones(2, *model.inputs.shape)
    if model.inputs.kind == "tokens":
        given = torch.arange(given.numel()).reshape(given.shape) % 40
    with torch.no_grad():
        return next(iter(model.module(given).values()))


@pytest.mark.parametrize(
    ("kind", "auto", "length"),
    [
        ("gpt2", "AutoModelForCausalLM", 32),
        ("llama", "AutoModelForCausalLM", 128),
        ("bert", "AutoModel", 128),
    ],
)
def test_a_language_model_in_a_folder(
    kind: str, auto: str, length: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved = getattr(transformers, auto).from_config(tiny_config(kind)).eval()
    saved.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    model = load_model(f"hf:{tmp_path}")
    assert type(model.module) is type(saved)
    assert (model.weights, model.inputs.kind, model.inputs.vocabulary) == (tmp_path.name, "tokens", 40)
    assert model.inputs.shape == (length,)
    assert model.inputs.tokenize is not None
    assert model.inputs.tokenize("deep calls unto deep , calls") == [2, 3, 4, 2, 0, 3]
    assert "longer than" not in caplog.text
    loaded = model.module.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in saved.state_dict().items())
    again = load_model(f"hf:{tmp_path}", "none")
    assert again.weights == "none"
    assert not torch.equal(output(again), output(model))
    restored = load_model(f"hf:{tmp_path}", tmp_path / "model.safetensors")
    assert restored.weights == "model.safetensors"
    assert torch.equal(output(restored), output(model))


def test_half_precision_is_loaded_as_single(tmp_path: Path) -> None:
    transformers.AutoModelForCausalLM.from_config(tiny_config("llama")).bfloat16().save_pretrained(tmp_path)
    model = load_model(f"hf:{tmp_path}")
    assert {p.dtype for p in model.module.parameters()} == {torch.float32}
    assert model.inputs.tokenize is None


@pytest.mark.parametrize("with_processor", [True, False])
def test_an_image_model_in_a_folder(with_processor: bool, tmp_path: Path) -> None:
    config = transformers.ViTConfig(image_size=32, patch_size=8, num_labels=5, **USUAL)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path)
    if with_processor:
        transformers.ViTImageProcessor(
            size={"height": 32, "width": 32}, image_mean=[0, 0, 0], image_std=[1, 1, 1]
        ).save_pretrained(tmp_path)
    model = load_model(f"hf:{tmp_path}")
    assert (model.inputs.kind, model.inputs.shape) == ("image", (3, 32, 32))
    assert output(model).shape == (2, 5)
    assert model.inputs.preprocess is not None
    sample = model.inputs.preprocess(Image.new("RGB", (60, 50), (255, 0, 0)))
    assert tuple(sample.shape) == (3, 32, 32)
    assert sample[0, 0, 0].item() == pytest.approx(1 if with_processor else (1 - 0.485) / 0.229)


def test_a_model_type_with_random_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"gpt2": tiny_config("gpt2"), "bert": tiny_config("bert"), "vit": transformers.ViTConfig(**USUAL)}
    monkeypatch.setattr(transformers.AutoConfig, "for_model", small.__getitem__)
    assert type(load_model("hf:gpt2", "none").module).__name__ == "GPT2LMHeadModel"
    assert type(load_model("hf:bert", "none").module).__name__ == "BertForMaskedLM"
    vit = load_model("hf:vit", "none")
    assert vit.inputs.shape == (3, 224, 224)
    assert isinstance(vit.module, nn.Module)


def test_offline_gives_a_one_line_error_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("fathometer.data.hugging_face._is_reachable", lambda _: False)
    cases = {
        "hf:gpt2": "a model type with `weights` none",
        "hf:gpt3": "did you mean hf:gpt",
        "hf:nobody/nothing": "give a local folder",
    }
    for name, message in cases.items():
        with pytest.raises(InputError, match=message) as raised:
            load_model(name)
        assert "\n" not in str(raised.value)
    from huggingface_hub import constants

    assert not constants.HF_HUB_OFFLINE


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="could not be loaded"):
        load_model(f"hf:{tmp_path}")
    tiny_config("gpt2").save_pretrained(tmp_path)
    assert load_model(f"hf:{tmp_path}", "none").inputs.shape == (32,)
    config = transformers.AutoConfig.for_model("audio-spectrogram-transformer", num_hidden_layers=1)
    config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="neither a text nor an image"):
        load_model(f"hf:{tmp_path}", "none")


def test_missing_weights_are_reported(tmp_path: Path) -> None:
    config = tiny_config("bert")
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"tensors of BertForMaskedLM are not in its files, e.g. cls"):
        load_model(f"hf:{tmp_path}")


def test_code_in_a_folder_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}')
    (tmp_path / "own.py").write_text("raise SystemExit('ran')")
    with pytest.raises(InputError, match=r"own repository \(trust_remote_code\), which is never run here"):
        load_model(f"hf:{tmp_path}", "none")


def test_code_for_a_network_of_a_known_type_is_not_replaced(tmp_path: Path) -> None:
    """A class of its own may compute in another way; one that transformers has is used."""
    transformers.AutoModelForCausalLM.from_config(tiny_config("llama")).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["auto_map"] = {"AutoModelForCausalLM": "own.Own"}
    (tmp_path / "own.py").write_text("raise SystemExit('ran')")
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert type(load_model(f"hf:{tmp_path}").module).__name__ == "LlamaForCausalLM"
    (tmp_path / "config.json").write_text(json.dumps(settings | {"architectures": ["Own"]}))
    with pytest.raises(InputError, match=r"own repository \(trust_remote_code\), which is never run here"):
        load_model(f"hf:{tmp_path}")


def test_a_tokenizer_with_code_of_its_own_is_warned_of(tmp_path: Path) -> None:
    transformers.AutoModelForCausalLM.from_config(tiny_config("llama")).save_pretrained(tmp_path)
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(own))
    (tmp_path / "own.py").write_text("raise SystemExit('ran')")
    with pytest.warns(UserWarning, match=r"its Tokenizer needs code from its own repository"):
        assert load_model(f"hf:{tmp_path}").inputs.tokenize is None


def test_quantised_weights_say_what_they_need(tmp_path: Path) -> None:
    """With bitsandbytes they are loaded and measured, in 8 bit as in 4 bit."""
    model = transformers.AutoModelForCausalLM.from_config(tiny_config("llama"))
    model.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    model.config.save_pretrained(tmp_path)
    if find_spec("bitsandbytes") is None:
        with pytest.raises(InputError, match=r"bitsandbytes.*; install what its quantised weights need, or"):
            load_model(f"hf:{tmp_path}")
        return
    quantised = transformers.BitsAndBytesConfig(load_in_4bit=True)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 64}  # its kernels take blocks of 32
    config = transformers.AutoConfig.for_model("llama", **{**SIZES["llama"], **sizes})
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=quantised)
    model.save_pretrained(tmp_path)
    loaded = load_model(f"hf:{tmp_path}")
    found = measure(loaded, torch.ones(4, 8, dtype=torch.long), samples=4, gauges="norm")
    assert "torch.uint8" in found.provenance.model["dtype"]


def test_weights_that_stay_packed_are_refused(tmp_path: Path) -> None:
    """Without their scales, whole numbers would be taken for weights."""
    from safetensors.torch import load_file, save_file

    transformers.AutoModelForCausalLM.from_config(tiny_config("llama")).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    name = "model.layers.1.mlp.up_proj.weight"
    scale = tensors[name].abs().max() / 127
    packed = {name: (tensors[name] / scale).round().to(torch.int8), f"{name}_scale": scale}
    save_file({**tensors, **packed}, file, {"format": "pt"})
    settings = json.loads((tmp_path / "config.json").read_text())
    for method in ({}, {"quantization_config": {"quant_method": "modelopt"}}):
        (tmp_path / "config.json").write_text(json.dumps(settings | method))
        with pytest.raises(InputError, match=r"transformers does not know \(model.*up_proj.weight_scale was"):
            load_model(f"hf:{tmp_path}")


def test_the_precision_of_quantised_weights_stays(tmp_path: Path) -> None:
    transformers.AutoModelForCausalLM.from_config(tiny_config("llama")).save_pretrained(tmp_path)
    model = load_model(f"hf:{tmp_path}")
    model.cast("bfloat16")
    assert {weight.dtype for weight in model.module.parameters()} == {torch.bfloat16}
    model.module.quantization_method = "bitsandbytes"  # type: ignore[assignment]
    with pytest.raises(
        InputError, match=r"^dtype: the weights of hf:.* cannot be cast to float32 .*leave it out"
    ):
        model.cast("float32")


@pytest.mark.filterwarnings("ignore:.*quant")
def test_quantised_layers_are_seen_as_they_compute() -> None:
    """In a network of torch, whose quantised layers hide their weights, and of torchao, if that is there."""
    ids = torch.arange(64).reshape(8, 8) % 40
    model = transformers.AutoModelForCausalLM.from_config(tiny_config("llama")).eval()
    options: dict[str, Any] = {"sites": "activations,mlp,attention,block", "reduction": "tokens"}
    expected = measure(model, ids, samples=64, gauges="r2", **options)
    quantised = [torch.ao.quantization.quantize_dynamic(model, {nn.Linear})]
    if find_spec("torchao") is not None:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        quantised.append(copy.deepcopy(model))
        quantize_(quantised[-1], Int8WeightOnlyConfig())
    for network in quantised:
        found = measure(network, ids, samples=64, gauges="r2", **options)
        assert found.sites == expected.sites
        assert found.mean("r2").to_list() == pytest.approx(expected.mean("r2").to_list(), abs=0.02)
        assert found.provenance.model["checksum"] != expected.provenance.model["checksum"]


def test_missing_gguf_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    (tmp_path / "m.gguf").touch()
    with pytest.raises(MissingExtraError, match=r"pip install 'fathometer\[gguf\]'"):
        load_model(f"hf:{tmp_path / 'm.gguf'}")


def test_a_gguf_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gguf")
    file = tmp_path / "net.gguf"
    write_gguf(file)
    model = load_model(f"hf:{file}")
    assert "%|" not in capfd.readouterr().err  # no progress bar in a log
    assert type(model.module).__name__ == "LlamaForCausalLM"
    assert (model.weights, model.inputs.shape, model.inputs.vocabulary) == ("net.gguf", (32,), 40)
    assert output(model).shape == (2, 32, 40)
