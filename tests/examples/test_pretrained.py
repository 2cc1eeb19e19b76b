from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fathometer.models import LoadedModel, load_model

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared/data"
CACHE = Path.home() / ".cache/fathometer-trials"
SQUEEZENET = SHARED / "weights/squeezenet1_0_deepcompression_decoded.pth"


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def pretrained(name: str, weights: Path | str = "none") -> LoadedModel:
    return load_model(f"examples.pretrained:{name}", weights)


@pytest.mark.parametrize(
    ("name", "parameters", "side", "classes"),
    [
        ("resnet20", 269_722, 32, 10),
        ("resnet32", 464_154, 32, 10),
        ("resnet44", 658_586, 32, 10),
        ("resnet56", 853_018, 32, 10),
        ("resnet110", 1_727_962, 32, 10),
        ("vgg16_cifar10", 14_991_946, 32, 10),
        ("squeezenet_deep_compression", 1_248_424, 227, 1000),
        ("efficientnet_lite0", 4_652_008, 224, 1000),
        ("resnet50_keras", 25_557_032, 224, 1000),
    ],
)
def test_structure(name: str, parameters: int, side: int, classes: int) -> None:
    model = pretrained(name)
    assert sum(p.numel() for p in model.module.parameters()) == parameters
    assert model.inputs.shape == (3, side, side)
    assert model.inputs.preprocess is not None
    sample = model.inputs.preprocess(Image.new("RGB", (80, 60)))
    assert tuple(sample.shape) == (3, side, side)
    with torch.no_grad():
        assert model.module(sample[None]).shape == (1, classes)


@pytest.mark.parametrize(
    ("name", "red"),
    [
        ("resnet20", [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225]),
        ("vgg16_cifar10", [1, 0, 0]),
        ("resnet50_keras", [-103.939, -116.779, 255 - 123.68]),
        ("efficientnet_lite0", [1, -127 / 128, -127 / 128]),
    ],
)
def test_preprocessing_of_a_red_image(name: str, red: list[float]) -> None:
    preprocess = pretrained(name).inputs.preprocess
    assert preprocess is not None
    assert preprocess(Image.new("RGB", (40, 50), "red"))[:, 3, 5].tolist() == pytest.approx(red, abs=1e-5)


def accuracy(model: LoadedModel, images: list[Image.Image], labels: list[int], batch: int = 64) -> float:
    assert model.inputs.preprocess is not None
    right = 0
    with torch.no_grad():
        for i in range(0, len(images), batch):
            x = torch.stack([model.inputs.preprocess(image) for image in images[i : i + batch]])
            right += int((model.module(x).argmax(1) == torch.tensor(labels[i : i + batch])).sum())
    return right / len(images)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet20", "resnet32", "resnet44", "resnet56", "vgg16_cifar10"])
def test_accuracy_on_cifar10(name: str) -> None:
    files = [*(SHARED / "weights/cifar10_resnet").glob(f"{name}-*.th"), *CACHE.glob(f"{name}.pth")]
    if not files or not (CACHE / "cifar10_test.npz").is_file():
        pytest.skip("needs ../shared/data, and get.py cifar10 vgg16_cifar10 --to ~/.cache/fathometer-trials")
    test = np.load(CACHE / "cifar10_test.npz")
    images = [Image.fromarray(x) for x in test["x"][:1000]]
    assert accuracy(pretrained(name, files[0]), images, test["y"][:1000].astype(int).tolist()) > 0.88


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "weights", "stated"),
    [
        ("examples.pretrained:squeezenet_deep_compression", SQUEEZENET, 0.605),
        ("examples.pretrained:efficientnet_lite0", CACHE / "efficientnet-lite0-57934424.pth", 0.863),
        ("examples.pretrained:resnet50_keras", CACHE / "resnet50_keras.pth", 0.890),
        ("torchvision:mobilenet_v2", CACHE / "mobilenet_v2-b0353104.pth", 0.827),
    ],
)
def test_accuracy_on_the_imagenet_sample(name: str, weights: Path, stated: float) -> None:
    folder = SHARED / "imagenet_sample_256"
    if not weights.is_file() or not folder.is_dir():
        pytest.skip("needs ../shared/data, and its get.py --to ~/.cache/fathometer-trials")
    with (folder / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))[::4][:256]  # in the order of the classes: every fourth
    images = [Image.open(folder / row["file"]).convert("RGB") for row in rows]
    labels = [int(row["class_index"]) for row in rows]
    assert accuracy(load_model(name, weights), images, labels) == pytest.approx(stated, abs=0.06)
