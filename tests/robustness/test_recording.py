from __future__ import annotations

from tests.robustness.recording import PAGE, page, read_records


def test_the_page_is_written_from_the_records() -> None:
    assert PAGE.read_text("utf-8") == page(read_records())
