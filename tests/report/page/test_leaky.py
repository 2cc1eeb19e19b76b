"""The page of Leaky ResNets, as data: before it is HTML."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from fathometer.leaky import LeakySweep, grid
from fathometer.leaky.measures import BOTTLENECK
from fathometer.leaky.schemes import paired_differences, project_paths
from fathometer.leaky.theory import check_all
from fathometer.report import bottleneck_intervals, depth_table
from fathometer.report.leaky_tables import SWEEP_PANELS
from fathometer.report.page.document import html
from fathometer.report.page.items import Chart, Page, View
from fathometer.report.page.leaky import MAX_SAMPLES, MAX_SPECTRA, leaky_page
from fathometer.report.page.leaky_charts import run_charts
from tests.leaky.networks import SMALL, measured_sweep
from tests.report.page.test_several import unpacked

vl_convert = pytest.importorskip("vl_convert")

DEPTHS = [0.0, 1.0, 3.0, 5.0]


@pytest.fixture(scope="module")
def depths() -> LeakySweep:
    return measured_sweep(grid(SMALL, effective_depth=DEPTHS, seeds=2))


@pytest.fixture(scope="module")
def schemes() -> LeakySweep:
    return measured_sweep(
        grid(SMALL, scheme=["equidistant", "irregular", "adaptive"], layers=[4, 6], seeds=2)
    )


@pytest.fixture(scope="module")
def page(depths: LeakySweep) -> Page:
    return leaky_page(depths)


def view_of(page: Page) -> View:
    (view,) = page.sections[0].items
    assert isinstance(view, View)
    return view


def compiled(spec: Any, rows: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = vl_convert.vegalite_to_vega({**spec, "datasets": rows})
    return found


def numbers(values: Any) -> Any:
    return np.array([math.nan if value is None else value for value in values], float)


def spectra(shown: Any) -> Any:
    return np.array([unpacked(values) for values in shown["values"]])


def test_a_network_has_the_numbers_of_its_measures(depths: LeakySweep, page: Page) -> None:
    data = view_of(page).data
    for run, shown in zip(depths.runs, data["runs"], strict=True):
        measures = run.measures
        for name in ("p", "cost_of_identity", "stable_rank", "affinity", "negative"):
            assert_allclose(unpacked(shown["p"][name]), measures.points[name], rtol=1e-4)
        for name in ("hamiltonian", "hamiltonian_averaged", "kinetic", "potential", "crit"):
            assert_allclose(unpacked(shown["p"][name])[:-1], measures.layers[name], rtol=1e-4, atol=1e-12)
        assert_allclose(spectra(shown["spectra"]).T, measures.spectra[:, :MAX_SPECTRA], rtol=1e-4)
        assert measures.weight_spectra is not None
        values = spectra(shown["weight_spectra"]).T
        assert_allclose(values, measures.weight_spectra[:, :MAX_SPECTRA], rtol=1e-4, atol=1e-12)
        assert unpacked(shown["epoch"]["epoch"]).tolist() == run.history["epoch"].tolist()
        assert_allclose(unpacked(shown["epoch"]["error"]), run.history["error"], rtol=1e-4)


def test_the_table_of_a_sweep_is_that_of_the_library(depths: LeakySweep, page: Page) -> None:
    shown, table = view_of(page).data["table"], depths.table
    for name in ("effective_depth", "seed", "train_error", "test_error", "hamiltonian", "rank", "crit"):
        assert_allclose(numbers(shown[name]), table[name].to_numpy(float), rtol=1e-4)
    deep = depth_table(depths)
    places = [i for i, depth in enumerate(shown["effective_depth"]) if depth > 0]
    for panel in SWEEP_PANELS:
        for name in panel.series:
            if name in deep:
                assert_allclose(numbers(shown[name])[places], deep[name], rtol=1e-4)
    assert view_of(page).data["axes"] == ["effective_depth"]
    assert view_of(page).data["varied"] == ["effective_depth", "seed"]


def test_statements_are_those_of_the_library(depths: LeakySweep, page: Page) -> None:
    data = view_of(page).data
    number = next(i for i, run in enumerate(depths.runs) if run.design.effective_depth == 5)
    run, rows = depths.runs[number], data["runs"][number]["theory"]
    siblings = [other.path for other in depths.siblings(run)]
    assert len(siblings) == 2  # 1 and 3 of the same seed; a plain ResNet has no energies
    statements = check_all(run.path, run.gamma0, siblings)
    assert "Proposition 5" in " ".join(row["name"] for row in rows)
    for row, statement in zip(rows, statements, strict=True):
        for name in ("name", "claim", "how", "note", "holds"):
            assert row[name] == getattr(statement, name)
        for name in ("left", "margin", "error"):
            value = getattr(statement, name)
            if math.isnan(value):
                assert row[name] is None
            else:
                assert row[name] == ("∞" if math.isinf(value) else pytest.approx(value, rel=1e-4, abs=1e-9))
    once = [row["name"] for each in data["runs"] for row in each["theory"]].count("Proposition 5")
    assert once == 2  # with the deepest network of each seed, not with every network
    for total in data["statements"]:
        same = [row for each in data["runs"] for row in each["theory"] if row["name"] == total["name"]]
        assert (len(same), sum(row["holds"] for row in same)) == (total["networks"], total["holds"])


def test_the_bottleneck_is_where_the_cost_of_identity_is_least(depths: LeakySweep, page: Page) -> None:
    for run, shown in zip(depths.runs, view_of(page).data["runs"], strict=True):
        points = run.measures.points
        inside = points["cost_of_identity"] <= points["cost_of_identity"].min() + BOTTLENECK
        for p, narrow in zip(points["p"], inside, strict=True):
            assert any(band["begin"] - 1e-4 <= p <= band["end"] + 1e-4 for band in shown["bands"]) == narrow
    points = pd.DataFrame({"p": [0, 0.5, 1.0], "cost_of_identity": [2.0, 9.0, 2.1]})
    assert bottleneck_intervals(points) == [(0.0, 0.25), (0.75, 1.0)]


def test_paths_in_a_plane(depths: LeakySweep, page: Page) -> None:
    run, shown = depths.runs[-1], view_of(page).data["runs"][-1]
    plane = project_paths([run])
    assert_allclose(
        np.c_[unpacked(shown["path"]["x"][0]), unpacked(shown["path"]["y"][0])],
        plane.paths[0],
        rtol=1e-4,
        atol=1e-9,
    )
    assert_allclose(shown["path"]["explained"], plane.explained, rtol=1e-4)
    a = run.path.representations
    columns = a.permute(0, 2, 1).reshape(-1, a.shape[1]).numpy()  # [points · samples, width]
    _, values, axes = np.linalg.svd(columns - columns.mean(0), full_matrices=False)
    mine = np.stack(
        [list(map(unpacked, shown["samples"][axis])) for axis in "xy"], -1
    )  # [samples, points, 2]
    theirs = np.moveaxis(((columns - columns.mean(0)) @ axes[:2].T).reshape(*a.shape[::2], 2), 0, 1)
    assert len(mine) == MAX_SAMPLES
    assert_allclose(np.abs(mine), np.abs(theirs[:MAX_SAMPLES]), rtol=1e-3, atol=1e-5)
    assert_allclose(shown["samples"]["explained"], values[:2] ** 2 / (values**2).sum(), rtol=1e-4)


def test_a_network_that_diverged_is_shown_as_it_was(depths: LeakySweep) -> None:
    broken = replace(depths, runs=tuple(replace(run, diverged=17) for run in depths.runs[-2:]))
    data = view_of(leaky_page(broken)).data
    assert data["first"] == 0
    assert data["table"]["diverged"] == [True, True]
    assert "diverged at epoch 17" in data["runs"][0]["warnings"]
    assert data["runs"][0]["theory"] == []


def test_schemes_are_compared_where_there_are_several(schemes: LeakySweep, page: Page) -> None:
    sections = {section.title: section.items for section in leaky_page(schemes).sections}
    charts = [item for item in sections["Step schemes"] if isinstance(item, Chart)]
    errors, differences, paths = charts
    assert set(errors.data["errors"]["scheme"]) == {"equidistant", "irregular", "adaptive"}
    pd.testing.assert_frame_equal(differences.data["pairs"], paired_differences(schemes))
    assert len(paths.data["paths"]) == 3 * 7
    for chart in charts:
        rows = {name: frame.to_dict("records") for name, frame in chart.data.items()}
        assert compiled(chart.spec, rows)["marks"]
    assert "Step schemes" not in {section.title for section in page.sections}


def test_a_page_of_one_network(depths: LeakySweep) -> None:
    found = leaky_page(depths.runs[-1], "a title")
    text = html(found)
    assert found.title == "a title"
    assert "<h1>a title</h1>" in text
    data = view_of(found).data
    assert data["axes"] == []
    assert set(run_charts()) >= {panel["part"] for panels in data["panels"].values() for panel in panels}


def test_forty_networks_stay_small(depths: LeakySweep) -> None:
    many = replace(depths, runs=depths.runs * 5)
    assert len(many.runs) == 40
    assert len(html(leaky_page(many)).encode()) < 5e6
