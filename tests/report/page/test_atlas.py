"""The atlas, before it is HTML."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from fathometer import InputError
from fathometer.report.page.charts import atlas_charts
from fathometer.report.page.document import html
from fathometer.report.page.items import Page, Section, View
from fathometer.report.page.networks import atlas_data, atlas_page, facts_table
from tests.compare.soundings import sounding
from tests.report.page.test_several import facts_for, networks, unpacked


def test_an_atlas_takes_what_cannot_be_compared() -> None:
    named = {**networks(3), "other": sounding("other", [0.1, 0.2], data="noise", depth_gauge=[1.0, 2.0])}
    page = atlas_page(named)
    assert page.title == "Atlas"
    assert page.lead == "4 networks, on 2 data sets"
    (view,) = page.sections[0].items
    assert isinstance(view, View)
    records = view.data["networks"]
    assert [record["name"] for record in records] == list(named)
    assert records[3]["gauges"] == ["affinity", "depth_gauge"]
    assert records[3]["data"] == "noise"
    assert unpacked(records[3]["mean"]["depth_gauge"]).tolist() == [1.0, 2.0]
    assert atlas_page(list(named.values())[:1], title="one").lead == "1 network, on photos"
    with pytest.raises(InputError, match="at least one"):
        atlas_page([])


def test_an_atlas_counts_networks_and_uses_the_names_of_the_plan() -> None:
    one = sounding("net", [0.1, 0.2])
    facts = one.provenance
    twice = [
        replace(
            one,
            provenance=replace(
                facts, settings={**facts.settings, "seed": seed, "survey": {"data": name, "settings": "all"}}
            ),
        )
        for seed, name in enumerate(("holiday", "street"))
    ]
    page = atlas_page([*twice, sounding("other", [0.1, 0.2])])
    assert page.lead == "3 soundings of 2 networks, on 3 data sets"
    (view,) = page.sections[0].items
    assert isinstance(view, View)
    assert [record["data"] for record in view.data["networks"]] == ["holiday", "street", "photos"]
    assert [record["name"] for record in view.data["networks"]] == ["net, holiday", "net, street", "other"]


def test_the_atlas_has_facts_and_families() -> None:
    named = networks(4)
    facts = facts_for(named).drop("net3").astype({"year": float})
    facts.loc["net1", "year"] = np.nan
    facts.loc["net0", "family"] = "mine"
    data = atlas_data(named, facts_table(named, facts))
    assert data["facts"] == ["accuracy", "parameters", "year"]
    assert list(data["families"]) == ["even", "mine", "odd"]
    assert [record["family"] for record in data["networks"]] == ["mine", "odd", "even", None]
    assert [record["facts"]["year"] for record in data["networks"]] == [2012, None, 2012, None]
    assert data["networks"][2]["facts"]["accuracy"] == pytest.approx(facts["accuracy"]["net2"], rel=1e-4)
    assert "4 networks, 3 families" in atlas_page(named, facts).lead


def test_three_hundred_networks_fit_ten_megabytes() -> None:
    """Of 100 sites and 20 gauges. What one takes does not depend on the others, so 300 of one will do."""
    rng = np.random.default_rng(0)
    gauges: dict[str, Any] = {f"gauge_{k}": rng.standard_normal((100, 3)) for k in range(19)}
    one = sounding("net", rng.random((100, 3)), **gauges)
    sites = tuple(
        msgspec.structs.replace(site, module=f"features.denseblock3.{site.module}") for site in one.sites
    )
    longer = {short.name: long.name for short, long in zip(one.sites, sites, strict=True)}
    facts = replace(
        one.provenance, versions={f"package{k}": "1.2.3" for k in range(8)}, device="cuda: " + 20 * "x"
    )
    facts.model.update({"weights": 40 * "x", "sha256": 64 * "0"})
    facts.settings.update({f"setting {k}": 20 * "x" for k in range(12)})
    one = replace(
        one, sites=sites, records=one.records.assign(site=one.records["site"].map(longer)), provenance=facts
    )
    named = {"network": one}
    data = atlas_data(named, facts_table(named, pd.DataFrame({"family": []})))
    (record,) = data["networks"]
    whole = {**data, "networks": [{**record, "name": f"network {i}"} for i in range(300)]}
    page = Page("Atlas", "", (Section("", (View("atlas", whole, atlas_charts()),)),))
    size = len(html(page).encode())
    assert 2 * 20 * 100 * 300 * 5 < size < 10e6, "five bytes for each value at least, or values are missing"
