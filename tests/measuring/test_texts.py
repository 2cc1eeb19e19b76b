"""Texts, batches of a tokenizer and Hugging Face data sets as data; tokens that do not fit the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from fathometer import InputError, measure
from fathometer.errors import ForwardError, TooFewSamplesError
from fathometer.models import LoadedModel, ensure_torchvision_operators
from fathometer.models.language import token_inputs

ensure_torchvision_operators()
transformers: Any = pytest.importorskip("transformers")

WORDS = {"vocab_size": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
USUAL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
OPTIONS: dict[str, Any] = {"samples": 32, "reduction": "tokens", "gauges": "norm", "leftover": "keep"}
LETTERS = "abcdefghijklmnopqrstuvwxyz "
TEXTS = ["deep calls unto deep", "a", "", "at the noise of thy waterspouts all thy waves " * 4]


def network(kind: str = "gpt2", **sizes: Any) -> Any:
    torch.manual_seed(0)
    usual = {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 48} if kind == "gpt2" else USUAL
    config = transformers.AutoConfig.for_model(kind, **{**WORDS, **usual, **sizes})
    return transformers.AutoModel.from_config(config).eval()


def letter_tokenizer() -> Any:
    """A tokenizer of single letters, which puts <s> before each text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    ids = {name: i for i, name in enumerate(["<pad>", "<s>", "?", *LETTERS])}
    found = Tokenizer(models.WordLevel(ids, unk_token="?"))
    found.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    found.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=found, unk_token="?", bos_token="<s>", pad_token="<pad>", model_max_length=40
    )


@pytest.fixture(scope="module")
def net() -> Any:
    return network()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return letter_tokenizer()


def test_a_batch_of_the_tokenizer_is_one_batch_of_data(net: Any, tokenizer: Any) -> None:
    """A `BatchEncoding` and a plain dict are what a list of batches is, cut by `batch_size`."""
    encoded = tokenizer([text[:40] for text in TEXTS], return_tensors="pt", padding=True)
    plain = dict(encoded)
    expected = measure(net, [plain], batch_size=3, **OPTIONS)
    for data in (encoded, plain, {name: tensor.numpy() for name, tensor in plain.items()}):
        found = measure(net, data, batch_size=3, **OPTIONS)
        pd.testing.assert_frame_equal(found.records, expected.records)
        assert found.provenance.data["count"] == 4
        assert found.provenance.data["sha256"] == expected.provenance.data["sha256"]
    other = measure(net, {**plain, "input_ids": plain["input_ids"].flip(0)}, batch_size=3, **OPTIONS)
    assert other.provenance.data["sha256"] != expected.provenance.data["sha256"]


def test_texts_are_what_the_tokenizer_makes_of_each(net: Any, tokenizer: Any) -> None:
    """With special tokens, padding masked; a long text in consecutive blocks; an empty one has <s> alone."""
    encoded = tokenizer(TEXTS[:3], return_tensors="pt", padding=True)
    short = measure(net, TEXTS[:3], tokenizer=tokenizer, **OPTIONS)
    pd.testing.assert_frame_equal(short.records, measure(net, encoded, **OPTIONS).records)
    seen: list[Any] = []
    everything = {**OPTIONS, "samples": 1000}
    found = measure(
        net,
        TEXTS,
        tokenizer=tokenizer,
        length=32,
        call=lambda model, batch: (seen.append(batch), model(**batch)),  # type: ignore[func-returns-value]
        **everything,
    )
    ids = torch.cat([row[mask.bool()] for batch in seen for row, mask in zip(*batch.values(), strict=True)])
    assert ids.tolist() == [number for text in TEXTS for number in tokenizer(text)["input_ids"]]
    assert found.records["n"].to_list() == [len(ids)]
    facts = found.provenance.data
    assert (facts["kind"], facts["texts"], facts["length"], facts["stride"]) == ("texts", 4, 32, 32)
    shortened = measure(net, TEXTS[:3], tokenizer=tokenizer, **OPTIONS).provenance
    assert shortened.data["sha256"] != facts["sha256"]


def test_the_tokenizer_of_a_loaded_model_is_the_default(net: Any, tokenizer: Any) -> None:
    loaded = LoadedModel(net, "mine", "none", token_inputs(net, tokenizer))
    expected = measure(net, TEXTS, tokenizer=tokenizer, **OPTIONS)
    pd.testing.assert_frame_equal(measure(loaded, TEXTS, **OPTIONS).records, expected.records)
    by_function = measure(loaded, TEXTS, tokenizer=lambda text: [ord(c) % 60 for c in text], **OPTIONS)
    assert not by_function.records.equals(expected.records)


def test_data_sets_of_hugging_face(net: Any, tokenizer: Any) -> None:
    datasets = pytest.importorskip("datasets")
    one_batch = {**OPTIONS, "samples": 1000}
    expected = measure(net, TEXTS, tokenizer=tokenizer, **one_batch)
    rows = datasets.Dataset.from_dict({"text": TEXTS, "author": ["?"] * 4})
    streamed = measure(net, rows.to_iterable_dataset(), tokenizer=tokenizer, **one_batch)
    pd.testing.assert_frame_equal(streamed.records, expected.records)
    column = measure(net, rows["text"], tokenizer=tokenizer, **one_batch)
    pd.testing.assert_frame_equal(column.records, expected.records)
    shuffled = measure(net, rows, tokenizer=tokenizer, **one_batch)
    assert shuffled.records["norm"].to_list() == pytest.approx(expected.records["norm"].to_list())
    assert shuffled.provenance.data["fingerprint"] == rows._fingerprint
    encoded = rows.map(lambda row: tokenizer(row["text"]), remove_columns=rows.column_names)
    for data in (encoded, encoded.with_format("torch")):
        found = measure(net, data, length=48, **one_batch)
        pd.testing.assert_frame_equal(found.records, shuffled.records)
        assert (found.provenance.data["column"], found.provenance.data["rows"]) == ("input_ids", 4)
    cases = {
        "expected one split, got a dict of train": datasets.DatasetDict(train=rows),
        "got the columns title, author; select or rename": rows.rename_column("text", "title"),
        "got an empty data set": rows.select([]),
        "got a column of a stream": rows.to_iterable_dataset()["text"],
        "this network has 48 positions, got inputs of 185 tokens": encoded,
    }
    for message, data in cases.items():
        with pytest.raises(InputError, match=f"^data: .*{message}"):
            measure(net, data, tokenizer=tokenizer, **OPTIONS)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (["ab"], {}, "tokenizer: texts need one, and this network came without one"),
        (["ab", 3], {"tokenizer": list}, "data: expected texts, got int at index 1"),
        (["ab"], {"tokenizer": int}, "tokenizer: it failed on a text .*expected a list of ids"),
        (["ab"], {"tokenizer": lambda _: [70, 1]}, "data: expected token ids from 0 to 63, got 70; use the"),
        (["ab"], {"tokenizer": lambda _: [1], "length": 49}, "length: this network has 48 positions, got 49"),
        (torch.ones(2, 8, dtype=torch.long), {"length": 4}, "length: has no effect on data of type Tensor"),
        (torch.full((2, 8), -1), {}, "data: expected token ids from 0 to 63, got -1"),
        ({"input_ids": torch.ones(2, 50, dtype=torch.long)}, {}, "data: this network has 48 positions, got"),
        (
            {"input_ids": [[1, 2], [3]]},
            {},
            "data: expected a dict of tensors, got {input_ids: list}; a token",
        ),
        ("ab", {}, "data: expected a DataLoader.*got str; .*a text is given in a list"),
        ([["ab"], ["cd"]], {"tokenizer": list}, "data: .*got list without a tensor.*texts are given in one"),
        (pd.Series(["ab"]), {"tokenizer": list}, "data: .*got a Series; .*or texts in a list"),
        (np.array(["ab"]), {"tokenizer": list}, "data: .*got <U2; texts are given in a list"),
    ],
)
def test_what_does_not_fit_is_refused(net: Any, data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        measure(net, data, **OPTIONS, **options)


def test_a_text_that_is_too_short_says_how_many_tokens_it_has(net: Any, tokenizer: Any) -> None:
    with pytest.raises(TooFewSamplesError, match=r"at least 64 tokens .*, got 21 in 1 inputs; lower"):
        measure(net, TEXTS[:1], tokenizer=tokenizer, **{**OPTIONS, "samples": 64, "leftover": "drop"})


def test_copies_of_inputs_are_a_warning_where_samples_are_left_out(net: Any) -> None:
    ids = torch.randint(3, 60, (4, 24), generator=torch.Generator().manual_seed(0)).repeat(2, 1)
    with pytest.warns(UserWarning, match="4 of the first 8 inputs are copies of others"):
        measure(net, ids, **{**OPTIONS, "samples": 192, "gauges": "r2_heldout"})
    assert measure(net, ids, **OPTIONS).sites


def test_positions_of_roberta_begin_after_its_padding() -> None:
    roberta = network("roberta", max_position_embeddings=20, pad_token_id=1)
    for length in (18, 19):
        ids = torch.full((4, length), 5)
        if length == 18:
            assert measure(roberta, ids, **OPTIONS).sites
        else:
            with pytest.raises(InputError, match="18 positions, got inputs of 19"):
                measure(roberta, ids, **OPTIONS)


def test_rotary_positions_beyond_those_of_training_are_a_warning() -> None:
    llama = network("llama", max_position_embeddings=16)
    with pytest.warns(UserWarning, match="inputs of 24 tokens are longer than the 16 positions"):
        measure(llama, torch.full((4, 24), 5), **OPTIONS)


def test_an_encoder_with_a_decoder_needs_an_input_for_both() -> None:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    config = transformers.T5Config(**WORDS, **sizes, decoder_start_token_id=0)
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    ids = torch.arange(3, 35).reshape(4, 8)
    with pytest.raises(ForwardError, match=r"give batches with decoder_input_ids, or .*model.get_encoder()"):
        measure(model, {"input_ids": ids}, **OPTIONS)
    both = measure(model, {"input_ids": ids, "decoder_input_ids": ids[:, :5]}, **OPTIONS)
    rows = both.records.groupby("site", sort=False)["n"].sum()
    assert [(name.split(".")[0], n) for name, n in rows.items()] == [("encoder", 32), ("decoder", 20)]
    assert isinstance(model.get_encoder(), nn.Module)
    assert measure(model.get_encoder(), {"input_ids": ids}, **OPTIONS).records["n"].to_list() == [32]
