"""Does a site with a high score need its ReLU? Replaces each by a straight line, and measures the accuracy.

    python -m examples.straightened --out demo

The networks are those of `examples.digits`, trained. At one site after the other, ReLU is replaced by the
best affine function of each channel, a·x + b by least squares on the training images; the rest is
unchanged. The loss of accuracy on held-out images is what the non-linearity of that site is worth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from examples import digits as demo
from fathometer import measure
from fathometer.report import GREY, column_figure, for_print, save_figure, series_style

KINDS = ("plain", "residual")
SAMPLES = 256


class Line(nn.Module):
    """a·x + b for each channel, in place of ReLU: the best on these inputs, `[images, channels, 8, 8]`."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        over, y = (0, 2, 3), x.relu()
        mean_x, mean_y = x.mean(over, keepdim=True), y.mean(over, keepdim=True)
        shared = ((x - mean_x) * (y - mean_y)).sum(over, keepdim=True)
        self.slope = shared / (x - mean_x).square().sum(over, keepdim=True)
        self.offset = mean_y - self.slope * mean_x

    def forward(self, x: Tensor) -> Tensor:
        """Of every position alike."""
        return self.slope * x + self.offset


def lines_of(model: nn.Module, images: Tensor) -> dict[str, Line]:
    """The line for each ReLU, by name."""
    found: dict[str, Line] = {}

    def fit(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        found[names[module]] = Line(inputs[0])

    names: dict[nn.Module, str] = {
        module: name for name, module in model.named_modules() if isinstance(module, nn.ReLU)
    }
    handles = [module.register_forward_pre_hook(fit) for module in names]
    with torch.no_grad():
        model(images)
    for handle in handles:
        handle.remove()
    return found


@contextmanager
def replaced(model: nn.Module, name: str, other: nn.Module) -> Iterator[None]:
    """Replace a module for a while."""
    owner, _, last = name.rpartition(".")
    place, own = model.get_submodule(owner), model.get_submodule(name)
    setattr(place, last, other)
    try:
        yield
    finally:
        setattr(place, last, own)


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """In percent, on all of the data."""
    x, y = data.tensors
    with torch.no_grad():
        return 100 * float((model(x).argmax(1) == y).double().mean())


def trial(kind: str, seed: int, epochs: int) -> list[dict[str, Any]]:
    """A row for each site of one network."""
    training, held_out = demo.digits(seed)
    model = demo.network(kind, seed)
    for _ in demo.train(model, training, epochs, seed):
        pass
    model.eval()
    score = measure(model, held_out.tensors[0], samples=SAMPLES, gauges="affinity").signature
    whole = accuracy(model, held_out)
    rows = []
    for name, line in lines_of(model, training.tensors[0]).items():
        with replaced(model, name, line):
            lost = whole - accuracy(model, held_out)
        rows.append({"kind": kind, "seed": seed, "site": name, "score": score[name], "lost": lost})
    return [{**row, "accuracy": whole} for row in rows]


def run(seeds: int, epochs: int) -> pd.DataFrame:
    """A row for each site of all networks."""
    return pd.DataFrame([row for kind in KINDS for seed in range(seeds) for row in trial(kind, seed, epochs)])


@for_print
def picture(rows: pd.DataFrame) -> Figure:
    """A dot for each site of each network."""
    figure = column_figure(2, 2.6)
    axes = figure.subplots()
    for number, kind in enumerate(KINDS):
        part = rows[rows["kind"] == kind]
        looks = series_style(number) | {"linestyle": "", "label": f"{kind} network"}
        axes.plot(part["score"], part["lost"], **looks)
    axes.axhline(0, color=GREY, linewidth=0.6)
    axes.set(xlabel="affinity score of a ReLU", ylabel="accuracy lost without it\n(percentage points)")
    axes.legend()
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, straighten, print, draw."""
    parser = argparse.ArgumentParser(description="What is lost when a ReLU becomes a straight line.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--epochs", type=int, default=12, metavar="N")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = run(options.seeds, options.epochs)
    rows.to_csv(options.out / "straightened.csv", index=False)
    save_figure(picture(rows), options.out / "straightened.png")
    print(rows.groupby(["kind", "site"], sort=False)[["score", "lost"]].mean().round(3).to_string())
    for kind, part in rows.groupby("kind"):
        by_seed = part.groupby("seed")
        ranks = [f"{of['score'].corr(of['lost'], method='spearman'):.2f}" for _, of in by_seed]
        print(f"{kind}: accuracy {by_seed['accuracy'].first().round(1).to_list()}, rank correlations {ranks}")


if __name__ == "__main__":
    main()
