"""Many soundings as the data of one page: numbers packed, families coloured, what is known beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare import facts_of, known_facts
from fathometer.report.blocks import blocks_of
from fathometer.report.page.colours import CATEGORIES
from fathometer.report.page.encoding import packed
from fathometer.report.page.sounding import site_columns
from fathometer.report.words import what_stands_out
from fathometer.results.sounding import Sounding

_TO_LMS = np.array([[0.39633778, 0.21580376], [-0.10556135, -0.06385417], [-0.08948418, -1.29148555]])
_TO_RGB = np.array(
    [
        [4.07674166, -3.30771159, 0.23096993],
        [-1.26843800, 2.60975740, -0.34131940],
        [-0.00419609, -0.70341861, 1.70761470],
    ]
)


def network_data(sounding: Sounding, name: str, *, words: bool = False) -> dict[str, Any]:
    """A sounding as the programs unpack it (`Network` in `overlay.js`): no single batches, little text.

    Args:
        sounding: the result.
        name: what to call it on the page.
        words: also what stands out in its first gauge.
    """
    gauges, order = sounding.gauges, [site.name for site in sounding.sites]
    values = sounding.records.groupby("site", sort=False)[gauges]
    means, spread = values.mean().reindex(order), values.std().reindex(order)
    return {
        "name": name,
        "gauges": gauges,
        "sites": site_columns(sounding),
        "blocks": [[block.label, block.start, block.stop, block.name] for block in blocks_of(sounding.sites)],
        "mean": {gauge: packed(means[gauge]) for gauge in gauges},
        "std": {gauge: packed(spread[gauge]) for gauge in gauges} if spread.notna().any(axis=None) else {},
        "summary": {gauge: packed(_summary(means[gauge])) for gauge in gauges},
        "words": {gauge: what_stands_out(sounding, gauge, groups=False) for gauge in gauges[:1] if words},
    }


def _summary(values: pd.Series[float]) -> list[float]:
    """Min, median, max and spread over the sites with a finite value."""
    known = values[np.isfinite(values.to_numpy(float))]
    return [known.min(), known.median(), known.max(), known.max() - known.min()]


def facts_beside(named: Mapping[str, Sounding], facts: pd.DataFrame | None = None) -> pd.DataFrame:
    """What is known of each network, a row for each: `family` (or None), and numbers of which any is known.

    Args:
        named: the soundings.
        facts: network × family, accuracy, year and other numbers; what the soundings or torchvision say, if
            left out.
    """
    found = (known_facts(named) if facts is None else facts_of(named, facts)).reindex(list(named))
    table = found.select_dtypes("number").dropna(axis="columns", how="all")
    own = found["family"] if "family" in found.columns else pd.Series(dtype=object)
    members = {str(name): str(family) for name, family in own.dropna().items()}
    table.insert(0, "family", pd.Series({name: members.get(name) for name in named}, dtype=object))
    return table.rename_axis("network")


def members_of(facts: pd.DataFrame) -> dict[str, str]:
    """Network → family, of those that have one."""
    return {str(name): str(family) for name, family in facts["family"].items() if family is not None}


def hues(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: those of the figures for up to six, else even steps around the circle.

    Neighbours on the circle differ in lightness too. Both light and dark paper carry all of them.

    Example:
        >>> hues(["ResNet", "VGG", "ResNet"])
        {'ResNet': '#0072b2', 'VGG': '#d55e00'}
    """
    known = list(dict.fromkeys(names))
    if len(known) <= len(CATEGORIES):
        return dict(zip(known, CATEGORIES, strict=False))
    return {name: _hue(place / len(known), place % 2 == 1) for place, name in enumerate(known)}


def _hue(turn: float, light: bool) -> str:
    """A colour by its place on the circle of OKLCH (Ottosson, 2020), where lightness is as the eye has it."""
    a, b = 0.13 * math.cos(2 * math.pi * turn), 0.13 * math.sin(2 * math.pi * turn)
    lms = ((0.69 if light else 0.58) + _TO_LMS @ [a, b]) ** 3
    linear = np.clip(_TO_RGB @ lms, 0, 1)
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * part):02x}" for part in shown)
