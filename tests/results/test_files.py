"""Files are complete or not there, and one process at a time holds a lock."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from fathometer.results.files import (
    STALE_AFTER,
    StoreError,
    complete_file,
    is_locked,
    locked,
    remove_leftovers,
)


def test_two_writers_have_two_temporary_files(tmp_path: Path) -> None:
    with complete_file(tmp_path / "a.json") as one, complete_file(tmp_path / "a.json") as two:
        assert one != two
        one.write_text("1")
        two.write_text("2")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    def fail() -> None:
        with complete_file(tmp_path / "a.json") as part:
            part.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreError, match=r"a\.json: cannot be written \(No space left on device\)"):
        fail()
    assert not list(tmp_path.iterdir())


def test_temporary_files_of_killed_writers_are_removed_when_they_are_old(tmp_path: Path) -> None:
    for age, word in ((0.0, "new"), (STALE_AFTER + 60, "old")):
        file = tmp_path / f".{word}.0123456789ab.part.json"
        file.write_text("half")
        os.utime(file, (time.time() - age,) * 2)
    remove_leftovers(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [".new.0123456789ab.part.json"]
    remove_leftovers(tmp_path, tmp_path / "other.json", stale_after=0)
    assert len(list(tmp_path.iterdir())) == 1
    remove_leftovers(tmp_path, tmp_path / "new.json", stale_after=0)
    assert not list(tmp_path.iterdir())


def test_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path) as first, locked(path) as second:
        assert (first, second) == (True, False)
        assert is_locked(path)
    assert not path.exists()
    assert not is_locked(path)


def test_a_killed_process_releases_its_lock_also_if_it_had_forked(tmp_path: Path) -> None:
    code = f"""
import os, time
from fathometer.results.files import locked
from pathlib import Path
with locked(Path({str(tmp_path / "lock")!r})) as mine:
    assert mine
    if os.fork() == 0:
        print("forked", flush=True)
        time.sleep(60)
        os._exit(0)
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "forked\n"
        assert is_locked(tmp_path / "lock")
        process.kill()  # but not the one that it has forked
        process.wait()
        with locked(tmp_path / "lock") as mine:
            assert mine
    finally:
        os.killpg(process.pid, 9)
        process.stdout.close()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.warns(UserWarning, match="has no locks"), locked(tmp_path / "lock") as mine:
        assert mine


def test_a_lock_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot be locked"), locked(tmp_path / "folder"):
        pass
