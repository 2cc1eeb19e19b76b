"""Train all networks of a sweep: on a GPU in stacks, on a CPU in threads."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import torch

from fathometer.errors import InputError, NumericalError, check_device
from fathometer.leaky.plan import PRESETS, Design, Recipe
from fathometer.leaky.run import LeakyRun, LeakySweep, history_table, in_threads
from fathometer.leaky.run_files import SweepFolder, TensorFile, locked_folder
from fathometer.leaky.steps import longest_step
from fathometer.leaky.teacher import Task, Teacher
from fathometer.leaky.training import Training
from fathometer.progress import ProgressCallback, shown
from fathometer.results.loading import SWEEP
from fathometer.results.provenance import Provenance, describe_device, now, versions

CHECKPOINT_EVERY = 10.0  # seconds
CHECKPOINT_SHARE = 0.05  # of the time, at most, is spent on writing checkpoints

Members: TypeAlias = "list[int]"


def sweep(
    designs: Design | Sequence[Design],
    recipe: Recipe = PRESETS["paper"].recipe,
    *,
    task: Task | None = None,
    device: str | torch.device = "cpu",
    threads: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | ProgressCallback = False,
) -> LeakySweep:
    """Train Leaky ResNets together: on a GPU all of one shape as one stack, on a CPU one in each thread.

    Args:
        designs: what to train; `grid` makes many.
        recipe: how to train.
        task: your own data for all of them, instead of their teachers.
        device: device to train on.
        threads: number of threads on a CPU. Default: one for each core.
        out: a folder for checkpoints and the result.
        resume: whether to continue the sweep in that folder.
        progress: True for a bar, or a function of (epochs done, total epochs, a note).

    Example:
        >>> from fathometer.leaky import Design, Phase, Teacher
        >>> small = Design(2.0, 4, 8, teacher=Teacher((4, 1, 4)), samples=20, test_samples=20)
        >>> found = sweep(small, Recipe((Phase("adam", 50),)))
        >>> len(found.runs[0].history), found.runs[0].train_error < 1
        (25, True)
    """
    started = time.perf_counter()
    designs = [designs] if isinstance(designs, Design) else list(designs)
    where = torch.device(check_device(device))
    if not designs:
        raise InputError("expected at least one network to train, got none", parameter="designs")
    if task is not None:
        for design in designs:
            design.check_fits(task.x.shape[1], task.y.shape[1])
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(locked_folder(Path(out)))
        folder, tasks = _folder(designs, recipe, task, out, resume)
        trained = {} if folder is None else folder.networks()
        groups = _groups(designs, tasks, where, folder, trained)
        show = stack.enter_context(shown(progress, "training"))
        epochs = sum(len(members) for members, _ in groups) * recipe.epochs
        trainer = _Trainer(designs, tasks, recipe, where, folder, show, epochs)
        if where.type == "cpu":
            in_threads(lambda group: trainer.train(*group), groups, threads, trainer.stop.set)
        else:
            for members, training in groups:
                trainer.train(members, training)
        trained |= trainer.runs
        runs = tuple(trained[number] for number in range(len(designs)))
        _report_diverged(runs, folder)
        provenance = folder.provenance if folder is not None and not groups else None
        if provenance is None:
            different = len({id(task) for task in tasks})
            provenance = Provenance(
                model={"name": "LeakyResNet", "networks": len(designs)},
                data=tasks[0].description if different == 1 else {"tasks": different},
                settings={"recipe": asdict(recipe)},
                versions=versions(),
                device=describe_device(where),
                date=now(),
                seconds=round(time.perf_counter() - started, 3),
            )
            if folder is not None:
                folder.finish(provenance)
    _report_long_steps(runs)
    return LeakySweep(runs, recipe, provenance)


class _Stopped(Exception):  # noqa: N818 (this is not an error)
    """Another network failed, or the user interrupted."""


class _Trainer:
    """Trains groups of networks, shows progress, and writes checkpoints and results."""

    def __init__(
        self,
        designs: Sequence[Design],
        tasks: Sequence[Task],
        recipe: Recipe,
        device: torch.device,
        folder: SweepFolder | None,
        show: ProgressCallback,
        epochs: int,
    ) -> None:
        self._designs, self._tasks, self._recipe = designs, tasks, recipe
        self._device, self._folder = device, folder
        self._show, self._total, self._done = show, epochs, 0
        self._lock = threading.Lock()
        self.runs: dict[int, LeakyRun] = {}
        self.stop = threading.Event()

    def train(self, members: Members, state: TensorFile | None = None) -> None:
        """Train some networks to the end, or until `stop` is set."""
        designs, tasks = [self._designs[n] for n in members], [self._tasks[n] for n in members]
        training = Training(designs, tasks, self._recipe, self._device)
        if state is not None:
            training.restore(state)
            self._count(training.done * len(members), training)
        saved, interval = time.perf_counter(), CHECKPOINT_EVERY
        while not training.finished:
            before = training.done
            training.advance()
            try:
                self._count((training.done - before) * len(members), training)
                if self.stop.is_set() and not training.finished:
                    raise _Stopped
            except BaseException:
                self._checkpoint(members, training)
                raise
            begun = time.perf_counter()
            if begun - saved > interval:
                self._checkpoint(members, training)
                saved = time.perf_counter()
                interval = max(CHECKPOINT_EVERY, (saved - begun) / CHECKPOINT_SHARE)
        self._count((self._recipe.epochs - training.done) * len(members), training)
        self._finish(members, training)

    def _count(self, epochs: int, training: Training) -> None:
        """Show the progress of all groups together, with the state of this one."""
        last = [rows[-1] for rows in training.history if rows]
        note = ""
        if last:
            loss = sum(row["error"] + row["decay"] for row in last) / len(last)
            note = f"loss {loss:.4g}, crit {max(row['crit'] for row in last):.2g}"
        with self._lock:
            self._done += epochs
            self._show(self._done, self._total, note)

    def _checkpoint(self, members: Members, training: Training) -> None:
        if self._folder is not None:
            self._folder.write_checkpoint(members, training.state())

    def _finish(self, members: Members, training: Training) -> None:
        for place, number in enumerate(members):
            history, net = history_table(training.history[place]), training.nets[place]
            run = LeakyRun(self._designs[number], self._tasks[number], net, history, training.diverged[place])
            self.runs[number] = run
            if self._folder is not None:
                self._folder.write_network(number, run)
        if self._folder is not None:
            self._folder.remove_checkpoint(members)


def _folder(
    designs: Sequence[Design], recipe: Recipe, task: Task | None, out: str | Path | None, resume: bool
) -> tuple[SweepFolder | None, list[Task]]:
    """Open or create the folder, if there is one, and return it with the data of each network."""
    if out is not None and (Path(out) / SWEEP).exists():
        if not resume:
            raise InputError(
                f"{out}: holds a sweep already; use resume to continue it, or give another folder"
            )
        folder = SweepFolder.open(Path(out))
        if folder.designs != list(designs) or folder.recipe != recipe:
            raise InputError(f"{out}: holds another sweep; give another folder")
        if task is not None and not folder.tasks[0].same_data(task):
            raise InputError(f"{out}: holds a sweep on other data; give the same data, or another folder")
        return folder, folder.tasks
    tasks = [task] * len(designs) if task is not None else _make_tasks(designs)
    return None if out is None else SweepFolder.create(Path(out), designs, tasks, recipe), tasks


def _make_tasks(designs: Sequence[Design]) -> list[Task]:
    """Make the tasks; designs with the same teacher share one."""
    tasks: dict[tuple[Teacher, int, int], Task] = {}
    found = []
    for design in designs:
        if design.teacher is None:
            raise InputError("a design without a teacher needs your own data", parameter="task")
        key = (design.teacher, design.samples, design.test_samples)
        if key not in tasks:
            tasks[key] = design.teacher.task(design.samples, design.test_samples)
        found.append(tasks[key])
    return found


def _groups(
    designs: Sequence[Design],
    tasks: Sequence[Task],
    device: torch.device,
    folder: SweepFolder | None,
    trained: Mapping[int, LeakyRun],
) -> list[tuple[Members, TensorFile | None]]:
    """Decide which networks are trained together, and from which state: as in the checkpoints."""
    groups: list[tuple[Members, TensorFile | None]] = []
    if folder is not None:
        for members, state in folder.checkpoints():
            if all(number in trained for number in members):
                folder.remove_checkpoint(members)  # a killed process had no time to
            else:
                groups.append((members, state))
    known = {*trained, *(number for members, _ in groups for number in members)}
    shapes: dict[object, Members] = {}
    for number, (design, task) in enumerate(zip(designs, tasks, strict=True)):
        if number in known:
            continue
        alike = (design.layers, design.width, design.sigma, design.maps, task.x.shape, task.y.shape)
        shapes.setdefault(number if device.type == "cpu" else alike, []).append(number)
    return groups + [(members, None) for members in shapes.values()]


def _report_diverged(runs: Sequence[LeakyRun], folder: SweepFolder | None) -> None:
    """Warn once of all networks that diverged; raise an error if every network did."""
    diverged = {number: run.diverged for number, run in enumerate(runs) if run.diverged is not None}
    if len(diverged) == len(runs):
        where = "" if folder is None else f" (the last finite weights are in {folder.path})"
        raise NumericalError(
            f"training diverged: the loss was not finite at epoch {min(diverged.values())}{where}; "
            "scale x and y to size 1, or use a lower learning rate or more layers"
        )
    if diverged:
        which = ", ".join(f"network {number} at epoch {epoch}" for number, epoch in diverged.items())
        warnings.warn(
            f"{len(diverged)} of {len(runs)} networks diverged ({which}): they are kept as they were when "
            "their loss was last finite; use a lower learning rate or more layers",
            stacklevel=3,
        )


def _report_long_steps(runs: Sequence[LeakyRun]) -> None:
    """Warn once of all networks with ρL̃ ≥ 1."""
    longest = [longest_step(run.net.steps, run.design.effective_depth) for run in runs]
    too_long = [step for step in longest if step >= 1]
    if too_long:
        warnings.warn(
            f"{len(too_long)} of {len(runs)} networks have steps with ρL̃ ≥ 1, up to {max(too_long):.3g}: "
            "such a layer reverses the sign of what it leaks (1 − ρL̃ ≤ 0), which is harmless only in the "
            "bottleneck",
            stacklevel=3,
        )
