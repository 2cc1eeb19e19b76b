"""Sections of the page of `linearize` about targets, training, folding and language models."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

from benchmarks.networks import TEXTS
from benchmarks.records import FOLDER, Row, markdown_table

TARGET, ACCURACY, RECOVERED, EPOCHS = 0.90, 0.85, 0.929, 20
BUDGETS = {"100k elements": 0.935, "50k elements": 0.923}
OF_DIVERGENCE, OF_LOSS = "correlation with divergence", "correlation with what is lost"
DEVELOPED_ON = {"quick-kl": ("resnet20", "resnet32", "resnet56", "vgg16"), "fisher": ("resnet20",)}
"""Networks on whose training images a criterion was chosen among others."""
OTHER_CPU = "not on 2 cores of an AMD EPYC: 1.11 of the time before folding (record at commit e4f9c49)"
FIRST_RUN = "missed in the first run, with 2048 tokens"
BASELINES = ("block influence", "cosine of the MLP", "R² of the map")


def record(name: str) -> Any:
    """Return a record, or None if there is none."""
    path = FOLDER / "linearize" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def correlations_of(criterion: str, records: dict[str, Any], of: str = OF_DIVERGENCE) -> dict[str, float]:
    """Return the rank correlation by network, of those records that have this criterion."""
    return {
        name: each["found"][of][criterion] for name, each in records.items() if criterion in each["found"][of]
    }


def percent(share: float) -> str:
    return f"{share:.2%}"


def decided(accuracy: float, target: float, images: int) -> tuple[str, str]:
    """Return an accuracy with its 95 % interval, and whether the target is reached."""
    half = 1.96 * math.sqrt(accuracy * (1 - accuracy) / images)
    within = ", within the error" if abs(accuracy - target) < half else ""
    return f"{percent(accuracy)} ± {percent(half)}", met(accuracy >= target) + within


def met(reached: bool) -> str:
    return "met" if reached else "missed"


def goals(records: dict[str, Any]) -> list[str]:
    """Return the section about the targets: a row for each, with what was reached."""
    rows: list[Row] = []

    def add(target: str, reached: str, verdict: str, why: str = "") -> None:
        rows.append({"target": target, "reached": reached, "verdict": verdict, "why": why})

    for criterion, developed in DEVELOPED_ON.items():
        for of, what in ((OF_DIVERGENCE, "divergence"), (OF_LOSS, "lost accuracy")):
            found = correlations_of(criterion, records, of)
            others = [value for name, value in found.items() if name not in developed]
            median = statistics.median(others)
            target = f"`{criterion}`: median rank correlation with the {what} of at least {TARGET}"
            why = f"over {len(others)} networks, without {', '.join(developed)}, with which it was developed"
            add(target, f"{median:.3f}", met(median >= TARGET), why)
    quick, fisher = (correlations_of(name, records) for name in ("quick-kl", "fisher"))
    low, rival = min(quick.values()), min(fisher[name] for name in quick)
    target = "`quick-kl`: the lowest rank correlation with the divergence above that of `fisher`"
    add(target, f"{low:.3f}, {rival:.3f}", met(low > rival), f"of {len(quick)} networks")
    if run := _recovered("resnet56-greedy-kl-27"):
        start, end = run["without training"], run["recovered"][str(EPOCHS)]
        target = f"ResNet-56, 27 of 55 ReLUs replaced without training: at least {ACCURACY:.0%}"
        add(target, *decided(start, ACCURACY, run["test"]))
        target = f"the same after at most {EPOCHS} epochs: at least {RECOVERED:.1%}"
        add(target, *decided(end, RECOVERED, run["test"]), "one training, and not the first on these images")
    for budget, accuracy in BUDGETS.items():
        run = _recovered(f"cifar_resnet18-greedy-kl-{budget.replace(' ', '')}")
        target = f"ResNet-18 on CIFAR-10 with {budget}: at least {accuracy:.1%}"
        if run:
            value = list(run["recovered"].values())[-1]
            add(target, *decided(value, accuracy, run["test"]))
        else:
            add(target, "", "not measured")
    if texts := _texts():
        lowest, text = min((found[OF_DIVERGENCE]["kl"], text) for text, found in texts.items())
        target = f"SmolLM2: predicted cost of each MLP, rank correlation of at least {TARGET} on three texts"
        add(target, f"`kl`: {lowest:.3f} or more", met(lowest >= TARGET), f"lowest on {text}; {FIRST_RUN}")
        several = _perplexities(texts)
        counts = {name: count_lowest(name, several) for name in ("kl", "greedy-kl") if name in several[0]}
        add(
            "SmolLM2: a lower perplexity with 3, 6 and 9 MLPs replaced than by block influence, cosine or R²",
            ", ".join(f"`{name}`: {count} of {len(several)}" for name, count in counts.items()),
            met(len(several) in counts.values()),
            f"{' and '.join(lowest_rivals('kl', several))} are lower in the others",
        )
    for device, suffix in (("CPU", ""), ("GPU", "-cuda")):
        each = record(f"folding-resnet56{suffix}")
        target = f"a folded network equal to 1e-5, and faster than before folding ({device})"
        if each is None:
            add(target, "", "not measured")
            continue
        error, ratio = (each["found"][key] for key in ("error", "folded / other, median of ratios"))
        reached = f"{error:.1e}, {ratio['linearized']:.2f} of its time"
        reached += f", {ratio['original, fused']:.2f} of the original with its BatchNorm fused"
        add(target, reached, met(error <= 1e-5 and ratio["linearized"] < 1), OTHER_CPU if not suffix else "")
    return [
        "## Targets\n",
        "Written in the source of `benchmarks.linearize` and `benchmarks.recovery` before the first run of "
        "each part; that of lost accuracy was added afterwards, that of `quick-kl` after `fisher` had failed "
        "on VGG-16. Both take as long as one forward and one backward pass.\n",
        markdown_table(rows),
    ]


def folding() -> list[str]:
    """Return the section about folded networks."""
    rows: list[Row] = []
    for each in filter(None, (record("folding-resnet56"), record("folding-resnet56-cuda"))):
        found = each["found"]
        times = {label: f"{1000 * value:.1f} ms" for label, value in found["seconds"].items()}
        ratios = {
            f"folded / {label}": f"{value:.2f}"
            for label, value in found["folded / other, median of ratios"].items()
        }
        rows.append({"machine": each["machine"], **times, **ratios, "error": f"{found['error']:.1e}"})
    if not rows:
        return []
    return [
        "## Folded\n",
        "ResNet-56 with 27 ReLUs inside its blocks replaced; lines and BatchNorm folded into the "
        "convolutions. Time of a pass of 128 images, and medians of ratios. `original, fused` is the "
        "original network with its BatchNorm folded by torch.fx. The error is the largest difference of the "
        f"outputs, relative to the largest output. On this machine it is faster, but {OTHER_CPU}.\n",
        markdown_table(rows),
    ]


def _recovered(name: str) -> Any:
    found = record(f"recovery-{name}")
    return None if found is None else found["found"]


def _training(run: Any) -> Row:
    """Return the cells of a training: the accuracy before and after it."""
    return {
        "sites replaced": len(run["sites"]),
        "original": percent(run["original"]),
        "without training": percent(run["without training"]),
        **{f"{epochs} epochs": percent(value) for epochs, value in run["recovered"].items()},
    }


def recovery() -> list[str]:
    """Return the section about training after sites were replaced."""
    files = sorted((FOLDER / "linearize").glob("recovery-*.json"))
    rows: list[Row] = []
    for run in (json.loads(file.read_text("utf-8"))["found"] for file in files):
        if run["budget"] is None:
            rows.append({"network": run["network"], "chosen by": run["criterion"], **_training(run)})
    if not rows:
        return []
    return [
        "## Recovered\n",
        "Sites are replaced at once, and the network is then trained with `recover` on shifted and mirrored "
        "training images, under bfloat16 autocast. The accuracy is measured on the 9000 test images that "
        "`linearize` was not developed with. Five trainings of ResNet-56 had been scored on them before: two "
        "epochs in bfloat16, which left 15.79% because autocast kept the weights of the first step (record "
        "at commit e21e9ea; `recover` prevents that now), one epoch in float32 (91.79%, commit 2d5d4e2), "
        "five epochs with a lower learning rate (92.54%, commit 4bbc90a), and one run of 5 and 20 epochs as "
        "below, whose record was lost with its machine (92.71% and 93.11%). Nothing was chosen by them but "
        "the precision.\n",
        markdown_table(rows),
    ]


def budgets() -> list[str]:
    """Return the section about budgets of elements."""
    rows: list[Row] = []
    for budget in BUDGETS:
        if run := _recovered(f"cifar_resnet18-greedy-kl-{budget.replace(' ', '')}"):
            before, left = run["elements"][0], run["elements"][-1]
            elements = f"{int(left):,} of {int(before):,}"
            rows.append({"budget": budget, "elements": elements, **_training(run)})
    if not rows:
        return []
    return [
        "## Budgets of ReLU elements\n",
        "What private inference pays for is the number of ReLU elements for each image. Sites of a ResNet-18 "
        "are chosen by `greedy-kl`, divergence for each element, on training images; then the network is "
        "trained with `recover`. The targets are about what SNL (Cho et al., 2022) is published with, which "
        "chooses single pixels instead of whole sites and trains its masks.\n",
        markdown_table(rows),
    ]


def _texts() -> dict[str, Any]:
    """Return what was found for SmolLM2 by the text that it was measured on."""
    found = {text: record(f"costs-smollm2-{text}") for text in TEXTS}
    return {text: each["found"] for text, each in found.items() if each is not None}


def _perplexities(texts: dict[str, Any]) -> list[Row]:
    """Return a row for each text and number of MLPs replaced: the perplexity by each criterion."""
    rows: list[Row] = []
    for text, found in texts.items():
        greedy = record(f"greedy-smollm2-{text}")
        for count in ("3", "6", "9"):
            scores = {
                map_name(name): s[count]["before"]["perplexity"] for name, s in found["together"].items()
            }
            chance = sorted(scores.pop(f"random {seed}") for seed in range(3))
            if greedy is not None:
                run = greedy["found"]["greedy-kl"]["scores"]
                scores = {"greedy-kl": run[count]["perplexity"], **scores}
            row: Row = {"text": text, "replaced": f"{count} of 30"}
            row |= {"none": f"{found['original']['perplexity']:.1f}"}
            row |= {name: f"{scores[name]:.2f}" for name in scores}
            rows.append(row | {"random, lowest and highest of 3": f"{chance[0]:.2f} to {chance[-1]:.2f}"})
    return rows


def map_name(criterion: str) -> str:
    """Return the name of a criterion where maps are no lines."""
    return "R² of the map" if criterion == "r2 of the lines" else criterion


def count_lowest(name: str, rows: list[Row]) -> int:
    """Count the rows in which a criterion gives a lower perplexity than each of those it is compared with."""
    return sum(
        name in row and all(float(row[name]) < float(row[rival]) for rival in BASELINES) for row in rows
    )


def lowest_rivals(name: str, rows: list[Row]) -> list[str]:
    """Return those that give a lower perplexity than a criterion in some row."""
    return [rival for rival in BASELINES if any(float(row[rival]) <= float(row[name]) for row in rows)]


def _costliest(texts: dict[str, Any]) -> str:
    """Say which two MLPs cost most, and how well they are explained by a map."""
    parts = []
    for text, found in texts.items():
        fits = [-value for value in found["criteria"]["r2 of the lines"]]
        rows = sorted(zip(found["divergence"], fits, found["sites"], strict=True), reverse=True)
        two = " and ".join(f"{site} ({cost:.2f}, R² {r2:.3f})" for cost, r2, site in rows[:2])
        parts.append(f"on {text} {two}, all others at most {rows[2][0]:.2f}")
    return (
        f"Two MLPs cost most: {'; '.join(parts)}. Their R² is among the highest, because "
        "[a few tokens carry nearly all of their variance](language-models.md): R² replaces them first."
    )


def language() -> list[str]:
    """Return the section about SmolLM2."""
    texts = _texts()
    if not texts:
        return []
    size = next(iter(texts.values()))
    order = sorted(size[OF_DIVERGENCE], key=lambda name: -size[OF_DIVERGENCE][name])
    rows: list[Row] = []
    for text, found in texts.items():
        rows.append({"text": text, **{map_name(name): f"{found[OF_DIVERGENCE][name]:.2f}" for name in order}})
    return [
        "## The MLPs of a language model\n",
        "SmolLM2-135M-Instruct, from weights of 4 bits: each of its 30 MLPs in turn replaced by the best "
        f"affine map (ridge), fitted on {size['calibration'] * 128} tokens of a text and measured on "
        f"{size['test'] * 128} others of the same text. The texts are this documentation, source code of "
        "this package, and Python's own reference. Rank correlation of each criterion with the measured "
        "divergence:\n",
        markdown_table(rows),
        f"{_costliest(texts)} How many tokens are used matters: with "
        "2048 tokens for the fit, `kl` reached 0.81 to 0.93 (records at commit a0ace75, one other text).\n",
        "Perplexity with several MLPs replaced in the order of a criterion, with nothing fitted again:\n",
        markdown_table(_perplexities(texts)),
        "`greedy-kl`, measured again after each MLP, has no record with so many tokens; with 2048, it gave a "
        "lower perplexity than the three in 4 of 6 cases (records at commit a0ace75).\n"
        if record("greedy-smollm2-code") is None
        else "`greedy-kl` measures the divergence of the others again after each MLP, and fits again.\n",
    ]
