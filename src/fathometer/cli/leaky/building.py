"""What `train` and `sweep` share: designs and a recipe from options, training, and the result."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import RenderableType

from fathometer.cli import FLAGS, ResumableInterruptError
from fathometer.cli.leaky.tables import rank_lines
from fathometer.cli.outputs import print_result
from fathometer.errors import InputError, check_device
from fathometer.leaky import Design, LeakySweep, Phase, Recipe, Task, Teacher, own_task, preset
from fathometer.leaky import sweep as train_networks
from fathometer.leaky.teacher import Latents, TeacherKind
from fathometer.progress import Terminal, progress_bar


def build_design(
    name: str,
    width: int | None,
    decay: float | None,
    sigma: str,
    samples: int | None,
    kind: TeacherKind | None,
    latents: Latents | None,
    inner: tuple[int, ...],
) -> Design:
    """Change the design of a preset as the options say."""
    base = preset(name).design
    assert base.teacher is not None
    ends = base.teacher.dimensions[0], base.teacher.dimensions[-1]
    return replace(
        base,
        width=width or base.width,
        decay=base.decay if decay is None else decay,
        sigma=sigma,
        samples=samples or base.samples,
        test_samples=samples or base.test_samples,
        teacher=Teacher((ends[0], *inner, ends[1]), kind or "fcnn", latents or "relu"),
    )


def build_recipe(
    name: str, epochs: int | None, learning_rate: float | None, second_order: int, tolerance: float
) -> Recipe:
    """Change the recipe of a preset as the options say."""
    first, *rest = preset(name).recipe.phases
    rate = first.learning_rate if learning_rate is None else learning_rate
    phases = (replace(first, epochs=epochs or first.epochs, learning_rate=rate), *rest)
    if second_order:
        phases += (Phase("lbfgs", second_order),)
    return Recipe(phases, tolerance)


def check_task_options(data: Path | None, **options: object) -> None:
    """Refuse options of a random task together with an own task."""
    given = [name for name, value in options.items() if value is not None]
    if data is not None and given:
        names = " and ".join(FLAGS.get(name, name) for name in given)
        raise InputError(f"{names}: only for a random task, but --task is given; leave one out")


def train_all(
    designs: list[Design], recipe: Recipe, data: Path | None, device: str, out: Path, resume: bool
) -> LeakySweep:
    """Train, with a progress bar."""
    task = None if data is None else _read_task(data)
    if task is not None:
        designs = [
            replace(design, teacher=None, samples=len(task.x), test_samples=len(task.x_test))
            for design in designs
        ]
    where = check_device(device)
    try:
        with progress_bar("training") as progress:
            return train_networks(
                designs, recipe, task=task, device=where, out=out, resume=resume, progress=progress
            )
    except KeyboardInterrupt:
        raise ResumableInterruptError("Run the same command with --resume to continue.") from None


def print_trained(
    found: LeakySweep, out: Path, view: Callable[[Terminal], RenderableType], as_json: bool
) -> None:
    """Print the table, the time, the folder, and the bottleneck rank as the last line."""
    console = print_result(found.table, view, as_json)
    facts, count = found.provenance, len(found.runs)
    networks = "1 network" if count == 1 else f"{count} networks"
    console.say(f"trained {networks} in {facts.seconds:.1f} s on {facts.device}; wrote {out}")
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
            found = {name: file[name] for name in ("x", "y", "x_test", "y_test") if name in file.files}
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})", parameter="task") from error
    except Exception as error:  # no zip, or an .npy, or objects: NumPy and zipfile raise nearly anything
        raise InputError(f"{path}: expected an .npz with numbers x and y", parameter="task") from error
    if not {"x", "y"} <= found.keys():
        raise InputError(
            f"{path}: expected arrays x and y, got {', '.join(found) or 'neither'}", parameter="task"
        )
    for name, array in found.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"{path}: expected real numbers, got {array.dtype} in {name}", parameter="task")
    try:
        return own_task(**{name: torch.from_numpy(array.astype(np.float64)) for name, array in found.items()})
    except InputError as error:
        raise InputError(f"{path}: {error}", parameter="task") from error
