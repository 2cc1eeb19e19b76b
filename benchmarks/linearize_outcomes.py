"""Sections of the page of `linearize` about targets, training, folding and language models."""

from __future__ import annotations

import json
import statistics
from typing import Any

from benchmarks.records import FOLDER, Row, markdown_table

TARGET, ACCURACY, RECOVERED, EPOCHS = 0.90, 0.85, 0.929, 20
BUDGETS = {"100k elements": 0.935, "50k elements": 0.923}
OF_DIVERGENCE, OF_LOSS = "correlation with divergence", "correlation with what is lost"


def record(name: str) -> Any:
    """Return a record, or None if there is none."""
    path = FOLDER / "linearize" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def goals(records: dict[str, Any]) -> list[str]:
    """Return the section about the targets: a row for each, with what was reached."""
    rows: list[Row] = []

    def add(target: str, reached: str, verdict: str, why: str = "") -> None:
        rows.append({"target": target, "reached": reached, "verdict": verdict, "why": why})

    others = [each["found"] for name, each in records.items() if name != "resnet20"]
    for of, what in ((OF_DIVERGENCE, "divergence"), (OF_LOSS, "lost accuracy")):
        median = statistics.median(found[of]["fisher"] for found in others)
        why = "not for VGG-16" if of == OF_DIVERGENCE else "few images change their class at most sites"
        add(
            f"`fisher`, one forward and one backward pass: median rank correlation with the {what} of at "
            f"least {TARGET}",
            f"{median:.3f}",
            met(median >= TARGET),
            why,
        )
    if runs := [run for run in recovered("resnet56-*") if run["budget"] is None]:
        start, most = runs[0]["without training"], runs[-1]
        target = f"ResNet-56, 27 of 55 ReLUs replaced without training: at least {ACCURACY:.0%}"
        add(target, f"{start:.2%}", met(start >= ACCURACY))
        add(
            f"the same after at most {EPOCHS} epochs: at least {RECOVERED:.1%}",
            f"{most['recovered']:.2%} after {most['epochs']}",
            met(most["recovered"] >= RECOVERED) if most["epochs"] == EPOCHS else "open",
        )
    reached = {r["budget"]: r["recovered"] for r in recovered("cifar_resnet18-*")}
    instead = "; [another network](#budgets-of-relu-elements)" if budgets() else ""
    for budget, accuracy in BUDGETS.items():
        value = reached.get(budget)
        add(
            f"ResNet-18 on CIFAR-10 with {budget}: at least {accuracy:.1%}",
            "" if value is None else f"{value:.2%}",
            "not measured" if value is None else met(value >= accuracy),
            "" if value is not None else f"no GPU to train it{instead}",
        )
    if texts := language_records():
        lowest, text = min((found[OF_DIVERGENCE]["kl"], text) for text, found in texts.items())
        add(
            f"SmolLM2: predicted cost of each MLP, rank correlation of at least {TARGET} on three texts",
            f"`kl`: {lowest:.3f} or more",
            met(lowest >= TARGET),
            f"lowest on {text}",
        )
        several = perplexities(texts)
        counts = {name: won(name, several) for name in ("kl", "greedy-kl") if name in several[0]}
        add(
            "SmolLM2: a lower perplexity with 3, 6 and 9 MLPs replaced than by block influence, cosine or R²",
            ", ".join(f"`{name}`: {count} of {len(several)}" for name, count in counts.items()),
            met(len(several) in counts.values()),
        )
    if each := record("folding-resnet56"):
        times, ratios = (
            each["found"][k] for k in ("seconds for 128 images", "folded / other, median of ratios")
        )
        add(
            "a folded network equal to 1e-5, and faster than the original (CPU)",
            f"{each['found']['error']:.1e}, {ratios['original']:.2f} of its time",
            met(each["found"]["error"] <= 1e-5 and ratios["original"] < 1),
        )
        ratio = times["folded"] / times["linearized"]
        add("the same, faster than before folding (CPU)", f"{ratio:.2f} of its time", met(ratio < 1))
        add("the same on a GPU", "", "not measured", "no GPU was at hand")
    return [
        "## Targets\n",
        "They stand in the source of the benchmarks since before the first run of their part; those of lost "
        "accuracy, of the cosine and of the time before folding were added afterwards.\n",
        markdown_table(rows),
    ]


def folding() -> list[str]:
    """Return the section about folded networks."""
    each = record("folding-resnet56")
    if each is None:
        return []
    found = each["found"]
    times = found["seconds for 128 images"]
    ratios = found["folded / other, median of ratios"]
    return [
        "## Folded\n",
        f"ResNet-56 with {found['replaced']} ReLUs inside its blocks replaced; lines and BatchNorm folded "
        f"into the convolutions: the outputs differ by {found['error']:.1e} of the largest. Seconds for 128 "
        f"images, median: {', '.join(f'{label} {value}' for label, value in times.items())} (load "
        f"{each['load']} on 2 cores). Median of the ratios: the folded network takes "
        + ", ".join(f"{value:.2f} of the time of `{label}`" for label, value in ratios.items())
        + ". `original, fused` is the original network with its BatchNorm folded by torch.fx.\n",
    ]


def recovered(pattern: str) -> list[Any]:
    """Return what was found in trainings after linearization, those with fewer epochs first."""
    files = sorted((FOLDER / "linearize").glob(f"recovery-{pattern}.json"))
    return sorted((json.loads(f.read_text("utf-8"))["found"] for f in files), key=lambda run: run["epochs"])


def recovery() -> list[str]:
    """Return the section about training, with a row for each number of epochs."""
    runs = [run for run in recovered("resnet56-*") if run["budget"] is None]
    if not runs:
        return []
    first = runs[0]
    rows: list[Row] = [
        {"epochs": run["epochs"], "accuracy": f"{run['recovered']:.2%}", "seconds": run["seconds"]}
        for run in runs
    ]
    return [
        "## Recovered\n",
        f"ResNet-56 with {first['sites']} of 55 ReLUs replaced, those that `greedy-kl` chose, then trained "
        "with `recover` on shifted and mirrored training images, under bfloat16 autocast. The accuracy is "
        f"measured on {first['test']} test images that no other section uses. The original network has "
        f"{first['original']:.2%}, the linearized one without training {first['without training']:.2%}. All "
        f"sites are replaced at once, with lines fitted on {first['calibration']} training images and again "
        "in order of depth. Two runs came before these: two epochs under bfloat16 autocast left 15.79% "
        "(record at commit e21e9ea), because autocast kept the weights of the first step, which `recover` "
        "now prevents; and one epoch in float32 gave 91.79% (record at commit 2d5d4e2).\n",
        markdown_table(rows),
    ]


def budgets() -> list[str]:
    """Return the section about budgets of elements."""
    rows: list[Row] = []
    for run in recovered("*elements-*"):
        before, left = run["elements"]
        rows.append(
            {
                "network": run["network"],
                "budget": run["budget"],
                "elements": f"{int(left)} of {int(before)}",
                "sites replaced": f"{run['sites']} of {run['of']}",
                "original": f"{run['original']:.2%}",
                "without training": f"{run['without training']:.2%}",
                "epochs": run["epochs"],
                "recovered": f"{run['recovered']:.2%}",
            }
        )
    if not rows:
        return []
    return [
        "## Budgets of ReLU elements\n",
        "What private inference pays for is the number of ReLU elements for each image. Sites are chosen by "
        "`greedy-kl`, divergence for each element, on training images; then the network is trained with "
        "`recover`. The accuracy is measured on the same test images as in the section before. The targets "
        "for a ResNet-18, which `python -m benchmarks.train_cifar` trains, are about what SNL (Cho et al., "
        "2022) is published with, which chooses single pixels instead of whole sites and trains its masks: "
        "92.27% at 49.4K elements and 93.50% at 99.9K.\n",
        markdown_table(rows),
    ]


def met(reached: bool) -> str:
    return "met" if reached else "missed"


def language_records() -> dict[str, Any]:
    """Return what was found for SmolLM2 by the text that it was measured on."""
    files = sorted((FOLDER / "linearize").glob("language-smollm2-*.json"))
    return {
        file.stem.removeprefix("language-smollm2-"): json.loads(file.read_text("utf-8"))["found"]
        for file in files
    }


def perplexities(records: dict[str, Any]) -> list[Row]:
    """Return a row for each text and number of MLPs replaced: the perplexity by each criterion."""
    rows: list[Row] = []
    for text, found in records.items():
        greedy = record(f"language-greedy-smollm2-{text}")
        for count in ("3", "6", "9"):
            scores = {name: s[count]["before"]["perplexity"] for name, s in found["together"].items()}
            chance = statistics.median(scores.pop(f"random {seed}") for seed in range(3))
            if greedy is not None:
                scores = {"greedy-kl": greedy["found"]["scores"][count]["perplexity"], **scores}
            row: Row = {"text": text, "replaced": f"{count} of 30"}
            row |= {"none": f"{found['original']['perplexity']:.1f}"}
            row |= {name: f"{scores[name]:.2f}" for name in scores}
            rows.append(row | {"random, median of 3": f"{chance:.2f}"})
    return rows


def won(name: str, rows: list[Row]) -> int:
    """Count the rows in which a criterion gives a lower perplexity than each of those it is compared with."""
    rivals = ("block influence", "cosine of the MLP", "r2 of the lines")
    return sum(name in row and all(float(row[name]) < float(row[rival]) for rival in rivals) for row in rows)


def language() -> list[str]:
    """Return the section about SmolLM2."""
    records = language_records()
    if not records:
        return []
    rows: list[Row] = []
    for text, found in records.items():
        values = found[OF_DIVERGENCE]
        ordered = sorted(values, key=lambda name: -values[name])
        rows.append({"text": text} | {name: values[name] for name in ordered})
    size = next(iter(records.values()))
    return [
        "## The MLPs of a language model\n",
        "SmolLM2-135M: each of its 30 MLPs in turn replaced by the best affine map (ridge), fitted on "
        f"{size['calibration'] * 128} tokens of a text and measured on {size['test'] * 128} others of the "
        "same text. The texts are this documentation, source code of this package, and scikit-learn's "
        "descriptions of data sets. Rank correlation of each criterion with the measured divergence:\n",
        markdown_table(rows),
        "R² is that of the tokens of the fit, of which there are about four for each feature; the maps with "
        "the highest R² are among those that cost most.\n",
        "Perplexity with several MLPs replaced in the order of a criterion, with nothing fitted again; "
        "`greedy-kl` measures the divergence of the others again after each MLP, and was added after the "
        "other columns were known:\n",
        markdown_table(perplexities(records)),
    ]
