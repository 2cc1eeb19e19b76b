from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NoReturn
from urllib.error import URLError

import pytest
import torch
from PIL import Image
from torch import nn

from fathometer import InputError
from fathometer.models import LoadedModel, load_model
from fathometer.models.from_torchvision import _fitting

IMPORT = """
import gc, torch
try:
    import torchvision  # fails, or not, and leaves something behind
except RuntimeError:
    pass
from fathometer.models import ensure_torchvision_operators
ensure_torchvision_operators()
ensure_torchvision_operators()
gc.collect()
import torchvision
assert torch.ops.torchvision.nms
assert torchvision.extension is not None
assert torchvision.models.resnet18(weights=None).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 1000)
"""


def runs_on_an_image(model: LoadedModel) -> bool:
    assert model.inputs.preprocess is not None
    sample = model.inputs.preprocess(Image.new("RGB", (300, 280), "teal"))
    assert tuple(sample.shape) == model.inputs.shape
    with torch.no_grad():
        return bool(model.module(sample[None]).shape == (1, 1000))


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("torchvision:resnet18", 224),
        ("torchvision:googlenet", 224),
        ("torchvision:inception_v3", 299),
        ("timm:resnet10t", 176),
        ("timm:test_vit.r160_in1k", 160),
    ],
)
def test_a_random_network_runs_on_its_own_preprocessing(name: str, side: int) -> None:
    model = load_model(name, "none")
    assert (model.name, model.weights, model.inputs.kind) == (name, "none", "image")
    assert model.inputs.shape == (3, side, side)
    assert not any(m.training for m in model.module.modules())
    assert runs_on_an_image(model)
    if name in ("torchvision:googlenet", "torchvision:inception_v3"):  # as in the published weights
        assert model.module.transform_input
        assert any(n.lower().startswith("aux") for n, _ in model.module.named_children())


def test_weights_by_their_name_and_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = load_model("torchvision:mobilenet_v2", "none").module.state_dict()
    asked = []

    def download(url: str, *_: object, **__: object) -> dict[str, torch.Tensor]:
        asked.append(url)
        return trained

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", download)
    assert load_model("torchvision:mobilenet_v2").weights == "IMAGENET1K_V2"
    first = load_model("torchvision:mobilenet_v2", "IMAGENET1K_V1")
    assert first.weights == "IMAGENET1K_V1"
    assert torch.equal(first.module.state_dict()["classifier.1.bias"], trained["classifier.1.bias"])
    assert [url.rpartition("-")[2] for url in asked] == ["7ebf99e0.pth", "b0353104.pth"]
    with pytest.raises(InputError, match=r"or IMAGENET1K_V1 or IMAGENET1K_V2$"):
        load_model("torchvision:mobilenet_v2", "IMAGENET1K_V9")


def test_a_failed_download_suggests_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise URLError("no route to host")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", fail)
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", fail)
    for name in ("torchvision:resnet18", "timm:resnet10t"):
        with pytest.raises(InputError, match="give weights none, or a local file") as raised:
            load_model(name)
        assert "no route to host" in str(raised.value)
        assert "\n" not in str(raised.value)


def test_a_file_of_torchvision_has_its_own_preprocessing(tmp_path: Path) -> None:
    state = load_model("torchvision:mobilenet_v2", "none").module.state_dict()
    sizes = {}
    for file in ("mobilenet_v2-b0353104.pth", "mobilenet_v2-7ebf99e0.pth", "mine.pth"):  # V1, V2, unknown
        torch.save(state, tmp_path / file)
        sizes[file] = load_model("torchvision:mobilenet_v2", tmp_path / file).inputs.preprocess.resize_size  # type: ignore[union-attr]
    assert list(sizes.values()) == [[256], [232], [232]]


def test_a_network_without_weights_takes_images_of_its_own_size() -> None:
    from torchvision.models import get_model_weights

    module = nn.Module()
    module.image_size = 224  # type: ignore[assignment]  # as a ViT-H/14 that was made without weights; its default ones take 518
    entries = get_model_weights("vit_h_14")
    assert _fitting(entries, module).transforms().crop_size == [224]
    assert _fitting(entries, nn.Module()) == entries.DEFAULT


def test_torchvision_can_be_imported_even_after_a_failure() -> None:
    command = [sys.executable, "-W", "error", "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
