"""Perplexity and masked accuracy of language models, against the loss of transformers and closed forms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from fathometer import load, measure
from fathometer.models import ensure_torchvision_operators
from fathometer.models.language import head_of
from tests.measuring.test_texts import TEXTS, USUAL, WORDS, letter_tokenizer

ensure_torchvision_operators()
transformers: Any = pytest.importorskip("transformers")

OPTIONS: dict[str, Any] = {"samples": 64, "reduction": "tokens", "gauges": "norm", "leftover": "keep"}


def network(kind: str, auto: str = "AutoModelForCausalLM", **sizes: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **{**WORDS, **USUAL, **sizes})
    return getattr(transformers, auto).from_config(config).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_perplexity_is_that_of_transformers(dtype: torch.dtype, tmp_path: Path) -> None:
    """Over the tokens that follow another one, without padding."""
    model, tokenizer = network("llama").to(dtype), letter_tokenizer()
    for parameter in model.parameters():
        parameter.data *= 3  # far from uniform
    encoded = tokenizer([text[:30] for text in TEXTS], return_tensors="pt", padding=True)
    labels = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, -100)
    with torch.no_grad():
        expected = float(model(**encoded, labels=labels).loss)
    sounding = measure(model, encoded, batch_size=3, **OPTIONS)
    tolerance = 1e-6 if dtype is torch.float32 else 1e-2  # another number of inputs, rounded otherwise
    assert sounding.loss == pytest.approx(expected, rel=tolerance)
    assert sounding.perplexity == pytest.approx(math.exp(expected), rel=3 * tolerance)
    assert sounding.accuracy is None
    count = int((labels[:, 1:] != -100).sum())
    assert sounding.outcome == f"perplexity {sounding.perplexity:.4g} on {count} tokens"
    assert sounding.outcome in repr(sounding)
    again = measure(model, encoded, batch_size=3, journal=tmp_path / "journal", **OPTIONS)
    resumed = measure(model, encoded, batch_size=3, journal=tmp_path / "journal", **OPTIONS)
    assert again.outcome == resumed.outcome == sounding.outcome
    saved = load(sounding.save(tmp_path / "it.json"))
    assert saved.perplexity == sounding.perplexity


def test_without_a_head_or_with_another_there_is_no_perplexity() -> None:
    ids = torch.randint(3, 60, (4, 16))
    for auto in ("AutoModel", "AutoModelForMaskedLM", "AutoModelForSequenceClassification"):
        assert measure(network("bert", auto), ids, **OPTIONS).outcome == ""
    assert head_of(network("bert")) is None  # a causal head, but every token sees all others
    assert head_of(network("bert", is_decoder=True)) == "causal"
    assert head_of(network("bert", "AutoModelForMaskedLM")) == "masked"
    assert head_of(torch.nn.ReLU()) is None


def test_masked_accuracy_counts_the_hidden_tokens_alone() -> None:
    """A model that always predicts `a` finds all of a text of `a`, and about half of one with as many `b`."""
    model, tokenizer = network("bert", "AutoModelForMaskedLM"), letter_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "?"})
    letter = tokenizer("a")["input_ids"][-1]
    model.cls.predictions.bias.data[letter] = 1000
    texts = ["a" * 2000, "ab" * 1000]
    expected = measure(model, texts[:1], tokenizer=lambda text: tokenizer(text)["input_ids"], **OPTIONS)
    found = [measure(model, [text], tokenizer=tokenizer, **OPTIONS) for text in texts]
    pd.testing.assert_frame_equal(found[0].records, expected.records)  # the measured pass sees all tokens
    assert expected.outcome == ""
    outcomes = [sounding.provenance.data["outcome"] for sounding in found]
    assert outcomes[0]["masked_accuracy"] == 1
    assert outcomes[1]["masked_accuracy"] == pytest.approx(0.5, abs=0.1)
    assert outcomes[0]["hidden_tokens"] / 2000 == pytest.approx(0.15, abs=0.03)
    assert found[0].outcome == f"masked accuracy 1.000 on {outcomes[0]['hidden_tokens']} hidden tokens"


def test_a_masked_language_model_without_logits_or_mask_is_measured_all_the_same() -> None:
    model, tokenizer = network("bert", "AutoModelForMaskedLM"), letter_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "?"})
    ids = letter_tokenizer()([text[:30] for text in TEXTS], return_tensors="pt", padding=True)
    hides: list[bool] = []
    watching = model.register_forward_pre_hook(
        lambda _, __, entries: hides.append(tokenizer.mask_token_id in entries["input_ids"]),
        with_kwargs=True,
    )
    labelled = measure(
        model, ids, by=lambda batch: ["a"] * len(batch["input_ids"]), tokenizer=tokenizer, **OPTIONS
    )
    assert labelled["a"].outcome == ""
    assert not any(hides)  # outcomes by label are not of hidden tokens
    watching.remove()
    model.config.return_dict = False
    assert measure(model, TEXTS, tokenizer=tokenizer, **OPTIONS).outcome == ""
    model.config.return_dict = True
    tokenizer.add_tokens([f"<{number}>" for number in range(model.config.vocab_size)])
    tokenizer.add_special_tokens({"mask_token": "<mask>"})  # which the network does not know
    assert measure(model, TEXTS, tokenizer=tokenizer, **OPTIONS).outcome == ""
