"""Result files cut short: at every byte of their heads, and at random places."""

from __future__ import annotations

import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fathometer import load, measure
from fathometer.errors import FathometerError
from fathometer.leaky import load_sweep, sweep
from fathometer.leaky.run_files import SweepFolder
from fathometer.leaky.training import Training
from fathometer.results.history_file import load as load_history
from fathometer.results.sounding_file import to_json
from fathometer.survey import Failure, Store, parse_plan, run_survey, tasks_of
from papers import read_verdict
from soak.faults.commands import PLAN
from soak.faults.tally import Tally, outcome
from soak.files.kinds import DESIGN, KINDS, RECIPE, network
from soak.program import Effort, Outcome, Program

SEED = 20240607


@dataclass(frozen=True)
class Case:
    """A file that can be cut.

    Attributes:
        name: for people.
        path: the file.
        head: where its head is, which says what follows; at the end of a `.parquet`.
        read: what is read from it, in a form that can be compared; a `FathometerError` if it is broken.
        may_go_on: whether a file cut short may be read, since what is missing is made again.
        may_be_none: whether it may read as nothing at all, since it is made again then.
    """

    name: str
    path: Path
    head: range
    read: Callable[[], Any]
    may_go_on: bool = False
    may_be_none: bool = False


def _run(effort: Effort) -> Outcome:
    at_random = 100 if effort == "full" else 3
    step = 1 if effort == "full" else 331
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tallies = [_cut(case, step, at_random) for case in _cases(folder)]
    finally:
        shutil.rmtree(folder)
    notes = [
        "Survived: an error in one line (`FathometerError`), or, where what is missing is made again (a "
        "journal, a sounding of a survey), the whole result bit for bit; a failure of a survey "
        "may count as not there, and is made again. Lost: something read that is less than what was there. "
        "A file that lacks no more than its last line break is whole."
    ]
    return outcome(tallies, notes)


def _cut(case: Case, step: int, at_random: int) -> Tally:
    whole, expected = case.path.read_bytes(), case.read()
    draw = random.Random(SEED)
    places = [*case.head[::step], *(draw.randrange(len(whole)) for _ in range(at_random))]
    tally = Tally(case.name, f"{len(whole)} bytes, {len(case.head)} of them its head")
    for place in places:
        case.path.write_bytes(whole[:place])
        try:
            found = case.read()
        except FathometerError:
            tally.add(f"byte {place}")
        except Exception as error:  # the very thing that is looked for
            tally.add(f"byte {place}", [f"{type(error).__name__}: {error}"])
        else:
            is_whole = found == expected and (case.may_go_on or not whole[place:].strip())
            is_whole |= found is None and case.may_be_none
            tally.add(f"byte {place}", lost=not is_whole)
        case.path.write_bytes(whole)
    return tally


def _cases(folder: Path) -> Iterator[Case]:
    yield from _soundings(folder)
    yield _history(folder)
    yield _journal(folder / "run.journal")
    yield from _survey(folder / "results")
    yield from _sweeps(folder / "sweep")
    yield _verdict(folder)


def _made(name: str, folder: Path) -> Path:
    """A file as the program `fuzz-files` makes it."""
    (kind,) = (kind for kind in KINDS if kind.name == name)
    kind.make(folder)
    return folder / kind.file


def _soundings(folder: Path) -> Iterator[Case]:
    for ending, name in ((".json", "sounding, JSON"), (".parquet", "sounding, Parquet")):
        path = _made(name, folder)
        content = path.read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        head = range(content.find(b'"records"')) if ending == ".json" else range(footer, len(content))
        yield Case(f"a sounding, `{ending}`", path, head, lambda path=path: to_json(load(path)))  # type: ignore[misc]


def _history(folder: Path) -> Case:
    path = _made("history of a training", folder)

    def read() -> list[object]:
        found = load_history(path)
        soundings = [to_json(entry) for entry in found.soundings]
        return [found.steps, soundings, found.metrics.to_csv(), found.cost, found.missed]

    return Case("a history", path, range(path.read_bytes().find(b'"soundings"')), read)


def _verdict(folder: Path) -> Case:
    path = _made("verdict", folder)
    return Case("a verdict", path, range(path.stat().st_size), lambda: read_verdict(path))


def _journal(path: Path) -> Case:
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))

    def records() -> str:
        return str(measure(network(), x, samples=20, gauges="affinity", journal=path).records.to_csv())

    records()
    head = range(path.read_bytes().find(b"\n") + 1)
    return Case("a journal, gone on with", path, head, records, may_go_on=True)


def _survey(folder: Path) -> Iterator[Case]:
    (task, other, *_) = tasks_of(parse_plan(PLAN))
    run_survey([task], folder)
    store = Store(folder)

    def records() -> str:
        run_survey([task], folder)
        found = store.sounding(task)
        return "" if found is None else str(found.records.to_csv())

    path = folder / f"{task.stem}.json"
    head = range(path.read_bytes().find(b'"records"'))
    yield Case("a sounding of a survey, gone on with", path, head, records, may_go_on=True)
    store.fail(other, Failure.of(ValueError("why"), other))
    path = folder / "failed" / f"{other.stem}.json"
    size = range(path.stat().st_size)
    yield Case("a failure of a survey", path, size, lambda: store.failure(other), may_be_none=True)


def _sweeps(folder: Path) -> Iterator[Case]:
    sweep(DESIGN, RECIPE, out=folder)

    def loaded() -> list[object]:
        (run,) = load_sweep(folder).runs
        state = [tensor.tolist() for tensor in run.net.state_dict().values()]
        return [state, run.task.x.tolist(), run.history.to_csv()]

    for name in ("network-000.safetensors", "task-000.safetensors", "sweep.json"):
        path = folder / name
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little") + 8 if name.endswith("safetensors") else len(content)
        yield Case(f"`{name}` of a leaky sweep", path, range(size), loaded)
    opened = SweepFolder.open(folder)
    training = Training([DESIGN], opened.tasks, RECIPE, torch.device("cpu"))
    training.advance()
    opened.write_checkpoint([0], training.state())
    path = folder / "checkpoint-000.safetensors"
    size = int.from_bytes(path.read_bytes()[:8], "little") + 8
    yield Case(
        "`checkpoint-000.safetensors`",
        path,
        range(size),
        lambda: [value.tolist() for _, state in opened.checkpoints() for value in state.tensors.values()],
    )


TRUNCATED = Program(
    "truncated",
    "Files cut short",
    "Every kind of result file is cut at every byte of its head and at 100 random places, and read. It is "
    "a failure if that ends in anything but a `FathometerError`, or if less is read than was there without "
    "a word.",
    _run,
)
