from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from fathometer.cli import main
from fathometer.survey import parse_plan

families = importlib.import_module("examples.families")


def test_the_whole_plan_can_be_read() -> None:
    plan = parse_plan(families.plan_of(list(families.FAMILIES), "random:192", 64, 3))
    assert len(plan) == 38
    assert [family.name for family in plan.families] == list(families.FAMILIES)


def test_what_it_measures_is_compared_by_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The two commands of its docstring, small."""
    out = tmp_path / "soundings"
    given = ["--out", str(out), "--data", "random:4", "--samples", "4", "--batches", "1"]
    families.main([*given, "--only", "SqueezeNet", "AlexNet"])
    assert "3 measured, 0 kept, 0 failed" in capsys.readouterr().out
    families.main([*given, "--only", "SqueezeNet", "AlexNet"])
    assert "0 measured, 3 kept" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "argv", ["fathometer", "compare", "networks", str(out)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    shown = capsys.readouterr().out
    assert "SqueezeNet" in shown
    assert "nearest neighbour in the same family: " in shown
