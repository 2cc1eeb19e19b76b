from __future__ import annotations

import gc
import json
import multiprocessing
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from fathometer.data import Inputs, open_data
from fathometer.data.opening import contents_hash
from fathometer.errors import FathometerError, InputError
from tests.data_sources.making import IMAGES, RAW, TENSOR, class_folders, labels, save_image, tensors, values


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return class_folders(tmp_path / "insects")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_order_depends_only_on_the_seed(folder: Path, batch_size: int, workers: int) -> None:
    (folder / "ant" / "broken.jpg").write_bytes(b"no image")
    (folder / "bee" / "empty.png").touch()
    expected = open_data(folder, IMAGES, batch_size=5, seed=3)
    source = open_data(folder, IMAGES, batch_size=batch_size, workers=workers, seed=3)
    assert values(source) == values(expected)
    assert labels(source) == labels(expected)
    assert sorted(values(source)) == list(range(20))
    assert source.skipped == expected.skipped
    assert sorted(source.skipped) == ["ant/broken.jpg", "bee/empty.png"]


def test_a_second_pass_is_the_same_and_another_seed_differs(folder: Path) -> None:
    state = torch.get_rng_state()
    source = open_data(folder, IMAGES, batch_size=6)
    first = values(source)
    assert first == values(source)
    assert first != values(open_data(folder, IMAGES, seed=1))
    assert first != sorted(first)
    assert values(open_data(folder, IMAGES, shuffle=False)) == list(range(20))
    assert [len(x) for x in tensors(source)] == [6, 6, 6, 2]
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_fit_into_memory_are_read_once(folder: Path, workers: int) -> None:
    (folder / "ant" / "broken.jpg").write_bytes(b"no image")
    expected = open_data(folder, IMAGES, batch_size=6)
    batches, skipped = tensors(expected), expected.skipped
    two = sum(batch.nbytes for batch in batches[:2]) + 12 * 8  # images and labels
    some = open_data(folder, IMAGES, batch_size=6, workers=workers, keep_bytes=two)
    every = open_data(folder, IMAGES, batch_size=6, workers=workers, keep_bytes=10 * two)
    for source in (some, every):
        first = next(iter(source))  # a pass that ends early, of a network that changes its input
        assert isinstance(first, tuple)
        first[0].zero_()
        for _ in range(2):
            assert all(map(torch.equal, tensors(source), batches))
            assert source.skipped == skipped
    shutil.rmtree(folder)
    assert all(map(torch.equal, tensors(every), batches))
    assert len(tensors(some)) == 2  # the others are unreadable now


def test_the_description_is_json(folder: Path) -> None:
    source = open_data(folder, IMAGES, seed=4)
    assert json.loads(json.dumps(source.description)) == {
        "kind": "images",
        "name": "insects",
        "labels": True,
        "sha256": contents_hash(folder),
        "count": 20,
        "shuffle": True,
        "seed": 4,
    }
    assert len(source) == 20


def test_folders_of_one_name_differ_by_content(tmp_path: Path) -> None:
    for place, last in (("one", 1), ("two", 2), ("copy", 1)):
        save_image(tmp_path / place / "photos" / "a.png", 0)
        save_image(tmp_path / place / "photos" / "b.png", last)
    one, two, copy = (
        open_data(tmp_path / place / "photos", IMAGES).description for place in ("one", "two", "copy")
    )
    assert one == copy
    assert (one["name"], one["count"]) == (two["name"], two["count"])
    assert one["sha256"] != two["sha256"]
    np.save(tmp_path / "a.npy", np.zeros((2, 5), np.float32))
    before = open_data(tmp_path / "a.npy", TENSOR).description["sha256"]
    np.save(tmp_path / "a.npy", np.ones((2, 5), np.float32))
    assert open_data(tmp_path / "a.npy", TENSOR).description["sha256"] != before
    assert "sha256" not in open_data("random:4", TENSOR).description


@pytest.mark.parametrize("workers", [0, 2])
def test_strict_raises_an_error_that_names_the_file(folder: Path, workers: int) -> None:
    (folder / "bee" / "bad.jpg").write_bytes(b"\xff\xd8\xff nothing")
    with pytest.raises(InputError, match=r"^bee/bad\.jpg: cannot be read \(.*\n?$"):
        values(open_data(folder, IMAGES, strict=True, workers=workers, batch_size=4))


def test_a_folder_without_a_readable_image_is_refused(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.jpg").touch()
    source = open_data(tmp_path, IMAGES, shuffle=False, batch_size=2)
    with pytest.raises(InputError, match=r"got none of 3; the first: 0\.jpg \(.*\)$"):
        values(source)
    assert source.skipped == ["0.jpg", "1.jpg", "2.jpg"]
    assert len(source) == 3


def test_a_failing_preprocess_is_reported(folder: Path) -> None:
    def fails(image: object) -> torch.Tensor:
        raise TypeError(f"bad\nargument {type(image).__name__}")

    with pytest.raises(InputError, match=r"preprocess: TypeError: bad\)$"):
        values(open_data(folder, Inputs("image", (3, 2, 2), preprocess=fails)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_differing_shapes_are_refused(tmp_path: Path, batch_size: int, workers: int) -> None:
    save_image(tmp_path / "a.png", 1, (6, 4))
    save_image(tmp_path / "b.png", 2, (5, 4))
    source = open_data(tmp_path, RAW, shuffle=False, batch_size=batch_size, workers=workers)
    with pytest.raises(InputError, match=r"^b\.png: .*\[3, 4, 6\] of a\.png, got \[3, 4, 5\]; resize.*\n?$"):
        values(source)
    del source
    gc.collect()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (torch.zeros(3, 2, 2, dtype=torch.uint8), "expected a float tensor from preprocess, got torch.uint8"),
        (torch.zeros(1, 3, 2, 2), r".*images \[3, height, width\] for this network, got \[1, 3, 2, 2\]"),
        (torch.zeros(2, 2, 3), r".* got \[2, 2, 3\]; move the channels to the front"),
        ([1.0], "expected a tensor from preprocess, got list"),
    ],
)
def test_what_preprocess_returns_is_checked(folder: Path, result: torch.Tensor, message: str) -> None:
    with pytest.raises(InputError, match=rf"^ant/000\.png: {message}"):
        values(open_data(folder, Inputs("image", (3, 2, 2), preprocess=lambda _: result), shuffle=False))


def test_workers_end_when_a_pass_is_left_early(folder: Path) -> None:
    for _ in open_data(folder, IMAGES, workers=2, batch_size=2):
        break
    gc.collect()
    assert not multiprocessing.active_children()


def test_a_dead_worker_is_reported(folder: Path) -> None:
    def dies(_: object) -> torch.Tensor:
        import os

        os._exit(3)

    source = open_data(folder, Inputs("image", (3, 2, 2), preprocess=dies), workers=1)
    with pytest.raises(FathometerError, match=r"a worker stopped .*; try workers=0"):
        values(source)
