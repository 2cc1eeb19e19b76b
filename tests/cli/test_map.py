"""Similarity maps on the command line: of one network, and of two."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fathometer import SimilarityMap, load
from tests.cli.conftest import Command
from tests.data_sources.making import save_image

NETS = """
import torch
from torch import nn
from fathometer.data import Inputs

def small():
    layers = [nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3), nn.SiLU()]
    return nn.Sequential(*layers), Inputs("image", (3, 12, 12))

def classifier():
    layers = [nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(600, 4)]
    inputs = Inputs("image", (3, 12, 12), preprocess=halved)
    return nn.Sequential(*layers), inputs

def halved(image):
    import numpy as np
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    del command  # which goes into this folder
    (tmp_path / "nets.py").write_text(NETS)
    monkeypatch.delitem(sys.modules, "nets", raising=False)
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (120, 12, 12, 3), np.uint8)
    np.savez(tmp_path / "test.npz", x=pixels, y=generator.integers(0, 4, 120))
    return tmp_path


def test_one_network_is_measured_plotted_and_reported(folder: Path, command: Command) -> None:
    given = "measure nets:small --data test.npz --samples 60 --gauges affinity --map -o small.json"
    code, out, err = command(*given.split())
    assert code == 0, err
    assert "`fathometer plot small.json --kind map` draws the map" in out
    assert load(folder / "small.json").map.shape == (2, 2)
    assert command("plot", "small.json", "--kind", "map", "-o", "map.png")[0] == 0
    assert (folder / "map.png").stat().st_size > 5000
    assert command("report", "small.json", "-o", "small.html")[0] == 0
    assert "Similarity of sites" in (folder / "small.html").read_text("utf-8")
    assert command(*given.replace("--map ", "").split(), "--resume")[0] == 2  # another sounding
    assert "map" in command(*given.replace("--map ", "").split(), "--resume")[2]


def test_two_networks_with_their_own_preprocessing(folder: Path, command: Command) -> None:
    given = "compare map nets:classifier nets:small --weights none --data test.npz --samples 60"
    code, out, err = command(*given.split())
    assert code == 0, err
    assert "accuracy: nets:classifier 0." in out
    assert "wrote classifier-small-map.json" in out
    found = load(folder / "classifier-small-map.json")
    assert isinstance(found, SimilarityMap)
    assert found.names == ("nets:classifier", "nets:small")
    assert (list(found.values.index), list(found.values.columns)) == (["1"], ["1", "3"])
    assert "halved" in found.provenance.model["first"]["preprocess"]
    code, out, _ = command(*given.split(), "--json", "--force")
    assert (code, json.loads(out)[0]["site"]) == (0, "1")
    assert command("plot", "classifier-small-map.json", "-o", "map.pdf")[0] == 0
    assert command("report", "classifier-small-map.json")[0] == 0
    assert "nets:classifier and nets:small" in (folder / "classifier-small-map.html").read_text("utf-8")


def test_unreadable_images_are_named(folder: Path, command: Command) -> None:
    for value in range(8):
        save_image(folder / "photos" / f"{value}.png", value, (12, 12))
    (folder / "photos" / "8.png").write_bytes(b"no image")
    given = "compare map nets:classifier nets:classifier --weights none --data photos --samples 8"
    code, out, err = command(*given.split())
    assert code == 0, err
    assert "skipped 1 unreadable: 8.png" in out


def test_one_network_with_two_weights(folder: Path, command: Command) -> None:
    import torch

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3), torch.nn.ReLU(), torch.nn.Conv2d(6, 6, 3))
    torch.save(net.state_dict(), folder / "trained.pt")
    given = "compare map nets:small nets:small --data test.npz --samples 60 -o both.json"
    code, out, err = command(*given.split(), "--weights", "trained.pt", "--second-weights", "none")
    assert code == 0, err
    names = ("nets:small (trained.pt)", "nets:small (none)")
    assert f"The most similar site of {names[1]} for each of {names[0]}" in " ".join(out.split())
    found = load(folder / "both.json")
    assert isinstance(found, SimilarityMap)
    assert (found.names, found.provenance.model["name"]) == (names, " and ".join(names))
    assert found.plot().axes[0].get_xlabel() == names[1]
    assert command("report", "both.json")[0] == 0
    assert " and ".join(names) in (folder / "both.html").read_text("utf-8")
    code, _, err = command(*given.split(), "--force", "--second-weights", "nope.pth", "--weights", "none")
    assert code == 2
    assert "--second-weights: no such file: 'nope.pth'" in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compare map nets:small nets:small --data test.npz --weights none", "exists; give another name"),
        ("compare map nets:small nets:small --data test.npz -o a.csv", "expected a name that ends in .json"),
        ("compare map nets:small nets:small --data test.npz --second-weights a.pt -o a.json", "a.pt"),
        ("plot small-small-map.json --gauge cka", "--gauge: has no effect"),
        ("plot small-small-map.json --kind strip", "expected map, got 'strip'"),
        ("show small-small-map.json", "is a similarity map; report or plot it alone"),
        ("measure nets:small --data test.npz --map --samples 3 -o a.json", "--samples: expected at least 4"),
    ],
)
def test_bad_input_is_refused(folder: Path, command: Command, arguments: str, message: str) -> None:
    plain = {"schema": "fathometer.similarity_map", "version": 1, "values": [[1.0]], "provenance": {}}
    site = [{"module": "1", "operator": "relu", "call": 1, "order": 0, "own": True}]
    (folder / "small-small-map.json").write_text(json.dumps({**plain, "first": site, "second": site}))
    code, _, err = command(*arguments.split())
    assert code == 2
    assert message in " ".join(err.split())
