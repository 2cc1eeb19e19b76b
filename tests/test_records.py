"""Pages of results are written from records, and by nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import linearize_page
from benchmarks import page as benchmarks_page
from examples.language_models import main
from examples.language_page import PAGE, RECORD


def test_the_results_of_the_benchmarks_are_written_from_the_records() -> None:
    records = benchmarks_page.read_records()
    assert records
    assert benchmarks_page.PAGE.read_text("utf-8") == benchmarks_page.page(records)


def test_the_findings_about_language_models_are_written_from_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("examples.language_models.PAGE", tmp_path / "page.md")
    main(["--page"])
    assert json.loads(RECORD.read_text("utf-8"))["commit"]
    assert (tmp_path / "page.md").read_text("utf-8") == PAGE.read_text("utf-8")


def test_the_page_of_what_an_activation_is_worth_is_written_from_the_records() -> None:
    assert linearize_page.PAGE.read_text("utf-8") == linearize_page.page()
