from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from fathometer import InputError, MissingExtraError
from fathometer.models import list_models, load_model


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet50", "did you mean torchvision:resnet50 or timm:resnet50"),
        ("torchvison:resnet50", "did you mean torchvision:resnet50"),
        ("torchvision:resnet17", "did you mean torchvision:resnet1"),
        ("torchvision:", "expected SOURCE:NAME"),
        ("nothing.at_all:f", "the sources are torchvision, timm, hf, onnx"),
        ("onnx:nowhere.onnx", "no such file"),
        ("hf:./nowhere", "no such folder or file"),
    ],
)
def test_a_wrong_name_gives_a_one_line_error(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        load_model(name)
    assert "\n" not in str(raised.value)


def test_a_file_of_weights_is_loaded_and_named(tmp_path: Path) -> None:
    first = load_model("torchvision:squeezenet1_1", "none")
    file = tmp_path / "mine.pth"
    torch.save({"state_dict": {f"module.{k}": v for k, v in first.module.state_dict().items()}}, file)
    for weights in (file, str(file)):
        second = load_model("torchvision:squeezenet1_1", weights)
        assert second.weights == "mine.pth"
        x = torch.randn(2, *second.inputs.shape)
        assert torch.equal(first.module(x), second.module(x))
    for missing in ("nowhere.pth", Path("nowhere"), "folder/IMAGENET1K_V1"):
        with pytest.raises(InputError, match="no such file"):
            load_model("torchvision:resnet18", missing)


def test_names_of_all_libraries_by_pattern() -> None:
    names = list_models()
    assert {"torchvision:resnet50", "timm:resnet10t", "hf:gpt2", "hf:vit", "hf:bert"} <= set(names)
    assert "torchvision:fasterrcnn_resnet50_fpn" not in names
    assert list_models("resnet18") == ["torchvision:resnet18", "timm:resnet18"]
    assert list_models("hf:gpt?") == ["hf:gpt2", "hf:gptj"]


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("torchvision", "torchvision:resnet18", "vision"),
        ("timm", "timm:resnet10t", "vision"),
        ("transformers", "hf:gpt2", "language"),
        ("onnx2torch", "onnx:here.onnx", "onnx"),
    ],
)
def test_a_missing_library_is_named_and_left_out_of_the_list(
    package: str, name: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.onnx").touch()
    with pytest.raises(MissingExtraError, match=rf"fathometer\[{extra}\]"):
        load_model(name)
    assert list_models(name) == []
