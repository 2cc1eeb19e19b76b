"""Checkups are saved, loaded, shown in reports, asserted in tests, and made during training."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fathometer
from fathometer import Checkup, InputError, check, load, measure
from fathometer.report.page.items import Facts, Paragraph
from fathometer.report.page.sounding import sounding_page
from fathometer.testing import NetworkError, assert_healthy, assert_signature
from fathometer.training import Probe
from tests.checking.digits import digits, trained


@pytest.fixture
def broken() -> nn.Sequential:
    net: Any = trained()
    with torch.no_grad():
        net[1].weight.zero_()
        net[1].bias.fill_(-1)
    return net


def test_a_checkup_is_saved_and_loaded(broken: nn.Sequential, tmp_path: Path) -> None:
    found = check(broken, digits(), name="mine")
    again = load(found.save(tmp_path / "mine.json"))
    assert isinstance(again, Checkup)
    assert again.findings == found.findings
    assert again.skipped == found.skipped
    assert str(again) == str(found)
    assert repr(found).startswith("Checkup of mine: 3 errors")
    assert list(found.table()["rule"]) == [each.rule for each in found.findings]
    assert "<table>" in found._repr_html_()
    with pytest.raises(InputError, match="expected a name that ends in"):
        found.save(tmp_path / "mine.csv")


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    plain = check(trained(), digits()).to_plain()
    path = tmp_path / "a.json"
    for change, message in (
        ({"version": 99}, "written by a newer fathometer"),
        ({"findings": [{}]}, "broken, the parts do not fit"),
    ):
        path.write_text(json.dumps(plain | change), "utf-8")
        with pytest.raises(InputError, match=message):
            load(path)
    path.write_text(json.dumps(plain), "utf-8")
    with pytest.raises(InputError, match="is a checkup, not a sounding"):
        fathometer.results.loading.open_results(path)


def test_a_sounding_checks_itself(broken: nn.Sequential, tmp_path: Path) -> None:
    sounding = measure(broken, digits(), samples=512)
    found = load(sounding.save(tmp_path / "a.json")).check()
    assert found.findings[0].rule == "dead-layer"
    assert found.skipped["partly-loaded"] == "needs the network itself: fathometer.check(model, data)"
    assert found.skipped["duplicates"] == "needs the gauge duplicates; the set check has all"
    assert "scale" not in measure(broken, digits(), samples=512, gauges="check").check().skipped


def test_a_report_begins_with_the_check(broken: nn.Sequential) -> None:
    section = sounding_page(measure(broken, digits(), samples=512, gauges="check")).sections[0]
    *findings, skipped = section.items
    texts = [item.text for item in findings if isinstance(item, Paragraph)]
    assert section.title == "Check"
    assert texts[0].startswith("2 errors")
    assert texts[1].startswith("Error: 2: 32 of 32 channels never change")
    assert "the layer passes nothing on" in texts[1]
    assert "Try: Look at the layer before it" in texts[1]
    assert len(texts) == len(findings) > 2
    assert isinstance(skipped, Facts)


def test_assertions_for_test_suites(broken: nn.Sequential, tmp_path: Path) -> None:
    net = trained()
    assert assert_healthy(net, digits()).severity in ("warning", "note", None)
    with pytest.raises(NetworkError, match=r"is not healthy:\n  error: 2: 32 of 32 channels"):
        assert_healthy(broken, digits())
    file = measure(net, digits(), samples=512).save(tmp_path / "net.json")
    assert_signature(net, digits(), file, samples=512)
    with pytest.raises(
        NetworkError, match=r"3 of 3 scores differ by more than 0.001: 2 \(1.000 was 0\.\d+\)"
    ):
        assert_signature(broken, digits(), file, samples=512)
    with pytest.raises(NetworkError, match="gone: 2, 5, 9; new: 0"):
        assert_signature(nn.Sequential(nn.ReLU()), digits(), file, samples=512)
    with pytest.raises(InputError, match="expected a sounding with affinity scores"):
        assert_signature(net, digits(), measure(net, digits(), samples=512, gauges="cka"))


def test_a_probe_warns_once_of_each_rule(broken: nn.Sequential, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fathometer"):
        probe = Probe(broken, digits(), samples=512, gauges="check", every=1, max_overhead=None)
        for step in range(3):
            probe.step(step)
    messages = [record.getMessage() for record in caplog.records]
    assert sum("[dead-layer]" in message for message in messages) == 1
    assert messages[0].startswith("step 0: error: 2: 32 of 32 channels")
    assert len({finding.rule for _, finding in probe.findings}) == len(probe.findings) == len(messages)


def test_a_pair_of_inputs_and_labels_is_one_data_set() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    x, y = torch.randn(256, 8), torch.randint(4, (256,))
    assert "chance" not in fathometer.check(net, (x, y)).skipped
    assert fathometer.measure(net, (x, y), samples=128).accuracy is not None
    with pytest.raises(fathometer.InputError, match="as many labels"):
        fathometer.check(net, (x, y[:9]))
