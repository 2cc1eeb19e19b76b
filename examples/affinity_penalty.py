"""Uses the affinity score as a loss, and measures the effect on scores and accuracy.

    python -m examples.affinity_penalty --out demo

A small ReLU network learns two tasks on scikit-learn's 8×8 digits. "Which digit?" is almost linear. "Are
the digits of a pair both even or both odd?" is not: a linear network can only guess. Each task is learned
without a penalty and with `AffinityPenalty` at several targets, and measured on held-out images: is the
target reached, at what cost, and is ReLU really more or less linear, or does it only appear so?
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn

from fathometer import affinity_score, measure
from fathometer.progress import progress_bar
from fathometer.report import (
    BLUE,
    DARK,
    RED,
    column_figure,
    for_print,
    legend_above,
    save_figure,
    series_style,
)
from fathometer.training.penalty import AffinityPenalty

WIDTH, LAYERS, BATCH, SAMPLES, TRAINING = 64, 3, 128, 512, 1000
TASKS = {"which digit": 10, "both even or both odd": 2}  # and the number of classes
SITES = [f"relu{i + 1}" for i in range(LAYERS)]
SIZES = (16, 32, 64, 128, 256, 512)


class Case(NamedTuple):
    """What the network is trained towards."""

    targets: dict[Any, float]
    weight: float = 3.0
    linear: bool = False  # without activations


CASES = {
    "none": Case({}),
    "0.4": Case({"relu": 0.4}),
    "0.6": Case({"relu": 0.6}),
    "0.9": Case({"relu": 0.9}),
    "1": Case({"relu": 1.0}),
    "1, weight 30": Case({"relu": 1.0}, 30.0),
    "1 at relu1": Case({"relu1": 1.0}),
    "linear": Case({}, linear=True),
}

Data: TypeAlias = "tuple[Tensor, Tensor]"
Draw: TypeAlias = "Callable[[], Data]"


def network(inputs: int, classes: int, seed: int, *, linear: bool = False) -> nn.Module:
    """Weights as He et al. draw them for ReLU; biases start at 0."""
    torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for i, site in enumerate(SITES):
        layers |= {f"layer{i + 1}": nn.Linear(inputs if i == 0 else WIDTH, WIDTH)}
        layers |= {site: nn.Identity() if linear else nn.ReLU(inplace=True)}
    layers |= {"head": nn.Linear(WIDTH, classes)}
    for layer in layers.values():
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return nn.Sequential(layers)


def examples(task: str, seed: int) -> tuple[Draw, Data]:
    """Draw batches of training images, and hold out examples; the split depends on the seed."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images).float() / 16, torch.from_numpy(labels)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(x), generator=generator)
    training, held_out = order[:TRAINING], order[TRAINING:]

    def some(places: Tensor, count: int) -> Tensor:
        return places[torch.randint(len(places), (count,), generator=generator)]

    def pairs(places: Tensor, count: int) -> Data:
        first, second = some(places, count), some(places, count)
        return torch.cat((x[first], x[second]), 1), (y[first] + y[second]) % 2

    def single() -> Data:
        chosen = some(training, BATCH)
        return x[chosen], y[chosen]

    if task == "which digit":
        return single, (x[held_out], y[held_out])
    return lambda: pairs(training, BATCH), pairs(held_out, 4 * SAMPLES)


def train(model: nn.Module, draw: Draw, case: Case, steps: int) -> float:
    """Adam, one cycle of the learning rate; the processor time of a step, in milliseconds."""
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.01, total_steps=steps)
    penalty = AffinityPenalty(model, target=case.targets, weight=case.weight) if case.targets else None
    started = time.process_time()
    for _ in range(steps):
        x, y = draw()
        optimiser.zero_grad()
        if penalty is None:
            loss = nn.functional.cross_entropy(model(x), y)
        else:
            with penalty:
                loss = nn.functional.cross_entropy(model(x), y) + penalty()
        loss.backward()
        optimiser.step()
        schedule.step()
    return 1000 * (time.process_time() - started) / steps


def inside(x: Tensor, y: Tensor) -> dict[str, float]:
    """What lies behind a score.

    Units whose input is above 0 for all samples, and for none; the score of the affine map that fits best,
    which is low where that map turns (is not positive semi-definite); whether the coupling is the identity.
    """
    above = (x > 0).double().mean(0)
    x0, y0 = x.double() - x.double().mean(0), y.double() - y.double().mean(0)
    fitted = x0 @ torch.linalg.lstsq(x0, y0, driver="gelsd").solution
    return {
        "on": float((above == 1).double().mean()),
        "off": float((above == 0).double().mean()),
        "fit": float(affinity_score(x0, fitted).value),
        "proved": float(affinity_score(x, y).coupling == "identity"),
    }


def trial(task: str, name: str, seed: int, steps: int) -> dict[str, Any]:
    """One network, measured, trained, and measured again."""
    case = CASES[name]
    draw, (x, y) = examples(task, seed)
    model = network(x.shape[1], TASKS[task], seed, linear=case.linear)
    found: dict[str, Any] = {"task": task, "case": name, "seed": seed}
    if not case.linear:
        found["before"] = measure(model, x, samples=SAMPLES, gauges="affinity").signature.mean()
    found["ms"] = train(model, draw, case, steps)
    with torch.no_grad():
        found["accuracy"] = float((model(x).argmax(1) == y).double().mean())
    if not case.linear:
        sounding = measure(model, x, samples=SAMPLES, gauges=["affinity", "r2", "stable_rank", inside])
        for gauge in (
            "affinity",
            "r2",
            "inside_fit",
            "stable_rank_x",
            "inside_on",
            "inside_off",
            "inside_proved",
        ):
            found |= {f"{gauge} {site}": value for site, value in sounding.mean(gauge).items()}
            found[gauge] = sounding.mean(gauge).mean()
    if name == "none":
        for n in SIZES:
            found[f"n {n}"] = measure(model, x, samples=n, gauges="affinity").signature.mean()
    return found


def run(seeds: int, steps: int) -> pd.DataFrame:
    """Every case of every task, a row for each seed."""
    todo = list(itertools.product(range(seeds), TASKS, CASES))
    rows = []
    with progress_bar("training") as show:
        for done, (seed, task, case) in enumerate(todo):
            show(done, len(todo), f"{task}, {case}")
            rows.append(trial(task, case, seed, steps))
    return pd.DataFrame(rows)


def pm(values: pd.Series[float], digits: int = 2) -> str:
    """Mean ± standard deviation over seeds; a dash where there is nothing to measure."""
    if values.isna().all():
        return "–"
    spread = f" ± {values.std():.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def table(trials: pd.DataFrame, task: str) -> Table:
    """A row for each case."""
    columns = {"r2": "R²", "inside_fit": "its score", "stable_rank_x": "rank", "inside_on": "on"}
    columns |= {"inside_off": "off", "inside_proved": "proved"}
    view = Table("target", "accuracy", "score before", "score after", *columns.values(), "ms")
    view.title = f"{task}?"
    view.caption = (
        "On held-out images, mean ± std over seeds. Means over all ReLUs: their score; R² of the best affine "
        "map in their place, and the score of that map; stable rank of the inputs; units whose input is "
        "above 0 for all samples, or for none; couplings proved to be the identity. ms: of a step."
    )
    for case in CASES:
        rows = trials[(trials.task == task) & (trials.case == case)]
        scores = pm(rows.before), pm(rows.affinity)
        means = ("–" if rows[name].isna().all() else f"{rows[name].mean():.2f}" for name in columns)
        view.add_row(case, pm(rows.accuracy, 3), *scores, *means, f"{rows.ms.mean():.1f}")
    return view


def of_small_batches(trials: pd.DataFrame) -> Table:
    """The score of networks without a penalty, by the number of samples."""
    view = Table("samples", *map(str, SIZES), title="Mean score, no penalty")
    for task in TASKS:
        rows = trials[(trials.task == task) & (trials.case == "none")]
        view.add_row(task, *(pm(rows[f"n {n}"], 3) for n in SIZES))
    return view


@for_print
def picture(trials: pd.DataFrame) -> Figure:
    """Above, the score along depth; below, what it cost, and whether R² tells the same story."""
    figure = column_figure(2, 5.2)
    above, (left, right) = figure.subplots(2, 2)
    shown = [name for name, case in CASES.items() if not case.linear]
    for axes, task in zip(above, TASKS, strict=True):
        for number, case in enumerate(shown):
            rows = trials[(trials.task == task) & (trials.case == case)]
            scores = rows[[f"affinity {site}" for site in SITES]]
            label = "no penalty" if case == "none" else f"target {case}"
            style = {"color": DARK, "linewidth": 2} if case == "none" else series_style(number - 1)
            axes.errorbar(SITES, scores.mean(), scores.std(), label=label, **style)
        axes.set(title=f"{task}?", ylim=(0.3, 1.02))
    above[0].set_ylabel("affinity score ± std over seeds")
    legend_above(figure, above[0].get_legend_handles_labels()[0])
    for task, colour, marker in zip(TASKS, (BLUE, RED), "os", strict=True):
        of_task = trials[trials.task == task]
        for case in shown:
            rows = of_task[of_task.case == case]
            dots = {"facecolors": colour if case == "none" else "none", "edgecolors": colour}
            if case != "1 at relu1":
                left.scatter(rows.affinity, rows.accuracy, 12, marker=marker, **dots)
            for site in SITES:
                right.scatter(rows[f"affinity {site}"], rows[f"r2 {site}"], 12, marker=marker, **dots)
        linear = of_task[of_task.case == "linear"].accuracy.mean()
        left.axhline(linear, color=colour, linestyle=":", linewidth=0.9)
        for words, fill in (("penalty", "none"), ("no penalty", colour)):
            label = f"{task}? {words}"
            left.scatter([], [], 12, marker=marker, facecolors=fill, edgecolors=colour, label=label)
        left.plot([], [], color=colour, linestyle=":", label=f"{task}? linear network")
    left.set(xlabel="mean score of the three ReLUs", ylabel="accuracy", ylim=(0, 1.02))
    left.set_title("what the penalty costs")
    left.legend(loc="lower left")
    right.set(xlabel="score of a ReLU", ylabel="$R^2$ of the best affine map")
    right.set_title("a low score does not imply a low $R^2$")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, show, save."""
    parser = argparse.ArgumentParser(description="Train a small network towards an affinity score.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--steps", type=int, default=250, metavar="N")
    options = parser.parse_args(arguments)
    if options.seeds < 1 or options.steps < 2:
        parser.error("expected --seeds from 1 and --steps from 2")
    options.out.mkdir(parents=True, exist_ok=True)
    trials = run(options.seeds, options.steps)
    trials.to_csv(options.out / "affinity-penalty.csv", index=False)
    save_figure(picture(trials), options.out / "affinity-penalty.png")
    console = Console(highlight=False)
    console.print(*(table(trials, task) for task in TASKS), of_small_batches(trials), sep="\n")
    console.print(
        f"{LAYERS} ReLUs of width {WIDTH}; {options.steps} steps of {BATCH}; scores of {SAMPLES} samples. In "
        f"{options.out}: affinity-penalty.png, and a row for each network in affinity-penalty.csv"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # the layers are too small to share
    main()
