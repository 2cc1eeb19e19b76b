"""Trained networks: their list, their inputs, and the commands that measure, train and compare them."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

from fathometer import load, reference
from fathometer.compare import DEFAULT_METRIC
from fathometer.models import load_model
from papers.images.pictures import cifar10 as cifar10_pictures
from papers.networks import cifar10, imagenet
from papers.networks import measure as measuring
from papers.networks.__main__ import app
from papers.networks.distances import RECORD
from papers.networks.layers import SameConv2d, with_tensorflow_padding
from papers.networks.measure import NETWORKS, SOUNDINGS, State, sounding_file
from papers.networks.network import Network
from papers.networks.recipes import ARCHITECTURES, SEVERAL_SEEDS, build
from papers.networks.reference import recorded_soundings
from papers.networks.trainer import Trainer

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared/data"
STATES: tuple[State, ...] = ("trained", "random")
TRAINED = sorted(SOUNDINGS.glob("[!.]*/*.json"))


@pytest.mark.parametrize(
    ("network", "parameters", "side", "outputs"),
    [
        (cifar10.resnet20, 269_722, 32, 10),
        (cifar10.cifar_vgg16, 14_991_946, 32, 10),
        (imagenet.squeezenet1_0, 1_248_424, 227, 1000),
        (imagenet.efficientnet_lite0, 4_652_008, 224, 1000),
        (imagenet.efficientnet_lite2, 6_092_072, 260, 1000),
        (imagenet.resnet50, 25_557_032, 224, 1000),
        (imagenet.mobilenet_v3_large, 5_483_032, 224, 1000),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_structure(network: Network, parameters: int, side: int, outputs: int) -> None:
    loaded = network.load(None)
    assert sum(p.numel() for p in loaded.module.parameters()) == parameters
    assert loaded.inputs.shape == (3, side, side)
    sample = network.crop(Image.new("RGB", (80, 60)))
    assert tuple(sample.shape) == (3, side, side)
    with torch.no_grad():
        assert loaded.module(sample[None]).shape == (1, outputs)


@pytest.mark.parametrize(
    ("network", "red"),
    [
        (cifar10.resnet20, [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225]),
        (cifar10.cifar_vgg16, [1, 0, 0]),
        (imagenet.resnet50, [-103.939, -116.779, 255 - 123.68]),
        (imagenet.efficientnet_lite0, [1, -127 / 128, -127 / 128]),
        (imagenet.inception_v3, [1, -1, -1]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_preprocessing_of_a_red_image(network: Network, red: list[float]) -> None:
    found = network.crop(Image.new("RGB", (40, 50), "red"))
    assert found[:, 3, 5].tolist() == pytest.approx(red, abs=1e-5)


def test_a_network_has_a_name_for_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for module, networks in ((imagenet, imagenet.NETWORKS), (cifar10, cifar10.NETWORKS)):
        assert all(getattr(module, name) is network for name, network in networks.items())
    assert load_model("papers.networks.cifar10:resnet20", "none").inputs.shape == (3, 32, 32)


def test_tensorflows_padding_is_on_the_right_and_below() -> None:
    layer = nn.Conv2d(1, 1, 3, 2, 1, bias=False)
    nn.init.ones_(layer.weight)
    with_tensorflow_padding(layer)
    assert isinstance(layer, SameConv2d)
    corner = torch.zeros(1, 1, 4, 4)
    corner[0, 0, 0, 0] = corner[0, 0, 3, 3] = 1
    assert layer(corner).flatten().tolist() == [1, 0, 0, 1]
    torch.testing.assert_close(layer(torch.ones(1, 1, 4, 4))[0, 0], torch.tensor([[9.0, 6.0], [6.0, 4.0]]))


def test_measuring_writes_a_sounding_with_its_origin(tmp_path: Path) -> None:
    torch.save(cifar10.resnet20()[0].state_dict(), tmp_path / "resnet20-random.th")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(2048, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "cifar10_test.npz", x=images, y=rng.integers(0, 10, size=2048))
    given = ["measure", "resnet20", "cifar_vgg16", "--weights", str(tmp_path), "--cifar10", str(tmp_path)]
    done = CliRunner().invoke(app, [*given, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "cifar_vgg16: no file vgg16_cifar10.pth" in done.output
    found = load(sounding_file("cifar10", "resnet20", folder=tmp_path))
    model = found.provenance.model
    assert (model["family"], model["facts"]["year"], model["facts"]["depth"]) == ("ResNet", 2015, 20)
    assert model["facts"]["gflops"] == pytest.approx(0.041, abs=0.001)
    assert found.provenance.versions["commit"]
    assert found.accuracy == pytest.approx(0.1, abs=0.05)
    assert sum(site.after_sum for site in found.sites) == 9
    assert {"affinity", "cka", "neural_collapse_nc1"} <= set(found.gauges)


@pytest.fixture
def small_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """16 images for training and for test, measured in 2 batches of 8."""
    monkeypatch.setitem(measuring.BATCHES, "cifar10", measuring.Batches(8, 2, 8))
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        images = rng.integers(0, 256, size=(16, 32, 32, 3), dtype=np.uint8)
        np.savez(tmp_path / f"cifar10_{split}.npz", x=images, y=rng.integers(0, 10, size=16))
    return tmp_path


def test_training_is_resumed_and_measured(small_cifar: Path) -> None:
    places = {name: small_cifar / name for name in ("weights", "soundings", "records")}
    given = ["train", "resnet18", "mnasnet0_5", "--cifar10", str(small_cifar), "--device", "cpu"]
    given += [text for name, place in places.items() for text in (f"--{name}", str(place))]
    given += ["--images", "16", "--epochs", "1"]
    stopped = CliRunner().invoke(app, [*given, "--seconds", "-1"])
    assert (stopped.exit_code, "2 networks are left" in stopped.output) == (0, True)
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    record = json.loads((places["records"] / "mnasnet0_5.json").read_text())
    assert (record["recipe"]["recalibrate"], record["recipe"]["epochs"], record["images"]) == (True, 1, 16)
    assert 0 <= record["accuracy"] <= 100
    for name in ("resnet18", "mnasnet0_5"):
        trained, random = (
            load(sounding_file("cifar10", name, state, places["soundings"])) for state in STATES
        )
        assert trained.provenance.model["facts"]["accuracy_by"] == "the record of its training"
        assert random.gauges == ["affinity"]
        assert not np.allclose(trained.signature, random.signature)
    assert CliRunner().invoke(app, given).output == ""  # nothing is done twice


def test_a_resumed_training_is_the_same_as_one_in_one_piece(small_cifar: Path) -> None:
    pictures = cifar10_pictures(small_cifar, "train")
    recipe = replace(ARCHITECTURES["swin_t"].recipe, epochs=2, batch=8)

    def trainer() -> Trainer:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 3, 4), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        return Trainer(nn.Sequential(net, nn.Flatten(), nn.Linear(4, 10)), recipe, pictures, 0, "cpu")

    whole, first, second = trainer(), trainer(), trainer()
    whole.epoch()
    whole.epoch()
    first.epoch()
    second.resume(copy.deepcopy(first.state()))
    second.epoch()
    assert (whole.is_done, first.is_done, second.is_done) == (True, False, True)
    for one, other in zip(whole.network.parameters(), second.network.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    before = whole.test(pictures).loss
    whole.recalibrate()
    assert whole.test(pictures).loss != before


def test_every_architecture_is_torchvisions() -> None:
    assert len(ARCHITECTURES) >= 28
    assert set(SEVERAL_SEEDS) <= set(ARCHITECTURES)
    assert {ARCHITECTURES[name].family for name in SEVERAL_SEEDS} == {
        each.family for each in ARCHITECTURES.values()
    }
    with torch.no_grad():
        for name in ("vit_b_32", "inception_v3"):
            assert build(name, 0).eval()(torch.zeros(1, 3, 128, 128)).shape == (1, 10)


@pytest.mark.parametrize("file", TRAINED, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_recorded_soundings_name_commit_machine_and_date(file: Path) -> None:
    found = load(file).provenance
    assert found.versions["commit"]
    assert "with changes" not in found.versions["commit"]
    assert found.device
    assert found.date


def test_published_accuracies_are_confirmed() -> None:
    """On all 10,000 test images they are equal; here are 2048 of them."""
    found = recorded_soundings()
    for name, sounding in found.items():
        data, _, short = name.partition("/")
        network, measured = NETWORKS[data][short], sounding.accuracy  # type: ignore[index]
        if measured is not None and network.accuracy is not None:
            above = 100 * measured - network.accuracy[0]
            assert abs(above) < 1.5 if network.data == "cifar10" else 0 < above < 22  # training images


def test_the_reference_holds_the_recorded_soundings() -> None:
    known = reference.load()
    assert set(recorded_soundings()) == set(known)
    for name in ("cifar10/resnet20", "imagenet/resnet18"):
        measured = load(SOUNDINGS / f"{name}.json")
        assert np.allclose(known[name].signature, measured.signature, rtol=5.1e-4)
        assert np.allclose(reference.std()[name]["affinity"], measured.std("affinity"), rtol=0.051)


def test_the_default_distance_is_the_one_that_the_criterion_chose() -> None:
    assert json.loads(RECORD.read_text("utf-8"))["best"] == DEFAULT_METRIC
