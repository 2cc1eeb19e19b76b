"""Pages of results are written from records, and by nothing else."""

from __future__ import annotations

import importlib
import json

from benchmarks import page as benchmarks_page

language_models = importlib.import_module("examples.language_models")


def test_the_results_of_the_benchmarks_are_written_from_the_records() -> None:
    records = benchmarks_page.read_records()
    assert records
    assert benchmarks_page.PAGE.read_text("utf-8") == benchmarks_page.page(records)


def test_the_findings_about_language_models_are_written_from_the_record() -> None:
    record = json.loads(language_models.RECORD.read_text("utf-8"))
    assert language_models.PAGE.read_text("utf-8") == language_models.page(record)
