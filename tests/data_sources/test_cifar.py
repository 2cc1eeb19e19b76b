from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from fathometer.data import Inputs, open_data
from fathometer.errors import InputError
from tests.data_sources.making import IMAGES, Bomb, cifar_records, labels, tensors, values

RAW = Inputs("image", (3, 32, 32))


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for i in range(1, 6):
        (folder / f"data_batch_{i}.bin").write_bytes(cifar_records(3))
    (folder / "test_batch.bin").write_bytes(cifar_records(12))
    (folder / "batches.meta.txt").write_text("airplane\n")
    return folder


def test_cifar_10_prefers_the_test_set(ten: Path) -> None:
    source = open_data(ten, IMAGES, shuffle=False)
    assert values(source) == list(range(12))
    assert labels(source) == [*range(10), 0, 1]
    found = [source.description[key] for key in ("kind", "split", "name")]
    assert found == ["CIFAR-10", "test", "cifar-10-batches-bin"]
    assert source.classes == tuple("0123456789")  # one name is not ten
    names = "airplane automobile bird cat deer dog frog horse ship truck"
    (ten / "batches.meta.txt").write_text(names.replace(" ", "\n"))
    assert open_data(ten, IMAGES).classes == tuple(names.split())
    assert len(open_data(ten.parent, IMAGES)) == 12
    assert len(open_data(ten / "data_batch_2.bin", IMAGES)) == 3
    (x,) = tensors(open_data(ten, RAW, shuffle=False))
    torch.testing.assert_close(x[5, :, 8, 9] * 255, torch.tensor([5.0, 6.0, 7.0]))  # channels come first
    (ten / "test_batch.bin").unlink()
    source = open_data(ten, IMAGES, shuffle=False)
    assert values(source) == [0, 1, 2] * 5
    assert source.description["split"] == "train"


def test_the_fine_labels_of_cifar_100(tmp_path: Path) -> None:
    for name, count in (("train.bin", 4), ("test.bin", 101)):
        (tmp_path / name).write_bytes(cifar_records(count, fine=True, classes=100))
    source = open_data(tmp_path, IMAGES, shuffle=False)
    assert labels(source) == [*range(100), 0]
    assert values(source) == list(range(101))
    assert source.description["kind"] == "CIFAR-100"
    (tmp_path / "mine.bin").write_bytes((tmp_path / "train.bin").read_bytes())
    assert labels(open_data(tmp_path / "mine.bin", IMAGES, shuffle=False)) == [0, 1, 2, 3]


def test_files_of_another_size_or_with_other_labels_are_refused(ten: Path) -> None:
    (ten / "other.bin").write_bytes(bytes(100))
    with pytest.raises(InputError, match=r"3073 \(CIFAR-10\) or 3074 \(CIFAR-100\) bytes, got 100 bytes"):
        open_data(ten / "other.bin", IMAGES)
    (ten / "test_batch.bin").write_bytes(cifar_records(2)[:-1])
    with pytest.raises(InputError, match=r"records of 3073 bytes, got .*truncated, download it again"):
        open_data(ten, IMAGES)
    (ten / "test_batch.bin").write_bytes(cifar_records(12, classes=11))
    with pytest.raises(InputError, match="labels of CIFAR-10 below 10, got 10"):
        open_data(ten, IMAGES)


def test_two_data_sets_in_one_folder_are_refused(ten: Path) -> None:
    hundred = ten.parent / "cifar-100-binary"
    hundred.mkdir()
    (hundred / "test.bin").write_bytes(cifar_records(1, fine=True))
    with pytest.raises(InputError, match=r"10-batches-bin/test_batch\.bin and cifar-100-binary/test"):
        open_data(ten.parent, IMAGES)


@pytest.mark.parametrize("names", [("data_batch_1", "batches.meta"), ("train", "test", "meta")])
@pytest.mark.parametrize("inside", [True, False])
def test_the_pickled_version_is_never_opened(tmp_path: Path, names: tuple[str, ...], inside: bool) -> None:
    folder = tmp_path / ("cifar-10-batches-py" if "data_batch_1" in names else "cifar-100-python")
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match=r"expected the binary version of CIFAR.*never opened; download"):
        open_data(folder if inside else tmp_path, IMAGES)
