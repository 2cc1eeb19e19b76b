from __future__ import annotations

from typing import Any

import pytest
import torch

from fathometer.training import record


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
