"""The front door: designs in, trained networks out, all of them together."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import torch

from fathometer.errors import InputError, NumericalError, first_line
from fathometer.leaky.plan import PRESETS, Design, Recipe
from fathometer.leaky.run import HISTORY, LeakyRun, LeakySweep
from fathometer.leaky.run_files import PLAN, SweepFolder, claimed
from fathometer.leaky.steps import step_excess
from fathometer.leaky.teacher import Task, Teacher
from fathometer.leaky.tensor_files import TensorFile
from fathometer.leaky.threads import in_threads
from fathometer.leaky.training import Training
from fathometer.progress import Show, progress_bar
from fathometer.results.provenance import Provenance, describe_device, now, versions

CHECKPOINT_EVERY = 10.0  # seconds
RARELY = 20  # times as long as it takes to write one

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
    progress: bool | Show = False,
) -> LeakySweep:
    """Train Leaky ResNets together: on a GPU all of one shape as one stack, on a CPU one in each thread.

    Args:
        designs: what to train; `grid` makes many.
        recipe: how.
        task: data of one's own for all of them, in place of their teachers.
        device: where.
        threads: on a CPU; one for each core if left out.
        out: a folder for checkpoints and the result.
        resume: go on with what is in the folder.
        progress: True for a bar, or a function of (epochs done, epochs in all, a note).

    Example:
        >>> from fathometer.leaky import Design, Phase, Teacher
        >>> small = Design(2.0, 4, 8, teacher=Teacher((4, 1, 4)), samples=20, test_samples=20)
        >>> found = sweep(small, Recipe((Phase("adam", 50),)))
        >>> len(found.runs[0].history), found.runs[0].train_error < 1
        (25, True)
    """
    started = time.perf_counter()
    designs = [designs] if isinstance(designs, Design) else list(designs)
    where = _device(device)
    if not designs:
        raise InputError("designs: expected at least one network to train, got none")
    if task is not None:
        for design in designs:
            design.check_fits(task.x.shape[1], task.y.shape[1])
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(claimed(Path(out)))
        folder, tasks = _folder(designs, recipe, task, out, resume)
        trained = {} if folder is None else folder.networks()
        groups = _groups(designs, tasks, where, folder, trained)
        show = stack.enter_context(progress_bar("training")) if progress is True else progress or _silent
        board = _Board(show, sum(len(members) for members, _ in groups) * recipe.epochs)
        work = _Work(designs, tasks, recipe, where, folder, board)
        if where.type == "cpu":
            in_threads(lambda group: work.train(*group), groups, threads, work.stop.set)
        else:
            for members, training in groups:
                work.train(members, training)
        trained |= work.runs
        runs = tuple(trained[number] for number in range(len(designs)))
        _check_not_all_diverged(runs, folder)
        provenance = folder.provenance() if folder is not None and not groups else None
        if provenance is None:
            provenance = Provenance(
                model={"name": "LeakyResNet", "networks": len(designs)},
                data=tasks[0].description
                if len(set(map(id, tasks))) == 1
                else {"tasks": len(set(map(id, tasks)))},
                settings={"recipe": asdict(recipe)},
                versions=versions(),
                device=describe_device(where),
                date=now(),
                seconds=round(time.perf_counter() - started, 3),
            )
            if folder is not None:
                folder.finish(provenance)
    _warn_of(runs)
    return LeakySweep(runs, recipe, provenance)


class _Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """Another network failed, or the user has had enough."""


class _Board:
    """Progress of all groups together."""

    def __init__(self, show: Show, total: int) -> None:
        self._show, self._total, self._done = show, total, 0
        self._lock = threading.Lock()

    def add(self, epochs: int, training: Training) -> None:
        last = [rows[-1] for rows in training.history if rows]
        note = ""
        if last:
            loss = sum(row["error"] + row["decay"] for row in last) / len(last)
            note = f"loss {loss:.4g}, crit {max(row['crit'] for row in last):.2g}"
        with self._lock:
            self._done += epochs
            self._show(self._done, self._total, note)


class _Work:
    """Trains groups of networks, and keeps what comes of it."""

    def __init__(
        self,
        designs: Sequence[Design],
        tasks: Sequence[Task],
        recipe: Recipe,
        device: torch.device,
        folder: SweepFolder | None,
        board: _Board,
    ) -> None:
        self._designs, self._tasks, self._recipe = designs, tasks, recipe
        self._device, self._folder, self._board = device, folder, board
        self.runs: dict[int, LeakyRun] = {}
        self.stop = threading.Event()

    def train(self, members: Members, state: TensorFile | None = None) -> None:
        """Train some networks to the end, or until someone says stop."""
        designs, tasks = [self._designs[n] for n in members], [self._tasks[n] for n in members]
        training = Training(designs, tasks, self._recipe, self._device)
        if state is not None:
            training.restore(state)
            self._board.add(training.done * len(members), training)
        saved, interval = time.perf_counter(), CHECKPOINT_EVERY
        while not training.finished:
            before = training.done
            training.advance()
            try:
                self._board.add((training.done - before) * len(members), training)
                if self.stop.is_set() and not training.finished:
                    raise _Stopped
            except BaseException:
                self._checkpoint(members, training)
                raise
            begun = time.perf_counter()
            if begun - saved > interval:
                self._checkpoint(members, training)
                saved = time.perf_counter()
                interval = max(CHECKPOINT_EVERY, RARELY * (saved - begun))
        self._board.add((self._recipe.epochs - training.done) * len(members), training)
        self._keep(members, training)

    def _checkpoint(self, members: Members, training: Training) -> None:
        if self._folder is not None:
            self._folder.write_checkpoint(members, training.state())

    def _keep(self, members: Members, training: Training) -> None:
        for place, number in enumerate(members):
            history = pd.DataFrame(training.history[place], columns=HISTORY)
            net, diverged = training.nets[place], training.diverged[place]
            run = LeakyRun(self._designs[number], self._tasks[number], net, history, diverged)
            self.runs[number] = run
            if self._folder is not None:
                self._folder.write_network(number, run)
        if self._folder is not None:
            self._folder.remove_checkpoint(members)


def _folder(
    designs: Sequence[Design], recipe: Recipe, task: Task | None, out: str | Path | None, resume: bool
) -> tuple[SweepFolder | None, list[Task]]:
    """The folder, if there is one, and the data of each network."""
    if out is not None and resume and (Path(out) / PLAN).exists():
        folder = SweepFolder.open(Path(out))
        if not folder.same_plan(designs, recipe):
            raise InputError(
                f"{out}: holds another sweep, so this one cannot go on there; give another folder"
            )
        if task is not None and not folder.tasks[0].same_data(task):
            raise InputError(f"{out}: holds a sweep on other data; give the same, or another folder")
        return folder, folder.tasks
    if out is not None and (Path(out) / PLAN).exists():
        raise InputError(f"{out}: holds a sweep already; resume goes on with it, or give another folder")
    tasks = [task] * len(designs) if task is not None else _drawn(designs)
    if out is None:
        return None, tasks
    return SweepFolder.create(Path(out), designs, tasks, recipe), tasks


def _drawn(designs: Sequence[Design]) -> list[Task]:
    """What the teachers say; designs with one teacher share it."""
    tasks: dict[tuple[Teacher, int, int], Task] = {}
    found = []
    for design in designs:
        if design.teacher is None:
            raise InputError("task: a design without a teacher needs data of its own")
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
    """Which networks are trained together, with where they stand: those of a checkpoint stay together."""
    groups: list[tuple[Members, TensorFile | None]] = []
    for members, state in [] if folder is None else folder.checkpoints():
        if folder is not None and all(number in trained for number in members):
            folder.remove_checkpoint(members)  # it was killed just before that
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


def _check_not_all_diverged(runs: Sequence[LeakyRun], folder: SweepFolder | None) -> None:
    """An error if every network diverged."""
    diverged = [run.diverged for run in runs if run.diverged is not None]
    if len(diverged) == len(runs):
        where = "" if folder is None else f" (the last good weights are in {folder.path})"
        raise NumericalError(
            f"training diverged: the loss was not finite at epoch {min(diverged)}{where}; "
            "scale x and y to size 1, or take a lower learning rate or more layers"
        )


def _warn_of(runs: Sequence[LeakyRun]) -> None:
    """Once for all networks, in the thread of the caller."""
    diverged = [(number, run.diverged) for number, run in enumerate(runs) if run.diverged is not None]
    if diverged:
        which = ", ".join(f"network {number} at epoch {epoch}" for number, epoch in diverged[:5])
        more = ", …" if len(diverged) > 5 else ""
        warnings.warn(
            f"{len(diverged)} of {len(runs)} networks diverged ({which}{more}): they are as they were when "
            "their loss was last finite; take a lower learning rate or more layers",
            stacklevel=3,
        )
    worst = [step_excess(run.net.steps, run.design.effective_depth) for run in runs]
    long = [excess for excess in worst if excess >= 1]
    if long:
        warnings.warn(
            f"{len(long)} of {len(runs)} networks have steps with ρL̃ ≥ 1, up to {max(long):.3g}: such a "
            "layer turns what it leaks round (1 − ρL̃ ≤ 0), which does no harm inside the bottleneck alone",
            stacklevel=3,
        )


def _device(device: str | torch.device) -> torch.device:
    try:
        where = torch.device(device)
        torch.empty(1, device=where)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device: {device} is not usable here ({first_line(error)})") from error
    return where


def _silent(done: int, total: int | None, note: str = "") -> None:
    del done, total, note
