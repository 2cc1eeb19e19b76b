from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from fathometer import InputError, MissingExtraError
from fathometer.models import ensure_torchvision_operators
from tests.training.test_tensorboard import read
from tests.training.training import WATCHED, Noisy, assert_equal

ensure_torchvision_operators()
L: Any = pytest.importorskip("lightning.pytorch")
FathometerCallback: Any = importlib.import_module("fathometer.training.lightning").FathometerCallback

pytestmark = [
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated:FutureWarning"),
]


class Task(L.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.net = Noisy()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: Any, index: int) -> Tensor:
        del index
        x, y = batch
        return (self(x)[:, :1] - y).square().mean()

    def validation_step(self, batch: Any, index: int) -> None:
        del index
        self.log("val_error", (self(batch[0])[:, :1] - batch[1]).abs().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


def loader(seed: int = 0) -> DataLoader[Any]:
    x = torch.randn(80, 6, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True).tanh()), 10, shuffle=seed == 0)


def trainer(folder: Path, steps: int, **options: Any) -> Any:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    settings = {"accelerator": "cpu", "devices": 1, "logger": False, **quiet, **options}
    return L.Trainer(default_root_dir=folder, max_steps=steps, **settings)


def fitted(folder: Path, steps: int, callbacks: list[Any], *, ckpt: Any = None, **options: Any) -> Any:
    L.seed_everything(5, verbose=False)
    task = Task()
    made = trainer(folder, steps, callbacks=callbacks, **options)
    made.fit(task, loader(), loader(1), ckpt_path=ckpt)
    return made, task


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_callback_does_not_change_training(tmp_path: Path, precision: Any) -> None:
    _, without = fitted(tmp_path, 20, [], precision=precision)
    after = torch.get_rng_state()
    callback = FathometerCallback(WATCHED, network="net", every=4, max_overhead=None)
    _, task = fitted(tmp_path, 20, [callback], precision=precision)
    assert_equal(task.state_dict(), without.state_dict())
    assert torch.equal(torch.get_rng_state(), after)
    history = callback.history
    assert history.steps == (0, 4, 8, 12, 16, 20)
    assert list(history.signature.columns) == ["net.2", "/sigmoid"]
    assert history.change()["change"].abs().max() > 1e-3
    assert list(history.metric("loss").index) == list(range(1, 21))
    assert list(history.metric("val_error").index) == [8, 16]
    assert 0 < history.cost.seconds < history.cost.total


def test_every_logger_gets_every_sounding(tmp_path: Path) -> None:
    board = L.loggers.TensorBoardLogger(str(tmp_path), name="board", version="")
    table = L.loggers.CSVLogger(str(tmp_path), name="table", version="")
    callback = FathometerCallback(WATCHED, every=10, max_overhead=None, gauges=["affinity", "sparsity"])
    fitted(tmp_path, 25, [callback], logger=[board, table], log_every_n_steps=5)
    found, history = read(Path(board.log_dir)), callback.history
    assert history.steps == (0, 10, 20, 25)
    for site in ("net.net.2", "net/sigmoid"):
        events = found.Scalars(f"fathometer/affinity/{site}")
        assert [event.step for event in events] == [0, 10, 20, 25]
        assert [event.value for event in events] == pytest.approx(history.signature[site].to_list(), rel=1e-6)
    rows = pd.read_csv(Path(table.log_dir) / "metrics.csv").set_index("step")
    medians = rows["fathometer/sparsity_after_median"].dropna()
    assert medians.to_list() == pytest.approx(history.table("sparsity_after").median(axis=1).to_list())


def test_a_resumed_training_continues_its_history(tmp_path: Path) -> None:
    options: dict[str, Any] = {"network": "net", "every": 6, "max_overhead": None}
    whole = FathometerCallback(WATCHED, **options)
    fitted(tmp_path, 24, [whole])
    first = FathometerCallback(WATCHED, **options)
    made, _ = fitted(tmp_path, 16, [first])
    made.save_checkpoint(tmp_path / "half.ckpt")
    second = FathometerCallback(WATCHED, **options)
    fitted(tmp_path, 24, [second], ckpt=tmp_path / "half.ckpt")
    assert first.history.steps == (0, 6, 12, 16)
    assert second.history.steps == (0, 6, 12, 16, 18, 24)
    pd.testing.assert_frame_equal(
        second.history.signature.loc[:16], first.history.signature, check_exact=True
    )
    pd.testing.assert_frame_equal(second.history.signature.loc[:12], whole.history.signature.loc[:12])
    assert list(second.history.metric("loss").index) == list(range(1, 25))
    assert second.history.cost.seconds > first.history.cost.seconds
    assert torch.load(tmp_path / "half.ckpt", weights_only=True)["callbacks"].keys() == {
        "FathometerCallback[fathometer]"
    }


def test_one_trainer_may_continue_and_another_begins_again(tmp_path: Path) -> None:
    callback = FathometerCallback(WATCHED, network="net", every=5, max_overhead=None)
    made, task = fitted(tmp_path, 7, [callback])
    made.fit_loop.epoch_loop.max_steps = 12
    made.fit(task, loader(), loader(1))
    assert callback.history.steps == (0, 5, 7, 10, 12)
    fitted(tmp_path, 3, [callback])
    assert callback.history.steps == (0, 3)


class Counting(Task):
    """Its loss is the number of the batch."""

    def training_step(self, batch: Any, index: int) -> Tensor:
        return 0 * super().training_step(batch, index) + index


def test_steps_are_updates_also_when_gradients_accumulate(tmp_path: Path) -> None:
    callback = FathometerCallback(WATCHED, network="net", every=1, max_overhead=None)
    made = trainer(tmp_path, 4, callbacks=[callback], accumulate_grad_batches=3)
    made.fit(Counting(), loader(), loader(1))
    history = callback.history
    assert history.steps == (0, 1, 2, 3, 4)
    expected = {1: 1.0, 2: 4.0, 3: 6.5, 4: 1.0}  # eight batches an epoch: the third update has but two
    assert history.metric("loss").to_dict() == pytest.approx(expected)


def test_two_callbacks_and_wrong_options(tmp_path: Path) -> None:
    one = FathometerCallback(WATCHED, network="net", every=9, max_overhead=None)
    other = FathometerCallback(WATCHED[:20], network="net.net", every=9, max_overhead=None, prefix="inner",
                               call=lambda model, x: model(x.reshape(-1, 1, 2, 3)))  # fmt: skip
    made, _ = fitted(tmp_path, 3, [one, other])
    made.save_checkpoint(tmp_path / "both.ckpt")
    assert len(torch.load(tmp_path / "both.ckpt", weights_only=True)["callbacks"]) == 2
    assert other.history.signature.columns.to_list() == ["2"]
    with pytest.raises(TypeError, match="evry"):
        FathometerCallback(WATCHED, evry=3)
    with pytest.raises(InputError, match="of a module of what is trained, got 'backbone'"):
        fitted(tmp_path, 3, [FathometerCallback(WATCHED, network="backbone")])
    fresh = FathometerCallback(WATCHED)
    assert fresh.state_dict() == {"history": None}
    assert fresh.probe is None
    with pytest.raises(InputError, match="training takes the first sounding"):
        _ = fresh.history
    with pytest.warns(UserWarning, match="starts again: history in the checkpoint: broken"):
        fresh.load_state_dict({"history": "{"})
    assert fresh.state_dict() == {"history": None}


PYTORCH_LIGHTNING = """
import warnings
from fathometer.models import ensure_torchvision_operators
ensure_torchvision_operators()
import pytorch_lightning as pl
import torch
from fathometer.training.lightning import FathometerCallback

class Task(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    def training_step(self, batch, index):
        return self.net(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

assert issubclass(FathometerCallback, pl.Callback)
callback = FathometerCallback(torch.randn(20, 3), network="net", every=2, max_overhead=None)
trainer = pl.Trainer(accelerator="cpu", devices=1, max_steps=3, logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, callbacks=[callback])
trainer.fit(Task(), torch.utils.data.DataLoader(torch.randn(30, 3), 5))
assert callback.history.steps == (0, 2, 3), callback.history.steps
"""


@pytest.mark.slow
def test_pytorch_lightning_works_as_lightning_does() -> None:
    pytest.importorskip("pytorch_lightning")
    command = [sys.executable, "-c", PYTORCH_LIGHTNING]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_lightning_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "fathometer.training.lightning"
    for absent in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"'lightning': pip install 'fathometer\[lightning\]'"):
        importlib.import_module(name)
