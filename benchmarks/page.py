"""Writes benchmarks/RESULTS.md from the records: every goal with its last value, and every record.

python -m benchmarks.page
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.records import FOLDER, ROOT, Row, footer, markdown_table

PAGE = ROOT / "benchmarks" / "RESULTS.md"
RESNET, VIT = "resnet50", "vit_b_16"
NO_RECORD = "no record"

Found = Any
"""What a benchmark found, as its record has it."""


class Goal(NamedTuple):
    """A number to reach: `value` reads it from what a benchmark found."""

    words: str
    record: str
    value: Callable[[Found], float]
    limit: float
    at_least: bool = False


def ratio(side: str) -> Callable[[Found], float]:
    """Return a function that reads the ratio of a side to the bare pass."""
    return lambda found: float(found[side]["ratio"])


def more_memory(found: Found) -> float:
    """Return how much more memory all gauges and a map take than the bare pass, in MB."""
    return float(found["with map"]["more_mb"])


def on_h200(precision: str, name: str, limits: tuple[float, float, float, float]) -> Iterator[Goal]:
    """Return the goals of `measure` on the H200: affinity and standard, for two networks."""
    cases = [(side, model) for side in ("affinity", "standard") for model in (RESNET, VIT)]
    for (side, model), limit in zip(cases, limits, strict=True):
        words = f"H200, {precision}: `{side}` of `{model}` / bare pass"
        yield Goal(words, f"{name}-{model}-cuda", ratio(side), limit)


def survey_overhead(found: Found) -> float:
    """Return the CPU time of a survey as a ratio to that of its forward passes and gauges."""
    survey, bare = (np.array(found["overhead"][what]) for what in ("survey", "forward passes and gauges"))
    return float(np.median(survey[:, 0] / bare[:, 0]))


GOALS = (
    Goal("2 cores: `affinity` of ResNet-50 / bare pass", f"signature-{RESNET}-cpu", ratio("affinity"), 1.04),
    Goal("2 cores: `standard` of ResNet-50 / bare pass", f"signature-{RESNET}-cpu", ratio("standard"), 1.12),
    Goal("all gauges and a map of ResNet-50, MB more", f"signature-{RESNET}-cpu", more_memory, 350),
    Goal("all gauges and a map of ViT-B/16, MB more", f"signature-{VIT}-cpu", more_memory, 350),
    Goal(
        "all standard gauges of one pair of 2048 × 1536 on 2 cores, s",
        "gauges-cpu",
        lambda found: found["2048x1536"]["fathometer, all standard gauges"],
        2.5,
    ),
    Goal(
        "other libraries / fathometer on the same pairs, the smallest of three shapes",
        "gauges-cpu",
        lambda found: min(each["ratio"] for each in found.values()),
        10,
        at_least=True,
    ),
    Goal("100 small soundings / their passes and gauges, CPU time", "survey-cpu", survey_overhead, 1.1),
    Goal(
        "`--preset language` of 30 MLPs, 30 attentions and 30 activations of a model with 135 million "
        "weights, 4096 tokens on 2 cores, s beyond the bare pass",
        "language-135m-cpu",
        lambda found: found["measure_s"] - found["bare_s"],
        120,
    ),
    Goal("H200: the same / bare pass", "language-135m-cuda", lambda found: found["ratio"], 2),
    Goal(
        "H200: all blocks of a 7B-class Llama in bfloat16, 4096 tokens, MB beyond the bare pass",
        "language-7b-cuda",
        lambda found: found["more_mb"],
        2000,
    ),
    *on_h200("float32", "signature", (1.25, 1.08, 1.5, 1.3)),
    *on_h200("TF32", "signature-tf32", (1.6, 1.3, 2.2, 1.8)),
    Goal(
        "H200: 49 scores of ResNet-50, ms",
        "affinity-cuda",
        lambda found: found["batching"]["affinity_scores"],
        25,
    ),
)


def page(records: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    goals = [row(goal, records) for goal in GOALS]
    parts = [
        "# Results of the benchmarks\n",
        "Written by `python -m benchmarks.page` from the records in `benchmarks/records`, which the "
        "benchmarks write with `--record`. [README.md](README.md) says what they compare, and "
        "why a goal is missed.\n",
        "## Goals\n",
        markdown_table(goals),
    ]
    for name, record in records.items():
        parts += [
            f"## {name}\n",
            f"`{record['command']}`\n",
            f"```json\n{json.dumps(record['found'], indent=1, ensure_ascii=False)}\n```\n",
            f"<small>{footer(record)}; load of the machine {record['load']}.</small>\n",
        ]
    return "\n".join(parts)


def row(goal: Goal, records: Mapping[str, Any]) -> Row:
    """Return a line of the table of goals."""
    limit = f"{'≥' if goal.at_least else '≤'} {goal.limit:g}"
    if goal.record not in records:
        return {"goal": goal.words, "limit": limit, "value": NO_RECORD, "": ""}
    value = goal.value(records[goal.record]["found"])
    met = value >= goal.limit if goal.at_least else value <= goal.limit
    return {"goal": goal.words, "limit": limit, "value": f"{value:.4g}", "": "met" if met else "**missed**"}


def read_records() -> dict[str, Any]:
    """Read all records, by name; planted faults have a page of their own (`benchmarks.faults_page`)."""
    paths = [path for path in sorted(FOLDER.glob("*.json")) if not path.stem.startswith("faults")]
    return {path.stem: json.loads(path.read_text("utf-8")) for path in paths}


if __name__ == "__main__":
    PAGE.write_text(page(read_records()), "utf-8")
