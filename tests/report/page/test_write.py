"""What `write_report` takes and refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError, write_report
from fathometer.errors import MissingExtraError
from fathometer.report import page
from fathometer.report.numbers import number
from fathometer.report.page.charts import atlas_charts, film_charts
from fathometer.report.page.document import html, packed
from fathometer.report.page.items import Page, Paragraph, Section, Table
from fathometer.report.page.leaky_charts import run_charts
from tests.compare.soundings import sounding
from tests.report.page.test_several import compiled, unpacked


@pytest.mark.parametrize("wrong", [3, None, "net.npz"])
@pytest.mark.parametrize("atlas", [False, True])
def test_what_is_no_result_is_refused(tmp_path: Path, wrong: Any, atlas: bool) -> None:
    with pytest.raises(InputError, match=f"expected a sounding, .* got {type(wrong).__name__}"):
        write_report(wrong, tmp_path / "x.html", atlas=atlas)


def test_half_a_surrogate_pair_in_a_name_is_replaced(tmp_path: Path) -> None:
    found = write_report(sounding("half \ud83d", [0.1, 0.2]), tmp_path / "x.html")
    assert "<h1>half ?</h1>" in found.read_text("utf-8")


def test_a_missing_extra_is_reported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("altair", "report", "an HTML report")

    monkeypatch.setattr(page, "require_report", missing)
    with pytest.raises(MissingExtraError, match="report"):
        write_report(3, tmp_path / "x.txt")  # type: ignore[arg-type]


def test_a_file_that_is_there_is_replaced_whole(tmp_path: Path) -> None:
    for name in ("one", "two"):
        found = write_report(sounding(name, [0.1, 0.2]), tmp_path / "x.html")
    assert "<h1>two</h1>" in found.read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]


def test_tables_show_what_one_reads_and_sort_by_the_value() -> None:
    frame = pd.DataFrame({"name": ["a<b", "b"], "score": [0.123456, np.nan], "size": [25_557_032, 7]})
    text = html(Page("t", "", (Section("", (Table(frame),)),)))
    assert '<td>a&lt;b</td><td class="number" data-value="0.123456">0.123</td>' in text
    assert '<td class="number" data-value="25557032">25557032</td>' in text
    assert '<td class="number" data-value=""></td>' in text


def test_every_link_of_the_navigation_leads_to_its_section() -> None:
    titles = ("", "one", "", "two")
    text = html(Page("t", "", tuple(Section(title, (Paragraph(title),)) for title in titles)))
    links = re.findall(r'<a href="#(section-\d+)">([^<]*)</a>', text)
    heads = re.findall(r'<section id="(section-\d+)">\s*<h2>([^<]*)</h2>', text)
    assert links == heads == [("section-2", "one"), ("section-4", "two")]


@pytest.mark.parametrize("scale", [1e-4, 1.0, 50.0, 1e4, 1e6])
def test_a_packed_number_is_shown_as_the_full_value(scale: float) -> None:
    near = np.arange(1, 3000) / 2000 * scale * (1 + 1e-9)
    values = np.concatenate([near, -near, near / (1 + 1e-9), np.random.default_rng(0).random(3000) * scale])
    found = [float(value) for value in unpacked(packed(values))]
    assert [number(value) for value in found] == [number(value) for value in values]
    assert found == pytest.approx(values.tolist(), rel=2e-7)


@pytest.mark.parametrize("charts", [atlas_charts, film_charts, run_charts])
def test_every_chart_of_a_view_compiles(charts: Callable[[], dict[str, Any]]) -> None:
    for spec in charts().values():
        assert compiled(spec, {})["marks"]
        assert spec["description"]
