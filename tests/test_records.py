"""Pages of results are written from records, and by nothing else."""

from __future__ import annotations

import json

from benchmarks import page as benchmarks_page
from examples import language_models, language_page


def test_the_results_of_the_benchmarks_are_written_from_the_records() -> None:
    records = benchmarks_page.read_records()
    assert records
    assert benchmarks_page.PAGE.read_text("utf-8") == benchmarks_page.page(records)


def test_the_findings_about_language_models_are_written_from_the_record() -> None:
    assert language_models.page is language_page.page
    record = json.loads(language_page.RECORD.read_text("utf-8"))
    assert language_page.PAGE.read_text("utf-8") == language_page.page(record)
