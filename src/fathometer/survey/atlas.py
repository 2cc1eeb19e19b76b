"""Everything that was measured, in one table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from fathometer.errors import InputError
from fathometer.results.sounding import Sounding
from fathometer.survey.store import Store

Per: TypeAlias = Literal["sounding", "site"]

_FACTS = ("accuracy", "parameters", "gflops", "depth", "year")
_ORDER = ["family", "model", "weights", "data", "settings", "seed"]
_LABELS = [
    *("file", "model", "family", "weights", "data", "settings", "seed", "reduction", "samples"),
    *("batches", "sites", *_FACTS, "seconds", "device"),
]


def atlas(folder: str | Path, *, per: Per = "sounding") -> pd.DataFrame:
    """A table of all soundings in a results folder, or of any folder that holds soundings as `.json`.

    One row for each sounding: `file`, `model`, `family`, `weights`, `data`, `settings`, `seed`, `reduction`,
    `samples` of a batch, `batches`, `sites`, facts about the model (`accuracy`, `parameters`, `gflops`,
    `depth`, `year` and others of the plan), `seconds`, `device`, and every gauge as its mean over sites of
    the mean over batches; of the affinity score also `affinity_min`, `_median`, `_max` and `_spread`. With
    `per="site"`, one row for each sounding and site: `site`, `operator`, `order`, `width`, and every gauge as
    its mean over batches. A number that is not known is NaN.

    Rows are in order of family, model, weights, data, settings and seed.

    Args:
        folder: a path, or a URL that fsspec knows.
        per: `sounding` or `site`.

    Example:
        >>> import tempfile, torch, fathometer
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Tanh())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = fathometer.measure(net, torch.randn(50, 3), samples=50).save(f"{folder}/net.json")
        ...     table = atlas(folder)
        ...     sites = atlas(folder, per="site")
        >>> table[["model", "sites", "batches"]].to_numpy().tolist(), sites["site"].to_list()
        ([['Sequential', 2, 1]], ['1', '2'])
    """
    if per not in ("sounding", "site"):
        raise InputError(f"per: expected 'sounding' or 'site', got {per!r}")
    rows: list[dict[str, Any]] = []
    store = Store(folder)
    if not store.folder.has(""):
        raise InputError(f"{store.folder}: expected a folder of soundings, got none; is its name right?")
    for file, sounding in store.soundings():
        labels = {"file": file, **_labels(sounding)}
        if per == "sounding":
            rows.append({**labels, **_gauges(sounding)})
        else:
            rows += [{**labels, **row} for row in _sites(sounding)]
    if not rows:
        return pd.DataFrame(columns=_LABELS)
    return pd.DataFrame(rows).sort_values(_ORDER, key=_sortable, kind="stable", ignore_index=True)


def _sortable(column: pd.Series) -> pd.Series:
    """Seeds as numbers; whatever else a file calls one comes last."""
    if column.name != "seed":
        return column
    return column.map(lambda seed: seed if isinstance(seed, int | float) else math.nan)


def _labels(sounding: Sounding) -> dict[str, Any]:
    facts = sounding.provenance
    survey = facts.settings.get("survey") or {}  # these are tables: the store has looked
    reduction = facts.settings.get("reduction") or {}
    known = {"parameters": facts.model.get("parameters"), **(facts.model.get("facts") or {})}
    return {
        "model": str(facts.model.get("name", "")),
        "family": str(facts.model.get("family") or ""),
        "weights": str(facts.model.get("weights") or ""),
        "data": str(survey.get("data") or facts.data.get("name", "")),
        "settings": str(survey.get("settings") or ""),
        "seed": _known(facts.settings.get("seed")),
        "reduction": str(reduction.get("pooling") or ""),
        "samples": _known(facts.settings.get("samples")),
        "batches": int(sounding.records["batch"].nunique()),
        "sites": len(sounding.sites),
        **{name: _known(known.pop(name, None)) for name in _FACTS},
        **{name: _known(value) for name, value in known.items() if name not in _LABELS},
        "seconds": facts.seconds,
        "device": facts.device,
    }


def _known(value: Any) -> Any:
    return math.nan if value is None else value


def _gauges(sounding: Sounding) -> dict[str, float]:
    means = sounding.records.groupby("site", sort=False)[sounding.gauges].mean()
    found = {gauge: float(means[gauge].mean()) for gauge in sounding.gauges}
    if "affinity" in found:
        found |= {f"affinity_{name}": float(value) for name, value in sounding.summary().items()}
    return found


def _sites(sounding: Sounding) -> list[dict[str, Any]]:
    means = sounding.records.groupby("site", sort=False)[["d", *sounding.gauges]].mean()
    rows = {str(row["site"]): row for row in means.reset_index().to_dict("records")}
    return [
        {
            "site": site.name,
            "operator": site.operator,
            "order": place,
            "width": int(rows[site.name]["d"]),
            **{gauge: rows[site.name][gauge] for gauge in sounding.gauges},
        }
        for place, site in enumerate(sounding.sites)
    ]
