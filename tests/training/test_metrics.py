from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer import InputError, load_history
from fathometer.results.history import History
from fathometer.training import Probe, record
from tests.training.training import WATCHED, mlp


def test_numbers_on_a_gpu_are_fetched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_on_a_gpu(name: str, value: Any) -> Any:
        del name
        return value

    monkeypatch.setattr(record, "_number", as_on_a_gpu)
    kept = record.Metrics()
    for step in range(3000):
        kept.add(step, {"loss": torch.tensor(float(step)), "count": torch.tensor(step)})
    assert len(kept._single) < 1024
    kept.add(7, {"loss": -1.0})  # what is said last holds
    kept.add(2999, {"loss": torch.tensor(-2.0)})
    found = kept.fetch()
    assert found["loss"] == {**{step: float(step) for step in range(2999)}, 7: -1.0, 2999: -2.0}
    assert found["count"] == {step: float(step) for step in range(3000)}
    assert not kept._single
    assert not kept._stacked


@pytest.fixture(scope="module")
def history() -> History:
    probe = Probe(mlp(), WATCHED, every=1, max_overhead=None)
    for step in range(2):
        probe.step(step)
    return probe.history


def test_steps_of_numpy_are_saved(history: History, tmp_path: Path) -> None:
    steps: Any = (np.int64(0), np.int64(4))
    missed: Any = ((np.int64(3), "why"),)
    made = History(steps, history.soundings, missed=missed)
    again = load_history(made.save(tmp_path / "h.json"))
    assert (again.steps, again.missed) == ((0, 4), ((3, "why"),))
    halves: Any = (0.5, 1.5)
    with pytest.raises(InputError, match="whole numbers"):
        History(halves, history.soundings)


def test_metrics_without_a_name_and_impossible_costs(history: History, tmp_path: Path) -> None:
    nameless = pd.DataFrame({"step": [0], "name": [None], "value": [1.0]})
    with pytest.raises(InputError, match="text as names of metrics, got None"):
        History(history.steps, history.soundings, nameless)
    path = history.save(tmp_path / "h.json")
    good = json.loads(path.read_text())
    for wrong in ({"seconds": -1.0}, {"in_all": "nan"}, {"bound": "inf"}):
        path.write_text(json.dumps({**good, "cost": {**good["cost"], **wrong}}))
        with pytest.raises(InputError, match=r"broken, the parts do not fit .*cost"):
            load_history(path)


def test_a_picture_for_one_column(history: History) -> None:
    assert history.plot(columns=1).get_figwidth() == 3.5
    assert history.plot().get_figwidth() == 7.2
    with pytest.raises(InputError, match="columns: expected 1"):
        history.plot(columns=3)  # type: ignore[arg-type]
