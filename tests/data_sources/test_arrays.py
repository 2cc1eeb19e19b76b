from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fathometer.data import Inputs, open_data
from fathometer.errors import InputError
from tests.data_sources.making import IMAGES, RAW, TENSOR, TOKENS, Bomb, labels, tensors, values

GENERATOR = np.random.default_rng(0)
PIXELS = GENERATOR.integers(0, 255, (9, 4, 6, 3), np.uint8)
FLOATS = GENERATOR.normal(size=(9, 5))
IDS = GENERATOR.integers(0, 256, (9, 7))


@pytest.mark.parametrize(
    ("key", "label_key"), [("x", "y"), ("images", "labels"), ("arr_0", "y"), ("other", "y")]
)
def test_array_names(tmp_path: Path, key: str, label_key: str) -> None:
    path = tmp_path / "a.npz"
    arrays: dict[str, Any] = {key: PIXELS, label_key: np.arange(9, dtype=np.uint8)[:, None]}
    np.savez(path, **arrays)
    source = open_data(path, IMAGES, shuffle=False)
    assert labels(source) == list(range(9))
    assert values(source) == PIXELS[:, 0, 0, 0].tolist()
    assert source.description["name"] == "a.npz"


@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_bytes_are_images_with_channels_first_or_last(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    expected = torch.from_numpy(PIXELS).permute(0, 3, 1, 2) / 255
    for pixels in (PIXELS, PIXELS.transpose(0, 3, 1, 2)):
        _save(path, pixels)
        (x,) = tensors(open_data(path, RAW, shuffle=False))
        torch.testing.assert_close(x, expected)
        (x,) = tensors(open_data(path, IMAGES, shuffle=False))
        torch.testing.assert_close(x[:, :, 0, 0], expected[:, :, 0, 0] * 255)


def test_grey_and_transparent_images(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for grey in (PIXELS[..., 0], PIXELS[..., :1], PIXELS[:, None, ..., 0]):
        _save(path, grey)
        (x,) = tensors(open_data(path, IMAGES, shuffle=False))
        assert x[:, :, 0, 0].tolist() == [[v] * 3 for v in PIXELS[:, 0, 0, 0].tolist()]
        (x,) = tensors(open_data(path, Inputs("image", (1, 4, 6)), shuffle=False))
        torch.testing.assert_close(x[:, 0], torch.from_numpy(PIXELS[..., 0]) / 255)
    _save(path, np.concatenate([PIXELS, PIXELS[..., :1]], -1))
    assert values(open_data(path, IMAGES, shuffle=False)) == PIXELS[:, 0, 0, 0].tolist()


def test_channels_are_read_as_the_network_has_them(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    _save(path, PIXELS[:, :3, :, :3])  # [9, 3, 6, 3]: either way would do
    (x,) = tensors(open_data(path, Inputs("image", (3, 6, 3)), shuffle=False))
    torch.testing.assert_close(x, torch.from_numpy(PIXELS[:, :3, :, :3]) / 255)
    assert tensors(open_data(path, Inputs("image", (3, 3, 6))))[0].shape == (9, 3, 3, 6)


def test_a_network_that_flattens_takes_any_shape_with_as_many_entries(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    grey, colour = (Inputs("tensor", (count,), flattens=True) for count in (24, 72))
    _save(path, PIXELS[..., 0])
    (x,) = tensors(open_data(path, grey, shuffle=False))
    torch.testing.assert_close(x, torch.from_numpy(PIXELS[..., 0])[:, None] / 255)
    _save(path, PIXELS)
    (x,) = tensors(open_data(path, colour, shuffle=False))
    torch.testing.assert_close(x, torch.from_numpy(PIXELS).permute(0, 3, 1, 2) / 255)
    for shape in ((9, 24), (9, 4, 6), (9, 1, 4, 6)):
        _save(path, (PIXELS[..., 0] / 255).reshape(shape))
        assert tensors(open_data(path, grey))[0].shape == shape
    with pytest.raises(InputError, match=r"expected 72 entries for this network, got \[1, 4, 6\]"):
        open_data(path, colour)


@pytest.mark.parametrize("dtype", ["float16", "float64", ">f4"])
def test_floats_are_not_changed(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.npy"
    _save(path, FLOATS.astype(dtype))
    (x,) = tensors(open_data(path, TENSOR, shuffle=False))
    assert x.dtype == torch.float32
    np.testing.assert_array_equal(x.numpy(), FLOATS.astype(dtype).astype(np.float32))


def test_ids_for_tokens(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for dtype in (np.uint8, np.uint16, np.int64):
        _save(path, IDS.astype(dtype))
        (batch,) = open_data(path, TOKENS, shuffle=False)
        assert isinstance(batch, dict)
        assert batch["input_ids"].tolist() == IDS.tolist()
        assert batch["attention_mask"].tolist() == np.ones_like(IDS).tolist()
    (x,) = tensors(open_data(path, TOKENS, shuffle=False, length=3))
    assert x.tolist() == IDS[:, :3].tolist()
    with pytest.raises(InputError, match="rows of at least 8 tokens, got 7"):
        open_data(path, TOKENS, length=8)
    _save(path, IDS.ravel())
    (x,) = tensors(open_data(path, TOKENS, shuffle=False))
    assert x.tolist() == np.append(IDS.ravel(), 0).reshape(-1, 4).tolist()  # 63 tokens: a 0 at the end


@pytest.mark.parametrize(
    ("arrays", "inputs", "message"),
    [
        ({"x": FLOATS}, TOKENS, r"expected whole numbers .* got float64 of shape \[9, 5\]"),
        ({"x": IDS + 1000}, TOKENS, "expected token ids from 0 to 255, got 12"),
        ({"x": FLOATS[:, :4]}, TENSOR, r"expected \[5\] for this network, got \[4\]"),
        ({"x": PIXELS / 255}, RAW, r"got \[4, 6, 3\]; move the channels to the front"),
        ({"x": PIXELS}, TENSOR, r"read as images, but this network takes tensors of shape \[5\]"),
        ({"x": PIXELS[..., :2]}, RAW, r"expected images .* got shape \[9, 4, 6, 2\]"),
        ({"x": IDS}, IMAGES, "expected floats or images in uint8, got int64"),
        ({"x": FLOATS[:0]}, TENSOR, r"expected samples along the first axis, got shape \[0, 5\]"),
        ({"x": FLOATS, "y": np.arange(8)}, TENSOR, "expected 9 whole numbers as labels, got int64 of shape"),
        ({"x": FLOATS, "y": np.arange(9.0)}, TENSOR, "expected 9 whole numbers as labels, got float64"),
        ({"a": FLOATS, "b": FLOATS}, TENSOR, "expected an array named x, images, data, arr_0, got a, b"),
    ],
)
def test_unsuitable_arrays_are_refused(
    tmp_path: Path, arrays: dict[str, Any], inputs: Inputs, message: str
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=rf"a\.npz: .*{message}") as caught:
        open_data(tmp_path / "a.npz", inputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_broken_files_and_pickles_give_a_one_line_error(tmp_path: Path, name: str) -> None:
    def saved(array: Any) -> bytes:
        file = io.BytesIO()
        np.savez_compressed(file, x=array) if name == "a.npz" else np.save(file, array)
        return file.getvalue()

    truncated, objects = saved(GENERATOR.normal(size=(100, 5)))[:-30], saved(np.array([Bomb()], object))
    for broken in (b"", b"no array", truncated, objects, pickle.dumps(Bomb())):
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(InputError, match="expected arrays of numbers as numpy") as caught:
            open_data(tmp_path / name, TENSOR)
        assert "\n" not in str(caught.value)


def _save(path: Path, array: Any) -> None:
    if path.suffix == ".npy":
        np.save(path, array)
    else:
        np.savez(path, array)
