"""Published statements about the linearity of language models, their tests, and the page of the answers.

`examples.language_models` measures what the page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from benchmarks.records import ROOT, footer, markdown_table
from fathometer import Site, Sounding
from fathometer.report import plot_layers

RECORD, PAGE = ROOT / "docs/language-models.json", ROOT / "docs/language-models.md"
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


def page(record: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    conditions: list[Condition] = record["conditions"]
    on_prose = [each for each in conditions if (each["text"], each["length"]) == ("prose", LENGTHS[-1])]
    parts = [
        "# How linear are language models?\n",
        *(in_words(name, conditions) for name in record["models"]),
        "![R² of every part by layer](images/language-models.png)\n",
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


def picture(record: Mapping[str, Any]) -> Figure:
    """Draw R² of every part of SmolLM2 on prose, by layer."""
    wanted = ("SmolLM2", "prose", LENGTHS[-1])
    (found,) = (c for c in record["conditions"] if (c["model"], c["text"], c["length"]) == wanted)
    sites: list[Site] = []
    rows = []
    for name in found["r2_heldout"]:
        kind, _, residual = name.partition("+")
        values = zip(series(found, name, "r2_heldout"), series(found, name), strict=True)
        for layer, (heldout, trimmed) in enumerate(values):
            site = Site(f"{layer}.{kind}", kind, 1, len(sites), True, kind, layer, bool(residual))
            sites.append(site)
            rows.append((site.name, 0, TOKENS, 576, heldout, trimmed))
    columns = ["site", "batch", "n", "d", "r2_heldout", "r2_trimmed"]
    return plot_layers({"SmolLM2-135M": Sounding(tuple(sites), pd.DataFrame(rows, columns=columns))})


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
