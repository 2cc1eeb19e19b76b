"""What is the same has one address, whatever it is called and wherever it lies; what is not has another."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fathometer
from fathometer import load
from fathometer.survey import parse_plan, run_survey, tasks, tasks_of
from tests.survey.making import plan, plan_text
from tests.survey.nets import small

CODE = """
import torch
from torch import nn
from fathometer.data import Inputs

class Mine(nn.Module):
    def forward(self, x):
        return torch.relu(x) * SCALE

SCALE = 1.0

def build():
    return nn.Sequential(nn.Conv2d(3, 4, 3), Mine()), Inputs("image", (3, 8, 8))

def twice(x, y):
    return 2.0 * (x - y).abs().max()

def call(model, item):
    return model(2.0 * item)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the user's own, in the folder where the survey is started."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_code_of_a_test.py").write_text(CODE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "my_code_of_a_test.py"
    sys.modules.pop("my_code_of_a_test", None)


@pytest.mark.filterwarnings("ignore:no call of mine was seen")
@pytest.mark.parametrize(
    "text",
    [
        plan_text("small").replace('"norm"', '"my_code_of_a_test:twice"'),
        plan_text("small").replace("[settings]", '[settings]\nactivations = "my_code_of_a_test:Mine"'),
        plan_text("small").replace("[settings]", '[settings]\ncall = "my_code_of_a_test:call"'),
        plan_text("small").replace("tests.survey.nets:small", "my_code_of_a_test:build"),
    ],
    ids=["gauge", "activation", "call", "factory"],
)
def test_other_code_is_measured_again(text: str, module: Path, tmp_path: Path) -> None:
    (module.parent / "my_door_of_a_test.py").write_text(
        "from my_code_of_a_test import Mine, build, call, twice\n"
    )
    text = text.replace("my_code_of_a_test", "my_door_of_a_test")  # code counts, wherever it is imported from
    assert len(run_survey(parse_plan(text), tmp_path / "out").measured) == 1
    assert len(run_survey(parse_plan(text), tmp_path / "out").kept) == 1
    module.write_text(CODE.replace("2.0 *", "3.0 *").replace("SCALE = 1.0", "SCALE = 2.0"))
    for name in ("my_code_of_a_test", "my_door_of_a_test"):
        sys.modules.pop(name)
    try:
        assert len(run_survey(parse_plan(text), tmp_path / "out").measured) == 1
    finally:
        sys.modules.pop("my_door_of_a_test")


def test_the_version_of_the_values_is_in_the_address_and_that_of_files_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (before,) = tasks_of(plan("small"))
    monkeypatch.setattr("fathometer.results.sounding.VERSION", 99)
    assert tasks_of(plan("small"))[0].address == before.address
    monkeypatch.setattr(tasks, "VALUES_VERSION", tasks.VALUES_VERSION + 1)
    assert tasks_of(plan("small"))[0].address != before.address


@pytest.mark.parametrize(
    ("change", "version"),
    [
        (("", ""), 1),
        (("[settings]", '[settings]\ndtype = "bfloat16"'), 2),
    ],
)
def test_values_that_version_0_1_got_wrong_are_measured_again(change: tuple[str, str], version: int) -> None:
    text = plan_text("small").replace(*change)
    assert tasks_of(parse_plan(text))[0].key["values"] == version


def test_random_weights_do_not_depend_on_numbers_drawn_at_import(module: Path) -> None:
    module.write_text(CODE + "\ntorch.rand(7)\n")
    text = plan_text("small").replace("tests.survey.nets:small", "my_code_of_a_test:build")
    task = tasks_of(parse_plan(text))[0]
    sys.modules.pop("my_code_of_a_test")
    first = tasks.measure_task(task)
    again = tasks.measure_task(task)
    alone = fathometer.models.load_model("my_code_of_a_test:build", "none", seed=0)
    assert first.provenance.model["checksum"] == again.provenance.model["checksum"]
    sounding = fathometer.measure(alone, torch.rand(16, 3, 8, 8), samples=16)
    assert sounding.provenance.model["checksum"] == first.provenance.model["checksum"]


def test_renamed_data_are_kept(tmp_path: Path) -> None:
    first = run_survey(plan("small", "bad"), tmp_path)
    (file,) = tmp_path.glob("*.json")
    renamed = run_survey(plan("small", "bad", change=("noise =", "static =")), tmp_path)
    assert len(first.measured) == len(renamed.kept) == 1
    assert (renamed.measured, len(renamed.failed)) == ([], 1)
    assert len(list((tmp_path / "failed").iterdir())) == 1
    assert list(tmp_path.glob("*.json")) == [file]
    assert load(file).provenance.settings["survey"]["data"] == "static"


@pytest.mark.parametrize("suffix", ["pt", "onnx"])
def test_moved_weights_are_kept(suffix: str, tmp_path: Path) -> None:
    if suffix == "pt":
        torch.save(small()[0].state_dict(), tmp_path / "net.pt")
    else:
        onnx = pytest.importorskip("onnx")
        helper, number = onnx.helper, onnx.TensorProto.FLOAT
        x, y = (helper.make_tensor_value_info(name, number, ["n", 3, 8, 8]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(model, tmp_path / "net.onnx")

    def survey(file: str) -> list[int]:
        model, weights = ("tests.survey.nets:small", file) if suffix == "pt" else (f"onnx:{file}", "default")
        text = plan_text("small").replace('"none"', f'"{weights}"')
        text = text.replace("tests.survey.nets:small", model)
        outcome = run_survey(parse_plan(text, tmp_path), tmp_path / "out")
        return [len(outcome.measured), len(outcome.kept)]

    (tmp_path / "sub").mkdir()
    assert survey(f"net.{suffix}") == [1, 0]
    (tmp_path / f"net.{suffix}").rename(tmp_path / f"sub/other.{suffix}")
    assert survey(f"sub/other.{suffix}") == [0, 1]
    assert fathometer.atlas(tmp_path / "out")["weights"].to_list() == [f"other.{suffix}"]


def test_torchvision_preprocesses_by_the_name_of_the_file(tmp_path: Path) -> None:
    def address(file: str) -> str:
        (tmp_path / file).write_bytes(b"weights")
        text = f'models = "torchvision:resnet50"\nweights = "{file}"\n[data]\nnoise = "random:8"\n'
        return tasks_of(parse_plan(text, tmp_path))[0].address

    assert address("mine.pth") == address("other.pth") != address("resnet50-0676ba61.pth")


def test_two_names_of_the_same_data_give_a_warning() -> None:
    twice = plan("small", "other", change=("[data]", '[data]\nsame = "random:60"'))
    with pytest.warns(
        UserWarning,
        match=r"small · none · noise is the same as .* · same under another name \(and 1 more such pair",
    ):
        found = tasks_of(twice)
    assert [task.data_name for task in found] == ["same", "same"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks_of(plan("small", "other"))


def test_new_names_and_facts_are_written_into_kept_soundings(tmp_path: Path) -> None:
    facts = '[facts."tests.survey.nets:small"]\naccuracy = {}\n'
    old = plan("small", change=("[families.Tiny]", facts.format("71.5\nyear = 2020") + "[families.Tiny]"))
    run_survey(old, tmp_path)
    (file,) = tmp_path.glob("*.json")
    before, stamp = load(file), file.stat().st_mtime_ns
    new = plan("small", change=("[families.Tiny]", facts.format(72.5) + "[families.Other]"))
    outcome = run_survey(new, tmp_path)
    assert (outcome.measured, len(outcome.kept)) == ([], 1)
    (row,) = fathometer.atlas(tmp_path).to_dict("records")
    assert (row["family"], row["accuracy"], row["depth"]) == ("Other", 72.5, 2)
    assert math.isnan(row["year"])
    after = load(file)
    assert after.records.equals(before.records)
    assert after.sites == before.sites
    assert after.provenance.date == before.provenance.date
    stamp, again = file.stat().st_mtime_ns, run_survey(new, tmp_path)
    assert (len(again.kept), file.stat().st_mtime_ns) == (1, stamp)  # nothing new, nothing written
