"""Networks of small images: built, trained, measured and kept; and the images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fathometer import measure
from fathometer.errors import InputError
from papers.images import trained as trained_module
from papers.images.ensembles import ensemble, scores_table
from papers.images.networks import CifarBlock, CifarResNet, build
from papers.images.other_pictures import noise_like, printed_digits
from papers.images.pictures import Pictures, cifar10, digits, normalised
from papers.images.trained import Pixels, sounding, trained
from papers.images.training import METHODS, PAD, Method, TrainingConfig, augmented, train
from papers.item import RunContext


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    (tmp_path / "shared").mkdir()
    return RunContext("smoke", "cpu", tmp_path, tmp_path / "shared")


# --- networks


def test_residual_and_plain_networks_have_the_same_sites_and_weights() -> None:
    images = torch.randn(20, 3, 16, 16)
    residual, plain = (build(kind, 3, width=0.25) for kind in ("resnet20", "plain20"))
    names = [
        [site.name for site in measure(network, images, samples=20, gauges="norm").sites]
        for network in (residual, plain)
    ]
    assert names[0] == names[1]
    assert len(names[0]) == 19
    first, second = residual.state_dict(), plain.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_only_the_residual_block_lets_its_input_through() -> None:
    x = torch.randn(2, 4, 8, 8)
    for residual in (True, False):
        block = CifarBlock(4, 4, residual).eval()
        nn.init.zeros_(block.conv2.weight)
        assert torch.equal(block(x), x.relu() if residual else torch.zeros_like(x))
    block = CifarBlock(4, 8).eval()  # where channels double, the shortcut has no weights
    nn.init.zeros_(block.conv2.weight)
    found = block(x)
    assert torch.equal(found[:, 2:6], x[:, :, ::2, ::2].relu())
    assert not found[:, [0, 1, 6, 7]].any()


def test_depths_and_sizes_of_networks() -> None:
    for depth in (20, 110):
        layers = [m for m in CifarResNet(depth).modules() if isinstance(m, nn.Conv2d | nn.Linear)]
        assert len(layers) == depth
    for size in (16, 32):
        assert build("vgg16", 0, 1 / 16, size).eval()(torch.randn(2, 3, size, size)).shape == (2, 10)
    for kind, named in (("resnet21", "6n"), ("vgg19", "vgg16")):
        with pytest.raises(InputError, match=named):
            build(kind, 0)


# --- training


def slowly_augmented(images: torch.Tensor, shifts: torch.Tensor, flips: torch.Tensor | None) -> torch.Tensor:
    """One image at a time."""
    size, found = images.shape[-1], []
    for number, image in enumerate(images):
        top, left = shifts[number].tolist()
        piece = F.pad(image, (PAD, PAD, PAD, PAD))[:, top : top + size, left : left + size]
        found.append(piece.flip(-1) if flips is not None and flips[number] else piece)
    return torch.stack(found)


@pytest.mark.parametrize("mirrored", [True, False])
def test_augmentation_is_what_a_slow_one_gives(mirrored: bool) -> None:
    images = torch.randn(12, 3, 16, 16)
    shifts = torch.randint(0, 2 * PAD + 1, (12, 2))
    flips = torch.arange(12) % 2 == 0 if mirrored else None
    assert torch.equal(augmented(images, shifts, flips), slowly_augmented(images, shifts, flips))


def loss_of(network: nn.Module, data: Pictures) -> float:
    with torch.no_grad():
        return float(F.cross_entropy(network.eval()(data.normalised()), data.labels))


@pytest.mark.parametrize("method", METHODS)
def test_training_lowers_the_loss(method: Method) -> None:
    data = digits("train")
    some = Pictures(data.pixels[:512], data.labels[:512])
    network = build("resnet8", 0, 0.25, 16)
    before = loss_of(network, some)
    config = replace(TrainingConfig(4, 64, 0.1, flips=False).by(method), decay=5e-4)
    train(network, some, config, 0)
    assert not network.training
    assert loss_of(network, some) < 0.9 * before


def test_a_training_depends_on_its_seed_alone() -> None:
    data = digits("train")
    some = Pictures(data.pixels[:256], data.labels[:256])

    def weights(seed: int) -> torch.Tensor:
        network = build("resnet8", 0, 0.25, 16)
        return train(network, some, TrainingConfig(2, 32, 0.1, mixing=0.8), seed).linear.weight  # type: ignore[union-attr, return-value]

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


# --- images


def test_digits_are_split_once_and_pixels_are_normalised_by_channel() -> None:
    training, test = digits("train"), digits("test")
    assert (len(training.pixels), len(test.pixels)) == (1297, 500)
    assert torch.equal(test.pixels, digits("test").pixels)
    expected = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    found = normalised(torch.full((1, 3, 2, 2), 255, dtype=torch.uint8))
    assert found[0, :, 0, 0].tolist() == pytest.approx(expected)


def test_cifar_from_npz(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "cifar10_test.npz", x=x, y=np.arange(5, dtype=np.uint8))
    found = cifar10(tmp_path, "test")
    assert np.array_equal(found.pixels.numpy(), x.transpose(0, 3, 1, 2))
    assert found.labels.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match=r"data_batch_\*.bin or cifar10_train.npz"):
        cifar10(tmp_path, "train")
    np.savez(tmp_path / "cifar10_test.npz", x=np.zeros((5, 3, 32, 32), np.uint8), y=np.zeros(5))
    with pytest.raises(InputError, match=r"\[n, 32, 32, 3\], got uint8, \[5, 3, 32, 32\]"):
        cifar10(tmp_path, "test")


def test_cifar_from_binaries(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (6, 3072), dtype=np.uint8)
    labels = np.arange(6, dtype=np.uint8)
    for number in (1, 2):
        part = slice(3 * number - 3, 3 * number)
        rows = np.concatenate([labels[part, None], pixels[part]], axis=1)
        (folder / f"data_batch_{number}.bin").write_bytes(rows.tobytes())
    found = cifar10(tmp_path, "train")
    assert np.array_equal(found.pixels.numpy().reshape(6, -1), pixels)
    assert found.labels.tolist() == labels.tolist()


def test_noise_has_the_moments_of_the_data() -> None:
    data = digits("test")
    noise, images = noise_like(data, 400), data.normalised()
    assert noise.mean((0, 2, 3)).tolist() == pytest.approx(images.mean((0, 2, 3)).tolist(), abs=0.02)
    assert noise.std((0, 2, 3)).tolist() == pytest.approx(images.std((0, 2, 3)).tolist(), abs=0.02)


def test_printed_digits_are_white_on_black_and_differ() -> None:
    found = printed_digits(20, 16)
    assert found.dtype == torch.uint8
    assert torch.equal(found[:, 0], found[:, 2])
    assert 0.05 < float(found.float().mean()) / 255 < 0.5
    assert len({image.numpy().tobytes() for image in found}) == 20


# --- kept


def refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("it was there already")


def test_a_network_is_trained_once(context: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    first = trained(context, "resnet8", 1)
    monkeypatch.setattr(trained_module, "train", refuse)
    again = trained(context, "resnet8", 1)
    assert again.accuracy == first.accuracy
    one, two = (each.module.state_dict() for each in (first, again))
    assert all(torch.equal(one[name], two[name]) for name in one)
    with pytest.raises(AssertionError, match="already"):
        trained(context, "resnet8", 2)


def test_a_sounding_is_measured_once(context: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sounding(context, "resnet8", gauges="affinity")
    monkeypatch.setattr(trained_module, "measure", refuse)
    again = sounding(context, "resnet8", gauges="affinity")
    assert again.records["affinity"].to_list() == first.records["affinity"].to_list()
    for other in ({"samples": 125}, {"batches": 1}, {"state": "initial"}, {"data": "train"}, {"seed": 1}):
        with pytest.raises(AssertionError, match="already"):
            sounding(context, "resnet8", gauges="affinity", **other)


def test_a_sounding_says_what_it_is_of(context: RunContext) -> None:
    noise = Pixels("some noise", torch.randn(100, 3, 16, 16))
    found = sounding(context, "resnet8", 3, state="initial", data=noise, samples=50, gauges="affinity")
    assert found.provenance.model["name"] == "resnet8 sgd 3"
    assert found.provenance.model["weights"] == "initial"
    assert found.provenance.data["name"] == "some noise"
    assert found.gauges == ["affinity"]
    assert found.records["batch"].nunique() == 2


def test_an_ensemble_has_a_row_for_each_seed(context: RunContext) -> None:
    found = ensemble(context, "resnet8", [0, 1], gauges="affinity")
    assert found.scores.shape == (2, 7)
    assert found.roles.ends.tolist() == [False, False, True, False, True, False, True]
    assert found.roles.inside.tolist() == [False, True, False, True, False, True, False]
    assert found.gaps.tolist() == pytest.approx(
        (found.scores[:, 2::2].mean(1) - found.scores[:, 1::2].mean(1)).tolist()
    )
    table = scores_table({"mine": found})
    assert len(table) == 14
    assert table["of"].unique().tolist() == ["mine"]
    assert table["score"].to_list() == found.scores.flatten().tolist()
