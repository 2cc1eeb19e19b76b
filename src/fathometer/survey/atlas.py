"""All soundings of a folder in one table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from fathometer.errors import InputError, check_choice
from fathometer.results.loading import open_results
from fathometer.results.sounding import SUFFIXES, Sounding
from fathometer.results.store import Store

Per: TypeAlias = Literal["sounding", "site"]

_FACTS = ("accuracy", "parameters", "gflops", "depth", "year")
_ORDER = ["family", "model", "weights", "data", "settings", "seed"]
_LABELS = [
    *("file", "model", "family", "weights", "data", "settings", "seed", "reduction", "samples"),
    *("batches", "sites", *_FACTS, "measured_accuracy", "seconds", "device"),
]


def atlas(folder: str | Path, *, per: Per = "sounding", strict: bool = False) -> pd.DataFrame:
    """Return a table of all soundings in a results folder, or in any folder of soundings.

    One row for each sounding: `file`, `model`, `family`, `weights`, `data`, `settings`, `seed`, `reduction`,
    `samples` of a batch, `batches`, `sites`, facts about the model (`accuracy` as published or as
    the plan says, `parameters`, `gflops`, `depth`, `year` and others of the plan), `measured_accuracy` (the
    share of the measured samples with the right answer, where they have labels), `seconds`, `device`, and
    every gauge as its mean over sites of the mean over batches; of the affinity score also `affinity_min`,
    `_median`, `_max` and `_spread`. With `per="site"`, one row for each sounding and site: `site`,
    `operator`, `order`, `width`, and every gauge as its mean over batches. An unknown number is NaN. Data and
    settings have the names that the plan gave them.

    Rows are in order of family, model, weights, data, settings and seed.

    Args:
        folder: a path, or a URL that fsspec opens.
        per: `sounding` or `site`.
        strict: raise an error for a file that is not a sounding, instead of skipping it with a warning.

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
    check_choice("per", per, ("sounding", "site"))
    store = Store(folder)
    if not store.is_folder():
        raise InputError(f"{folder}: expected a folder of soundings, got none; is its name right?")
    rows: list[dict[str, Any]] = []
    found = open_results(folder, strict=strict).soundings if store.names(endings=SUFFIXES) else {}
    for path, sounding in found.items():
        labels = {"file": path.rpartition("/")[2], **_labels(sounding)}
        if per == "sounding":
            rows.append({**labels, **_gauges(sounding)})
        else:
            rows += [{**labels, **row} for row in _sites(sounding)]
    if not rows:
        return pd.DataFrame(columns=_LABELS)
    return pd.DataFrame(rows).sort_values(_ORDER, key=_sortable, kind="stable", ignore_index=True)


def _sortable(column: pd.Series) -> pd.Series:
    """Order seeds as numbers; anything else that a file calls a seed comes last."""
    if column.name != "seed":
        return column
    return column.map(lambda seed: seed if isinstance(seed, int | float) else math.nan)


def _labels(sounding: Sounding) -> dict[str, Any]:
    facts = sounding.provenance
    survey, reduction = _table(facts.settings, "survey"), _table(facts.settings, "reduction")
    known = {"parameters": facts.model.get("parameters"), **_table(facts.model, "facts")}
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
        "measured_accuracy": _known(sounding.accuracy),
        "seconds": facts.seconds,
        "device": facts.device,
    }


def _table(entries: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table of the provenance; a file may have anything there."""
    found = entries.get(name)
    return dict(found) if isinstance(found, dict) else {}


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
            "order": index,
            "width": int(rows[site.name]["d"]),
            **{gauge: rows[site.name][gauge] for gauge in sounding.gauges},
        }
        for index, site in enumerate(sounding.sites)
    ]
