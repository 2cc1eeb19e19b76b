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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.records import write_record
from examples.language_page import (
    GAUGES,
    KINDS,
    LENGTHS,
    MASSIVE,
    PAGE,
    RECORD,
    TOKENS,
    Condition,
    page,
)
from fathometer import Sounding, measure
from fathometer.capture import watch
from fathometer.data import Inputs, open_data
from fathometer.models import LoadedModel, ensure_torchvision_operators, load_model


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
