from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fathometer.cli.tables import frame_view

RNG = np.random.default_rng(7)


def shown(frame: pd.DataFrame, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(frame_view(frame, "A title", "a note", width=width))
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_every_number_is_there_whatever_the_width(width: int) -> None:
    columns = [f"column_{i}" for i in range(12)]
    frame = pd.DataFrame(RNG.normal(0, 1000, (5, 12)), [f"network {i}" for i in range(5)], columns)
    lines = shown(frame, width)
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert words >= {f"{value:.3f}" for value in frame.to_numpy().ravel()}
    text = "".join(lines)
    assert text.count("A title") == text.count("a note") == 1
    assert "…" not in text


def test_long_names_are_shortened_if_they_stay_apart() -> None:
    numbers = RNG.random((2, 5))
    lines = shown(pd.DataFrame(numbers, ["first " + 60 * "x", "second " + 60 * "x"], list("abcde")), 80)
    assert sum("x…" in line for line in lines) == 2  # one table
    ends = shown(pd.DataFrame(numbers, [40 * "x" + " 1", 40 * "x" + " 2"], list("abcde")), 80)
    assert sum(40 * "x" + " 1" in line for line in ends) == 2  # two tables, names in full
