from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fathometer.cli.tables import TableView, remarks, sounding_view
from tests.report.figures.drawn import network

RNG = np.random.default_rng(7)


def shown(view: TableView, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(view)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_every_number_is_there_whatever_the_width(width: int) -> None:
    columns = [f"column {i}" for i in range(12)]
    names = [f"a_network_with_a_long_name_{i}" for i in range(5)]
    frame = pd.DataFrame(RNG.normal(0, 1000, (5, 12)), names, columns)
    lines = shown(TableView(frame, "A title", "a note"), width)
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert words >= {f"{value:.3f}" for value in frame.to_numpy().ravel()}
    text = "".join(lines)
    assert text.count("A title") == text.count("a note") == 1
    assert "…" not in text


def test_names_are_folded_and_optional_columns_left_out() -> None:
    frame = pd.DataFrame({"first": [1.5], "second": [2.5], "third": [3.5]}, [40 * "x"])
    view = TableView(frame, caption="a note", optional=["second", "third"])
    text = "\n".join(shown(view, 62))
    assert (text.count("x"), "1.500" in text, "2.500" in text, "3.500" in text) == (40, True, True, False)
    assert "a note; a wider terminal shows more" in text
    text = "\n".join(shown(view, 40))
    assert (text.count("x"), "1.500" in text, "2.500" in text) == (40, True, False)


@pytest.mark.parametrize(("width", "r2", "said"), [(8, False, False), (65, False, True), (33, True, True)])
def test_few_samples_for_the_width_are_mentioned(width: int, r2: bool, said: bool) -> None:
    more: dict[str, Any] = {"r2_heldout": np.full(3, 0.5)} if r2 else {}
    sounding = network("net", 3, **more)
    sounding = replace(sounding, records=sounding.records.assign(n=64, d=width))
    assert any("3 of these sites have few samples" in line for line in remarks(sounding)) == said


@pytest.mark.parametrize(("gauge", "why"), [("saturated", ": it is for bounded activations"), ("mine", "")])
def test_a_gauge_without_any_value_is_one_sentence(gauge: str, why: str) -> None:
    console = Console(width=120, record=True)
    missing: dict[str, Any] = {gauge: np.full(3, np.nan)}
    console.print(sounding_view(network("net", 3, **missing), gauge))
    text = console.export_text()
    assert f"{gauge} has no value at any of these sites{why}" in text
    assert "nan" not in text
