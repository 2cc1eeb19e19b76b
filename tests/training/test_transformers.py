from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from fathometer import MissingExtraError
from fathometer.models import ensure_torchvision_operators
from tests.training.test_tensorboard import read
from tests.training.training import assert_equal

ensure_torchvision_operators()
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
FathometerCallback: Any = importlib.import_module("fathometer.training.transformers").FathometerCallback

WORDS = {"vocab_size": 40, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 32},
    "bert": {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24},
}
TEXTS = torch.randint(2, 40, (64, 12), generator=torch.Generator().manual_seed(0))
PROBE = {"input_ids": TEXTS[:24], "attention_mask": torch.ones(24, 12, dtype=torch.long)}


def model(kind: str) -> Any:
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(kind, **WORDS, **SIZES[kind])
    return transformers.AutoModelForCausalLM.from_config(config)


def fitted(folder: Path, kind: str, steps: int, callbacks: list[Any], **options: Any) -> Any:
    resume = options.pop("resume", None)
    settings = {"report_to": "none", "save_strategy": "no", "logging_steps": 5, **options}
    arguments = transformers.TrainingArguments(
        str(folder / "out"), max_steps=steps, use_cpu=True, disable_tqdm=True,
        per_device_train_batch_size=4, learning_rate=0.01, seed=3, **settings,
    )  # fmt: skip
    data = [{"input_ids": row, "labels": row} for row in TEXTS]
    made = transformers.Trainer(model(kind), arguments, train_dataset=data, callbacks=callbacks)
    made.train(resume_from_checkpoint=resume)
    return made


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """Otherwise it prints what it logs, and says that a causal BERT is unusual."""
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(level)


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_a_callback_does_not_change_training(tmp_path: Path, kind: str) -> None:
    without = fitted(tmp_path, kind, 14, [])
    after = torch.get_rng_state()
    callback = FathometerCallback(PROBE, every=4, max_overhead=None, reduction="tokens", samples=200)
    with_one = fitted(tmp_path, kind, 14, [callback])
    assert_equal(with_one.model.state_dict(), without.model.state_dict())
    assert torch.equal(torch.get_rng_state(), after)
    history = callback.history
    assert history.steps == (0, 4, 8, 12, 14)
    assert len(history.soundings[0].sites) == (2 if kind == "gpt2" else 3)
    assert history.soundings[0].records["n"].to_list() == [200] * len(history.soundings[0].sites)
    assert history.change()["change"].abs().max() > 1e-4
    assert list(history.metric("loss").index) == [5, 10]
    assert 0 < history.cost.seconds < history.cost.total


def test_soundings_are_logged(tmp_path: Path) -> None:
    callback = FathometerCallback(PROBE, every=10, max_overhead=None, log_dir=tmp_path / "board")
    made = fitted(tmp_path, "gpt2", 14, [callback])
    history, found = callback.history, read(tmp_path / "board")
    assert history.steps == (0, 10, 14)
    for site in history.signature:
        events = found.Scalars(f"fathometer/affinity/{site}")
        assert [event.step for event in events] == [0, 10, 14]
        assert [event.value for event in events] == pytest.approx(history.signature[site].to_list(), rel=1e-6)
    logged = [entry for entry in made.state.log_history if "fathometer/affinity_min" in entry]
    assert [entry["step"] for entry in logged] == [0, 10, 14]
    assert logged[1]["fathometer/affinity_min"] == pytest.approx(history.signature.loc[10].min())
    assert "train_runtime" in made.state.log_history[-1]


@pytest.mark.parametrize("given", [False, True])
def test_beside_the_trainers_own_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    if given:
        monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "given"))
    callback = FathometerCallback(PROBE, every=10, max_overhead=None)
    fitted(tmp_path, "gpt2", 6, [callback], report_to="tensorboard")
    folders = {path.parent for path in tmp_path.rglob("events.out.tfevents*")}
    (ours,) = (folder for folder in folders if folder.name == "fathometer")
    assert ours.is_relative_to(tmp_path / "given" if given else tmp_path / "out" / "runs")
    assert len(folders) == 2
    assert [event.step for event in read(ours).Scalars("fathometer/affinity_median")] == [0, 6]


def test_a_resumed_training_continues_its_history(tmp_path: Path) -> None:
    options: dict[str, Any] = {"every": 4, "max_overhead": None}
    saving = {"save_strategy": "steps", "save_steps": 10}
    first = FathometerCallback(PROBE, **options)
    fitted(tmp_path, "gpt2", 20, [first], **saving)
    assert (tmp_path / "out" / "checkpoint-10" / "fathometer-history.json").exists()
    second = FathometerCallback(PROBE, **options)
    fitted(tmp_path, "gpt2", 20, [second], resume=str(tmp_path / "out" / "checkpoint-10"), **saving)
    assert first.history.steps == (0, 4, 8, 12, 16, 20)
    assert second.history.steps == first.history.steps
    pd.testing.assert_frame_equal(
        second.history.signature.loc[:8], first.history.signature.loc[:8], check_exact=True
    )
    last = first.history.signature.loc[20].to_list()
    assert second.history.signature.loc[20].to_list() == pytest.approx(last)
    assert set(second.history.metric("loss").index) == {5, 10, 15, 20}


def test_training_continues_without_a_readable_history(tmp_path: Path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 5}
    options: dict[str, Any] = {"every": 4, "max_overhead": None}
    fitted(tmp_path, "gpt2", 5, [FathometerCallback(PROBE, **options)], **saving)
    folder = tmp_path / "out" / "checkpoint-5"
    callback = FathometerCallback(PROBE, samples=20, **options)
    with pytest.warns(
        UserWarning, match="starts again: resume: samples was 512 in the history and is 20 now"
    ):
        fitted(tmp_path, "gpt2", 6, [callback], resume=str(folder), **saving)
    assert callback.history.steps == (5, 6)
    (folder / "fathometer-history.json").write_text("{")
    callback = FathometerCallback(PROBE, **options)
    with pytest.warns(UserWarning, match="starts again: .*json: broken"):
        fitted(tmp_path, "gpt2", 9, [callback], resume=str(folder), **saving)
    assert callback.history.steps == (5, 8, 9)


def test_a_part_of_the_model_is_measured(tmp_path: Path) -> None:
    inner = FathometerCallback(PROBE, network="transformer")
    fitted(tmp_path, "gpt2", 2, [inner])
    assert inner.history.soundings[0].provenance.model["name"] == "GPT2Model"


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "fathometer.training.transformers"
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"'transformers': pip install 'fathometer\[language\]'"):
        importlib.import_module(name)
