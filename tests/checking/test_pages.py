"""The pages about the check: every rule is explained, and the results are those of the record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import faults_page
from fathometer.checking.rules import RULES

DOCS = Path(__file__).parents[2] / "docs"


def test_every_rule_has_a_heading_that_its_link_leads_to() -> None:
    headings = re.findall(r"^### (\S+)$", (DOCS / "check.md").read_text("utf-8"), re.MULTILINE)
    assert headings == [rule.name for rule in RULES]


def check(network: str, fault: str = "", seed: int = 0, **changes: Any) -> dict[str, Any]:
    numbers = {"sites": 10, "loss": 0.5, "span": 20.0}
    found = {"network": network, "fault": fault, "kind": "CNN", "findings": [], "numbers": numbers}
    planted = {"seed": seed, "strength": "1", "applies": True, "first": False, "found": False}
    return found | (planted | {"expected": ["rank"]} if fault else {}) | changes


def test_the_page_counts_what_is_new() -> None:
    old, new = ["rank", "note", "a", "old"], ["rank", "warning", "b", "new"]
    healthy = check("net", findings=[old])
    missed = check("net", "fault", findings=[old], first=True)
    found = check("net", "fault", 1, findings=[["scale", "error", "", ""], new, old])
    by_name = {"net": healthy}
    assert not faults_page.found_new(missed, by_name)
    assert faults_page.found_new(found, by_name)
    assert not faults_page.first_new(found, by_name)
    assert faults_page.missed_lines([missed, found], by_name) == ["- fault: net (1 of 2)"]
    assert faults_page.worse(check("net", "fault", numbers={"loss": 0.7}), by_name)
    assert not faults_page.worse(check("net", "fault", numbers={"loss": 0.51}), by_name)


def test_alarms_are_counted_by_network_and_site() -> None:
    alarm = check("b", findings=[["scale", "error", "", ""]])
    (row,) = faults_page.alarm_rows({"all": [check("a"), alarm]})
    assert row["networks with errors"] == 1
    assert row["errors by site"] == "5.00 %"
    calibration, test = faults_page.halves([check("small/c"), alarm, check("a")])
    assert [each["network"] for each in calibration] == ["a", "b"]
    assert [each["network"] for each in test] == ["small/c"]


def test_the_page_is_that_of_the_record() -> None:
    if not faults_page.RECORD.exists():
        pytest.skip("no record")
    record = json.loads(faults_page.RECORD.read_text("utf-8"))
    assert faults_page.PAGE.read_text("utf-8") == faults_page.page(record)
