"""Measures the non-linearity signature of a network while it trains, as in Figure 9 of the paper.

    python -m examples.training_film --out demo

A convolutional network learns scikit-learn's 8×8 digits, and a probe takes its signature on held-out
images, as often as five percent of the training time allow. `history.json` has every sounding,
`training.png` shows them.
"""

from __future__ import annotations

import argparse
import io
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fathometer.progress import progress_bar
from fathometer.report import BLUE, GREY, RED, column_figure, for_print, save_figure
from fathometer.results.history import History
from fathometer.training import Probe

WIDTH, LAYERS, BATCH = 16, 12, 50
TRAINING, SAMPLES = 1000, 256  # of 1797 images


def network(seed: int) -> nn.Module:
    """Convolutions, BatchNorm and ReLU, one after the other."""
    torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for place in range(LAYERS):
        convolution = nn.Conv2d(WIDTH if place else 1, WIDTH, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
        layers[f"conv{place + 1}"] = nn.Sequential(convolution, nn.BatchNorm2d(WIDTH))
        layers[f"relu{place + 1}"] = nn.ReLU()
    layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten(), "head": nn.Linear(WIDTH, 10)}
    return nn.Sequential(layers)


def digits(seed: int) -> tuple[TensorDataset, tuple[Tensor, Tensor]]:
    """Images for training, and held-out ones with their labels."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images).float().reshape(-1, 1, 8, 8) / 16, torch.from_numpy(labels)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    training, held_out = order[:TRAINING], order[TRAINING:]
    return TensorDataset(x[training], y[training]), (x[held_out], y[held_out])


def train(
    epochs: int, seed: int, max_overhead: float | None, every: int | Literal["auto"] = "auto"
) -> tuple[History, float]:
    """Train with an ordinary loop and three lines for the probe; return history and accuracy."""
    training, held_out = digits(seed)
    model = network(seed).train()
    loader = DataLoader(training, BATCH, shuffle=True, generator=torch.Generator().manual_seed(seed))
    optimiser = torch.optim.SGD(model.parameters(), momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=epochs * len(loader))
    often: Any = {"every": every, "max_overhead": max_overhead}
    probe = Probe(model, held_out, samples=SAMPLES, name="plain network on digits", **often)
    probe.step(0)
    step = 0
    with progress_bar("training") as show:
        for _ in range(epochs):
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                step += 1
                probe.step(step, loss=loss)
                show(step, epochs * len(loader))
    probe.finish()
    with torch.no_grad():
        right = model.eval()(held_out[0]).argmax(1) == held_out[1]
    return probe.history, float(right.double().mean())


def table(history: History) -> Table:
    """Before and after, site by site."""
    view = Table("site", f"step {history.steps[0]}", f"step {history.steps[-1]}", "change")
    view.title = "Affinity score before and after training"
    for site, first, last, change in history.change().itertuples():
        view.add_row(str(site), f"{first:.3f}", f"{last:.3f}", f"{change:+.3f}")
    return view


def film(history: History) -> bytes:
    """Draw the signature while the network learns, with the loss below: a GIF, a frame for each sounding."""
    frames = []
    for place in range(len(history.steps)):
        drawn = io.BytesIO()
        frame(history, place).savefig(drawn, format="png", dpi=100)
        frames.append(Image.open(drawn).convert("RGB"))
    shared = frames[-1].quantize(64)
    first, *others = (each.quantize(palette=shared, dither=Image.Dither.NONE) for each in frames)
    times = [80] * len(others) + [2500]  # milliseconds
    written = io.BytesIO()
    first.save(written, "GIF", save_all=True, append_images=others, duration=times, loop=0)
    return written.getvalue()


@for_print
def frame(history: History, place: int) -> Figure:
    """Draw one sounding over the first one, and the loss until then."""
    table, loss, step = history.signature, history.metric("loss"), history.steps[place]
    figure = column_figure(2, 3.6)
    top, bottom = figure.subplots(2, 1, height_ratios=(1, 0.4))
    names = [str(name) for name in table.columns]
    top.plot(names, table.iloc[0], "o--", color=GREY, mfc="white", label="before training")
    top.plot(names, table.iloc[place], "o-", color=BLUE, label=f"step {step}")
    top.set(ylabel="affinity score", ylim=(table.to_numpy().min() - 0.02, 1.0))
    top.set_title("1 = affine, lower = more non-linear", loc="left")
    top.legend(loc="lower right")
    bottom.plot(loss.index, loss, color=GREY, linewidth=0.6)
    bottom.plot(loss.loc[:step], color=RED)
    bottom.set(xlabel="step", ylabel="loss (log)", yscale="log", xlim=(0, history.steps[-1]))
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, show, save."""
    parser = argparse.ArgumentParser(description="Follow the signature of a network while it learns.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--epochs", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--max-overhead", type=float, default=0.05, metavar="SHARE")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs: expected a whole number from 1")
    options.out.mkdir(parents=True, exist_ok=True)
    history, accuracy = train(options.epochs, options.seed, options.max_overhead)
    history.save(options.out / "history.json")
    save_figure(history.plot(), options.out / "training.png")
    console = Console(highlight=False)
    console.print(table(history))
    median = history.signature.median(axis=1)
    console.print(
        f"Accuracy on held-out images {accuracy:.3f}. Median affinity {median.iloc[0]:.3f} before training, "
        f"{median.iloc[-1]:.3f} after it. {len(history.steps)} soundings; measuring took {history.cost}. "
        f"In {options.out}: history.json and training.png"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # the layers are too small to share
    main()
