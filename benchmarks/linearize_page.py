"""Writes docs/linearize.md and its picture from the records of the benchmarks of `linearize`.

python -m benchmarks.linearize_page
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.linearize import SHOWN
from benchmarks.linearize_outcomes import (
    OF_DIVERGENCE,
    OF_LOSS,
    TARGET,
    budgets,
    correlations_of,
    folding,
    goals,
    language,
    record,
    recovery,
)
from benchmarks.networks import CIFAR, IMAGENET
from benchmarks.records import FOLDER, ROOT, Row, markdown_table
from fathometer.report import BLUE, DARK, GREY, ORANGE, column_figure, for_print, legend_above, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, PICTURE = ROOT / "docs" / "linearize.md", ROOT / "docs" / "images" / "linearize.svg"
DEVELOPED = "with which `linearize` was developed"
CRITERIA = (
    *("kl", "quick-kl", "fisher", "taylor", "affinity", "r2_heldout", "r2 of the lines"),
    *("nonnegativity_energy", "on/off entropy", "SNIP"),
)


def measured() -> dict[str, Any]:
    """Return the records of networks for images."""
    found = {name: record(f"costs-{name}") for name in (*CIFAR, *IMAGENET)}
    return {name: each for name, each in found.items() if each is not None}


def has_development_images(each: Any) -> bool:
    """Tell whether a record is from before commit 3b5f525, which left these test images out."""
    return str(each["date"]) < "2026-11-19"


def medians(records: dict[str, Any], of: str) -> dict[str, float]:
    """Return the median over the networks for each criterion, the largest first."""
    found = {criterion: correlations_of(criterion, records, of).values() for criterion in CRITERIA}
    known = {criterion: statistics.median(values) for criterion, values in found.items() if values}
    return dict(sorted(known.items(), key=lambda item: -item[1]))


def correlations(records: dict[str, Any], of: str) -> str:
    """Return a table with a row for each network, and the medians in the last one."""
    order = medians(records, of)
    found = {criterion: correlations_of(criterion, records, of) for criterion in order}
    rows: list[Row] = []
    for name, each in records.items():
        values = {c: f"{found[c][name]:.2f}" if name in found[c] else "" for c in order}
        facts = {"sites": len(each["found"]["sites"]), "fit": each["found"]["calibration"]}
        rows.append({"network": name, **facts, "test": each["found"]["test"], **values})
    for label, names in (("CIFAR-10", CIFAR), ("ImageNet", IMAGENET), ("all", records)):
        part = medians({name: each for name, each in records.items() if name in names}, of)
        cells = {criterion: f"**{part[criterion]:.2f}**" for criterion in order if criterion in part}
        rows.append({"network": f"**median, {label}**", "sites": "", "fit": "", "test": "", **cells})
    return markdown_table(rows)


def several_at_once(records: dict[str, Any]) -> list[str]:
    """Return the section about several sites that are replaced at the same time."""
    rows: list[Row] = []
    for name, each in records.items():
        found = record(f"together-{name}")
        together = each["found"].get("together", {"kl": {}}) if found is None else found["found"]
        for count in together["kl"]:
            runs = {criterion: [together[criterion][count]] for criterion in SHOWN if criterion in together}
            runs["random, median of 3"] = [together[f"random {seed}"][count] for seed in range(3)]
            row: Row = {"network": name, "sites": f"{count} of {len(each['found']['sites'])}"}
            for criterion, scores in runs.items():
                values = (statistics.median(s[when]["accuracy"] for s in scores) for when in scores[0])
                row[criterion] = " / ".join(f"{100 * value:.1f}" for value in values)
            rows.append(row)
    return [
        "## Several at once\n",
        "Accuracy in percent on test images with 10, 25 and 50 % of the sites replaced at once, in the order "
        "of a criterion: as they are / with BatchNorm recalibrated / with lines that were fitted again and "
        "BatchNorm recalibrated. There is no training.\n",
        markdown_table(rows),
    ]


def greedy_choice() -> list[str]:
    """Return the section about choices that are made again after each step."""
    rows: list[Row] = []
    old = []
    for name in CIFAR:
        if (each := record(f"greedy-{name}")) is None:
            continue
        if has_development_images(each):
            old.append(name)
        for criterion, run in each["found"].items():
            if isinstance(run, dict):
                first, *others = ((count, 100 * s["accuracy"]) for count, s in run["scores"].items())
                cells = {
                    label: f"{accuracy:.1f} ({count} sites)"
                    for label, (count, accuracy) in zip(("10 %", "25 %", "50 %"), others, strict=True)
                }
                row: Row = {"network": name, "criterion": criterion, "original": f"{first[1]:.1f}"}
                rows.append({**row, **cells, "seconds": run["seconds"], **sizes_of(each)})
    development = f" Those of {', '.join(old)} are the ones {DEVELOPED}." if old else ""
    return [
        "## Measured again after each step\n",
        "Accuracy in percent on test images with about 10, 25 and 50 % of the sites replaced; the criterion "
        f"sees training images only.{development} `greedy-quick-kl`, which measures on few inputs, is not in "
        "the library: with half of the sites replaced it is never better. The target for ResNet-56 is "
        "decided on the other test images, [below](#recovered).\n",
        markdown_table(rows),
    ]


def sizes_of(each: Any) -> dict[str, int]:
    """Return how many images a record has for the fit, and for the test."""
    return {"fit": each["found"]["calibration"], "test": each["found"]["test"]}


def calibration_sets(records: dict[str, Any]) -> list[str]:
    """Return the section about other images for the fit and the criteria."""
    rows: list[Row] = []
    for name, first in records.items():
        others = [*filter(None, (record(f"costs-{name}-set{number}") for number in (1, 2)))]
        sets = [each for each in (first, *others) if sizes_of(each) == sizes_of(others[0])] if others else []
        if len(sets) > 1:
            row: Row = {"network": name, "sets": len(sets), **sizes_of(sets[0])}
            for criterion in SHOWN[:-1]:
                found = correlations_of(criterion, {str(i): each for i, each in enumerate(sets)})
                if len(found) < len(sets):
                    continue
                values = sorted(found.values())
                row[criterion] = f"{values[0]:.2f} to {values[-1]:.2f}"
            rows.append(row)
    if not rows:
        return []
    return [
        "## Other calibration images and seeds\n",
        "The same rank correlations with other training images for the lines and the criteria, another seed "
        "for the random projection of `fisher`, and the same test images, lowest and highest. Only records "
        "of equally many images are compared with each other:\n",
        markdown_table(rows),
    ]


def missing(records: dict[str, Any]) -> list[str]:
    """List what was planned and has no record."""
    greedy = {name: record(f"greedy-{name}") for name in records}
    recovered = {path.stem.split("-")[1] for path in (FOLDER / "linearize").glob("recovery-*.json")}
    names = {
        "any criterion": [name for name in (*CIFAR, *IMAGENET) if name not in records],
        "`quick-kl`": [name for name in records if name not in correlations_of("quick-kl", records)],
        "several sites at once": [
            n
            for n, each in records.items()
            if "together" not in each["found"] and record(f"together-{n}") is None
        ],
        "the choice after each step": [name for name, each in greedy.items() if each is None],
        "other calibration images and seeds": [n for n in records if record(f"costs-{n}-set1") is None],
        "recovery": [name for name in CIFAR if name not in recovered],
    }
    lines = [f"{what}: {', '.join(each)}" for what, each in names.items() if each]
    lines += [
        "other seeds and calibration sets for SmolLM2, and the replacement of whole blocks",
        "MiniLM: its six activations are too few for a rank correlation; AlexNet and VGG-16 of ImageNet: "
        "weights without a classifier",
    ]
    return ["## Not measured\n", "".join(f"- {line}\n" for line in lines)]


def _duration(records: dict[str, Any]) -> str:
    """Say how long `quick-kl` took, compared with a forward and a backward pass."""
    times = [found.get("seconds of criteria") for found in (each["found"] for each in records.values())]
    ratios = [each["quick-kl"] / each["fisher"] for each in times if each]
    if not ratios:
        return ""
    low, high = min(ratios), max(ratios)
    return (
        f" (`quick-kl` {low:.2f} to {high:.2f} of the time of `fisher`, {len(ratios)} networks; it uses at "
        "least 16 inputs, which takes longer with many sites and few inputs)"
    )


@for_print
def draw(records: dict[str, Any]) -> Figure:
    """Draw the rank correlations of every network, and their medians."""
    figure = column_figure(2, 2.8)
    axes = figure.subplots()
    order = medians(records, OF_DIVERGENCE)
    for label, names, colour, shift in (("CIFAR-10", CIFAR, BLUE, -0.1), ("ImageNet", IMAGENET, ORANGE, 0.1)):
        points = [
            (x + shift, value)
            for x, criterion in enumerate(order)
            for name, value in correlations_of(criterion, records).items()
            if name in names
        ]
        axes.plot(*zip(*points, strict=True), "o", color=colour, label=label, markersize=4, alpha=0.7)
    axes.hlines(list(order.values()), *zip(*((x - 0.3, x + 0.3) for x in range(len(order))), strict=True),
                color=DARK, label="median")  # fmt: skip
    axes.axhline(TARGET, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(order)), list(order), rotation=25, ha="right")
    axes.set_ylabel("rank correlation with\nthe measured divergence")
    legend_above(figure, axes.get_legend_handles_labels()[0])
    return figure


def page() -> str:
    """Return the text of the page."""
    records = measured()
    by_divergence, by_loss = medians(records, OF_DIVERGENCE), medians(records, OF_LOSS)
    quick, fisher = (correlations_of(name, records) for name in ("quick-kl", "fisher"))
    below = {
        criterion: ", ".join(f"{name} ({value:.2f})" for name, value in found.items() if value < TARGET)
        for criterion, found in (("quick-kl", quick), ("fisher", fisher))
    }
    old = [name for name, each in records.items() if name in CIFAR and has_development_images(each)]
    developed = f". The test images of {', '.join(old)} are those {DEVELOPED}" if old else ""
    deepest = max(records.values(), key=lambda each: len(each["found"]["sites"]))["found"]
    few = sum(abs(value) * deepest["test"] < 1.5 for value in deepest["lost"])
    parts = [
        "# What an activation is worth\n",
        "**The affinity score is not the best guide to which activations can be removed.** Its rank "
        "correlation with the divergence that a replacement causes has a median of "
        f"{by_divergence['affinity']:.2f} over {len(records)} networks; that of plain R² is "
        f"{by_divergence['r2 of the lines']:.2f}. In the time of one forward and one backward pass, "
        "`quick-kl`, which measures the divergence on the few inputs that the network is least certain of, "
        f"reaches {by_divergence['quick-kl']:.2f} (from {min(quick.values()):.2f} to "
        f"{max(quick.values()):.2f}, {len(quick)} networks), and `fisher`, an estimate by gradients, "
        f"{by_divergence['fisher']:.2f} (from {min(fisher.values()):.2f} to {max(fisher.values()):.2f}). "
        f"The divergence measured on all training images reaches {by_divergence['kl']:.2f}. With the "
        "accuracy that is lost instead of the divergence, the medians are: affinity "
        f"{by_loss['affinity']:.2f}, R² {by_loss['r2 of the lines']:.2f}, `quick-kl` "
        f"{by_loss['quick-kl']:.2f}, `fisher` {by_loss['fisher']:.2f}, `kl` {by_loss['kl']:.2f}. A score of "
        "one site knows how linear the activation is, not how much the outputs depend on it. If the network "
        "is trained after the replacement, the choice by affinity [may be as good](#recovered).\n",
        "Each activation call in turn was replaced by the least-squares line of each channel, fitted on "
        "training images ([how](how-to/linearize.md)), and the outputs on test images compared with those of "
        "the original network. Written by `python -m benchmarks.linearize_page` from [records](#records), "
        "each with the command that made it at its commit.\n",
        "![Rank correlation of each criterion with the measured divergence: a point for each network]"
        "(images/linearize.svg)\n",
        *goals(records),
        "## Rank correlation with the measured cost\n",
        "Rank correlation over the sites of each network with the KL divergence of the outputs on test "
        "images. `kl` needs a forward pass for each site; `quick-kl`, `fisher`, `taylor` and SNIP take as "
        "long as one forward and one backward pass"
        f"{_duration(records)}, the others as one forward pass. `fisher` is in this benchmark only. "
        "Criteria by which linear sites come first are negated, so that a positive correlation "
        "always means a useful criterion. "
        f"Below {TARGET} are `quick-kl` on {below['quick-kl'] or 'none'}, and `fisher` on "
        f"{below['fisher']}{developed}. The ImageNet networks are measured "
        "on sample images that they were probably trained on, others than those of the fit.\n",
        correlations(records, OF_DIVERGENCE),
        "With the accuracy that is lost instead of the divergence. That is coarse: at "
        f"{few} of {len(deepest['sites'])} sites of the deepest network, the number of images that are "
        "right changes by at most one.\n",
        correlations(records, OF_LOSS),
        *several_at_once(records),
        *greedy_choice(),
        *calibration_sets(records),
        *recovery(),
        *budgets(),
        *folding(),
        *language(),
        *missing(records),
    ]
    parts += ["## Records\n", markdown_table(list(origins()))]
    return "\n".join(parts)


def origins() -> Iterator[Row]:
    """Yield a row for each record: how it came about."""
    for file in sorted((FOLDER / "linearize").glob("*.json")):
        each = record(file.stem)
        yield {
            "record": file.stem,
            "command": f"`{each['command']}`",
            "commit": each["commit"],
            "date": each["date"][:10],
            "machine": each["machine"],
            "torch": each["versions"]["torch"],
        }


def main() -> None:
    """Write the page and its picture."""
    save_figure(draw(measured()), PICTURE)
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
