"""`fathometer measure` of language models: the preset, perplexity, and texts that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from fathometer import load, measure
from fathometer.models import ensure_torchvision_operators, load_model
from fathometer.report import alignment_table
from tests.cli.conftest import Command
from tests.measuring.test_texts import LETTERS, letter_tokenizer

ensure_torchvision_operators()
transformers: Any = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two GPT-2 and their tokenizer of letters, and a text."""
    folder = tmp_path_factory.mktemp("language")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=40, n_layer=2, n_embd=16, n_head=2, n_positions=64, bos_token_id=1, eos_token_id=1
    )
    for name in ("net", "other"):
        transformers.GPT2LMHeadModel(config).save_pretrained(folder / name)
        letter_tokenizer().save_pretrained(folder / name)
    letters = torch.randint(len(LETTERS), (3000,), generator=torch.Generator().manual_seed(0))
    (folder / "book.txt").write_text("".join(LETTERS[i] for i in letters.tolist()))
    return folder


def test_the_preset_is_the_default_for_language_models(saved: Path, command: Command) -> None:
    given = ["measure", f"hf:{saved / 'net'}", "--data", str(saved / "book.txt"), "--length", "32"]
    given += ["--samples", "256"]  # it takes less time
    code, out, err = command(*given, "--out", "preset.json")
    assert code == 0, err
    text = " ".join(out.split())
    assert "preset language: tokens as samples, 2 batches of 256, blocks of 32 tokens (stride 32);" in text
    assert "sites activations, mlp, attention, block; gauges affinity, " in text
    assert "`--preset none` uses the general defaults" in text
    assert "affinity of the activations; r2_trimmed of the parts, alone" in text
    found = load("preset.json")
    assert found.outcome in text
    assert found.perplexity is not None
    assert found.records["n"].unique().tolist() == [256]
    assert len(found.sites) == 14  # in 2 layers: an activation, and 3 parts with and without the residual sum
    scored = found.mean("affinity").notna()
    assert [site.kind for site in found.sites if scored[site.name]] == ["activation"] * 2
    r2 = found.mean("r2_trimmed")["transformer.h.1.attn+residual"]
    (row,) = (line.split("│") for line in out.splitlines() if line.startswith("│ 1 "))
    assert f"{r2:.3f}" in row[4]
    assert "attention +residual" in " ".join(out.split())
    assert out.split("perplexity")[0].strip() in command("show", "preset.json")[1].split("perplexity")[0]
    facts = found.provenance
    assert (facts.data["length"], facts.data["stride"]) == (32, 32)
    code, out, err = command(*given, "--preset", "language", "--out", "same.json", "--json")
    assert code == 0, err
    assert json.loads(out)["settings"] == json.loads(json.dumps(facts.settings))
    book = [(saved / "book.txt").read_text()]
    expected = measure(load_model(f"hf:{saved / 'net'}"), book, preset="language", samples=256, length=32)
    differing = {
        name for name in facts.settings if facts.settings[name] != expected.provenance.settings[name]
    }
    assert differing == {"batch_size"}


def test_options_that_are_given_win_over_the_preset(saved: Path, command: Command) -> None:
    given = ["measure", f"hf:{saved / 'net'}", "--data", str(saved / "book.txt")]
    own = ["--samples", "512", "--gauges", "affinity", "--sites", "activations"]  # the first is a default
    code, _, err = command(*given, *own, "--out", "own.json")
    assert code == 0, err
    settings = load("own.json").provenance.settings
    assert (settings["samples"], settings["gauges"], settings["batches"]) == (512, ["affinity"], 2)
    assert settings["sites"] == ["activations"]
    code, out, err = command(*given, "--samples", "256", "--sites", "mlp", "--length", "32")
    assert code == 0, err
    text = " ".join(out.split())
    assert "sites mlp; gauges r2_heldout, r2_trimmed, carriers;" in text
    assert "affinity" not in text
    assert settings["reduction"]["pooling"] == "tokens"
    code, out, err = command(*given, "--preset", "none", "--samples", "20", "--out", "none.json")
    assert code == 0, err
    assert load("none.json").provenance.settings["reduction"]["pooling"] == "mean"
    assert "each sample is the mean over a text" in out


@pytest.mark.filterwarnings("default")
def test_language_models_are_compared_where_they_have_a_score(saved: Path, command: Command) -> None:
    files = ["net.json", "other.json"]
    for file in files:
        given = ["measure", f"hf:{saved / Path(file).stem}", "--data", str(saved / "book.txt")]
        code, _, err = command(*given, "--length", "32", "--samples", "256", "--out", file)
        assert code == 0, err
    code, out, err = command("compare", "networks", *files, "--draws", "5")
    assert code == 0, err
    assert "batches resampled 5 times" in out
    for kind in ("distances", "alignment", "difference", "overlay", "strip"):
        code, _, err = command("plot", *files, "--kind", kind, "--out", f"{kind}.pdf")
        assert code == 0, err
    code, _, err = command("compare", "networks", *files, "--draws", "5", "--gauge", "r2_trimmed")
    assert code == 0, err
    assert " ".join(err.split()).count("mlp, mlp +residual is one curve here") == 1, err
    both = [load(file) for file in files]
    assert alignment_table(both)["first_mean"].tolist() == both[0].mean("affinity").dropna().tolist()
    assert both[0].plot(kind="signature").axes[0].get_xlim() == (-0.6, 1.6)


@pytest.mark.filterwarnings("default")
def test_a_network_without_some_of_the_parts_is_measured_at_the_others(
    tmp_path: Path, command: Command
) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 40, "state_size": 4}
    config = transformers.MambaConfig(**sizes, pad_token_id=0, bos_token_id=1, eos_token_id=1)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path / "mamba")
    given = ["measure", "hf:./mamba", "--data", "random:32", "--length", "16", "--samples", "64"]
    code, out, err = command(*given, "--gauges", "norm")
    assert code == 0, err
    assert "mlp is not measured: no mlp found in the 2 blocks" in " ".join(err.split())
    assert {site.kind for site in load("mamba-random.json").sites} == {"activation", "attention", "block"}
    assert "perplexity" in out


def test_networks_that_texts_do_not_fit(saved: Path, command: Command, tmp_path: Path) -> None:
    torch.manual_seed(0)
    small = transformers.GPT2Config(
        vocab_size=9, n_layer=1, n_embd=16, n_head=2, bos_token_id=1, eos_token_id=1
    )
    transformers.GPT2LMHeadModel(small).save_pretrained(tmp_path / "small")
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    t5 = transformers.T5Config(vocab_size=40, **sizes, decoder_start_token_id=0)
    transformers.T5ForConditionalGeneration(t5).save_pretrained(tmp_path / "t5")
    cases = {
        "small": "expected token ids from 0 to 8, got 29; use the tokenizer of this network",
        "t5": "this is an encoder with a decoder, which needs an input of its own: in Python, give batches",
    }
    for name, message in cases.items():
        letter_tokenizer().save_pretrained(tmp_path / name)
        given = ["measure", f"hf:./{name}", "--data", str(saved / "book.txt"), "--samples", "64"]
        code, _, err = command(*given)
        assert code
        assert message in " ".join(err.split())
    code, _, err = command("sites", "hf:./t5")
    assert code
    assert cases["t5"] in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--samples", "9000"],
            "--data: expected at least 9000 tokens to fill a batch, got 3000 in 47 inputs",
        ),
        (["--length", "65"], "--length: this network has 64 positions, got 65"),
        (["--preset", "langage"], "Invalid value for '--preset'"),
    ],
)
def test_mistakes(saved: Path, command: Command, options: list[str], message: str) -> None:
    code, _, err = command("measure", f"hf:{saved / 'net'}", "--data", str(saved / "book.txt"), *options)
    assert code == 2
    assert message in " ".join(err.replace("│", " ").split())
