"""What `train` and `sweep` do with their options: build designs and a recipe, train, print the result."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fathometer.cli import FLAGS, resumable
from fathometer.cli.leaky.tables import network_view, rank_lines, sweep_view
from fathometer.cli.leaky.training import TrainingOptions
from fathometer.cli.outputs import print_result
from fathometer.errors import InputError, check_device
from fathometer.leaky import Design, Phase, Recipe, Task, Teacher, own_task, preset
from fathometer.leaky import sweep as train_networks
from fathometer.progress import progress_bar


def build_design(options: TrainingOptions, inner: tuple[int, ...]) -> Design:
    """Change the design of a preset as the options say."""
    base = preset(options.preset).design
    assert base.teacher is not None
    ends = base.teacher.dimensions[0], base.teacher.dimensions[-1]
    return replace(
        base,
        width=options.width or base.width,
        decay=base.decay if options.decay is None else options.decay,
        sigma=options.sigma or base.sigma,
        samples=options.samples or base.samples,
        test_samples=options.samples or base.test_samples,
        teacher=Teacher((ends[0], *inner, ends[1]), options.teacher or "fcnn", options.latents or "relu"),
    )


def _build_recipe(options: TrainingOptions) -> Recipe:
    """Change the recipe of a preset as the options say."""
    first, *rest = preset(options.preset).recipe.phases
    rate = first.learning_rate if options.learning_rate is None else options.learning_rate
    phases = (replace(first, epochs=options.epochs or first.epochs, learning_rate=rate), *rest)
    if options.second_order:
        phases += (Phase("lbfgs", options.second_order),)
    return Recipe(phases, options.tolerance)


def check_task_options(options: TrainingOptions, **ranks: object) -> None:
    """Refuse options of a random task together with an own task."""
    random = {name: getattr(options, name) for name in ("samples", "teacher", "latents")}
    given = [name for name, value in {**ranks, **random}.items() if value is not None]
    if options.task is not None and given:
        names = " and ".join(FLAGS.get(name, name) for name in given)
        raise InputError(f"{names}: only for a random task, but --task is given; leave one out")


def train_and_print(designs: list[Design], options: TrainingOptions, out: Path) -> None:
    """Train, with a progress bar; print a table, the folder, and at last the bottleneck ranks."""
    task = None if options.task is None else _read_task(options.task)
    if task is not None:
        designs = [
            replace(design, teacher=None, samples=len(task.x), test_samples=len(task.x_test))
            for design in designs
        ]
    recipe, device = _build_recipe(options), check_device(options.device)
    with resumable("Run the same command with --resume to continue."), progress_bar("training") as progress:
        found = train_networks(
            designs, recipe, task=task, device=device, out=out, resume=options.resume, progress=progress
        )
    count = len(found.runs)
    view = network_view(found.runs[0]) if count == 1 else sweep_view(found)
    console = print_result(found.table, view, options.as_json)
    networks = "1 network" if count == 1 else f"{count} networks"
    seconds, where = found.provenance.seconds, found.provenance.device
    console.say(f"trained {networks} in {seconds:.1f} s on {where}; wrote {out}")
    for line in rank_lines(found.runs):
        console.print(line)


def inner_dimensions(ranks: str) -> list[tuple[int, ...]]:
    """Read inner dimensions such as `2,3` or `6x3`."""
    try:
        found = [tuple(int(inner) for inner in part.split("x")) for part in ranks.split(",")]
        if min(itertools.chain(*found)) < 1:
            raise ValueError
    except ValueError as error:
        raise InputError(
            f"--ranks: expected whole numbers from 1 with commas, as 2,3 or 6x3, got {ranks!r}"
        ) from error
    return found


def _read_task(path: Path) -> Task:
    """Read x, y and, if there are any, x_test and y_test from an .npz; nothing in it is executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("x", "y", "x_test", "y_test") if name in file.files}
        return own_task(**{name: _as_tensor(array) for name, array in arrays.items()})
    except InputError as error:
        raise InputError(f"{path}: {error}", parameter="task") from error
    except OSError:
        raise
    except Exception as error:  # no zip, objects, complex numbers, no y: NumPy raises nearly anything
        raise InputError(f"{path}: expected an .npz with real numbers x and y", parameter="task") from error


def _as_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.float64, casting="same_kind"))  # refuses complex numbers
