"""A sweep on disk: a folder of JSON and safetensors.

`sweep.json` has the plan and, when all is done, the provenance; `task-000.safetensors` the data,
`network-000.safetensors` a trained network and its history, `checkpoint-000.safetensors` an unfinished
training, named after the first of its networks. Each says which design, recipe and data it belongs to.
`.lock` exists while a process trains in the folder. Nothing in these files is ever executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import torch
from torch import Tensor

from fathometer.errors import InputError, import_extra
from fathometer.leaky.plan import Design, Recipe
from fathometer.leaky.run import LeakyRun, LeakySweep, history_table
from fathometer.leaky.steps import custom_steps
from fathometer.leaky.teacher import Task
from fathometer.results.files import (
    StoreError,
    check_format,
    complete_file,
    locked,
    remove_leftovers,
    strict_json,
)
from fathometer.results.loading import SWEEP
from fathometer.results.provenance import Provenance, weights_hash

SCHEMA = "fathometer.leaky"
VERSION = 1
LOCK = ".lock"


@dataclass(frozen=True)
class _Plan:
    """The content of `sweep.json`; `tasks` are the numbers of the data files of all designs."""

    recipe: Recipe
    designs: list[Design]
    tasks: list[int]
    provenance: Provenance | None = None


_Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _TaskFacts(TypedDict):
    rank: _Whole | None
    description: dict[str, Any]


class _Row(TypedDict):
    epoch: _Whole
    error: float
    decay: float
    crit: float


class _NetworkFacts(TypedDict):
    digest: str
    history: list[_Row]
    diverged: _Whole | None


class _CheckpointFacts(TypedDict):
    members: list[_Whole]
    digests: list[str]
    phase: _Whole
    epoch: _Whole
    history: list[list[_Row]]
    diverged: list[_Whole | None]
    converged: list[_Whole | None]


class TensorFile(NamedTuple):
    """Tensors and plain values of one safetensors file."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Hold the folder of a sweep, so that no other process trains in it; it is made if it is missing.

    Incomplete files of a killed process are removed, and so is a new folder that stays empty.
    """
    is_new = not path.exists()
    if not is_new and not path.is_dir():
        raise InputError(f"{path}: expected a new or empty folder, got a file")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: cannot make the folder ({error.strerror})") from error
    try:
        with locked(path / LOCK) as mine:
            if not mine:
                raise InputError(
                    f"{path}: another process is training in it; wait until it ends, or give another folder"
                )
            remove_leftovers(path, stale_after=0)
            yield
    finally:
        if is_new:
            with suppress(OSError):
                path.rmdir()


class SweepFolder:
    """The folder of one sweep, with the designs and data of all networks, and how they are trained.

    Attributes:
        provenance: None until all is done.
    """

    def __init__(self, path: Path, plan: _Plan, entries: dict[str, Any], tasks: Sequence[Task]) -> None:
        self.path, self.designs, self.tasks, self.recipe = path, plan.designs, list(tasks), plan.recipe
        self.provenance = plan.provenance
        self._entries = entries  # of the file: in the typed plan, 7 has become 7.0, with another digest
        data = {id(task): weights_hash(task.tensors) for task in tasks}
        self._digests = [
            hashlib.sha256(json.dumps([design, entries["recipe"], data[id(task)]]).encode()).hexdigest()
            for design, task in zip(entries["designs"], tasks, strict=True)
        ]

    @classmethod
    def create(
        cls, path: Path, designs: Sequence[Design], tasks: Sequence[Task], recipe: Recipe
    ) -> SweepFolder:
        """Write the plan and the data into a folder that is held; the plan comes last."""
        if any(entry.name != LOCK and not entry.match("task-*.safetensors") for entry in path.iterdir()):
            raise InputError(f"{path}: expected a new or empty folder, since it holds no sweep to resume")
        for left in path.glob("task-*.safetensors"):  # by a killed process
            left.unlink()
        distinct = list({id(task): task for task in tasks}.values())
        numbers = {id(task): number for number, task in enumerate(distinct)}
        plan = _Plan(recipe, list(designs), [numbers[id(task)] for task in tasks])
        folder = cls(path, plan, asdict(plan), tasks)
        for number, task in enumerate(distinct):
            facts = {"rank": task.rank, "description": task.description}
            write_tensors(folder._file("task", number), task.tensors, facts)
        folder._write_plan()
        return folder

    @classmethod
    def open(cls, path: Path) -> SweepFolder:
        """Open a folder that `create` made."""
        plan, entries = _read_plan(path)
        found = {number: _read_task(path / f"task-{number:03}.safetensors") for number in set(plan.tasks)}
        return cls(path, plan, entries, [found[number] for number in plan.tasks])

    def write_network(self, number: int, run: LeakyRun) -> None:
        """Write a trained network."""
        facts = {
            "digest": self._digests[number],
            "history": run.history.to_dict("records"),
            "diverged": run.diverged,
        }
        tensors = {name: _compact(tensor) for name, tensor in run.net.state_dict().items()}
        write_tensors(self._file("network", number), tensors, facts, durable=True)

    def read_network(self, number: int) -> LeakyRun:
        """Read a trained network."""
        path = self._file("network", number)
        tensors, facts = read_tensors(path, _NetworkFacts)
        if facts["digest"] != self._digests[number]:
            raise InputError(f"{path}: a network of another sweep; remove it to train this one again")
        design, task = self.designs[number], self.tasks[number]
        net = design.network(task.x.shape[1], task.y.shape[1])
        try:
            net.load_state_dict(tensors)
            custom_steps(net.steps)
            if facts["diverged"] is None and not all(t.isfinite().all() for t in net.state_dict().values()):
                raise ValueError("weights that are not finite")
            return LeakyRun(design, task, net, history_table(facts["history"]), facts["diverged"])
        except (KeyError, RuntimeError, TypeError, ValueError, OverflowError) as error:
            reason = str(error).strip().splitlines()[-1].strip()
            raise InputError(f"{path}: not a network of the plan, or broken ({reason})") from error

    def write_checkpoint(self, members: Sequence[int], contents: TensorFile) -> None:
        """Write an unfinished training."""
        digests = [self._digests[number] for number in members]
        facts = {"members": list(members), "digests": digests, **contents.facts}
        write_tensors(self._file("checkpoint", members[0]), contents.tensors, facts)

    def checkpoints(self) -> list[tuple[list[int], TensorFile]]:
        """Read all unfinished trainings, with the numbers of their networks."""
        found = []
        for path in sorted(self.path.glob("checkpoint-*.safetensors")):
            contents = read_tensors(path, _CheckpointFacts)
            members = contents.facts["members"]
            known = all(number < len(self.designs) for number in members)
            if not members or not known or contents.facts["digests"] != [self._digests[n] for n in members]:
                raise InputError(f"{path}: not a checkpoint of this sweep; remove it to start again")
            found.append((members, contents))
        return found

    def remove_checkpoint(self, members: Sequence[int]) -> None:
        """Remove the checkpoint of a finished training."""
        self._file("checkpoint", members[0]).unlink(missing_ok=True)

    def finish(self, provenance: Provenance) -> None:
        """Write the provenance, when all is done."""
        self._entries["provenance"] = provenance.as_dict()
        self._write_plan()

    def networks(self) -> dict[int, LeakyRun]:
        """Read all trained networks, by number."""
        return {
            number: self.read_network(number)
            for number in range(len(self.designs))
            if self._file("network", number).exists()
        }

    def sweep(self) -> LeakySweep:
        """Read the result; raise an error until every network is trained."""
        found = self.networks()
        missing = len(self.designs) - len(found)
        if missing:
            raise InputError(
                f"{self.path}: {missing} of {len(self.designs)} networks are not trained yet; "
                "run the same training again with resume"
            )
        return LeakySweep(tuple(found.values()), self.recipe, self.provenance or Provenance())

    def _file(self, kind: str, number: int) -> Path:
        return self.path / f"{kind}-{number:03}.safetensors"

    def _write_plan(self) -> None:
        with complete_file(self.path / SWEEP) as part:
            text = json.dumps({"schema": SCHEMA, "version": VERSION, **self._entries}, indent=1)
            part.write_text(text + "\n", "utf-8")


def save_sweep(sweep: LeakySweep, path: Path) -> Path:
    """Write a sweep that was trained without a folder."""
    if (path / SWEEP).exists():
        raise InputError(f"{path}: holds a sweep already; give another folder")
    designs, tasks = zip(*((run.design, run.task) for run in sweep.runs), strict=True)
    with locked_folder(path):
        folder = SweepFolder.create(path, designs, tasks, sweep.recipe)
        for number, run in enumerate(sweep.runs):
            folder.write_network(number, run)
        folder.finish(sweep.provenance)
    return path


def load_sweep(folder: str | Path) -> LeakySweep:
    """Read a sweep from the folder that `sweep(…, out=folder)` or `fathometer leaky` wrote."""
    return SweepFolder.open(Path(folder)).sweep()


def _compact(tensor: Tensor) -> Tensor:
    """Return float32 if that loses nothing, as after training in float32."""
    short = tensor.float()
    return short if torch.equal(short.double(), tensor) else tensor


def _read_plan(folder: Path) -> tuple[_Plan, dict[str, Any]]:
    """Read the plan, as typed values and as the entries of the file."""
    path = folder / SWEEP
    try:
        content = strict_json(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(
            f"{folder}: expected a folder of `fathometer leaky` with {SWEEP} in it ({error.strerror})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: broken ({error})") from error
    entries = check_format(content, SCHEMA, VERSION, path, "a sweep; `fathometer leaky` writes them")
    try:
        plan = msgspec.convert(entries, _Plan)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{path}: broken, its parts do not fit ({error})") from error
    if not plan.designs or len(plan.tasks) != len(plan.designs):
        raise InputError(f"{path}: broken, its parts do not fit (expected as many tasks as designs)")
    return plan, entries


def _read_task(path: Path) -> Task:
    tensors, facts = read_tensors(path, _TaskFacts)
    try:
        x, y, x_test, y_test = (tensors[name].double() for name in ("x", "y", "x_test", "y_test"))
    except KeyError as error:
        raise InputError(f"{path}: not the data of a sweep ({error} is missing)") from error
    return Task(x, y, x_test, y_test, facts["rank"], facts["description"])


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, durable: bool = False
) -> None:
    """Write a file; it appears when it is complete, and with `durable` survives a loss of power."""
    torch_format = _safetensors().torch
    with complete_file(path, durable=durable) as part:
        # Copies, since safetensors refuses tensors that share memory, as x and y of an autoencoder do.
        whole = {
            name: tensor.detach().clone(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()
        }
        part.write_bytes(torch_format.save(whole, metadata={"facts": json.dumps(facts)}))


def read_tensors(path: Path, kind: Any) -> TensorFile:
    """Read a file; raise an error unless its facts are of this kind, a `TypedDict`."""
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            # Not by `strict_json`: shortly before a training diverges, `crit` may be NaN.
            facts = msgspec.convert(json.loads((file.metadata() or {})["facts"]), kind)
            tensors = {_current_name(name): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (KeyError, ValueError, RecursionError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: broken, or not of a sweep ({error})") from error
    return TensorFile(tensors, facts)


def _current_name(name: str) -> str:
    """Return the name of a tensor; in older files, that of a map was another."""
    return name.replace("inward", "input_map").replace("outward", "output_map")


def _safetensors() -> Any:
    return import_extra("safetensors", "torch", extra="leaky", purpose="a folder of trained networks")
