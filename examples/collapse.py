"""Shows a training that looks perfect by its loss while the representation collapses.

    python -m examples.collapse --out demo

A small network learns scikit-learn's 8×8 digits without labels: two distorted views of an image should be
represented alike (SimSiam, Chen and He, 2021). Without BatchNorm, the loss soon reaches its optimum of −1,
because the representation varies along one direction only. Without the stop-gradient it degrades, too, but
keeps some directions. A probe applies the rules of `fathometer.check` to all trainings: they notice the first
of these, and not the second. Labels are used only to count how often the nearest neighbours of an image show
its digit. `collapse.json` has what was found, step by step.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from examples.training_film import digits
from fathometer.training import Probe

WIDTH, BATCH, EVERY, STEPS = 64, 100, 10, 300
TRAININGS = {
    "with both": {"normalised": True, "stop_gradient": True},
    "no BatchNorm": {"normalised": False, "stop_gradient": True},
    "no stop-gradient": {"normalised": True, "stop_gradient": False},
}


def encoder(normalised: bool) -> nn.Sequential:
    """Make the network whose representation is learnt: `[n, 1, 8, 8]` to `[n, width]`."""

    def norm(kind: type[nn.Module], width: int) -> Iterator[nn.Module]:
        if normalised:
            yield kind(width)

    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), *norm(nn.BatchNorm2d, 32), nn.ReLU()),
        *(nn.Conv2d(32, WIDTH, 3, 2, padding=1), *norm(nn.BatchNorm2d, WIDTH), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(16 * WIDTH, WIDTH), *norm(nn.BatchNorm1d, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)),
    )


def distorted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Shift a batch by up to a pixel, and add noise."""
    across, down = torch.randint(-1, 2, (2,), generator=generator).tolist()
    return images.roll((down, across), (2, 3)) + 0.2 * torch.randn(images.shape, generator=generator)


def train(seed: int, *, normalised: bool, stop_gradient: bool) -> list[dict[str, Any]]:
    """Train; return what is known at every tenth step."""
    training, held_out = digits(seed)
    x, _ = training.tensors
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = encoder(normalised)
    predict = nn.Sequential(nn.Linear(WIDTH, WIDTH // 2), nn.ReLU(), nn.Linear(WIDTH // 2, WIDTH))
    optimiser = torch.optim.Adam([*model.parameters(), *predict.parameters()], 1e-3)
    probe = Probe(model, held_out[0], gauges="check", every=EVERY, max_overhead=None)
    rows = []
    for step in range(STEPS + 1):
        images = x[torch.randint(len(x), (BATCH,), generator=generator)]
        one, other = (model(distorted(images, generator)) for _ in range(2))
        targets = (other.detach(), one.detach()) if stop_gradient else (other, one)
        alike = F.cosine_similarity(predict(one), targets[0]).mean()
        alike = alike + F.cosine_similarity(predict(other), targets[1]).mean()
        loss = -alike / 2
        sounding = probe.step(step, loss=loss)
        if sounding is not None:
            found = {finding.rule: str(finding) for finding in sounding.check().at_least("warning")}
            last = float(sounding.mean("participation_ratio_y").iloc[-1])
            near = neighbours(model, training.tensors, held_out)
            rows.append({"step": step, "loss": loss.item(), "near": near, "rank": last, "findings": found})
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return rows


@torch.no_grad()
def neighbours(model: nn.Module, known: Sequence[Tensor], held_out: Sequence[Tensor]) -> float:
    """Return how often the digit of an image is that of its five nearest neighbours."""
    model.eval()
    (x, y), (x_test, y_test) = ((model(images), labels) for images, labels in (known, held_out))
    model.train()
    return float(KNeighborsClassifier(5).fit(x, y).score(x_test, y_test))


def table(found: dict[str, list[dict[str, Any]]]) -> Table:
    """Show the trainings beside each other, every fifth row."""
    columns = [f"{name}:\n{what}" for name in found for what in ("loss", "neighbours", "rank")]
    view = Table("step", *columns)
    for rows in list(zip(*found.values(), strict=True))[::5]:
        numbers = [f"{row[name]:.{places}f}" for row in rows for name, places in _DECIMALS.items()]
        view.add_row(str(rows[0]["step"]), *numbers)
    return view


_DECIMALS = {"loss": 3, "near": 3, "rank": 1}


def first_findings(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the first finding of each rule, with its step."""
    first: dict[str, str] = {}
    for row in rows:
        for rule, finding in row["findings"].items():
            first.setdefault(rule, f"step {row['step']}: {finding}")
    return first


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, show, save."""
    parser = argparse.ArgumentParser(description="A training that collapses while its loss looks perfect.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    logging.getLogger("fathometer").setLevel(logging.ERROR)  # findings are printed at the end
    found = {name: train(options.seed, **changes) for name, changes in TRAININGS.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "collapse.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    console = Console(highlight=False)
    console.print(table(found))
    for name, rows in found.items():
        lines = first_findings(rows).values() or ["no warning"]
        console.print(f"{name}:", *lines, sep="\n  ", markup=False)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the layers are too small to share
    main()
