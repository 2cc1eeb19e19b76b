"""An atlas: all soundings of a survey on one page, to search, to look into, to hold against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from fathometer.compare import by_name
from fathometer.compare.soundings import Soundings
from fathometer.report.page.atlas_charts import atlas_charts
from fathometer.report.page.encoding import short
from fathometer.report.page.items import Page, Section, View
from fathometer.report.page.networks import facts_beside, hues, members_of, network_data
from fathometer.report.page.sounding import provenance_facts
from fathometer.results.sounding import Sounding


def atlas_page(soundings: Soundings, facts: pd.DataFrame | None = None, *, title: str | None = None) -> Page:
    """The report of many soundings; they need not be alike in data, settings or gauges.

    Args:
        soundings: by name, or a list.
        facts: network × family, accuracy, parameters, year and other numbers, as far as known; what the
            soundings themselves or torchvision say, if left out.
        title: of the page.
    """
    named = by_name(soundings)
    known = facts_beside(named, facts)
    data = sorted({_data(sounding) for sounding in named.values()})
    count = len(set(members_of(known).values()))
    lead = ", ".join(
        [
            _counted(named),
            *([f"{count} {'family' if count == 1 else 'families'}"] if count else []),
            f"on {data[0]}" if len(data) == 1 else f"on {len(data)} data sets",
        ]
    )
    view = View("atlas", atlas_data(named, known), atlas_charts())
    return Page(title or "Atlas", lead, (Section("", (view,)),))


def atlas_data(named: Mapping[str, Sounding], facts: pd.DataFrame) -> dict[str, Any]:
    """What the view shows: the networks with their values packed, the colours of families, the known facts.

    Args:
        named: the soundings.
        facts: a row for each, as `facts_beside` gives them.
    """
    members = members_of(facts)
    numbers = facts.drop(columns="family")
    networks = [
        {
            **network_data(sounding, name, words=True),
            "family": members.get(name),
            "data": _data(sounding),
            "origin": dict(provenance_facts(sounding.provenance).pairs),
            "facts": {str(key): short(float(value)) for key, value in numbers.loc[name].items()},
        }
        for name, sounding in named.items()
    ]
    return {
        "networks": networks,
        "families": hues(sorted(set(members.values()))),
        "facts": [str(column) for column in numbers.columns],
    }


def _counted(named: Mapping[str, Sounding]) -> str:
    """How many networks, and how many soundings where some networks have several."""
    models = [sounding.provenance.model for sounding in named.values()]
    found = {
        (str(model.get("name")), str(model.get("weights")), str(model.get("sha256"))) for model in models
    }
    networks = "1 network" if len(found) == 1 else f"{len(found)} networks"
    return networks if len(found) == len(named) else f"{len(named)} soundings of {networks}"


def _data(sounding: Sounding) -> str:
    """What the plan of a survey calls the data, or else what they are called themselves."""
    plan = sounding.provenance.settings.get("survey")
    name = plan.get("data") if isinstance(plan, Mapping) else None
    return str(name or sounding.provenance.data.get("name", "?"))
