"""The page of a training, as data: before it is HTML."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from fathometer.capture.sites import Site
from fathometer.report.page.document import html
from fathometer.report.page.items import Paragraph, View
from fathometer.report.page.sounding import MAX_POINTS, film_data, frames_kept, history_page
from fathometer.results.history import Cost, History, metrics_frame
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding
from tests.report.page.test_several import unpacked

vl_convert = pytest.importorskip("vl_convert")

STEPS = (0, 10, 20, 50)
GAUGES = ("affinity", "stable_rank_x")


def history(
    steps: tuple[int, ...] = STEPS, sites: int = 6, batches: int = 3, name: str = "net", seed: int = 0
) -> History:
    rng = np.random.default_rng(seed)
    found = tuple(
        Site(f"layer{i // 3}.{i % 3}.act", ("relu", "gelu")[i % 2], 1, i, True) for i in range(sites)
    )
    facts = Provenance(model={"name": name}, data={"name": "noise"}, settings={"samples": 64})

    def sounding() -> Sounding:
        rows = [
            {"site": site.name, "batch": batch, "n": 64, "d": 8}
            | dict(zip(GAUGES, rng.random(2), strict=True))
            for batch in range(batches)
            for site in found
        ]
        return Sounding(found, pd.DataFrame(rows), facts)

    metrics = metrics_frame({"loss": [(step, 1 / (1 + step)) for step in range(steps[-1] + 1)]})
    return History(steps, tuple(sounding() for _ in steps), metrics, Cost(1.5, 60.0, 0.05))


def test_frames_are_the_soundings() -> None:
    found = history()
    data = film_data(found, "net")
    assert data["steps"] == list(STEPS)
    assert data["left_out"] == 0
    for gauge in GAUGES:
        assert_allclose([unpacked(row) for row in data["frames"][gauge]], found.table(gauge), rtol=1e-4)
        errors = [sounding.std(gauge) for sounding in found.soundings]
        assert_allclose([unpacked(row) for row in data["errors"][gauge]], errors, rtol=1e-4)
        means = found.table(gauge).to_numpy()
        low, high = data["extent"][gauge]
        assert low == pytest.approx((means - np.array(errors)).min(), rel=1e-4)
        assert high == pytest.approx((means + np.array(errors)).max(), rel=1e-4)
        change = found.change(gauge)
        for name in ("first", "last", "change"):
            assert_allclose(unpacked(data["change"][gauge][name]), change[name], rtol=1e-4)
    assert data["sites"]["site"] == [site.name for site in found.soundings[0].sites]


def test_metrics_by_name_and_at_the_steps_of_the_film() -> None:
    metric = film_data(history(), "net")["metrics"]["loss"]
    assert metric["step"] == list(range(STEPS[-1] + 1))
    assert_allclose(metric["at"], [1 / (1 + step) for step in STEPS], rtol=1e-4)
    long = film_data(history((0, 10_000)), "net")["metrics"]["loss"]
    assert len(long["step"]) == MAX_POINTS
    assert (long["step"][0], long["step"][-1]) == (0, 10_000)
    assert_allclose(long["at"], [1, 1 / 10_001], rtol=1e-4)


def test_a_long_film_keeps_its_ends() -> None:
    found = history(tuple(range(0, 200, 2)), sites=5, batches=1)
    assert frames_kept(found) == list(range(100))
    kept = frames_kept(found, limit=200)  # 5 sites × 2 gauges × 20 steps
    assert len(kept) == 20
    assert (kept[0], kept[-1]) == (0, 99)
    assert max(np.diff(kept)) - min(np.diff(kept)) <= 1
    assert frames_kept(found, limit=1) == [0, 99]


def test_the_page_says_what_measuring_cost_and_what_failed() -> None:
    page = history_page(replace(history(), missed=((30, "weights are not finite"),)))
    said = [item.text for item in page.sections[-1].items if isinstance(item, Paragraph)]
    assert "1.5 s of 60.0 s, 2.5%, limit 5.0%" in said[0]
    assert "1 (step 30: weights are not finite)" in said[1]
    assert len(history_page(replace(history(), cost=Cost())).sections[-1].items) == 1


def test_the_page_is_one_file_and_names_are_escaped() -> None:
    page = history_page(history(name="<script>alert(1)</script>"))
    (view,) = page.sections[0].items
    assert isinstance(view, View)
    assert "4 soundings of 6 activation sites, steps 0 to 50, on noise" in page.lead
    text = html(page)
    assert "<script>alert(1)" not in text
    assert "Views.film" in text
