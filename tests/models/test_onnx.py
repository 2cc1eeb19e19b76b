from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from fathometer import InputError
from fathometer.models import load_model
from tests.models.files import KERNEL, convolution, node, save_onnx

pytest.importorskip("onnx")


@pytest.mark.parametrize(("sizes", "side"), [([1, 3, 20, 20], 20), (["n", 3, "h", "w"], 224)])
def test_a_convolutional_network(sizes: list[Any], side: int, tmp_path: Path) -> None:
    model = load_model(save_onnx(tmp_path / "c.onnx", convolution(), sizes, {"w": KERNEL}))
    assert (model.weights, model.inputs.kind, model.inputs.shape) == ("c.onnx", "image", (3, side, side))
    assert model.inputs.preprocess is not None
    x = model.inputs.preprocess(Image.new("RGB", (50, 40), "navy"))[None]
    expected = functional.conv2d(x, torch.from_numpy(KERNEL)).relu()
    torch.testing.assert_close(model.module(x), expected)


def test_other_tensors_and_tokens(tmp_path: Path) -> None:
    weight = np.ones((7, 2), np.float32)
    flat = save_onnx(tmp_path / "f.onnx", [node("MatMul", ["x", "w"], "y")], ["n", 7], {"w": weight})
    assert load_model(flat).inputs.kind == "tensor"
    assert load_model(flat).inputs.shape == (7,)
    words = save_onnx(
        tmp_path / "t.onnx", [node("Gather", ["w", "x"], "y")], ["n", "t"], {"w": weight}, "INT64"
    )
    inputs = load_model(words).inputs
    assert (inputs.kind, inputs.shape, inputs.vocabulary) == ("tokens", (128,), 7)


def test_unsuitable_files_are_refused(tmp_path: Path) -> None:
    good = save_onnx(tmp_path / "c.onnx", convolution(), ["n", 3, 8, 8], {"w": KERNEL})
    with pytest.raises(InputError, match="holds its weights"):
        load_model(good, "none")
    (tmp_path / "g.onnx").write_bytes(b"garbage")
    with pytest.raises(InputError, match=r"not a readable ONNX file|expected one input, got 0"):
        load_model(f"onnx:{tmp_path / 'g.onnx'}")
    strange = save_onnx(tmp_path / "s.onnx", [node("Det", ["x"], "y")], ["n", 3, 3], {})
    with pytest.raises(InputError, match="onnx2torch cannot convert it"):
        load_model(strange)
    two = save_onnx(
        tmp_path / "o.onnx", [node("MatMul", ["x", "w"], "y")], ["n", "m"], {"w": np.ones((7, 2), np.float32)}
    )
    with pytest.raises(InputError, match="open shape"):
        load_model(two)
