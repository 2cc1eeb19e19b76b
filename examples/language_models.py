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

RECORD, PAGE = ROOT / "docs/language-models.json", ROOT / "docs/language-models.md"
LENGTHS = (64, 256)
TOKENS = 2048
KINDS = ("attention", "mlp", "block")
GAUGES = ("r2_heldout", "r2_trimmed", "carriers_y")
MIN_BLOCKS = 12  # with fewer, statements about the order of blocks are not decided

Condition = dict[str, Any]
"""A model on a text: `model`, `text`, `length`, `outcome` and, by gauge and series, the values by layer."""


class Claim(NamedTuple):
    """A published statement, and the test that decides it, which was stated before the numbers were known."""

    words: str
    test: str
    holds: Callable[[Condition], bool | None]  # None: not decided


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


def few_tokens_decide(found: Condition) -> bool:
    """Decide whether a few tokens change R² of some part."""
    plain, trimmed = (np.concatenate([*found[gauge].values()]) for gauge in GAUGES[:2])
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
        "The first blocks are the least linear.",
        "R² of blocks without the sum rises with depth: Spearman, one-sided, p < 0.05; "
        f"from {MIN_BLOCKS} blocks.",
        rises_with_depth,
    ),
    Claim(
        "The first and the last block are special.",
        "R² of their MLPs without the sum is outside the range of all others, for both; "
        f"from {MIN_BLOCKS} blocks.",
        ends_are_special,
    ),
    Claim(
        "A few tokens with massive activations decide R².",
        "At some part, R² changes by more than 0.1 without the largest 2 % of the tokens, and 1 % of them "
        "carry more than half of the variance of the outputs.",
        few_tokens_decide,
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
    gauges = "r2_heldout,r2_trimmed,carriers"
    sounding = measure(model, blocks, gauges=gauges, progress=True, **options)
    values = {gauge: by_layer(sounding, gauge) for gauge in GAUGES}
    return {"model": name, "text": text[0], "length": length, "outcome": sounding.outcome, **values}


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
    count = TOKENS // 100
    shares = {site: float(e.topk(count).values.sum() / e.sum()) for site, e in energies.items()}
    site = max(shares, key=lambda each: shares[each])
    largest = energies[site].topk(count)
    decode = model.inputs.tokenize.tokenizer.decode  # type: ignore[union-attr]
    words = Counter(decode([int(tokens[place])]) for place in largest.indices)
    return {
        "model": name,
        "text": text[0],
        "length": length,
        "site": site.name,
        "share of the variance in 1 % of the tokens": round(shares[site], 4),
        "times the median energy": round(float(largest.values[0] / energies[site].median())),
        "of them first in their block": int((largest.indices % length == 0).sum()),
        "tokens": ", ".join(f"{word!r} {times}×" for word, times in words.most_common(6)),
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
            options: Any = {"sites": "mlp,attention", "reduction": "tokens", "samples": TOKENS, "batches": 1}
            values[dtype] = measure(cast, data, gauges="r2,r2_heldout", progress=True, **options)
        row: dict[str, Any] = {"model": name, "sites": len(values[torch.float32].sites)}
        for gauge in ("r2_heldout", "r2"):
            full, half = (sounding.mean(gauge) for sounding in values.values())
            row |= {f"{gauge}, float32": round(float(full.mean()), 4)}
            row |= {f"{gauge}, largest difference": round(float((half - full).abs().max()), 4)}
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
    parts = [
        "# How linear are language models?\n",
        "A model's blocks, measured on three kinds of text in blocks of two lengths "
        f"({TOKENS} tokens each). R² is `r2_trimmed`: of an affine map, on tokens that it was not fitted to, "
        "without the 2 % of the tokens with the largest outputs. Neighbouring tokens are alike, so that a "
        "token left out is easier to predict than one of another text. The prose and its German translation "
        "are the Debian Administrator's Handbook, the code is Python's standard library. This page "
        "is written by "
        "[examples/language_models.py](../examples/language_models.py) from its record, "
        "`docs/language-models.json`; [A language model](how-to/language-model.md) says how to "
        "measure yours.\n",
        "## Published statements\n",
        "The statements are those of Razzhigaev et al. (2024), *Your Transformer is Secretly Linear*, and of "
        "the work on massive activations (Sun et al., 2024), for other models and with other measures. The "
        "tests were stated before the numbers were known.\n",
        markdown_table([answer(claim, conditions) for claim in CLAIMS]),
        "Written after the numbers were known: with plain R² (`r2_heldout`) the first statement would hold "
        f"more often ({with_plain_r2(conditions)}), because massive tokens pass through the sum unchanged. "
        "The third test is of the trend: the very first block of SmolLM2 is an exception, see the table of "
        "all layers.\n",
        "## R² by kind of part\n",
        "The median over layers, with the smallest and the largest in brackets; `+` is with the residual "
        "sum.\n",
        markdown_table([summary(found) for found in conditions]),
        "## Massive tokens\n",
        "The MLP outputs of the layer where 1 % of the tokens carry most of the variance:\n",
        markdown_table(record["massive"]),
        "## float32 and bfloat16\n",
        "R² of all MLPs and attentions without the residual sum; the mean over sites, and the largest "
        "difference at any site between both precisions of the network.\n",
        markdown_table(record["precisions"]),
        *(section for found in longest(conditions) for section in every_layer(found)),
        f"<small>{footer(record)}.</small>\n",
    ]
    return "\n".join(parts)


def answer(claim: Claim, conditions: Sequence[Condition]) -> dict[str, str]:
    """Return a row: a statement, its test, and in how many conditions of each model it holds."""
    row = {"statement": claim.words, "test": claim.test}
    for model in dict.fromkeys(found["model"] for found in conditions):
        answers = [claim.holds(found) for found in conditions if found["model"] == model]
        decided = [each for each in answers if each is not None]
        words = {len(decided): "holds", 0: "does not hold"}.get(sum(decided), "depends on text and length")
        row[model] = f"{words}: {sum(decided)} of {len(decided)}" if decided else "not decided: few blocks"
    return row


def with_plain_r2(conditions: Sequence[Condition]) -> str:
    """Say in how many conditions the first statement would hold with plain instead of trimmed R²."""
    answers = answer(CLAIMS[0], [{**found, "r2_trimmed": found["r2_heldout"]} for found in conditions])
    return ", ".join(f"{name} {words}" for name, words in list(answers.items())[2:])


def summary(found: Condition) -> dict[str, str | int]:
    """Return a row: R² of each kind of part in one condition."""
    row = {"model": found["model"], "text": found["text"], "length": found["length"]}
    for kind in KINDS:
        for residual, mark in (("", ""), ("+residual", " +")):
            v = series(found, kind + residual)
            row[kind + mark] = f"{np.median(v):.2f} ({v.min():.2f}, {v.max():.2f})"
    return row | {"outcome": found["outcome"]}


def longest(conditions: Sequence[Condition]) -> list[Condition]:
    """Return the condition of each model on the first text in the longest blocks."""
    found = {c["model"]: c for c in conditions if c["text"] == conditions[0]["text"]}
    return list(found.values())


def every_layer(found: Condition) -> list[str]:
    """Return a section with plain and trimmed R², and carriers, of every layer."""
    rows = []
    for layer in range(len(series(found, "mlp"))):
        row: dict[str, str | int] = {"layer": layer}
        for name in ("attention", "mlp", "block", "block+residual"):
            plain, trimmed, carried = (series(found, name, gauge)[layer] for gauge in GAUGES)
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
