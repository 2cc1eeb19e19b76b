from __future__ import annotations

from tests.robustness.recording import PAGE, page, read_records


def test_the_page_is_written_from_the_records() -> None:
    assert PAGE.read_text("utf-8") == page(read_records())


def test_a_failure_is_on_the_page() -> None:
    record = {
        "name": "killed",
        "title": "Killed processes",
        "tried": "Kills.",
        "rows": [{"command": "a|b", "tried": 1200}],
        "failures": ["test[x]: <lost>"],
        "seconds": 130.0,
        "commit": "abc",
        "date": "2026-01-01T00:00:00+00:00",
        "machine": "cpu",
        "versions": {"torch": "2"},
    }
    text = page([record])
    assert "[Killed processes](#killed-processes) | 1 | 2 min | 2026-01-01 |" in text
    assert "| a\\|b | 1,200 |" in text
    assert "- **Failure:** test[x]: &lt;lost>" in text
