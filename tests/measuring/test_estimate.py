"""How long a measurement takes is said beforehand, and gauges move a bar of their own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fathometer import measure
from fathometer.measuring import estimate
from fathometer.progress import ProgressBar, progress_bar


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU())


def difference(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).mean()


def test_pairs_that_are_timed_are_small() -> None:
    assert estimate._reduced((512, 64, 64)) == ((512, 64, 64), 1)
    assert estimate._reduced((2048, 1024, 1024)) == ((1024, 512, 512), 8)
    assert estimate._reduced((2048, 512, 2048)) == ((512, 128, 512), 64)
    assert estimate._reduced((512, 8192, 8192)) == ((512, 2048, 2048), 4)
    assert estimate._reduced((2**14, 64, 64)) == ((2048, 64, 64), 64)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"batches": 1}, "3 sites, 1 batch of 50 samples"),
        ({"gauges": ["norm", difference]}, "3 sites, 4 batches of 50 samples; not counting difference"),
        ({"by": lambda batch: ["a"] * len(batch)}, "3 sites, for each batch of 50 samples"),
        ({"batches": 2, "reduction": "tokens"}, "3 sites, 2 batches of 50 tokens"),
    ],
)
def test_what_the_estimate_says(
    changes: dict[str, object],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(20, 10, 4) if "reduction" in changes else torch.randn(200, 4)
    settings = {"samples": 50, "batch_size": 20, "gauges": "norm", "progress": True, **changes}
    quiet = measure(network(), x, **settings)  # type: ignore[call-overload]
    assert capsys.readouterr().err == ""  # it takes less than 20 seconds
    monkeypatch.setattr(estimate, "_MIN_SECONDS", 0.0)
    found = measure(network(), x, **settings)  # type: ignore[call-overload]
    assert capsys.readouterr().err == f"about 10 seconds: {said}\n"
    if "by" not in changes:
        assert found.records.equals(quiet.records)  # timing the gauges changes no value


def test_gauges_move_a_bar_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # so that rich draws the bars
    moves, part = [], ProgressBar.part

    def recorded(bar: ProgressBar, what: str, done: int, total: int) -> None:
        moves.append((done, total))
        part(bar, what, done, total)
        bar._bars.refresh()

    monkeypatch.setattr(ProgressBar, "part", recorded)
    with progress_bar("measuring") as bar:
        measure(network(), torch.randn(100, 4), samples=50, gauges="norm", progress=bar)
        assert moves == [(0, 3), (1, 3), (2, 3), (3, 3)] * 2
        seen = [line for line in capsys.readouterr().err.splitlines() if "gauges" in line]
    assert any("1/3" in line for line in seen)
    assert not any("3/3" in line for line in seen)  # it is hidden once all is done
