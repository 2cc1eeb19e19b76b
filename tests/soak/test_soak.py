"""Every program of the soak, in small; and the page is what the records say."""

from __future__ import annotations

import pytest
import torch

from soak.catalogue import PROGRAMS
from soak.page import PAGE, page
from soak.program import Program
from soak.record import read_records


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_finds_no_failure(program: Program) -> None:
    if program.gpu and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    outcome = program.run("smoke")
    assert outcome.rows
    if not any(row.get("tried", 1) for row in outcome.rows):
        pytest.skip(outcome.notes[0])
    assert not outcome.failures


def test_the_page_is_written_from_the_records() -> None:
    records = read_records()
    assert PAGE.read_text("utf-8") == page(PROGRAMS, records)
    assert {record.effort for record in records.values()} <= {"full"}
