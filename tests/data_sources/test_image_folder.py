from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fathometer.data import Inputs, open_data
from fathometer.errors import InputError
from tests.data_sources.making import IMAGES, RAW, labels, save_image, tensors, values


def test_labels_are_the_class_folders_sorted_as_torchvision_sorts_them(tmp_path: Path) -> None:
    names = ["b", "a", "a-b", "a.c", "B"]
    for i, name in enumerate(names):
        save_image(tmp_path / name / "0.png", i)
    save_image(tmp_path / "a" / "below" / "1.png", 1)
    (tmp_path / "aa").mkdir()  # empty: it keeps its place, the others theirs
    (tmp_path / ".cache").mkdir()
    source = open_data(tmp_path, IMAGES, shuffle=False)
    assert labels(source) == [0, 1, 1, 2, 3, 5]
    assert source.classes == ("B", "a", "a-b", "a.c", "aa", "b")
    assert [names[int(v)] for v in values(source)] == ["B", "a", "a", "a-b", "a.c", "b"]


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    names = ["a.PNG", "b.jpg", "c.Jpeg", "d.bmp", "e.webp", "f.ppm", "g.tif", "h.tiff", "i.gif"]
    for i, name in enumerate(names):
        save_image(tmp_path / name, 10 * i)
    save_image(tmp_path / ".hidden.png", 1)
    (tmp_path / "notes.txt").write_text("none")
    source = open_data(str(tmp_path), IMAGES, shuffle=False)
    assert source.description["labels"] is False
    np.testing.assert_allclose(values(source), np.arange(9) * 10, atol=3)  # some suffixes lose a little


def test_a_table_of_labels(tmp_path: Path) -> None:
    save_image(tmp_path / "a.png", 1)
    save_image(tmp_path / "more" / "b.png", 2)
    table = tmp_path / "labels.csv"
    table.write_text("file,wnid,class_index\nmore/b.png,n2,7\na.png,n1,400\ngone.png,n3,1\n")
    source = open_data(tmp_path, IMAGES, shuffle=False)
    assert labels(source) == [400, 7]
    assert source.classes is not None
    assert {index: name for index, name in enumerate(source.classes) if name} == {7: "n2", 400: "n1"}
    table.write_text("file,class_index\nmore/b.png,7\na.png,400\n")
    assert open_data(tmp_path, IMAGES).classes is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,class_index\nb.png,1\n", r"expected a row for each image, got none for a\.png \(1 of 1"),
        ("name,label\na.png,1\n", "expected columns file and class_index, got name, label"),
        ("file,class_index\na.png,tench\n", r"expected a whole number as class_index of a\.png, got 'tench'"),
    ],
)
def test_unsuitable_label_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    save_image(tmp_path / "a.png", 1)
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError, match=rf"labels\.csv: .*{message}"):
        open_data(tmp_path, IMAGES)


def test_unclear_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected images .* found none"):
        open_data(tmp_path, IMAGES)
    save_image(tmp_path / "val" / "ant" / "a.png", 1)
    save_image(tmp_path / "train" / "ant" / "a.png", 1)
    with pytest.raises(InputError, match="expected class folders, got train and val; give one of these"):
        open_data(tmp_path, IMAGES)
    assert labels(open_data(tmp_path / "val", IMAGES)) == [0]
    save_image(tmp_path / "a.png", 1)
    with pytest.raises(InputError, match=r"got both \(1 of 3 directly\)"):
        open_data(tmp_path, IMAGES)


def test_truncated_images_and_broken_links_are_skipped(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(tmp_path / "a.jpg")
    save_image(tmp_path / "b.png", 5)
    (tmp_path / "c.jpg").write_bytes((tmp_path / "a.jpg").read_bytes()[:900])
    (tmp_path / "d.jpg").symlink_to(tmp_path / "gone.jpg")
    source = open_data(tmp_path, IMAGES, shuffle=False)
    assert len(values(source)) == 2
    assert source.skipped == ["c.jpg", "d.jpg"]


def test_links_to_folders_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    save_image(tmp_path / "images" / "ant" / "a.png", 1)
    save_image(tmp_path / "elsewhere" / "b.png", 2)
    (tmp_path / "images" / "bee").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "images" / "ant" / "again").symlink_to(tmp_path / "images")
    assert set(values(open_data(tmp_path / "images", IMAGES, shuffle=False))) == {1, 2}


def test_without_preprocess_pixels_are_scaled(tmp_path: Path) -> None:
    pixels = np.arange(72, dtype=np.uint8).reshape(4, 6, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    (x,) = tensors(open_data(tmp_path, RAW))
    torch.testing.assert_close(x[0], torch.from_numpy(pixels).permute(2, 0, 1) / 255)
    (grey,) = tensors(open_data(tmp_path, Inputs("image", (1, 4, 6))))
    assert grey.shape == (1, 1, 4, 6)
    (same,) = tensors(open_data(tmp_path, Inputs("tensor", (3, 4, 6))))
    assert torch.equal(same, x)


def test_every_mode_becomes_rgb_and_16_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    for mode in ("1", "L", "P", "LA", "RGBA", "CMYK"):
        Image.new(mode, (6, 4)).save(tmp_path / f"{mode}.{'tif' if mode == 'CMYK' else 'png'}")
    for name in ("a.png", "b.tif"):
        Image.fromarray(np.full((4, 6), 0x4080, np.uint16)).save(tmp_path / name)
    source = open_data(tmp_path, IMAGES)
    assert sorted(values(source)) == [0] * 5 + [0x40, 0x40, 255]
