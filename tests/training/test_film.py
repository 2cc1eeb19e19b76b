"""Checkpoints as a history: their steps, and those that cannot be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from fathometer import load
from fathometer.errors import FathometerError, InputError
from fathometer.results.history import History
from fathometer.training import film
from fathometer.training.film import steps_of


def test_checkpoints_that_cannot_be_measured_are_missed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())

    def loaded(path: Path) -> nn.Module:
        net.load_state_dict(torch.load(path))
        return net

    for step in (0, 10, 20, 30):
        if step == 20:
            nn.init.constant_(net[0].weight, torch.nan)  # type: ignore[arg-type]
        torch.save(net.state_dict(), tmp_path / f"net-{step}.pt")
    (tmp_path / "net-10.pt").write_bytes(b"half a file")
    data = torch.randn(64, 4)
    with pytest.warns(UserWarning, match=r"net-\d0.pt was not measured: ") as warned:
        history = film(tmp_path.iterdir(), loaded, data, samples=64)
    assert (history.steps, [step for step, _ in history.missed], len(warned)) == ((0,), [10, 20, 30], 3)
    assert "finite" in history.missed[1][1]
    again = load(history.save(tmp_path / "history.json"))
    assert isinstance(again, History)
    assert again.missed == history.missed
    with pytest.warns(UserWarning, match="not measured"), pytest.raises(FathometerError, match="finite"):
        film([tmp_path / "net-20.pt", tmp_path / "net-30.pt"], loaded, data, samples=64)


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["epoch=02-val_loss=0.35.ckpt", "epoch=03-val_loss=0.30.ckpt"], [2, 3]),
        (["epoch=2-step=300.ckpt", "epoch=3-step=400-v1.ckpt"], [300, 400]),
        (["checkpoint-500", "checkpoint-1000"], [500, 1000]),
        (["global_step20", "global_step100"], [20, 100]),
        (["Epoch_1.pt", "Epoch_12.pt"], [1, 12]),
        (["net-0.pt", "net-100.pt"], [0, 100]),
    ],
)
def test_steps_are_read_from_names(names: list[str], steps: list[int]) -> None:
    assert steps_of([Path(name) for name in names]) == steps


@pytest.mark.parametrize("name", ["net-100-v1.ckpt", "resnet20-12fca82f.th", "last.ckpt"])
def test_names_that_do_not_tell_the_step_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"steps: the steps are not clear from .*; give them"):
        steps_of([Path("net-1.pt"), Path(name)])
