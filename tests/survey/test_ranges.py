from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from fathometer import InputError, Sounding, measure
from fathometer.data import open_data
from fathometer.data.inputs import Inputs
from fathometer.data.noise import Noise
from fathometer.data.source import Sample
from fathometer.survey.ranges import Range, RangesDifferError, doubtful, merged, ranges
from tests.survey.nets import Mood, small

IMAGE = Inputs("image", (3, 8, 8))


def whole_and_parts(
    model: torch.nn.Module, size: int, count: int = 100, **options: object
) -> tuple[Sounding, list[Sounding]]:
    def sounding(part: Range) -> Sounding:
        data = open_data(f"random:{count}", IMAGE, batch_size=7)
        where = {"first_batch": part.first, "batches": part.batches}
        return measure(model, data, samples=20, batch_size=7, gauges=["affinity", "norm"], **where, **options)  # type: ignore[arg-type]

    batches = count // 20
    return sounding(Range(0, None)), [sounding(part) for part in ranges(batches, size, is_open=True)]


@pytest.mark.parametrize("reduction", ["mean", "position"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_ranges_are_the_batches_of_the_whole_bit_for_bit(reduction: str, size: int) -> None:
    torch.manual_seed(0)
    whole, parts = whole_and_parts(small()[0], size, reduction=reduction, leftover="keep", count=109)
    together = merged(parts, batches=None)
    assert together.sites == whole.sites
    pd.testing.assert_frame_equal(together.records, whole.records, check_exact=True)
    assert together.records["batch"].max() == 5
    assert together.provenance.data == whole.provenance.data
    assert together.provenance.settings == whole.provenance.settings


def test_sites_that_depend_on_the_data_come_in_the_same_order() -> None:
    whole, parts = whole_and_parts(Mood(), 1, count=200)
    together = merged(parts, batches=None)
    assert len({part.sites for part in parts}) > 1
    assert together.sites == whole.sites
    pd.testing.assert_frame_equal(together.records, whole.records, check_exact=True)


def test_tokens_are_counted_before_a_range() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(20, 6)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.embed(input_ids))

    torch.manual_seed(0)
    model, ids = Net(), torch.randint(0, 20, (30, 10))
    whole = measure(model, ids, samples=64, reduction="tokens", gauges="affinity")
    later = measure(model, ids, samples=64, reduction="tokens", gauges="affinity", first_batch=2)
    expected = whole.records[whole.records["batch"] >= 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(later.records, expected, check_exact=True)


def test_a_range_has_a_journal_of_its_own(tmp_path: Path) -> None:
    model, data = small()[0], torch.randn(100, 3, 8, 8)
    journal = tmp_path / "journal"
    first = measure(model, data, samples=20, gauges="norm", first_batch=2, batches=2, journal=journal)
    again = measure(model, data, samples=20, gauges="norm", first_batch=2, journal=journal)
    assert set(first.records["batch"]) == {2, 3}
    assert set(again.records["batch"]) == {2, 3, 4}
    with pytest.raises(InputError, match="other first_batch"):
        measure(model, data, samples=20, gauges="norm", journal=journal)


def test_a_range_behind_the_end() -> None:
    with pytest.raises(InputError, match=r"at least 20 samples after the first 5 batches .*, got 9"):
        measure(small()[0], torch.randn(109, 3, 8, 8), samples=20, first_batch=5)
    with pytest.raises(InputError, match="first_batch: expected a whole number from 0, got -1"):
        measure(small()[0], torch.randn(100, 3, 8, 8), samples=20, first_batch=-1)
    with pytest.raises(InputError, match="enough samples to fill a batch"):
        merged([], batches=None)


def test_progress_of_a_range() -> None:
    told: list[tuple[int, int | None]] = []
    measure(
        small()[0], torch.randn(100, 3, 8, 8), samples=20, gauges="norm", first_batch=3,
        progress=lambda *now: told.append(now),
    )  # fmt: skip
    assert told[-1] == (40, 40)


def test_samples_before_a_range_are_not_read_where_all_are_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = Noise.__getitem__

    def noted(self: Noise, index: int) -> Sample:
        read.append(index)
        return original(self, index)

    monkeypatch.setattr(Noise, "__getitem__", noted)
    data = open_data("random:200", IMAGE, batch_size=7)
    measure(small()[0], data, samples=20, batch_size=7, gauges="norm", first_batch=8)
    assert sorted(read) == [*range(7), *range(160 // 7 * 7, 200)]  # the first batch is what data are known by


@pytest.mark.parametrize("where", ["model", "data", "versions", "device", "settings"])
def test_ranges_of_different_networks_are_not_put_together(where: str) -> None:
    _, parts = whole_and_parts(small()[0], 1, count=60)
    facts = parts[1].provenance
    other, told = {
        "model": (replace(facts, model={**facts.model, "sha256": "1"}), "model sha256; does its factory"),
        "data": (
            replace(facts, data={**facts.data, "first_sample_sha256": "1"}),
            "first sample; leave range",
        ),
        "versions": (replace(facts, versions={**facts.versions, "torch": "1"}), "version of torch"),
        "device": (replace(facts, device="cuda"), "device"),
        "settings": (replace(facts, settings={"survey": {"address": "1"}}), "address"),
    }[where]
    parts[1] = replace(parts[1], provenance=other)
    with pytest.raises(RangesDifferError, match=f"expected one network .*got other {told}"):
        merged(parts, batches=None)


def test_weights_that_changed_between_ranges_are_told() -> None:
    first, second = (whole_and_parts(small()[0], 1, count=60)[1] for _ in range(2))
    with pytest.raises(RangesDifferError, match="other model sha256"):
        merged([first[0], second[1], first[2]], batches=None)


def test_ranges_after_an_unreadable_sample_are_doubtful() -> None:
    _, parts = whole_and_parts(small()[0], 1, count=60)
    wanted = ranges(3, 1, is_open=True)
    assert doubtful(wanted, parts) == wanted
    parts[1].provenance.data["skipped"] = 1
    again = doubtful(wanted, parts)
    assert [part.reads_all for part in again] == [False, False, True]
    assert doubtful(again, parts) == again
