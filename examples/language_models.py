"""Measures how linear the blocks of language models are, and decides what was published about it.

    python -m examples.language_models --models SmolLM2=hf:FILE.gguf MiniLM=hf:FOLDER
        --texts prose=FILE code=FILE German=FILE

Every model is measured on every text in blocks of two lengths, 2048 tokens each. The numbers go to
docs/language-models.json, with commit and machine, and docs/language-models.md is written from them.
`--page` writes the page alone.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks.records import ROOT, footer, markdown_table, write_record
from fathometer import Sounding, measure
from fathometer.capture import watch
from fathometer.data import Inputs, open_data
from fathometer.models import LoadedModel, ensure_torchvision_operators, load_model
from fathometer.report import save_figure

RECORD, PAGE = ROOT / "docs/language-models.json", ROOT / "docs/language-models.md"
PICTURE = ROOT / "docs/images/language-models.png"
LENGTHS = (64, 256)
TOKENS = 2048
KINDS = ("attention", "mlp", "block")
GAUGES = ("r2_trimmed", "r2_heldout", "r2", "carriers_y")
WORDS = {"r2_trimmed": "trimmed", "r2_heldout": "held out", "r2": "in the sample"}
MASSIVE = 100  # times the median energy: a massive token
MIN_BLOCKS = 12  # with fewer, statements about the order of blocks are not decided

INTRODUCTION = f"""\
Every model was measured on three kinds of text, in blocks of two lengths, {TOKENS} tokens each. R² is that
of an affine map: `r2` in the sample that it was fitted to, `r2_heldout` on tokens that it was not fitted
to, and `r2_trimmed`, which is meant where nothing else is said, without the 2 % of the tokens with the
largest outputs.

- The prose and its German translation are the Debian Administrator's Handbook, the code is Python's
  standard library.
- SmolLM2 is an instruction-tuned model with weights of 4 bits, computed in float32. Of all-MiniLM-L6-v2,
  the encoder is measured, without the special tokens that it was trained with.
- MiniLM normalises after the sum. So what its blocks add, and its blocks with the sum, contain a
  normalisation; they are not the same quantities as those of SmolLM2.
- Tokens of one text are alike, and a word that occurs twice enters the first layer as the same vector. A
  token that is left out is therefore easier to predict than one of another text, most of all in the first
  layer.

This page is written by [examples/language_models.py](../examples/language_models.py) from its record,
`docs/language-models.json`; [A language model](how-to/language-model.md) says how to measure yours.
"""

STATEMENTS = """\
Statements of Razzhigaev et al. (2024), *Your Transformer is Secretly Linear*, and of Sun et al. (2024),
*Massive Activations in Large Language Models*, were made for other models and with another measure (an
in-sample R² of normalised matrices, to which `r2` comes closest). Tests were stated before the numbers were
known, except where a remark says otherwise. A cell says in how many of six conditions, texts and lengths,
the test is passed, by each R².
"""

MASSIVE_TOKENS = f"""\
In the layer where 1 % of the tokens carry most of the variance of the MLP's outputs: tokens with more than
{MASSIVE} times the median of ‖y − μ‖², prose, code and German in blocks of {LENGTHS[-1]} tokens.
"""

Condition = dict[str, Any]
"""A model on a text: `model`, `text`, `length`, `outcome` and, by gauge and series, the values by layer."""


class Claim(NamedTuple):
    """A statement, and the test that decides it.

    `remark` says if it was stated after numbers were known.
    """

    words: str
    test: str
    holds: Callable[[Condition], bool | None]  # None: not decided
    remark: str = ""
    by: tuple[str, ...] = ("r2_trimmed", "r2_heldout", "r2")  # the kinds of R² that it is decided with


def nearly_linear(found: Condition) -> bool:
    """Decide whether blocks with the residual sum are nearly linear."""
    return float(np.mean(series(found, "block+residual") >= 0.9)) >= 0.9


def much_less_without(found: Condition) -> bool:
    """Decide whether blocks without the sum are much less linear."""
    drop = np.median(series(found, "block+residual")) - np.median(series(found, "block"))
    return bool(drop >= 0.2)


def rises_with_depth(found: Condition) -> bool | None:
    """Decide whether the first blocks are the least linear."""
    values = series(found, "block")
    if len(values) < MIN_BLOCKS:
        return None
    rank = spearmanr(np.arange(len(values)), values, alternative="greater")
    return bool(rank.pvalue < 0.05)


def ends_are_special(found: Condition) -> bool | None:
    """Decide whether the MLPs of both ends are unlike all others."""
    first, *others, last = series(found, "mlp")
    if len(others) + 2 < MIN_BLOCKS:
        return None
    low, high = min(others), max(others)
    return not low <= first <= high and not low <= last <= high


def first_is_below_median(found: Condition) -> bool:
    """Decide whether the first block is less linear than most."""
    first, *others = series(found, "block")
    return bool(first < np.median(others))


def few_tokens_decide(found: Condition) -> bool:
    """Decide whether a few tokens change R² of some part."""
    trimmed, plain = (np.concatenate([*found[gauge].values()]) for gauge in GAUGES[:2])
    carried = np.concatenate([*found["carriers_y"].values()])
    return bool(((np.abs(plain - trimmed) > 0.1) & (carried > 0.5)).any())


CLAIMS = (
    Claim(
        "With the residual sum, blocks are nearly linear.",
        "At least 90 % of the blocks have an R² of at least 0.9 with the sum.",
        nearly_linear,
    ),
    Claim(
        "Without the residual sum they are much less linear.",
        "The median R² over blocks is lower by at least 0.2 without the sum.",
        much_less_without,
    ),
    Claim(
        "Blocks become more linear with depth.",
        "R² of blocks without the sum rises with depth: Spearman, one-sided, p < 0.05; "
        f"from {MIN_BLOCKS} blocks.",
        rises_with_depth,
        "It was called “the first blocks are the least linear” before the numbers were known.",
    ),
    Claim(
        "The first block is less linear than most.",
        "R² of the first block without the sum is below the median of the others.",
        first_is_below_median,
        "Stated after the numbers were known.",
    ),
    Claim(
        "The first and the last block are special.",
        "R² of their MLPs without the sum is outside the range of all others, for both; "
        f"from {MIN_BLOCKS} blocks.",
        ends_are_special,
    ),
    Claim(
        "A few tokens with massive activations decide R².",
        "At some part, trimmed and plain R² differ by more than 0.1, and 1 % of all tokens carry more than "
        "half of the variance of the outputs.",
        few_tokens_decide,
        "Stated after such numbers of SmolLM2 were known.",
        by=("r2_trimmed",),
    ),
)


def series(found: Condition, name: str, gauge: str = "r2_trimmed") -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the values by layer; R² is that without the largest 2 % of the tokens, unless stated."""
    return np.array(found[gauge][name], float)


def condition(name: str, model: LoadedModel, text: tuple[str, Path], length: int) -> Condition:
    """Measure a model on a text."""
    blocks = open_data(text[1], model.inputs, batch_size=8, length=length)
    options: Any = {
        "sites": KINDS,
        "residual": "both",
        "reduction": "tokens",
        "samples": TOKENS,
        "batches": 1,
    }
    gauges = "r2,r2_heldout,r2_trimmed,carriers"
    sounding = measure(model, blocks, name=name, gauges=gauges, progress=True, **options)
    if (text[0], length) == ("prose", LENGTHS[-1]) and sounding.outcome:
        save_figure(sounding.plot(), PICTURE)
    values = {gauge: by_layer(sounding, gauge) for gauge in GAUGES}
    facts = {"model": name, "text": text[0], "length": length, "outcome": sounding.outcome or "no head"}
    return {**facts, **values}


def describe(model: LoadedModel) -> dict[str, Any]:
    """Return the file, the size and the structure of a model."""
    config: Any = model.module.config
    return {
        "file": Path(model.name.partition(":")[2]).name if "gguf" in model.name else config.architectures[0],
        "weights, millions": round(sum(weight.numel() for weight in model.module.parameters()) / 1e6, 1),
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "vocabulary": config.vocab_size,
    }


def by_layer(sounding: Sounding, gauge: str) -> dict[str, list[float]]:
    """Return the values of each kind of part, `mlp` and `mlp+residual`, in order of layers."""
    found: dict[str, list[float]] = {}
    for site, value in zip(sounding.sites, sounding.mean(gauge), strict=True):
        found.setdefault(f"{site.kind}{'+residual' * site.residual}", []).append(round(float(value), 4))
    return found


def massive_tokens(name: str, model: LoadedModel, text: tuple[str, Path], length: int) -> dict[str, Any]:
    """Find the tokens whose MLP outputs are largest, in the layer where they carry most."""
    blocks = open_data(text[1], model.inputs, batch_size=8, length=length)
    ids = []
    with torch.no_grad(), watch(model.module, sites="mlp", reduction="tokens", capacity=TOKENS) as record:
        batch: Any
        for batch in blocks:
            ids.append(batch["input_ids"])
            model.module(**batch)
            if sum(each.numel() for each in ids) >= TOKENS:
                break
        outputs = {site: pair.y.double() for site, pair in record.pairs.items()}
    tokens = torch.cat(ids).flatten()[:TOKENS]
    energies = {site: (y - y.mean(0)).square().sum(-1)[:TOKENS] for site, y in outputs.items()}
    shares = {site: float(e.topk(TOKENS // 100).values.sum() / e.sum()) for site, e in energies.items()}
    site = max(shares, key=lambda each: shares[each])
    times = energies[site] / energies[site].median()
    (massive,) = (times > MASSIVE).nonzero(as_tuple=True)
    decode = model.inputs.tokenize.tokenizer.decode  # type: ignore[union-attr]
    words = Counter(decode([int(tokens[place])]) for place in massive)
    return {
        "model": name,
        "text": text[0],
        "different tokens": len(tokens.unique()),
        "site": site.name,
        "variance in 1 % of the tokens": round(shares[site], 4),
        "massive tokens": len(massive),
        "of them first in their block": int((massive % length == 0).sum()),
        "blocks": TOKENS // length,
        "the largest, times the median": round(float(times.max())),
        "words": ", ".join(f"{word!r} {count}×" for word, count in words.most_common(6)),
    }


def precisions(models: Mapping[str, LoadedModel], text: tuple[str, Path]) -> list[dict[str, Any]]:
    """Compare R² of MLPs and attention in float32 and bfloat16."""
    found = []
    for name, model in {**models, **dict(random_models())}.items():
        values = {}
        for dtype in (torch.float32, torch.bfloat16):
            data: Any = {
                "input_ids": torch.randint(1000, (16, 128), generator=torch.Generator().manual_seed(0))
            }
            if model.inputs.tokenize:
                data = open_data(text[1], model.inputs, batch_size=8, length=128)
            cast = replace(model, module=model.module.to(dtype))
            options: Any = {"sites": KINDS, "residual": "both", "reduction": "tokens"}
            options |= {"samples": TOKENS, "batches": 1, "gauges": "r2_heldout"}
            values[dtype] = by_layer(measure(cast, data, progress=True, **options), "r2_heldout")
        row: dict[str, Any] = {"model": name}
        for kind, full in values[torch.float32].items():
            half = values[torch.bfloat16][kind]
            row[kind] = f"{np.mean(full):.3f} ({np.max(np.abs(np.subtract(half, full))):.4f})"
        found.append(row)
    return found


def random_models() -> Iterator[tuple[str, LoadedModel]]:
    """Return a small Llama and a small GPT-2 with random weights."""
    ensure_torchvision_operators()
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    llama = LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
    gpt2 = GPT2Config(vocab_size=1000, n_embd=256, n_layer=8, n_head=4, n_positions=256)
    for name, network in (
        ("Llama, random", LlamaForCausalLM(llama)),
        ("GPT-2, random", GPT2LMHeadModel(gpt2)),
    ):
        yield name, LoadedModel(network.train(False), name, "none", Inputs("tokens", (128,), vocabulary=1000))


def page(record: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    conditions: list[Condition] = record["conditions"]
    on_prose = [each for each in conditions if (each["text"], each["length"]) == ("prose", LENGTHS[-1])]
    parts = [
        "# How linear are language models?\n",
        *(in_words(name, conditions) for name in record["models"]),
        f"![R² of every part by layer](images/{PICTURE.name})\n",
        f"*{conditions[0]['model']} on prose, blocks of {LENGTHS[-1]} tokens.*\n",
        INTRODUCTION,
        markdown_table([{"model": name, **facts} for name, facts in record["models"].items()]),
        "## Published statements\n",
        STATEMENTS,
        markdown_table([answer(claim, conditions) for claim in CLAIMS]),
        "## R² by kind of part\n",
        "Trimmed R²: the median over layers, with the smallest and the largest in brackets; `+` is with the "
        "residual sum.\n",
        markdown_table([summary(found) for found in conditions]),
        "## Massive tokens\n",
        MASSIVE_TOKENS,
        markdown_table(record["massive"]),
        "## float32 and bfloat16\n",
        "`r2_heldout`: the mean over layers in float32, and in brackets the largest difference that bfloat16 "
        "makes in any layer.\n",
        markdown_table(record["precisions"]),
        *(section for found in on_prose for section in every_layer(found)),
        f"<small>{footer(record)}.</small>\n",
    ]
    return "\n".join(parts)


def in_words(name: str, conditions: Sequence[Condition]) -> str:
    """Say how linear a model is."""
    found = [each for each in conditions if each["model"] == name]
    alone, both = (
        [float(np.median(series(each, kind))) for each in found] for kind in ("block", "block+residual")
    )
    return (
        f"**{name}:** the median block has an R² of {min(both):.2f} to {max(both):.2f} with the residual "
        f"sum, and of {min(alone):.2f} to {max(alone):.2f} without it, depending on text and length.\n"
    )


def answer(claim: Claim, conditions: Sequence[Condition]) -> dict[str, str]:
    """Return a row: a statement, its test, and in how many conditions of each model it holds, by each R²."""
    row = {
        "statement": f"{claim.words} *{claim.remark}*" if claim.remark else claim.words,
        "test": claim.test,
    }
    for model in dict.fromkeys(found["model"] for found in conditions):
        counts = []
        for gauge in claim.by:
            cases = [{**each, "r2_trimmed": each[gauge]} for each in conditions if each["model"] == model]
            decided = [holds for holds in map(claim.holds, cases) if holds is not None]
            counts += [f"{sum(decided)} of {len(decided)} {WORDS[gauge]}"] if decided else []
        row[model] = ", ".join(counts) or "not decided: few blocks"
    return row


def summary(found: Condition) -> dict[str, str | int]:
    """Return a row: R² of each kind of part in one condition."""
    row = {"model": found["model"], "text": found["text"], "length": found["length"]}
    for kind in KINDS:
        for residual, mark in (("", ""), ("+residual", " +")):
            v = series(found, kind + residual)
            row[kind + mark] = f"{np.median(v):.2f} ({v.min():.2f}, {v.max():.2f})"
    return row | {"outcome": found["outcome"]}


def every_layer(found: Condition) -> list[str]:
    """Return a section with plain and trimmed R², and carriers, of every layer."""
    rows = []
    for layer in range(len(series(found, "mlp"))):
        row: dict[str, str | int] = {"layer": layer}
        for name in ("attention", "mlp", "block", "block+residual"):
            trimmed, plain, _, carried = (series(found, name, gauge)[layer] for gauge in GAUGES)
            row[name] = f"{plain:.2f} → {trimmed:.2f} ({carried:.2f})"
        rows.append(row)
    return [
        f"## {found['model']}, every layer\n",
        f"{found['text']}, blocks of {found['length']} tokens: `r2_heldout` → `r2_trimmed` (`carriers_y`, "
        "the share of the variance of the outputs in 1 % of the tokens).\n",
        markdown_table(rows),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all models on all texts, write the record and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", metavar="NAME=MODEL", default=[])
    parser.add_argument("--texts", nargs="+", metavar="NAME=FILE", default=[])
    parser.add_argument("--page", action="store_true", help="write the page from the record that is there")
    options = parser.parse_args(arguments)
    if not options.page:
        models = {name: load_model(source) for name, source in pairs_of(options.models)}
        texts = [(name, Path(path)) for name, path in pairs_of(options.texts)]
        conditions = [
            condition(name, model, text, length)
            for name, model in models.items()
            for text in texts
            for length in LENGTHS
        ]
        found = {
            "models": {name: describe(model) for name, model in models.items()},
            "conditions": conditions,
            "massive": [
                massive_tokens(*item, text, LENGTHS[-1]) for item in models.items() for text in texts
            ],
            "precisions": precisions(models, texts[0]),
        }
        write_record(RECORD, found)
    PAGE.write_text(page(json.loads(RECORD.read_text("utf-8"))), "utf-8")


def pairs_of(options: Sequence[str]) -> list[tuple[str, str]]:
    """Split options of the form NAME=VALUE."""
    return [(name, value) for name, _, value in (option.partition("=") for option in options)]


if __name__ == "__main__":
    main()
