from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fathometer import load
from fathometer.cli.outputs import slug
from fathometer.results.files import locked
from tests.cli.conftest import Command

NETS = """
import torch, time
from torch import nn
from fathometer.data import Inputs

def small():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3), nn.SiLU())
    return model, Inputs("image", (3, 12, 12))

def classifier():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(600, 4)]
    return nn.Sequential(*layers), Inputs("image", (3, 12, 12))

class Slow(nn.Module):
    def forward(self, x):
        time.sleep(0.3)
        return torch.relu(x)

def slow():
    return Slow(), Inputs("image", (3, 8, 8))

def swish(x):
    return x * torch.sigmoid(x)

class Own(nn.Module):
    def forward(self, x):
        return swish(x)

def own():
    return Own(), Inputs("tensor", (5,))

def bad():
    return nn.Conv2d(4, 4, 3), Inputs("image", (3, 8, 8))

def gap(x, y):
    return (x - y).abs().max()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nets.py").write_text(NETS)
    monkeypatch.delitem(sys.modules, "nets", raising=False)
    return tmp_path


@pytest.fixture
def refusal(folder: Path, command: Command) -> Callable[..., str]:
    """The message of a command that must end with exit code 2 and write nothing."""

    def refused(*args: str) -> str:
        for lock in folder.glob(".*.lock"):
            lock.unlink()  # of a process that was killed
        before = contents(folder)
        code, _, err = command(*args)
        assert code == 2
        assert contents(folder) == before
        return " ".join(err.split())

    return refused


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


@pytest.mark.filterwarnings("default")
def test_measure_show_and_sites(folder: Path, command: Command) -> None:
    given = "nets:small --data random:100 --samples 40 --gauges affinity,nets:gap,stable_rank,neural_collapse"
    code, out, err = command("measure", *given.split())
    assert code == 0, err
    assert "the data have no label for each sample: neural_collapse" in " ".join(err.split())
    assert "affinity over 2 sites: min 0." in out
    assert "wrote small-random.json" in out
    sounding = load(folder / "small-random.json")
    assert sounding.gauges == ["affinity", "gap", "stable_rank_x", "stable_rank_y"]
    code, out, err = command("show", (folder / "small-random.json").as_uri(), "--json")
    assert [row["site"] for row in json.loads(out)["sites"]] == ["1", "3"]
    assert "stable_rank_x over 2 sites" in command("show", "small-random.json", "--gauge", "stable_rank")[1]
    code, out, err = command("show", "small-random.json", "--gauge", "gap", "-o", "gap.csv")
    assert code == 0, err
    assert "80 samples in batches of 40, reduced by mean, seed 0" in out
    assert len(pd.read_csv(folder / "gap.csv")) == 4
    code, out, err = command("sites", "nets:small", "--json")
    found = [(entry["name"], entry["width"], entry["order"]) for entry in json.loads(out)]
    assert found == [("1", 6, 0), ("3", 6, 1)]
    assert contents(folder) == ["gap.csv", "nets.py", "small-random.json"]


def test_accuracy_and_loss_are_printed_with_the_table(folder: Path, command: Command) -> None:
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (120, 12, 12, 3), np.uint8)
    np.savez(folder / "test.npz", x=pixels, y=generator.integers(0, 4, 120))
    given = "nets:classifier --data test.npz --samples 40 --gauges affinity --out test.json"
    code, out, err = command("measure", *given.split())
    assert code == 0, err
    sounding = load(folder / "test.json")
    expected = f"accuracy {sounding.accuracy:.3f}, loss {sounding.loss:.3f} on 120 labelled samples"
    assert expected in out
    assert expected in command("show", "test.json")[1]
    outcome = json.loads(command("show", "test.json", "--json")[1])["data"]["outcome"]
    assert outcome == {"accuracy": sounding.accuracy, "classes": 4, "loss": sounding.loss}
    assert command("report", "test.json", "--out", "test.html")[0] == 0
    assert expected in (folder / "test.html").read_text()


@pytest.mark.filterwarnings("always:expected at least [23]0 samples")
def test_each_class_has_a_file_that_other_commands_read(
    folder: Path, command: Command, refusal: Callable[..., str]
) -> None:
    generator = np.random.default_rng(0)
    for name, count in (("tiger cat", 25), ("ant", 30), ("Ünze", 20), ("bee", 3)):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(count):
            pixels = generator.integers(0, 256, (12, 12, 3), np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / name / f"{number}.png")
    given = "measure nets:classifier --data photos --samples 20 --gauges affinity --by class".split()
    code, out, err = command(*given)
    assert code == 0, err
    assert "got label bee: 3 inputs" in err
    assert "wrote classifier-photos-by-class (3 files)" in out
    results = folder / "classifier-photos-by-class"
    assert contents(results) == ["ant.json", "tiger-cat.json", "Ünze.json"]
    found = {path.stem: load(path) for path in results.iterdir()}
    assert found["tiger-cat"].provenance.data["label"] == "tiger cat"
    lines = {line.split("│")[1].strip(): line for line in out.splitlines() if line.startswith("│")}
    assert f"{found['ant'].accuracy:.3f}" in lines["ant"]
    assert f"{found['ant'].summary()['median']:.3f}" in lines["ant"]
    assert "photos: ant" in command("show", str(results / "ant.json"))[1]
    code, out, err = command("compare", "conditions", str(results), "--over", "data")
    assert code == 0, err
    assert "photos: tiger cat" in out
    code, _, err = command("plot", str(results), "--kind", "overlay", "-o", "a.png")
    assert code == 0, err
    code, _, err = command("report", str(results), "--out", "classes.html")
    assert code == 0, err
    assert "photos: tiger cat" in (folder / "classes.html").read_text()
    assert "is not empty; give another folder, or --force" in refusal(*given)
    assert "expected a folder for the files of --by class" in refusal(*given, "--out", "a.json")
    code, out, err = command(*given, "--resume", "--json")
    assert code == 0, err
    assert set(json.loads(out)) == {"tiger cat", "ant", "Ünze"}
    assert "is finished; --force measures it again" in err
    assert "exists, with other leftover" in refusal(*given, "--resume", "--leftover", "keep")
    (results / "ant.json").unlink()
    assert command(*given, "--force")[0] == 0
    assert load(results / "ant.json").records.equals(found["ant"].records)
    others = {"notes.txt": "mine", "broken.json": "{", "list.json": "[1]"}
    for name, text in others.items():
        (results / name).write_text(text)
    whole = "measure nets:classifier --data photos --samples 20 --gauges affinity --out".split()
    assert command(*whole, str(results / "all.json"))[0] == 0
    code, _, err = command(*given, "--samples", "30", "--force")
    assert code == 0, err
    assert contents(results) == sorted(["all.json", "ant.json", *others])
    assert load(results / "ant.json").provenance.settings["samples"] == 30


def test_by_class_says_once_why_there_is_no_accuracy(folder: Path, command: Command) -> None:
    x = np.random.default_rng(0).standard_normal((60, 3, 12, 12)).astype(np.float32)
    np.savez(folder / "far.npz", x=x, y=np.arange(60) % 2 + 500)
    given = "measure nets:classifier --samples 20 --gauges affinity --by class --data".split()
    code, out, err = command(*given, "far.npz")
    assert code == 0, err
    assert out.count("no accuracy: the labels go from 500 to 501") == 1
    code, _, err = command(*given, "random:60")
    assert code == 2
    assert "expected data with labels, but random" in err


@pytest.mark.usefixtures("folder")
def test_how_long_it_takes_is_said_beforehand(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = "measure nets:small --data random:40 --samples 20 --gauges norm --json".split()
    monkeypatch.setattr("fathometer.measuring.estimate._MIN_SECONDS", 0.0)
    code, out, err = command(*arguments)
    assert code == 0, err
    assert err.startswith("about 10 seconds: 2 sites, 2 batches of 20 samples\n")
    assert len(json.loads(out)["sites"]) == 2


@pytest.mark.usefixtures("folder")
def test_standard_gauges_with_a_gauge_of_the_user(command: Command) -> None:
    given = ["--gauges", "standard", "--gauges", "nets:gap"]
    arguments = ["measure", "nets:small", "--data", "random:40", "--samples", "40", *given]
    code, out, err = command(*arguments, "--json")
    assert code == 0, err
    assert {"affinity", "cka_debiased", "gap"} <= set(json.loads(out)["sites"][0])


@pytest.mark.usefixtures("folder")
def test_activations_of_the_user(command: Command) -> None:
    code, out, err = command("sites", "nets:own", "--json", "--activations", "nets:swish")
    assert code == 0, err
    assert [entry["name"] for entry in json.loads(out)] == ["/swish"]


def test_images_that_cannot_be_read_are_named_and_counted(
    folder: Path, command: Command, refusal: Callable[..., str]
) -> None:
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for i in range(12):
        Image.fromarray(rng.integers(0, 255, (12, 12, 3), np.uint8)).save(folder / f"photos/{i:02}.png")
    (folder / "photos/05.png").write_bytes(b"broken")
    arguments = ["measure", "nets:small", "--data", "photos", "--samples", "11", "--gauges", "affinity"]
    code, out, err = command(*arguments, "--out", "s.parquet")
    assert code == 0, err
    assert "skipped 1 unreadable: 05.png" in out
    assert len(load(folder / "s.parquet").records) == 2
    assert "05.png: cannot be read" in refusal(*arguments, "--strict")


def test_an_interrupted_run_is_resumed_to_the_same_result(
    folder: Path, command: Command, refusal: Callable[..., str]
) -> None:
    arguments = "measure nets:slow --data random:80 --samples 20 --batch-size 10 --out s.json".split()
    journal = folder / ".s.json.journal"
    process = subprocess.Popen([sys.executable, "-m", "fathometer", *arguments], cwd=folder)
    deadline = time.monotonic() + 60
    while not (journal.exists() and len(journal.read_text().splitlines()) >= 3):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "s.json").exists()
    with locked(folder / ".s.json.lock"):
        code, _, err = command(*arguments)
        assert code == 2
        assert "another process is measuring it" in err
    assert "samples" in refusal(*arguments, "--samples", "30")
    code, _, err = command(*arguments, "--batch-size", "7")
    assert code == 0, err
    assert not journal.exists()
    resumed = load(folder / "s.json")
    code, _, err = command(*arguments, "--force")
    assert code == 0, err
    pd.testing.assert_frame_equal(resumed.records, load(folder / "s.json").records, rtol=1e-6, atol=1e-6)


def test_a_finished_result_is_shown_and_another_one_is_refused(folder: Path, command: Command) -> None:
    def ended(*more: str) -> tuple[int, str]:
        given = "nets:small --data random:40 --samples 40 --out s.json"
        code, out, err = command("measure", *given.split(), *more)
        return code, " ".join((out + err).split())

    assert ended()[0] == 0
    before = (folder / "s.json").read_bytes()
    (folder / ".s.json.lock").touch()  # of a run that was killed at its very end
    code, said = ended("--resume")
    assert code == 0
    assert "affinity over 2 sites" in said
    assert "s.json is finished; --force measures it again" in said
    assert (folder / "s.json").read_bytes() == before
    assert contents(folder) == ["nets.py", "s.json"]
    for other, name in (
        (["--samples", "20"], "samples"),
        (["--seed", "1"], "data, reduction, seed"),
        (["--gauges", "norm"], "gauges"),
        (["--reduction", "sum"], "reduction"),
        (["--sites", "relu"], "sites"),
        (["--data", "random:80"], "data"),
        (["--weights", "none"], "model"),
    ):
        code, said = ended("--resume", *other)
        assert code == 2
        assert f"exists, with other {name}; give" in said
    code, said = ended()
    assert code == 2
    assert "exists; give another name" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure", "nets:smal", "--data", "random"], "nets has no 'smal'; did you mean small?"),
        (["measure", "hf:./none", "--data", "nowhere"], "'nowhere': no such file or folder"),  # first
        (["measure", "hf:./none", "--data", "random", "--gauges", "much"], "--gauges: unknown gauge 'much'"),
        (["measure", "nets:small", "--data", "random:10"], "at least 512 samples to fill a batch, got 10"),
        (["measure", "nets:small", "--data", "random", "--out", "s.csv"], "ends in .json or .parquet"),
        (["measure", "nets:bad", "--data", "random:600"], "the network failed on its input"),
        (["sites", "nets:bad"], "failed on noise of shape [3, 8, 8]"),
        (["models", "no*such"], "no model of that name"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(refusal: Callable[..., str], arguments: list[str], message: str) -> None:
    assert message in refusal(*arguments)


def test_models_are_listed(command: Command) -> None:
    code, out, _ = command("models", "torchvision:resnet*")
    assert (code, "torchvision:resnet50" in out.splitlines()) == (0, True)
    assert json.loads(command("models", "torchvision:resnet*", "--json")[1]) == out.splitlines()


def test_file_names_suit_every_file_system() -> None:
    assert slug("torchvision:resnet18") == "resnet18"
    assert slug("hf:uoft-cs/cifar10:test") == "cifar10-test"
    assert slug("../..") == "data"
    assert slug("a\x1b[31m/b c\n") == "b-c"
    assert len(slug("x" * 5000)) <= 80


def test_a_name_and_a_preparation_are_given(folder: Path, command: Command) -> None:
    np.savez("x.npz", x=np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), np.uint8))
    prepared = ("--crop", "12", "--mean", "0.5,0.4,0.3", "--std", "0.2", "--bgr")
    asked = ("measure", "nets:small", "--data", "x.npz", "--samples", "40", "--name", "My net, trained")
    code, out, err = command(*asked, *prepared)
    assert code == 0, err
    assert "My net, trained" in out
    model = load(folder / "My-net-trained-x.json").provenance.model
    assert model["name"] == "My net, trained"
    assert "mean=(0.5, 0.4, 0.3)" in model["preprocess"]
    code, _, err = command(*asked, "--mean", "0.5,x", "--force")
    assert code == 2
    assert "--mean: expected numbers with commas, got '0.5,x'" in err
