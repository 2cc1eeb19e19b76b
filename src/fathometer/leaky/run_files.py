"""A sweep on disk: a folder of JSON and safetensors. Nothing in it is ever executed.

`sweep.json` has the plan and, once all is done, how it came about; `task-000.safetensors` the data,
`network-000.safetensors` a trained network and its history, `checkpoint-000.safetensors` a training under
way, named after the first of its networks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from fathometer.errors import InputError, MissingExtraError
from fathometer.files import complete_file
from fathometer.leaky.plan import Design, Phase, Recipe
from fathometer.leaky.run import LeakyRun, LeakySweep
from fathometer.leaky.teacher import Task, Teacher
from fathometer.provenance import Provenance

SCHEMA = "fathometer.leaky"
VERSION = 1
PLAN = "sweep.json"

Contents: TypeAlias = "tuple[dict[str, Tensor], dict[str, Any]]"


class SweepFolder:
    """The folder of one sweep.

    Attributes:
        path: where it is.
        designs: of all networks.
        tasks: of all networks.
        recipe: how they are trained.
    """

    def __init__(self, path: Path, designs: Sequence[Design], tasks: Sequence[Task], recipe: Recipe) -> None:
        self.path, self.designs, self.tasks, self.recipe = path, list(designs), list(tasks), recipe

    @classmethod
    def create(
        cls, path: Path, designs: Sequence[Design], tasks: Sequence[Task], recipe: Recipe
    ) -> SweepFolder:
        """A new folder with the plan and the data in it."""
        folder = cls(path, designs, tasks, recipe)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path}: cannot make the folder ({error.strerror})") from error
        distinct = list({id(task): task for task in tasks}.values())
        for number, task in enumerate(distinct):
            parts = {"x": task.x, "y": task.y, "x_test": task.x_test, "y_test": task.y_test}
            _write(folder._file("task", number), parts, {"rank": task.rank, "description": task.description})
        places = {id(task): number for number, task in enumerate(distinct)}
        folder._write_plan(None, [places[id(task)] for task in tasks])
        return folder

    @classmethod
    def open(cls, path: Path) -> SweepFolder:
        """A folder that was created before."""
        plan = _plan(path)
        try:
            designs = [_design(entry) for entry in plan["designs"]]
            recipe = _recipe(plan["recipe"])
            numbers = [int(number) for number in plan["tasks"]]
            if len(numbers) != len(designs):
                raise ValueError("as many tasks as designs")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path / PLAN}: broken, the parts do not fit ({error})") from error
        found = {number: _task(path / f"task-{number:03}.safetensors") for number in set(numbers)}
        return cls(path, designs, [found[number] for number in numbers], recipe)

    def same_plan(self, designs: Sequence[Design], recipe: Recipe) -> bool:
        """Whether the folder is that of this sweep."""
        return self.designs == list(designs) and self.recipe == recipe

    def has_network(self, number: int) -> bool:
        """Whether a network is trained."""
        return self._file("network", number).exists()

    def write_network(self, number: int, run: LeakyRun) -> None:
        """Keep a trained network."""
        facts = {"history": run.history.to_dict("records"), "diverged": run.diverged}
        tensors = {name: _compact(tensor) for name, tensor in run.net.state_dict().items()}
        _write(self._file("network", number), tensors, facts)

    def read_network(self, number: int) -> LeakyRun:
        """A trained network."""
        path = self._file("network", number)
        tensors, facts = _read(path)
        design, task = self.designs[number], self.tasks[number]
        net = design.network(task.x.shape[1], task.y.shape[1])
        try:
            net.load_state_dict(tensors)
            history = pd.DataFrame(facts["history"], columns=["epoch", "error", "decay", "crit"])
            return LeakyRun(design, task, net, history, facts["diverged"])
        except (KeyError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1].strip()
            raise InputError(f"{path}: not the network of the plan, or broken ({reason})") from error

    def write_checkpoint(self, members: Sequence[int], contents: Contents) -> None:
        """Keep a training under way."""
        tensors, facts = contents
        _write(self._file("checkpoint", members[0]), tensors, {"members": list(members), **facts})

    def checkpoints(self) -> list[tuple[list[int], Contents]]:
        """All trainings under way, with the numbers of their networks."""
        found = []
        for path in sorted(self.path.glob("checkpoint-*.safetensors")):
            tensors, facts = _read(path)
            members = facts.pop("members", None)
            if not isinstance(members, list) or not all(
                number in range(len(self.designs)) for number in members
            ):
                raise InputError(f"{path}: not a checkpoint of this sweep; remove it to begin these anew")
            found.append((members, (tensors, facts)))
        return found

    def remove_checkpoint(self, members: Sequence[int]) -> None:
        """Forget a training that is done."""
        self._file("checkpoint", members[0]).unlink(missing_ok=True)

    def finish(self, provenance: Provenance) -> None:
        """Say how it came about."""
        self._write_plan(provenance.as_dict(), _plan(self.path)["tasks"])

    def sweep(self) -> LeakySweep:
        """The result, once every network is trained."""
        missing = [number for number in range(len(self.designs)) if not self.has_network(number)]
        if missing:
            raise InputError(
                f"{self.path}: {len(missing)} of {len(self.designs)} networks are not trained yet; "
                "give the same command with --resume, or sweep(…, resume=True)"
            )
        entry = _plan(self.path).get("provenance") or {}
        try:
            provenance = Provenance(**entry)
        except TypeError as error:
            raise InputError(f"{self.path / PLAN}: broken ({error})") from error
        runs = tuple(self.read_network(number) for number in range(len(self.designs)))
        return LeakySweep(runs, self.recipe, provenance)

    def _file(self, kind: str, number: int) -> Path:
        return self.path / f"{kind}-{number:03}.safetensors"

    def _write_plan(self, provenance: dict[str, Any] | None, tasks: list[int]) -> None:
        plan = {
            "schema": SCHEMA,
            "version": VERSION,
            "recipe": asdict(self.recipe),
            "designs": [asdict(design) for design in self.designs],
            "tasks": tasks,
            "provenance": provenance,
        }
        with complete_file(self.path / PLAN) as part:
            part.write_text(json.dumps(plan, indent=1) + "\n", "utf-8")


def save_sweep(sweep: LeakySweep, path: Path) -> Path:
    """Write a sweep that was trained without a folder."""
    if (path / PLAN).exists():
        raise InputError(f"{path}: holds a sweep already; give another folder")
    designs, tasks = zip(*((run.design, run.task) for run in sweep.runs), strict=True)
    folder = SweepFolder.create(path, designs, tasks, sweep.recipe)
    for number, run in enumerate(sweep.runs):
        folder.write_network(number, run)
    folder.finish(sweep.provenance)
    return path


def load_sweep(folder: str | Path) -> LeakySweep:
    """A sweep from the folder that `sweep(…, out=folder)` or `fathometer leaky` wrote."""
    return SweepFolder.open(Path(folder)).sweep()


def _compact(tensor: Tensor) -> Tensor:
    """As float32 where that loses nothing, as after training in float32."""
    short = tensor.float()
    return short if torch.equal(short.double(), tensor) else tensor


def _plan(folder: Path) -> dict[str, Any]:
    path = folder / PLAN
    try:
        plan = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(
            f"{folder}: expected a folder that `fathometer leaky` wrote, with {PLAN} in it ({error.strerror})"
        ) from error
    except ValueError as error:
        raise InputError(f"{path}: broken ({error})") from error
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        raise InputError(f"{path}: not a sweep; `fathometer leaky` writes them")
    if not isinstance(plan.get("version"), int) or plan["version"] > VERSION:
        raise InputError(
            f"{path}: written by a newer fathometer (format {plan.get('version')}, this one reads up to "
            f"{VERSION}); update with pip install -U fathometer"
        )
    return plan


def _design(entry: dict[str, Any]) -> Design:
    teacher = entry["teacher"]
    if teacher is not None:
        teacher = Teacher(**{**teacher, "dimensions": tuple(teacher["dimensions"])})
    steps = entry["steps"]
    return Design(**{**entry, "teacher": teacher, "steps": None if steps is None else tuple(steps)})


def _recipe(entry: dict[str, Any]) -> Recipe:
    return Recipe(**{**entry, "phases": tuple(Phase(**phase) for phase in entry["phases"])})


def _task(path: Path) -> Task:
    tensors, facts = _read(path)
    try:
        x, y, x_test, y_test = (tensors[name].double() for name in ("x", "y", "x_test", "y_test"))
        return Task(x, y, x_test, y_test, facts["rank"], facts["description"])
    except KeyError as error:
        raise InputError(f"{path}: not the data of a sweep ({error} is missing)") from error


def _write(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    _, torch_format = _safetensors()
    with complete_file(path) as part:
        whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        torch_format.save_file(whole, part, metadata={"facts": json.dumps(facts)})


def _read(path: Path) -> Contents:
    safetensors, _ = _safetensors()
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})["facts"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (KeyError, ValueError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: broken, or not of a sweep ({error})") from error


def _safetensors() -> tuple[Any, Any]:
    try:
        import safetensors
        import safetensors.torch
    except ImportError as error:
        raise MissingExtraError("safetensors", "leaky", "a folder of trained networks") from error
    return safetensors, safetensors.torch
