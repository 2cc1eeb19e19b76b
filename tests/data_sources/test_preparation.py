"""Images that are prepared as the user says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fathometer import InputError
from fathometer.data import Inputs, open_data
from fathometer.data.preparation import Preparation, with_preparation


def test_each_step_does_what_it_says() -> None:
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 0] = 255
    image = Image.fromarray(pixels)
    mean, std = (0.5, 0.25, 0.0), (0.5, 0.5, 2.0)
    found = Preparation(crop=2, mean=mean, std=std)(image)
    assert found[:, 0, 0].tolist() == [1.0, -0.5, 0.0]
    assert found.shape == (3, 2, 2)
    assert Preparation(bgr=True)(image)[:, 0, 0].tolist() == [0.0, 0.0, 1.0]
    assert Preparation(size=8)(image).shape == (3, 8, 12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": (0.5, 0.5)}, "mean: expected 1 or 3 numbers, got 2"),
        ({"std": (0.0,)}, "std: expected numbers above 0, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, tuple[float, ...]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Preparation(**options)  # type: ignore[arg-type]


def test_files_and_arrays_are_prepared_alike(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), np.uint8)
    (tmp_path / "images").mkdir()
    for index, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / "images" / f"{index}.png")
    np.savez(tmp_path / "x.npz", x=pixels)
    inputs = with_preparation(
        Inputs("image", (3, 8, 8)), Preparation(crop=4, mean=(0.4,), std=(0.2,), bgr=True)
    )
    assert inputs.shape == (3, 4, 4)
    files, arrays = (
        torch.cat([*open_data(tmp_path / name, inputs, shuffle=False)]) for name in ("images", "x.npz")
    )
    expected = (torch.from_numpy(pixels).permute(0, 3, 1, 2).flip(1)[..., 2:6, 2:6] / 255 - 0.4) / 0.2
    assert torch.allclose(files, expected)
    assert torch.equal(files, arrays)
    with pytest.raises(InputError, match="expected a network that takes images, got one for tokens"):
        with_preparation(Inputs("tokens", (8,)), Preparation())
