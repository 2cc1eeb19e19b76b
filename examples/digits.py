"""Measures a plain and a residual network on handwritten digits, before and after training.

    python -m examples.digits --out demo

Two convolutional networks that differ only in `x +` learn scikit-learn's 8×8 digits, and `measure` takes
their non-linearity signatures on held-out images. The terminal shows them, and which claims of the paper's
Figure 5D (residual connections) and Figure 9 (training) hold at this size.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fathometer import Sounding, measure, write_report
from fathometer.progress import progress_bar
from fathometer.report import (
    BLUE,
    DARK,
    RED,
    SMALL_SIZE,
    column_figure,
    for_print,
    legend_above,
    save_figure,
)

WIDTH, BLOCKS = 16, 8  # 17 ReLU calls: one after the stem, two in each block
TRAINING, SAMPLES = 1000, 128  # of 1797 images; the other 797 make 6 batches to measure, 29 are left over
COLUMNS = list(itertools.product(("plain", "residual"), ("before", "after")))

Trial: TypeAlias = "tuple[Sounding, float]"  # what was measured, and the accuracy
Trials: TypeAlias = "dict[tuple[str, str], list[Trial]]"  # by column, one for each seed


def conv(channels: int) -> nn.Sequential:
    """With weights drawn as torchvision draws those of VGG and ResNet."""
    layer = nn.Conv2d(channels, WIDTH, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(layer, nn.BatchNorm2d(WIDTH))


class Block(nn.Module):
    """Two convolutions and a ReLU after each; the residual one adds its input before the second ReLU."""

    def __init__(self, residual: bool) -> None:
        super().__init__()
        self.residual = residual
        self.first, self.inside, self.second, self.end = conv(WIDTH), nn.ReLU(), conv(WIDTH), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """`[n, width, 8, 8]` to the same."""
        y = self.second(self.inside(self.first(x)))
        return self.end(x + y if self.residual else y)


def network(kind: str, seed: int) -> nn.Module:
    """One seed gives the same weights to both kinds."""
    torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict(conv=conv(1), stem=nn.ReLU())
    layers |= {f"block{i + 1}": Block(kind == "residual") for i in range(BLOCKS)}
    layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten(), "head": nn.Linear(WIDTH, 10)}
    return nn.Sequential(layers)


def digits(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Split the images into training and held-out ones, differently for each seed."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images).float().reshape(-1, 1, 8, 8) / 16, torch.from_numpy(labels)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    training, held_out = order[:TRAINING], order[TRAINING:]
    return TensorDataset(x[training], y[training]), TensorDataset(x[held_out], y[held_out])


def train(model: nn.Module, data: TensorDataset, epochs: int, seed: int) -> Iterator[int]:
    """Train by stochastic gradient descent with one cycle of the learning rate; yields after each epoch."""
    loader = DataLoader(data, 50, shuffle=True, generator=torch.Generator().manual_seed(seed))
    optimiser = torch.optim.SGD(model.parameters(), momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            schedule.step()
        yield epoch


def take(model: nn.Module, data: TensorDataset, name: str) -> Trial:
    """A sounding takes one call: a network, a loader, and what to measure."""
    loader = DataLoader(data, batch_size=SAMPLES)
    gauges = ["affinity", "stable_rank", "cost_of_identity"]
    sounding = measure(model, loader, samples=SAMPLES, gauges=gauges, name=name)
    x, y = data.tensors
    with torch.no_grad():
        return sounding, float((model.eval()(x).argmax(1) == y).double().mean())


def run(seeds: int, epochs: int) -> Trials:
    """Every network is measured, trained, and measured again."""
    trials: Trials = {column: [] for column in COLUMNS}
    with progress_bar("training and measuring") as show:
        steps, total = itertools.count(), 2 * seeds * epochs
        show(next(steps), total)
        for seed, kind in itertools.product(range(seeds), ("plain", "residual")):
            training, held_out = digits(seed)
            model = network(kind, seed)
            trials[kind, "before"].append(take(model, held_out, f"{kind} before training, seed {seed}"))
            for _ in train(model, training, epochs, seed):
                show(next(steps), total)
            trials[kind, "after"].append(take(model, held_out, f"{kind} after training, seed {seed}"))
    return trials


def over_all(trials: Sequence[Trial]) -> pd.DataFrame:
    """The signature with its standard deviation over the batches of all seeds."""
    records = pd.concat([sounding.records for sounding, _ in trials])
    return records.groupby("site", sort=False)["affinity"].agg(["mean", "std"])


def numbers_of(trials: Sequence[Trial]) -> pd.DataFrame:
    """What Figures 3, 5D and 9 speak of, a row for each seed."""
    found = pd.DataFrame([sounding.summary() for sounding, _ in trials]).reset_index(drop=True)
    scores = np.array([sounding.signature for sounding, _ in trials])  # [seeds, sites]
    inside, end = scores[:, 1::2], scores[:, 2::2]  # the first site is the stem
    found["apart"] = end.mean(1) - inside.mean(1)
    found["ashman"] = math.sqrt(2) * found.apart / np.hypot(inside.std(1), end.std(1))
    found["ends"] = np.median(end, 1)
    found["final"] = scores[:, -3:].mean(1)
    found["rise"] = [pd.Series(row).rank().corr(pd.Series(range(len(row)), dtype=float)) for row in scores]
    found["dims"] = [sounding.mean("stable_rank_x").iloc[-1] for sounding, _ in trials]
    found["accuracy"] = [accuracy for _, accuracy in trials]
    return found


def pm(values: pd.Series[float]) -> str:
    """Mean ± standard deviation over seeds."""
    return f"{values.mean():.2f}" + (f" ± {values.std():.2f}" if len(values) > 1 else "")


def table(trials: Trials, width: int) -> Table:
    """Sites × columns with a bar for each score, and under them the statistics of Figure 3."""
    means = pd.DataFrame({column: over_all(trials[column])["mean"] for column in COLUMNS})
    floor = math.floor(10 * means.to_numpy().min()) / 10
    cells = min((width - 48) // 4, 16)  # what is left for a bar
    view = Table("site", *(f"{kind}\n{when}" for kind, when in COLUMNS))
    view.title = "Affinity score: 1 is affine, lower is more non-linear"
    view.caption = f"Bars run from {floor:.1f} to 1. Means over batches and seeds, ± std over seeds."
    for site, row in means.iterrows():
        eighths = [round(8 * cells * (score - floor) / (1 - floor)) for score in row]
        bars = ["█" * (count // 8) + " ▏▎▍▌▋▊▉"[count % 8] for count in eighths]
        view.add_row(str(site), *(f"{score:.2f} {bar}" for score, bar in zip(row, bars, strict=True)))
    view.add_section()
    for name in ("min", "median", "max", "spread", "accuracy"):
        view.add_row(name, *(pm(numbers_of(trials[column])[name]) for column in COLUMNS))
    return view


def findings(trials: Trials) -> Table:
    """The claims of both figures as we read them, and in how many seeds they hold."""
    p0, p1, r0, r1 = (numbers_of(trials[column]) for column in COLUMNS)
    view = Table("seen here", "claim, and the numbers", caption_justify="left")

    def claim(holds: pd.Series[bool], says: str, *numbers: pd.Series[float]) -> None:
        count, seeds = int(holds.sum()), len(holds)
        word = "[green]yes" if count == seeds else "[yellow]partly" if count else "[red]no"
        view.add_row(f"{word}[/], {count} of {seeds}", says.format(*map(pm, numbers)))

    view.add_row("", "[bold]Residual connections make the scores of a trained network bimodal (Figure 5D)")
    claim(r1.spread > p1.spread, "Scores spread wider, {}, than in the plain one, {}.", r1.spread, p1.spread)
    says = "After the sum ReLU is more linear than inside the block: by {}, at the same places of the plain "
    says += "network by {}, before training by {}."
    claim(r1.apart > p1.apart.abs(), says, r1.apart, p1.apart, r0.apart)
    claim(r1.ashman > 2, "These two groups are separate modes, Ashman's D > 2: {}.", r1.ashman)
    claim(r1.ends > 0.9, "One mode is near linear, its median > 0.9: {}.", r1.ends)
    view.add_section()
    view.add_row("", "[bold]A plain network starts out more linear with depth, training bends it (Figure 9)")
    claim(p0.rise > 0.5, "Untrained, scores rise with depth, rank correlation > 0.5: {}.", p0.rise)
    claim(p0.final > 0.95, "They end almost linear, mean of the last three > 0.95: {}.", p0.final)
    claim(p1["median"] < p0["median"], "Training lowers them: median {} to {}.", p0["median"], p1["median"])
    claim(p1.rise < p0.rise, "Trained, they rise less steadily: correlation from {} to {}.", p0.rise, p1.rise)
    dims = [f"{pm(before.dims)} to {pm(after.dims)}" for before, after in ((p0, p1), (r0, r1))]
    view.caption = "Counted in seeds; thresholds are ours, the paper gives none. Stable rank at the last "
    view.caption += f"ReLU, before to after training: plain {dims[0]}, residual {dims[1]}, of {WIDTH}."
    return view


@for_print
def picture(trials: Trials) -> Figure:
    """Left plain, right residual; dashed before, solid after training."""
    figure = column_figure(2, 2.9)
    looks: dict[str, Any] = {"before": (BLUE, "--"), "after": (RED, "-")}
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("plain", "residual"), strict=True):
        for when, (colour, line) in looks.items():
            drawn = over_all(trials[kind, when])
            axes.errorbar(drawn.index, drawn["mean"], drawn["std"], color=colour, linestyle=line)
            fills = [colour if site.endswith("end") else "white" for site in drawn.index]
            axes.scatter(drawn.index, drawn["mean"], 14, fills, edgecolors=colour, linewidths=0.8, zorder=3)
        accuracies = [f"{numbers_of(trials[kind, when]).accuracy.mean():.2f}" for when in looks]
        axes.set_title(f"{kind} network, accuracy from {' to '.join(accuracies)}")
        axes.tick_params("x", rotation=90, labelsize=SMALL_SIZE)
    axes.set_ylim(top=1)  # of both
    figure.supylabel("affinity score ± std", fontsize=8)
    dot: Any = {"color": DARK, "marker": "o", "linestyle": "", "markersize": 4}
    lines = [Line2D([], [], color=c, linestyle=s, label=f"{w} training") for w, (c, s) in looks.items()]
    filled = Line2D([], [], label="end of a block (residual: after the sum)", **dot)
    hollow = Line2D([], [], label="inside a block, stem", markerfacecolor="white", **dot)
    legend_above(figure, [*lines, filled, hollow])
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, show, save."""
    parser = argparse.ArgumentParser(description="Sound two small networks before and after training.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--epochs", type=int, default=12, metavar="N")
    options = parser.parse_args(arguments)
    if min(options.seeds, options.epochs) < 1:
        parser.error("--seeds and --epochs: expected whole numbers from 1")
    options.out.mkdir(parents=True, exist_ok=True)
    trials = run(options.seeds, options.epochs)
    for (kind, when), column in trials.items():
        for seed, (sounding, _) in enumerate(column):
            sounding.save(options.out / f"{kind}-{when}-{seed}.json")
    save_figure(picture(trials), options.out / "signatures.png")
    write_report(
        {f"{kind} {when}": column[0][0] for (kind, when), column in trials.items()},
        options.out / "digits.html",
        title="A plain and a residual network on digits, before and after training",
        facts=pd.DataFrame({"family": {f"{kind} {when}": kind for kind, when in COLUMNS}}),
    )
    console = Console(highlight=False)
    console.print(table(trials, console.width), findings(trials), sep="\n")
    console.print(
        f"At toy size: {1 + 2 * BLOCKS} ReLUs of width {WIDTH}, {TRAINING} training images, epochs: "
        f"{options.epochs}, seeds: {', '.join(map(str, range(options.seeds)))}. Before training, BatchNorm "
        f"has seen no data and changes nothing, as if there were none. In {options.out}: signatures.png, "
        f"digits.html to open in a browser, and soundings to look into: "
        f"fathometer show {options.out / 'residual-after-0.json'}"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # the layers are too small to share
    main()
