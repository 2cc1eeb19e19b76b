"""Writes docs/linearize.md and its picture from the records of the benchmarks of `linearize`.

python -m benchmarks.linearize_page
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from scipy.stats import spearmanr

from benchmarks.linearize import RECORDS, SHOWN
from benchmarks.linearize_outcomes import (
    GREEDY,
    OF_DIVERGENCE,
    OF_LOSS,
    TARGET,
    TEST_DIVERGENCE,
    after_training,
    as_good_by_affinity,
    budgets,
    correlations_of,
    folding,
    gain_with_equal_elements,
    goals,
    language,
    record,
    recovery,
)
from benchmarks.networks import CIFAR, EMBEDDINGS, IMAGENET
from benchmarks.records import ROOT, Row, markdown_table
from fathometer.report import BLUE, DARK, GREY, ORANGE, column_figure, for_print, legend_above, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, PICTURE = ROOT / "docs" / "linearize.md", ROOT / "docs" / "images" / "linearize.svg"
NETWORKS = (*CIFAR, *IMAGENET, "minilm")
STATES = {"before": "as they are", "recalibrated": "BatchNorm recalibrated", "after": "fitted again"}
"""States of a network with several replaced sites, as records and tables name them."""
CRITERIA = (
    TEST_DIVERGENCE,
    *("kl", "quick-kl", "fisher", "taylor", "affinity", "r2_heldout", "r2 of the lines"),
    *("nonnegativity_energy", "on/off entropy", "SNIP"),
)


def measured() -> dict[str, Any]:
    """Return the records of networks with activations, by name."""
    known = {name: record(f"costs-{name}") for name in NETWORKS}
    for each in (each["found"] for each in known.values()):
        if each["lost"]:
            each[OF_LOSS][TEST_DIVERGENCE] = round(float(spearmanr(each["divergence"], each["lost"])[0]), 3)
    return known


def medians(records: dict[str, Any], of: str) -> dict[str, float]:
    """Return the median over the networks for each criterion, the largest first."""
    found = {criterion: correlations_of(criterion, records, of).values() for criterion in CRITERIA}
    known = {criterion: statistics.median(values) for criterion, values in found.items() if values}
    return dict(sorted(known.items(), key=lambda item: -item[1]))


def correlations(records: dict[str, Any], of: str) -> str:
    """Return a table with a row for each network, and the medians in the last one."""
    records = {name: each for name, each in records.items() if each["found"][of]}
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
    shares = ("10 %", "25 %", "50 %")
    every = {name: each["found"] for name in records if (each := record(f"together-{name}")) is not None}
    runs = {name: run for name, run in every.items() if "recalibrated" in next(iter(run["kl"].values()))}
    names = (*SHOWN, "random, median of 3")
    lost: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows: list[Row] = []
    for name, run in every.items():
        row: Row = {"network": name, "original": f"{100 * run['original']['accuracy']:.1f}"}
        for criterion in names:
            seeds = [criterion] if criterion in run else [f"random {seed}" for seed in range(3)]
            cells = []
            for share, count in zip(shares, run["kl"], strict=True):
                for state in run["kl"][count]:
                    value = statistics.median(run[seed][count][state]["accuracy"] for seed in seeds)
                    if name in runs:
                        of_state = lost.setdefault((share, state), {each: [] for each in names})
                        of_state[criterion].append(run["original"]["accuracy"] - value)
                cells.append(f"{100 * value:.1f}")
            row[criterion] = " / ".join(cells)
        rows.append(row)
    summary: list[Row] = [
        {
            "replaced": share,
            "then": STATES[state],
            **{name: f"{100 * statistics.median(values):.1f}" for name, values in by_criterion.items()},
        }
        for (share, state), by_criterion in lost.items()
    ]
    return [
        "## Several at once\n",
        f"Points of accuracy that are lost on test images, medians over the {len(runs)} networks with "
        "BatchNorm, with 10, 25 and 50 % of the sites replaced at once in the order of a criterion. There is "
        "no training. `fitted again` is what `linearize` does: lines are fitted again and BatchNorm is "
        "recalibrated, where that brings the outputs closer to the original ones.\n",
        markdown_table(summary),
        "The accuracy in percent of each network, fitted again, with 10, 25 and 50 % replaced:\n",
        markdown_table(rows),
    ]


def greedy_choice(records: dict[str, Any]) -> list[str]:
    """Return the section about choices that are made again after each step."""
    rows: list[Row] = []
    for name in records:
        if (each := record(f"greedy-{name}")) is None:
            continue
        run = each["found"][GREEDY]
        first, *others = ((count, 100 * s["accuracy"]) for count, s in run["scores"].items())
        cells = {
            label: f"{accuracy:.1f} ({count} sites)"
            for label, (count, accuracy) in zip(("10 %", "25 %", "50 %"), others, strict=True)
        }
        rows.append({"network": name, "original": f"{first[1]:.1f}", **cells, **sizes_of(each)})
    return [
        "## Measured again after each step\n",
        f"Accuracy in percent on test images with about 10, 25 and 50 % of the sites replaced by `{GREEDY}`; "
        "the criterion sees training images only.\n",
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
    return [
        "## Other calibration images and seeds\n",
        "The same rank correlations with other training images for the lines and the criteria, another seed "
        "for the random projection of `fisher`, and the same test images, lowest and highest. Only records "
        "of equally many images are compared with each other:\n",
        markdown_table(rows),
    ]


def missing(records: dict[str, Any]) -> list[str]:
    """List what was planned and has no record."""
    images = [name for name in records if name not in EMBEDDINGS]
    names = {
        "several sites at once": [n for n in images if record(f"together-{n}") is None],
        "the choice after each step": [n for n in images if record(f"greedy-{n}") is None],
        "other calibration images and seeds": [n for n in records if record(f"costs-{n}-set1") is None],
        "recovery after 5 and 20 epochs": [name for name in CIFAR if name not in after_training()],
    }
    lines = [f"{what}: {', '.join(each)}" for what, each in names.items() if each]
    lines += [
        "recovery with other seeds, and with 10 and 25 % of the sites; SNIP with several sites at once",
        "other seeds and calibration sets for SmolLM2, and the replacement of whole blocks",
        "AlexNet and VGG-16 of ImageNet: weights without a classifier",
    ]
    return ["## Not measured\n", "".join(f"- {line}\n" for line in lines)]


def _duration(records: dict[str, Any]) -> str:
    """Say how long `quick-kl` took on a CPU and on a GPU, compared with a forward and a backward pass."""
    ratios: dict[str, list[float]] = {"CPU": [], "GPU": []}
    for each in records.values():
        times = each["found"].get("seconds of criteria", {})
        if "fisher" in times:
            where = "GPU" if each["machine"].startswith("cuda") else "CPU"
            ratios[where].append(times["quick-kl"] / times["fisher"])
    parts = [
        f"{min(values):.2f} to {max(values):.2f} on a {where} ({len(values)} networks)"
        for where, values in ratios.items()
    ]
    return (
        f"Its time was that of `fisher` times {' and '.join(parts)}, which other programs shared; it uses "
        "at least 16 inputs for each site."
    )


@for_print
def draw(records: dict[str, Any]) -> Figure:
    """Draw the rank correlations of every network, and their medians."""
    figure = column_figure(2, 2.8)
    axes = figure.subplots()
    order = medians(records, OF_DIVERGENCE)
    for label, colour, shift in (("CIFAR-10", BLUE, -0.1), ("ImageNet and text", ORANGE, 0.1)):
        points = [
            (x + shift, value)
            for x, criterion in enumerate(order)
            for name, value in correlations_of(criterion, records).items()
            if (name in CIFAR) == (label == "CIFAR-10")
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
    by_divergence = medians(records, OF_DIVERGENCE)
    quick, fisher, affinity = (correlations_of(name, records) for name in ("quick-kl", "fisher", "affinity"))
    ranges = {}
    for name in ("kl", "quick-kl", "taylor", "fisher"):
        values = correlations_of(name, records).values()
        ranges[name] = f"{by_divergence[name]:.2f}, from {min(values):.2f} to {max(values):.2f}"
    worst, best = (choose(affinity, key=lambda name: affinity[name]) for choose in (min, max))
    embeddings = " and ".join(name for name in records if name in EMBEDDINGS)
    below = {
        criterion: ", ".join(f"{name} ({value:.3f})" for name, value in found.items() if value < TARGET)
        for criterion, found in (("quick-kl", quick), ("fisher", fisher))
    }
    deepest = max(records.values(), key=lambda each: len(each["found"]["sites"]))["found"]
    few = sum(abs(value) * deepest["test"] < 1.5 for value in deepest["lost"])
    parts = [
        "# What an activation is worth\n",
        "**The affinity score is not the best guide to which activations can be removed.** Its rank "
        "correlation with the divergence that a replacement causes has a median of "
        f"{by_divergence['affinity']:.2f} over {len(records)} networks, from {affinity[worst]:.2f} ({worst}, "
        f"where the most linear activations cost most) to {affinity[best]:.2f} ({best}); that of plain R² is "
        f"{by_divergence['r2 of the lines']:.2f}. A score of one site knows how linear the activation is, "
        "not how much the outputs depend on it.\n",
        "Better guides are the divergence measured on training images "
        f"(`kl`, {ranges['kl']}), a pass for each site; the same on the few inputs that the network is least "
        f"certain of (`quick-kl`, {ranges['quick-kl']}); and, by one forward and one backward pass, `taylor` "
        f"({ranges['taylor']}) and `fisher` ({ranges['fisher']}), which is in this benchmark only.\n",
        "If the network is trained for 20 epochs after the replacement, the choice by affinity is as good on "
        f"{len(as_good_by_affinity())} of {len(after_training())} networks when equally many sites are "
        f"replaced, but {gain_with_equal_elements():.1f} points worse than `greedy-kl` when equally many "
        "elements are ([ResNet-20, five epochs](#recovered)).\n",
        "Each activation call in turn was replaced by the least-squares line of each channel, fitted on "
        "training images ([how](how-to/linearize.md)), and the outputs on test images compared with those of "
        "the original network. Written by `python -m benchmarks.linearize_page` from "
        f"{len(list(RECORDS.glob('*.json')))} records in `benchmarks/records/linearize`, each with its "
        "command, commit, date and machine. The commands are those of `benchmarks.linearize` and "
        "`benchmarks.recovery`, for example "
        f"`{records['vit_b_32']['command']}`.\n",
        "![Rank correlation of each criterion with the measured divergence: a point for each network]"
        "(images/linearize.svg)\n",
        *goals(records),
        "## Rank correlation with the measured cost\n",
        "Rank correlation over the sites of each network with the KL divergence of the outputs on test "
        "images. `kl` needs a forward pass for each site; `fisher`, `taylor` and SNIP one forward and one "
        "backward pass; the others one forward pass. `quick-kl` runs as many inputs as a forward and a "
        f"backward pass, in many small passes. {_duration(records)} "
        "Criteria by which linear sites come first are negated, so that a positive correlation "
        "always means a useful criterion. "
        f"Below {TARGET} are `quick-kl` on {below['quick-kl'] or 'none'}, and `fisher` on "
        f"{below['fisher']}. The ImageNet networks are measured "
        "on sample images that they were probably trained on, others than those of the fit. "
        f"{embeddings} give embeddings, which are compared by their squared error.\n",
        correlations(records, OF_DIVERGENCE),
        "With the accuracy that is lost instead of the divergence. That is coarse: at "
        f"{few} of {len(deepest['sites'])} sites of the deepest network, the number of correctly "
        f"classified images changes by at most one. `{TEST_DIVERGENCE}`, which no criterion can know, is how "
        "well the measured divergence itself agrees with the accuracy that is lost on the same images.\n",
        correlations(records, OF_LOSS),
        *several_at_once(records),
        *greedy_choice(records),
        *calibration_sets(records),
        *recovery(),
        *budgets(),
        *folding(),
        *language(),
        *missing(records),
    ]
    return "\n".join(parts)


def main() -> None:
    """Write the page and its picture."""
    save_figure(draw(measured()), PICTURE)
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
