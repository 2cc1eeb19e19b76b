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
TEST_DIVERGENCE = "divergence on the test images"
DEVELOPED_ON = {"quick-kl": ("resnet20", "resnet32", "resnet56", "vgg16"), "fisher": ("resnet20",)}
"""Networks on whose training images a criterion was chosen among others."""
OTHER_CPU = "not on 2 cores of an AMD EPYC: 1.11 of the time before folding (record at commit e4f9c49)"
FIRST_RUN = "missed in the first run, with 2048 tokens"
GREEDY, COUNTS = "greedy-kl", ("3", "6", "9")
BASELINES = {
    "block influence": "block influence",
    "cosine of the MLP": "cosine of the MLP",
    "R² of the map": "r2 of the lines",
}
"""What the choice of MLPs is compared with, as tables and records name it."""


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
            others = {name: value for name, value in found.items() if name not in developed}
            median = statistics.median(others.values())
            target = f"`{criterion}`: median rank correlation with the {what} of at least {TARGET}"
            why = f"over {len(others)} networks, without {', '.join(developed)}, with which it was developed"
            if of == OF_LOSS:
                itself = correlations_of(TEST_DIVERGENCE, records, of)
                known = statistics.median(itself[name] for name in others)
                why += f"; the {TEST_DIVERGENCE} itself reaches {known:.3f}"
            verdict = met(median >= TARGET)
            if criterion == "quick-kl" and verdict == "met":
                verdict += ", but on a GPU not in that time"
            add(target, f"{median:.3f}", verdict, why)
    quick, fisher = (correlations_of(name, records) for name in ("quick-kl", "fisher"))
    low, other = min(quick.values()), min(fisher[name] for name in quick if name in fisher)
    target = "`quick-kl`: the lowest rank correlation with the divergence above that of `fisher`"
    add(target, f"{low:.3f}, {other:.3f}", met(low > other), f"of {len(quick)} and {len(fisher)} networks")
    run = _found("recovery-resnet56-greedy-kl-27")
    start, end = run["without training"], run["recovered"][str(EPOCHS)]
    target = f"ResNet-56, 27 of 55 ReLUs replaced without training: at least {ACCURACY:.0%}"
    add(target, *decided(start, ACCURACY, run["test"]))
    target = f"the same after at most {EPOCHS} epochs: at least {RECOVERED:.1%}"
    add(target, *decided(end, RECOVERED, run["test"]), "one training, and not the first on these images")
    for budget, accuracy in BUDGETS.items():
        run = _found(f"recovery-cifar_resnet18-greedy-kl-{budget.replace(' ', '')}")
        target = f"ResNet-18 on CIFAR-10 with {budget}: at least {accuracy:.1%}"
        value = list(run["recovered"].values())[-1]
        why = f"{len(_kept(run))} of 17 activations are kept, each as a whole"
        add(target, *decided(value, accuracy, run["test"]), why)
    lowest, text = min((_found(f"costs-smollm2-{text}")[OF_DIVERGENCE]["kl"], text) for text in TEXTS)
    target = f"SmolLM2: predicted cost of each MLP, rank correlation of at least {TARGET} on three texts"
    add(target, f"`kl`: {lowest:.3f} or more", met(lowest >= TARGET), f"lowest on {text}; {FIRST_RUN}")
    states = {"as they are": "before", "fitted again": "after"}
    counts = {name: count_lowest(mlps("perplexity", state)) for name, state in states.items()}
    lowest = count_lowest(mlps("divergence", "before"))
    target = "SmolLM2: a lower perplexity with 3, 6 and 9 MLPs replaced than by block influence, cosine or R²"
    reached = ", ".join(f"maps {name}: {count} of 9" for name, count in counts.items())
    why = f"its divergence from the original network, by which it chooses, is the lowest in {lowest} of 9"
    add(target, reached, met(max(counts.values()) == 9), why)
    for device, suffix in (("CPU", ""), ("GPU", "-cuda")):
        found = _found(f"folding-resnet56{suffix}")
        target = f"a folded network equal to 1e-5, and faster than before folding ({device})"
        error, ratio = (found[key] for key in ("error", "folded / other, median of ratios"))
        reached = f"{error:.1e}, {ratio['linearized']:.2f} of its time"
        reached += f", {ratio['original, fused']:.2f} of the original with its BatchNorm fused"
        add(target, reached, met(error <= 1e-5 and ratio["linearized"] < 1), OTHER_CPU if not suffix else "")
    return [
        "## Targets\n",
        "Written in the source of `benchmarks.linearize` and `benchmarks.recovery` before the first run of "
        "each part; that of lost accuracy was added afterwards, that of `quick-kl` after `fisher` had failed "
        "on VGG-16. Both were to take as long as one forward and one backward pass. For lost accuracy, the "
        "medians of `quick-kl` and `fisher` were 0.921 and 0.913 (commit d3e3137) before the DenseNet, the "
        "ViT, ResNet-50, Inception and the EfficientNets were measured.\n",
        markdown_table(rows),
    ]


def folding() -> list[str]:
    """Return the section about folded networks."""
    rows: list[Row] = []
    for each in (record("folding-resnet56"), record("folding-resnet56-cuda")):
        found = each["found"]
        times = {label: f"{1000 * value:.1f} ms" for label, value in found["seconds"].items()}
        ratios = {
            f"folded / {label}": f"{value:.2f}"
            for label, value in found["folded / other, median of ratios"].items()
        }
        rows.append({"machine": each["machine"], **times, **ratios, "error": f"{found['error']:.1e}"})
    return [
        "## Folded\n",
        "ResNet-56 with 27 ReLUs inside its blocks replaced; lines and BatchNorm folded into the "
        "convolutions. Time of a pass of 128 images, and medians of ratios. `original, fused` is the "
        "original network with its BatchNorm folded by torch.fx. The error is the largest difference of the "
        f"outputs, relative to the largest output. It was faster on these machines, but {OTHER_CPU}.\n",
        markdown_table(rows),
    ]


def _found(name: str) -> Any:
    return record(name)["found"]


def _kept(run: Any) -> list[str]:
    """Return the sites of the ResNet-18 that a run did not replace."""
    return [site for site in _found("costs-cifar_resnet18")["sites"] if site not in run["sites"]]


def _training(run: Any) -> Row:
    """Return the cells of a training: the accuracy before and after it."""
    return {
        "sites replaced": len(run["sites"]),
        "original": percent(run["original"]),
        "without training": percent(run["without training"]),
        **{f"{epochs} epochs": percent(value) for epochs, value in run["recovered"].items()},
    }


def recovery_runs(*, budget: bool) -> list[Any]:
    """Return the trainings after a number of sites was replaced, or all that a budget of elements allows."""
    files = sorted((FOLDER / "linearize").glob("recovery-*.json"))
    runs = [json.loads(file.read_text("utf-8"))["found"] for file in files]
    return [run for run in runs if (run["budget"] is not None) == budget]


def after_training() -> dict[str, dict[str, float]]:
    """Return the accuracy after the longest training, by network and by what chose the sites."""
    found: dict[str, dict[str, float]] = {}
    for run in recovery_runs(budget=False):
        found.setdefault(run["network"], {})[run["criterion"]] = list(run["recovered"].values())[-1]
    return found


def as_good_by_affinity() -> list[str]:
    """Name the networks for which affinity chose at least as well as the measured divergence."""
    return [name for name, found in after_training().items() if found["affinity"] >= found[GREEDY]]


def with_equal_elements() -> list[Any]:
    """Return the trainings in which the criteria were given a budget of elements, but of the ResNet-18."""
    return [run for run in recovery_runs(budget=True) if run["network"] != "cifar_resnet18"]


def gain_with_equal_elements() -> float:
    """Return how many points `greedy-kl` is better than affinity after training (mean over seeds)."""
    last: dict[str, list[float]] = {}
    for run in with_equal_elements():
        last.setdefault(run["criterion"], []).append(100 * list(run["recovered"].values())[-1])
    return statistics.mean(last[GREEDY]) - statistics.mean(last["affinity"])


def recovery() -> list[str]:
    """Return the section about training after sites were replaced."""
    tables: list[list[Row]] = [[], []]
    for rows, runs in zip(tables, (recovery_runs(budget=False), with_equal_elements()), strict=True):
        for run in runs:
            facts: Row = {"network": run["network"], "chosen by": run["criterion"]}
            facts["seed"] = run["seed"]
            facts["elements replaced"] = int(run["elements"][0] - run["elements"][-1])
            rows.append(facts | _training(run))
    after, as_good = after_training(), as_good_by_affinity()
    gap = statistics.median(found[GREEDY] - found["random 0"] for found in after.values())
    return [
        "## Recovered\n",
        "Without training, the choice by `greedy-kl` is far better than that by affinity. After 20 epochs, "
        f"with equally many sites replaced, the choice by affinity is at least as good on {len(as_good)} of "
        f"{len(after)} networks ({', '.join(as_good)}), and `greedy-kl` is {100 * gap:.1f} points better "
        "than a random choice (median). Equally many sites are not equally many elements, though: with "
        f"equally many elements, `greedy-kl` is {gain_with_equal_elements():.1f} points better than affinity "
        "on ResNet-20 after five epochs (mean over two seeds). The 95 % intervals are about 0.6 points.\n",
        "Sites are replaced at once, and the network is then trained with `recover` on shifted and mirrored "
        "training images, under bfloat16 autocast. The accuracy is measured on the 9000 test images that "
        "`linearize` was not developed with. Six earlier trainings of ResNet-56 were scored on them: one "
        "failed in bfloat16 (15.79%, commit e21e9ea; `recover` prevents that now), the others, of 1 to 20 "
        "epochs, reached 91.79% to 93.11%, and the network without training, with an older order of sites, "
        "85.13% and 85.31%. Nothing was chosen by them but the precision.\n",
        markdown_table(tables[0]),
        "With a budget of elements, run after the table above had been seen, because the numbers of elements "
        "in it are unequal:\n",
        markdown_table(tables[1]),
    ]


def budgets() -> list[str]:
    """Return the section about budgets of elements."""
    runs = [run for run in recovery_runs(budget=True) if run["network"] == "cifar_resnet18"]
    tables: dict[bool, list[Row]] = {True: [], False: []}
    between = max(run.get("epochs between", 0) for run in runs)
    for run in sorted(runs, key=lambda run: run["elements"][-1], reverse=True):
        row: Row = {"budget": run["budget"], "elements left": f"{run['elements'][-1]:,}"}
        row["in steps of"] = ", ".join(each.split()[0] for each in run.get("earlier budgets", []))
        row |= {"chosen by": run["criterion"], "activations kept": ", ".join(_kept(run))}
        tables[run["held out"]].append(row | {"learning rate": run["rate"], **_training(run)})
    return [
        "## Budgets of ReLU elements\n",
        "What private inference pays for is the number of ReLU elements for each image. Sites of a ResNet-18 "
        f"with {runs[0]['elements'][0]:,} elements are chosen on training images, by divergence for each "
        "element; then the network is trained with `recover`. The targets are about what SNL (Cho et al., "
        "2022), which chooses single pixels, is published with. **`linearize`, which chooses whole sites, "
        "does not reach them.** Where steps are given, these budgets came first, each followed by a training "
        f"of {between} epochs, after which the next sites were chosen in the trained network. With 100k "
        "elements that is no better within the error, with more training; with 50k it left fewer elements "
        "than the budget allows, because only sites of the last step can be put back. In these two runs the "
        "test images were also scored after each step; nothing was chosen by that.\n",
        markdown_table(tables[False]),
        "Criterion and learning rate were decided by eight epochs, measured on 5000 training images that "
        "were held out; 24 epochs at once were compared with training in steps. The original network was "
        "trained on all of them, here for 60 or for 100 epochs. `first` replaces the first sites of the "
        "network first:\n",
        markdown_table(tables[True]),
    ]


def mlps(measure: str, state: str) -> list[Row]:
    """Return a row for each text and number of MLPs replaced, as they are or fitted again."""
    rows: list[Row] = []
    for text in TEXTS:
        found = _found(f"together-smollm2-{text}")
        for count in COUNTS:
            row: Row = {"text": text, "replaced": f"{count} of 30"}
            row["none"] = f"{found['original'][measure]:.4g}"
            for name, key in {GREEDY: GREEDY, **BASELINES}.items():
                row[name] = f"{found[key][count][state][measure]:.4g}"
            rows.append(row)
    return rows


def count_lowest(rows: list[Row]) -> int:
    """Count the rows in which greedy choice has a lower value than each of its baselines."""
    return sum(all(float(row[GREEDY]) < float(row[baseline]) for baseline in BASELINES) for row in rows)


def _costliest() -> str:
    """Say which two MLPs cost most, and how well they are explained by a map."""
    parts = []
    for text in TEXTS:
        found = _found(f"costs-smollm2-{text}")
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
    texts = {text: _found(f"costs-smollm2-{text}") for text in TEXTS}
    first = next(iter(texts.values()))
    order = sorted(first[OF_DIVERGENCE], key=lambda name: -first[OF_DIVERGENCE][name])
    names = {key: name for name, key in BASELINES.items()}
    states = (mlps("perplexity", state) for state in ("before", "after"))
    lower = sum(float(new[GREEDY]) < float(old[GREEDY]) for old, new in zip(*states, strict=True))
    rows: list[Row] = []
    for text, found in texts.items():
        rows.append(
            {"text": text, **{names.get(key, key): f"{found[OF_DIVERGENCE][key]:.2f}" for key in order}}
        )
    return [
        "## The MLPs of a language model\n",
        "SmolLM2-135M-Instruct, from weights of 4 bits: each of its 30 MLPs in turn replaced by the best "
        f"affine map (ridge), fitted on {first['calibration'] * 128} tokens of a text and measured on "
        f"{first['test'] * 128} others of the same text. The texts are this documentation, source code of "
        "this package, and Python's own reference. Rank correlation of each criterion with the measured "
        "divergence:\n",
        markdown_table(rows),
        f"{_costliest()} How many tokens are used matters: with "
        "2048 tokens for the fit, `kl` reached 0.81 to 0.93 (records at commit a0ace75, one other text).\n",
        f"Perplexity with several MLPs replaced. `{GREEDY}` measures the divergence of the others again "
        "after each MLP; the others choose once. No map is fitted again, so that only the choice differs:\n",
        markdown_table(mlps("perplexity", "before")),
        "The same with all maps fitted again, one after the other, as `linearize` does it. That lowers the "
        f"perplexity of `{GREEDY}` in {lower} of 9 cases:\n",
        markdown_table(mlps("perplexity", "after")),
    ]
