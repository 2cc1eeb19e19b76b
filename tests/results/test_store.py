from __future__ import annotations

import uuid
from pathlib import Path

import fsspec
import pytest
import torch
from torch import nn

import fathometer
from fathometer import InputError
from fathometer.results.files import StoreError
from fathometer.results.loading import open_results
from fathometer.results.sounding import to_json
from fathometer.results.store import Store, local_copy


@pytest.fixture(scope="module")
def sounding() -> fathometer.Sounding:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return fathometer.measure(net, torch.randn(32, 4), samples=32, gauges="affinity", name="net")


S3 = pytest.param("s3", marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")])


@pytest.fixture(params=["local", "memory", S3])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "s3":
        return Store(f"{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}")
    return Store(tmp_path / "results" if request.param == "local" else f"memory://{uuid.uuid4().hex}/results")


def test_files_are_written_read_moved_and_removed(store: Store) -> None:
    assert not store.exists()
    assert store.read("a.json") is None
    assert store.names() == []
    store.write("b.json", b"2")
    store.write("a.json", b"1")
    store.write("pending/c.journal", b"3")
    assert store.is_folder()
    assert store.names() == ["a.json", "b.json"]
    assert store.names("pending", (".journal",)) == ["c.journal"]
    store.move("a.json", "broken/a.json")
    store.move("missing.json", "broken/missing.json")
    store.remove("b.json")
    store.remove("b.json")
    assert store.names() == []
    assert store.read("broken/a.json") == b"1"


def test_what_another_process_writes_is_seen_at_once(store: Store) -> None:
    store.try_writing("pending/probe")
    store.write("a.json", b"1")
    assert store.names() == ["a.json"]
    assert not store.exists("b.json")
    with fsspec.open(
        store.path("b.json") if store.local is None else str(store.local / "b.json"), "wb"
    ) as file:
        file.write(b"2")
    assert store.exists("b.json")
    assert store.names() == ["a.json", "b.json"]
    assert store.read("b.json") == b"2"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_missing_bucket_is_named_and_not_made(bucket: str) -> None:
    missing = Store(f"{bucket}x/results")
    with pytest.raises(StoreError, match=r"x/results/a\.json: cannot be written"):
        missing.write("a.json", b"")
    with pytest.raises(StoreError, match=r"x/results/pending/probe: cannot be written"):
        missing.try_writing("pending/probe")
    assert not missing.exists()


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    one, two = Store(tmp_path), Store(tmp_path)
    for _ in range(2):
        with one.lock("pending/a.lock") as first, two.lock("pending/a.lock") as second:
            assert (first, second) == (True, False)
            assert two.is_locked("pending/a.lock")
        assert not two.is_locked("pending/a.lock")
    assert list((tmp_path / "pending").iterdir()) == []


def test_a_stray_or_broken_file_is_skipped_counted_and_named(
    store: Store, sounding: fathometer.Sounding
) -> None:
    for name, content in {
        "net.json": to_json(sounding).encode(),
        "config.json": b'{"hello": 1}',
        "broken.json": b'{"schema": "fathometer.sounding',
        "empty.json": b"",
        "bytes.json": b"\xff\x00",
    }.items():
        store.write(name, content)
    with pytest.warns(UserWarning, match="skipped 4 files: .*broken.json"):
        found = open_results(store.place)
    assert list(found.soundings) == [store.path("net.json")]
    assert [path.rpartition("/")[2] for path in found.skipped] == [
        "broken.json",
        "bytes.json",
        "config.json",
        "empty.json",
    ]
    with pytest.raises(InputError, match=r"broken\.json"):
        open_results(store.place, strict=True)
    with pytest.raises(InputError, match="not a sounding"):
        open_results(store.path("config.json"))
    store.remove("net.json")
    with pytest.raises(InputError, match=r"expected a sounding .* got none: .*broken\.json"):
        open_results(store.place)


def test_a_file_that_is_given_twice_is_used_once(tmp_path: Path, sounding: fathometer.Sounding) -> None:
    file = sounding.save(tmp_path / "a.json")
    with pytest.warns(UserWarning, match="given twice, used once"):
        assert len(open_results([tmp_path, file]).soundings) == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: expected a sounding"):
        open_results([file, file, tmp_path / "empty"])


def test_missing_places_and_unknown_protocols_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing: no such file or folder"):
        fathometer.load(tmp_path / "missing")
    assert Store("memory://").path("a.json") == "memory://a.json"
    for place in (tmp_path / "missing", "memory://missing"):
        with pytest.raises(InputError, match=r"missing: no such file or folder"):
            open_results(place)
    with pytest.raises(InputError, match="nonsense://x: cannot be opened"):
        Store("nonsense://x")


def test_parquet_and_copies_by_url(tmp_path: Path, sounding: fathometer.Sounding) -> None:
    store = Store(f"memory://{uuid.uuid4().hex}")
    store.write("net.parquet", sounding.save(tmp_path / "net.parquet").read_bytes())
    (found,) = open_results(store.place).soundings.values()
    assert found.records.equals(sounding.records)
    with local_copy(store.place) as folder:
        assert [file.name for file in folder.iterdir()] == ["net.parquet"]


def test_what_cannot_be_written_is_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/a\.json: cannot be written"):
        Store(tmp_path / "file").write("a.json", b"")
