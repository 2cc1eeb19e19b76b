"""Gauges that run beside the next passes, as on a GPU, give the same values in the same order."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from fathometer import InputError, measure
from fathometer.errors import ForwardError, OutOfMemoryError
from fathometer.measuring import loop, scores
from fathometer.measuring.options import MeasureOptions

X = torch.randn(200, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(True), nn.Conv2d(8, 8, 3), nn.GELU(), nn.Flatten())


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_IN_BACKGROUND", {"cpu", "cuda"})


class Raising:
    """Raises an error when it is called for the n-th time."""

    def __init__(self, error: BaseException, n: int) -> None:
        self.error, self.left = error, n

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error


def gauge_that_calls(check: Callable[[], None]) -> Callable[[Tensor, Tensor], Tensor]:
    def spread(x: Tensor, y: Tensor) -> Tensor:
        check()
        return (y - x).std()

    return spread


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_values_are_the_same_bit_for_bit(
    device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    torch.backends.cudnn.deterministic = True
    data, journal = [(x, torch.arange(len(x)) % 4) for x in X.split(20)], tmp_path / "journal"

    def records() -> pd.DataFrame:
        journal.unlink(missing_ok=True)
        options = MeasureOptions(samples=40, leftover="keep", map="cka")
        return measure(network(), data[:-1], options, device=device, journal=journal).records

    found, lines = records(), journal.read_text()
    monkeypatch.setattr(loop, "_IN_BACKGROUND", set())
    pd.testing.assert_frame_equal(found, records(), check_exact=True)
    assert lines == journal.read_text()
    assert [json.loads(line)["batch"] for line in lines.splitlines()[1:]] == [0, 1, 2, 3, 4]


def test_gauges_run_in_another_thread_without_gradients() -> None:
    seen = set()

    def spread(x: Tensor, y: Tensor) -> Tensor:
        seen.add((threading.get_ident(), torch.is_grad_enabled()))
        return (y - x).std()

    measure(network(), X, samples=50, gauges=[spread])
    threads, with_gradients = zip(*seen, strict=True)  # on a CPU, more than one
    assert threading.get_ident() not in threads
    assert set(with_gradients) == {False}


@pytest.mark.parametrize("batch", [0, 2, 3])
def test_an_error_of_a_gauge_names_the_site(batch: int, tmp_path: Path) -> None:
    data, journal = X.clone(), tmp_path / "journal"
    data[50 * batch, 0, 4, 4] = torch.nan
    with pytest.raises(InputError, match="1: affinity: x: expected finite values"):
        measure(network(), data, samples=50, gauges="affinity", journal=journal)
    kept = journal.read_text().splitlines() if journal.exists() else []
    assert max(len(kept) - 1, 0) == batch  # those before it are finished


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("broken")])
def test_a_batch_before_an_interrupt_is_kept(error: BaseException, tmp_path: Path) -> None:
    net, check, journal = network(), Raising(error, 3), tmp_path / "journal"
    handle = net.register_forward_pre_hook(lambda *_: check())
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ForwardError):
        measure(net, X, samples=50, batch_size=50, gauges="norm", journal=journal)
    handle.remove()
    assert len(journal.read_text().splitlines()) == 3
    resumed = measure(net, X, samples=50, batch_size=50, gauges="norm", journal=journal)
    whole = measure(net, X, samples=50, batch_size=50, gauges="norm")
    pd.testing.assert_frame_equal(resumed.records, whole.records)


def test_a_batch_that_is_waited_for_is_kept(tmp_path: Path) -> None:
    journal, calls = tmp_path / "journal", []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    def interrupt() -> None:
        calls.append(journal.exists())
        if len(calls) == 2:  # the last batch
            time.sleep(0.5)  # until the main thread waits
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.1)

    with pytest.raises(KeyboardInterrupt):
        measure(
            network(),
            X[:100],
            samples=50,
            sites="relu",
            gauges=[gauge_that_calls(interrupt)],
            journal=journal,
        )
    assert len(journal.read_text().splitlines()) == 3


@pytest.mark.parametrize("where", ["network", "gauge"])
def test_without_memory_for_both_one_waits_for_the_other(where: str) -> None:
    net, check, never = network(), Raising(torch.OutOfMemoryError("out of memory"), 3), lambda: None
    expected = measure(net, X, samples=50, gauges=[gauge_that_calls(never)])
    handle = net.register_forward_pre_hook(lambda *_: check() if where == "network" else None)
    gauge = gauge_that_calls(check if where == "gauge" else never)
    found = measure(net, X, samples=50, batch_size=50, gauges=[gauge])
    pd.testing.assert_frame_equal(found.records, expected.records, rtol=1e-6)
    check.left = 1  # in the first pass, or with nothing beside it
    if where == "network":
        with pytest.raises(OutOfMemoryError, match="in a forward pass of 50 inputs"):
            measure(net, X, samples=50, batch_size=50, gauges=[gauge])
    handle.remove()


def test_no_samples_are_counted_twice_if_scores_find_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    check, sums = Raising(torch.OutOfMemoryError("out of memory"), 3), scores._sums

    def checked(logits: Tensor, labels: Tensor) -> Tensor:
        check()
        return sums(logits, labels)

    monkeypatch.setattr(scores, "_sums", checked)
    data = [(x, torch.arange(len(x)) % 4) for x in X.split(25)]
    with pytest.raises(torch.OutOfMemoryError):
        measure(network(), data, samples=50, gauges="norm")
