"""The place of a number among trained networks."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from fathometer import measure, reference
from fathometer.checking import ranges
from fathometer.checking.ranges import MIN_NETWORKS, reference_percentiles


def test_a_reference_network_is_placed_among_the_others() -> None:
    known = reference.table()
    mine = reference.load()["cifar10/resnet20"]
    found = reference_percentiles(mine)
    others = known[(known["network"] != "cifar10/resnet20") & (known["operator"] == "relu")]
    for site in mine.sites:
        alike = others[others["after_sum"] == site.after_sum]
        if alike["network"].nunique() < MIN_NETWORKS:
            assert found.isna()[site.name]
            continue
        family = alike[alike["family"] == mine.provenance.model["family"]]
        among = family if family["network"].nunique() >= MIN_NETWORKS else alike
        expected = 100 * (among["affinity"] < mine.signature[site.name]).mean()
        assert found[site.name] == pytest.approx(expected)
    assert found.notna().any()


def test_without_a_reference_there_is_no_percentile(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = reference.load()["cifar10/resnet20"]
    tokens = {**mine.provenance.settings, "reduction": {"pooling": "tokens"}}
    assert (
        reference_percentiles(replace(mine, provenance=replace(mine.provenance, settings=tokens)))
        .isna()
        .all()
    )
    assert reference_percentiles(mine, "scale_x").isna().all()
    monkeypatch.setattr(ranges, "MIN_NETWORKS", 10**6)
    monkeypatch.setattr(ranges, "_usual", ranges._usual.__wrapped__)  # without what it keeps
    assert reference_percentiles(mine).isna().all()
    assert mine.check().skipped["reference"].startswith("no reference: too few trained networks")


def test_an_unusual_score_is_noted() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 32, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.conv(x) + (self.conv(x.flip(-1)) + 100))  # a sum, as after a block

    torch.manual_seed(0)
    found = measure(Odd(), torch.randn(128, 3, 8, 8), samples=128, gauges="check").check()
    (finding,) = [each for each in found.findings if each.rule == "reference"]
    assert "is larger than that of every relu in the same role" in finding.sentence
    assert finding.numbers["percentile"] == 100
