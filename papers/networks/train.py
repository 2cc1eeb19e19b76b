"""Train the paper's architectures on CIFAR-10, one after the other; a call that is cut short is resumed.

For each network: its weights in a folder of the user's, the record of its training and its soundings, before
and after, in the repository.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.records import write_record
from fathometer.data import Inputs
from fathometer.errors import FathometerError, InputError, check_device, first_line
from fathometer.models import LoadedModel, load_weights
from fathometer.progress import Terminal
from fathometer.results import complete_file
from papers.images.pictures import Pictures, cifar10
from papers.networks.measure import RECORDS, SOUNDINGS, State, measure_loaded, size_of, sounding_file
from papers.networks.recipes import ARCHITECTURES, SIZE, Recipe, Training, build, every_training
from papers.networks.trainer import Enlarged, Trainer

_SOURCE = "trained here: papers/networks/training"


@dataclass(frozen=True)
class Work:
    """Where a call reads and writes, and how long it may last."""

    data: Path  # folder of cifar10_train.npz and cifar10_test.npz
    weights: Path
    device: str
    until: float  # time.monotonic()
    soundings: Path = SOUNDINGS
    records: Path = RECORDS
    images: int | None = None  # of the training set; all if left out
    epochs: int | None = None  # instead of the recipe's

    def recipe(self, training: Training) -> Recipe:
        """Return how to train a network."""
        recipe = ARCHITECTURES[training.architecture].recipe
        if self.images is not None:
            recipe = replace(recipe, batch=min(recipe.batch, self.images))
        return recipe if self.epochs is None else replace(recipe, epochs=self.epochs)

    def pictures(self, split: str) -> Pictures:
        """Read images and labels."""
        found = cifar10(self.data, "train" if split == "train" else "test")
        return Pictures(found.pixels[: self.images], found.labels[: self.images])


def train_network(training: Training, work: Work) -> bool:
    """Train a network, write its weights and its record; return False if the time was up before the end."""
    recipe = work.recipe(training)
    trainer = Trainer(
        build(training.architecture, training.seed),
        recipe,
        work.pictures("train"),
        training.seed,
        work.device,
    )
    checkpoint = work.weights / f"{training.name}.checkpoint.pt"
    if checkpoint.exists():
        trainer.resume(torch.load(checkpoint, map_location=work.device, weights_only=True))
    while not trainer.is_done:
        if time.monotonic() > work.until:
            with complete_file(checkpoint) as part:
                torch.save(trainer.state(), part)
            return False
        trainer.epoch()
    if recipe.recalibrate:
        trainer.recalibrate()
    accuracy, loss = trainer.test(work.pictures("test"))
    with complete_file(weights_file(training, work)) as part:
        torch.save({name: value.cpu() for name, value in trainer.network.state_dict().items()}, part)
    found = {
        "network": training.architecture,
        "seed": training.seed,
        "parameters": sum(parameter.numel() for parameter in trainer.network.parameters()),
        "recipe": asdict(recipe),
        "images": trainer.images,
        "seconds": round(trainer.seconds, 1),
        "accuracy": round(accuracy, 2),
        "loss": round(loss, 4),
    }
    write_record(work.records / f"{training.name}.json", found, work.device)
    checkpoint.unlink(missing_ok=True)
    return True


def weights_file(training: Training, work: Work) -> Path:
    """Return the file of the weights."""
    return work.weights / f"{training.name}.pt"


def measure_training(training: Training, work: Work) -> None:
    """Measure a network before its training, the score alone, and after it, with all gauges."""
    record = json.loads((work.records / f"{training.name}.json").read_text("utf-8"))
    family, year, _ = ARCHITECTURES[training.architecture]
    facts = {
        "year": year,
        "trained_on": "cifar10",
        "source": _SOURCE,
        "accuracy": record["accuracy"],
        "accuracy_by": "the record of its training",
        "notes": [f"torchvision's code with ten classes; images enlarged to {SIZE} pixels"],
    }
    states: tuple[State, ...] = ("random", "trained") if training.state == "trained" else ("seeds",)
    for state in states:
        target = sounding_file("cifar10", training.name, state, work.soundings)
        if target.exists():
            continue
        module = build(training.architecture, training.seed)
        if state != "random":
            load_weights(module, weights_file(training, work))
        inputs = Inputs("image", (3, SIZE, SIZE), preprocess=Enlarged())
        weights = "none" if state == "random" else "trained here"
        loaded = LoadedModel(module.eval(), training.name, weights, inputs)
        known = {"family": family, "facts": facts | size_of(loaded)}
        images = work.data / "cifar10_test.npz"
        target.parent.mkdir(parents=True, exist_ok=True)
        found = measure_loaded(loaded, images, "cifar10", known, work.device, random=state == "random")
        found.save(target)


def train_networks(
    cifar10: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of cifar10_train.npz and cifar10_test.npz.")
    ],
    weights: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for weights and checkpoints.")],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Some networks only.")] = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="Torch device.")] = "auto",
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Stop after so many seconds; the next call resumes.")
    ] = float("inf"),
    soundings: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the soundings.")] = SOUNDINGS,
    records: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the records.")] = RECORDS,
    images: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many images, to try it.", min=2)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", help="Instead of the recipe's, to try it.", min=1)
    ] = None,
) -> None:
    """Train the paper's architectures on CIFAR-10, and measure them; what is finished is kept."""
    started, terminal = time.monotonic(), Terminal()
    every = {each.name: each for each in every_training()}
    if unknown := sorted(set(names or []) - set(every)):
        raise InputError(f"{unknown[0]!r}: unknown; the networks are {', '.join(every)}")
    until = started + seconds
    work = Work(cifar10, weights, str(check_device(device)), until, soundings, records, images, epochs)
    for folder in (weights, records):
        folder.mkdir(parents=True, exist_ok=True)
    left = 0
    for name in names or every:
        training = every[name]
        finished = sounding_file("cifar10", name, training.state, soundings)
        if finished.exists() and (records / f"{name}.json").exists():
            continue
        if time.monotonic() > until:
            left += 1
            continue
        try:
            if not weights_file(training, work).exists() and not train_network(training, work):
                left += 1
                continue
            found = json.loads((records / f"{name}.json").read_text("utf-8"))
            terminal.say(
                f"{name}: accuracy {found['accuracy']} %, loss {found['loss']}, {found['seconds']} s"
            )
            measure_training(training, work)
        except (FathometerError, torch.OutOfMemoryError) as error:  # the others are trained all the same
            terminal.say(f"{name}: failed ({first_line(error)})")
    if left:
        terminal.say(f"Time is up, {left} networks are left. Run the same command again to resume.")
