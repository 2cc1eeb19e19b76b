"""Which networks are measured at which scale, and that each is measured once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fathometer import InputError
from fathometer.data import Inputs
from papers.affinity.census import Census, take_census
from papers.affinity.figure_3 import FIGURE_3
from papers.affinity.zoo import network_soundings, plan_of
from papers.item import RunContext, Scale

HERE = "tests.papers.test_zoo"
PLAN = f"""
[data]
photos = "photos.npz"
noise = "random:24"
[settings]
samples = 8
batches = 2
gauges = "affinity"
[families.Tiny]
models = ["{HERE}:tiny", "{HERE}:tinier"]
[families.Bad]
models = ["{HERE}:broken"]
"""


def net(width: int) -> tuple[nn.Module, Inputs]:
    torch.manual_seed(width)
    layers = nn.Sequential(
        nn.Flatten(), nn.Linear(3 * 8 * 8, width), nn.ReLU(), nn.Linear(width, 4), nn.ReLU()
    )
    return layers, Inputs("image", (3, 8, 8), preprocess=lambda image: torch.zeros(3, 8, 8) + image.size[0])


def tiny() -> tuple[nn.Module, Inputs]:
    return net(6)


def tinier() -> tuple[nn.Module, Inputs]:
    return net(5)


def broken() -> nn.Module:
    raise OSError("no weights today")


def context(tmp_path: Path, scale: Scale = "paper", **sources: Path) -> RunContext:
    (tmp_path / "item").mkdir(exist_ok=True)
    return RunContext(scale, "cpu", tmp_path / "item", tmp_path / "shared", dict(sources))  # type: ignore[arg-type]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    np.savez(tmp_path / "photos.npz", images=np.zeros((24, 8, 8, 3), np.uint8), labels=np.zeros(24, np.uint8))
    file = tmp_path / "plan.toml"
    file.write_text(PLAN.replace("[families.Bad]", "#").replace(f'models = ["{HERE}:broken"]', "#"), "utf-8")
    return file


def models_of(found: Any) -> list[str]:
    return [member.model for family in found.families for member in family.members]


def test_small_takes_all_networks_with_random_weights(tmp_path: Path) -> None:
    found = plan_of(context(tmp_path, "small"))
    names = models_of(found)
    assert len(names) == 36
    assert len(models_of(plan_of(context(tmp_path, "smoke")))) == 7
    assert {member.weights for family in found.families for member in family.members} == {"none"}
    assert found.data == {"noise": "random:32"}
    assert all(name.startswith("torchvision:") for name in names)


def test_paper_takes_the_papers_networks_or_the_users_plan(tmp_path: Path, plan: Path) -> None:
    with pytest.raises(InputError, match="--imagenet: expected a path"):
        plan_of(context(tmp_path))
    found = plan_of(context(tmp_path, imagenet=tmp_path))
    assert len(models_of(found)) == 36
    assert found.data == {"imagenet": str(tmp_path)}
    assert {member.weights for family in found.families for member in family.members} == {"default"}
    assert {family.run.device for family in found.families} == {"cpu"}
    found = plan_of(context(tmp_path, plan=plan))
    assert models_of(found) == [f"{HERE}:tiny", f"{HERE}:tinier"]
    assert found.data == {"photos": str(tmp_path / "photos.npz")}


def test_other_data_for_the_same_networks(tmp_path: Path, plan: Path) -> None:
    assert plan_of(context(tmp_path, plan=plan), "noise").data == {"noise": "random:24"}
    paper = context(tmp_path, imagenet=tmp_path, cifar10=tmp_path)
    assert plan_of(paper, "noise").data == {"noise": "random:10240"}
    assert plan_of(paper, "cifar10").data == {"cifar10": str(tmp_path)}
    (tmp_path / "cifar10_test.npz").touch()
    assert plan_of(paper, "cifar10").data == {"cifar10": str(tmp_path / "cifar10_test.npz")}
    with pytest.raises(InputError, match="--cifar10: expected a path"):
        plan_of(context(tmp_path, plan=plan), "cifar10")


def test_each_network_is_measured_once(tmp_path: Path, plan: Path) -> None:
    found = network_soundings(context(tmp_path, plan=plan), "noise")
    assert list(found) == ["tiny", "tinier"]
    again = network_soundings(context(tmp_path, plan=plan), "noise")
    assert [s.provenance.date for s in again.values()] == [s.provenance.date for s in found.values()]
    of = Census.of(dict(found))
    assert of.families == {"tiny": "Tiny", "tinier": "Tiny"}
    assert len(of.trained) == 2


def test_a_census_says_what_is_trained(tmp_path: Path, plan: Path) -> None:
    plan.write_text(
        'weights = "none"\n' + plan.read_text("utf-8").replace('photos = "photos.npz"', ""), "utf-8"
    )
    work = context(tmp_path, plan=plan)
    assert len(take_census(work).trained) == 0
    assert work.notes[0].startswith("2 networks with random weights")
    assert (tmp_path / "item" / "networks.csv").exists()


def test_a_network_that_cannot_be_loaded_is_named_with_advice(tmp_path: Path, plan: Path) -> None:
    plan.write_text(PLAN, "utf-8")
    work = context(tmp_path, plan=plan)
    assert network_soundings(work, "noise")
    (note,) = [note for note in work.notes if note.startswith("Left out: ")]
    assert "broken() failed: OSError: no weights today. --plan PLAN.toml" in note
    alone = PLAN[: PLAN.index("[families.")] + PLAN[PLAN.index("[families.Bad]") :]
    plan.write_text(alone, "utf-8")
    with pytest.raises(InputError, match=r"no weights today\. --plan PLAN\.toml") as error:
        network_soundings(context(tmp_path, plan=plan), "noise")
    assert "\n" not in str(error.value)


def test_without_years_nothing_is_decided_about_trends(tmp_path: Path, plan: Path) -> None:
    work = context(tmp_path, plan=plan)
    plan.write_text(plan.read_text("utf-8").replace('photos = "photos.npz"', ""), "utf-8")
    answers = FIGURE_3.run(work)
    assert {answer.holds for answer in answers.values()} == {None}
    assert any(note.startswith("Years of publication") for note in work.notes)
    assert not (tmp_path / "item" / "figure.png").exists()
