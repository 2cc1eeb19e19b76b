"""What the fault programs of the soak have found, each mended."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fathometer import measure
from fathometer.cli.outputs import check_writable
from fathometer.errors import InputError
from fathometer.leaky import Phase, Recipe, sweep
from fathometer.leaky.run_files import SweepFolder, claimed
from fathometer.leaky.training import Training
from fathometer.results.files import WriteError, complete_file
from fathometer.results.locks import locked
from fathometer.results.store import Store as Files
from fathometer.results.store import StoreError
from fathometer.survey import Failure, Store, run_survey, tasks_of
from fathometer.survey.tasks import measure_task
from soak.faults.tally import Tally, outcome
from tests.leaky.networks import SHORT, SMALL
from tests.survey.making import plan

ROOT = Path(__file__).parents[2]
NET = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
X = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def measured(journal: Path, **options: Any) -> Any:
    return measure(NET, X, samples=20, gauges="norm", journal=journal, **options).records


def test_the_parts_of_a_writer_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    for name in (
        ".a.0123456789ab.part.json",
        ".b.0123456789ab.part.json",
        "..a.json.0123456789ab.part.journal",
    ):
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    check_writable(tmp_path / "a.json", force=False)
    measured(tmp_path / ".a.json.journal")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        ".a.json.journal",
        ".b.0123456789ab.part.json",
    ]
    with complete_file(tmp_path / "b.json") as part:
        part.write_text("{}")
        check_writable(tmp_path / "b.json", force=False)
    assert (tmp_path / "b.json").read_text() == "{}"  # a writer that is at work is left alone
    assert not os.access(tmp_path / "b.json", os.X_OK)


def test_a_journal_is_used_by_one_process(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    with locked(tmp_path / "j.lock"), pytest.raises(InputError, match="another process is measuring with it"):
        measured(journal)
    assert len(measured(journal)) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["j"]


def test_a_journal_that_is_removed_meanwhile_is_written_whole_again(tmp_path: Path) -> None:
    journal, whole = tmp_path / "j", measured(tmp_path / "whole")

    def remove(done: int, total: int | None) -> None:
        del total
        if done == 40:
            journal.unlink()

    measured(journal, progress=remove)
    assert journal.read_text() == (tmp_path / "whole").read_text()
    assert measured(journal).equals(whole)


def test_a_disk_that_fills_is_told_with_the_name_of_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"j: cannot be written \(No space left on device\)"):
        measured(tmp_path / "j")


def test_a_disk_that_fills_is_no_failure_of_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, (task,) = Store(tmp_path), tasks_of(plan("small"))
    monkeypatch.setattr(Store, "check_writable", lambda _: None)  # it fills later than that
    monkeypatch.setattr("fathometer.measuring.journal.os.fsync", full)
    with pytest.raises(StoreError, match=r"No space left on device.*0 of 1 soundings are safe"):
        run_survey([task], tmp_path)
    assert store.failure(task) is None


def test_a_survey_that_cannot_write_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        run_survey(plan("small"), tmp_path / "out")
    assert not log.exists()


def test_what_is_left_beside_a_finished_sounding_is_removed(tmp_path: Path) -> None:
    (task,) = tasks_of(plan("small"))
    store = Store(tmp_path)
    run_survey([task], tmp_path)
    measure_task(task, journal=store.journal(task))
    store.fail(task, Failure.of(ValueError("before"), task))
    assert run_survey([task], tmp_path).kept == [task]
    assert not list((tmp_path / "pending").iterdir())
    assert not list((tmp_path / "failed").iterdir())


def test_a_folder_of_a_sweep_is_used_by_one_process(tmp_path: Path) -> None:
    with claimed(tmp_path / "run"), pytest.raises(InputError, match="another process is training in it"):
        sweep(SMALL, SHORT, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_sweep_that_was_killed_before_its_plan_was_there_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    sweep([SMALL, replace(SMALL, samples=30)], SHORT, out=folder)
    for file in folder.iterdir():
        if not file.name.startswith("task-"):
            file.unlink()
    (folder / ".sweep.0123456789ab.part.json").write_text("{")
    sweep(SMALL, SHORT, out=folder)
    assert sorted(file.name for file in folder.iterdir()) == [
        "network-000.safetensors",
        "sweep.json",
        "task-000.safetensors",
    ]


def test_a_checkpoint_of_trained_networks_is_removed_and_how_they_came_about_stays(tmp_path: Path) -> None:
    recipe = Recipe((Phase("adam", 12, 3e-3),))
    sweep(SMALL, recipe, out=tmp_path)
    before = (tmp_path / "sweep.json").read_text()
    folder = SweepFolder.open(tmp_path)
    training = Training([SMALL], folder.tasks, recipe, torch.device("cpu"))
    training.advance()
    folder.write_checkpoint([0], training.state())
    epochs: list[int] = []
    sweep(SMALL, recipe, out=tmp_path, resume=True, progress=lambda done, *_: epochs.append(done))
    assert epochs == []
    assert (tmp_path / "sweep.json").read_text() == before
    assert not folder.checkpoints()


def test_a_broken_network_is_told_before_the_others_are_trained(tmp_path: Path) -> None:
    designs = [SMALL, replace(SMALL, seed=1)]
    sweep(designs, SHORT, out=tmp_path)
    (tmp_path / "network-000.safetensors").write_bytes(b"broken")
    (tmp_path / "network-001.safetensors").unlink()
    with pytest.raises(InputError, match=r"network-000.*broken"):
        sweep(designs, SHORT, out=tmp_path, resume=True)
    assert not (tmp_path / "network-001.safetensors").exists()


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_process_that_merely_asks_keeps_nobody_from_work(tmp_path: Path) -> None:
    file, stop = tmp_path / "a.lock", tmp_path / "stop"
    code = (
        "import sys; from pathlib import Path; from fathometer.results.locks import is_locked\n"
        "print('ready', flush=True); file, stop = map(Path, sys.argv[1:]); asked = held = 0\n"
        "while asked % 1000 or not stop.exists(): asked += 1; held += is_locked(file)\n"
        "print(asked, held)"
    )
    other = python(code, str(file), str(stop))
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    end, mine = time.monotonic() + 1.5, []
    while time.monotonic() < end:
        with locked(file) as is_mine:
            mine.append(is_mine)
    stop.touch()
    asked, held = map(int, other.communicate()[0].split())
    assert len(mine) > 100
    assert all(mine)
    assert 0 < held <= asked  # it saw the lock, and did ask meanwhile


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        Files(tmp_path).try_writing("probe")


@pytest.mark.parametrize("begin", [0, 2])
def test_a_clock_is_set_once_and_by_as_much_as_was_ordered(tmp_path: Path, begin: int) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from soak.faults.afflict import Counters, Order, _watch_files; counters = Counters()\n"
        "_watch_files(Order([], sys.argv[1], clock=-86400.0, clock_from=int(sys.argv[2])), counters)\n"
        "for name in 'ab': Path(sys.argv[1], name).write_text(name)\n"
        "print(counters.clocks.value, counters.files.value, time.time())"
    )
    said, _ = python(code, str(tmp_path), str(begin)).communicate()
    clocks, files, found = said.split()
    assert (clocks, files) == ("1", "2")
    assert float(found) - time.time() == pytest.approx(-86400, abs=60)


def test_no_failure_is_left_out() -> None:
    tally = Tally("a trial")
    for place in range(9):
        tally.add(f"at {place}", ["broken"])
    assert len(outcome([tally]).failures) == 9
