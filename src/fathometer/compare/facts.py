"""What is known of a network apart from its sounding: accuracy, depth, parameters, GFLOPS, family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare.gathering import Soundings, by_name, short_name
from fathometer.errors import InputError, MissingExtraError
from fathometer.models.sources import import_optional
from fathometer.sounding import Sounding

NUMBERS = ("accuracy", "depth", "parameters", "gflops", "year")


def read_facts(path: str | Path) -> pd.DataFrame:
    """A CSV with a column `network` and any of family, accuracy, depth, parameters, gflops, year.

    Every network has one row; what is empty is missing.
    """
    try:
        table = pd.read_csv(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # broken CSV, or not text
        raise InputError(f"{path}: not a CSV ({str(error).strip()})") from error
    if "network" not in table.columns:
        raise InputError(f"{path}: expected a column 'network', got {', '.join(map(str, table.columns))}")
    table["network"] = table["network"].astype(str).str.strip()
    doubled = table.loc[table["network"].duplicated(), "network"]
    if len(doubled):
        raise InputError(f"{path}: {doubled.iloc[0]!r} stands there twice")
    for column in table.columns.intersection(list(NUMBERS)):
        numbers = pd.to_numeric(table[column], errors="coerce")
        wrong = table.loc[numbers.isna() & table[column].notna(), column]
        if len(wrong):
            raise InputError(f"{path}: column {column!r}: expected numbers, got {wrong.iloc[0]!r}")
        table[column] = numbers
    return table.set_index("network")


def facts_of(soundings: Soundings, table: pd.DataFrame) -> pd.DataFrame:
    """The rows that belong to these soundings, under their names: by name, else by the network's own name.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        >>> sounding = measure(net, torch.randn(50, 4), samples=50, name="mine")
        >>> table = pd.DataFrame({"accuracy": [70.0]}, index=["mine"])
        >>> facts_of({"first": sounding}, table)["accuracy"].to_dict()
        {'first': 70.0}
    """
    keys = {}
    for name, sounding in by_name(soundings).items():
        key = next((key for key in (name, short_name(sounding)) if key in table.index), None)
        if key is not None:
            keys[name] = key
    found = table.loc[list(keys.values())]
    return found.set_axis(pd.Index(list(keys), name="network"))


def torchvision_facts(soundings: Soundings) -> pd.DataFrame:
    """From torchvision's metadata, for networks `torchvision:NAME`: family, accuracy, parameters, GFLOPS.

    Accuracy (top-1 on ImageNet, percent) is that of the weights which were measured, by their name or the
    name of their file; with other or random weights it is missing. Depth is not in the metadata. Networks
    that torchvision does not know have no row. Needs the extra `vision`; nothing is downloaded.
    """
    named = {name: s for name, s in by_name(soundings).items() if _is_torchvisions(s)}
    rows: dict[str, dict[str, Any]] = {}
    if named:  # else there is nothing to ask it
        models = import_optional("torchvision", "models", extra="vision", purpose="torchvision_facts").models
        known = set(models.list_models(module=models))
        rows = {
            name: _row(models, short_name(sounding), str(sounding.provenance.model.get("weights", "")))
            for name, sounding in named.items()
            if short_name(sounding) in known
        }
    columns = ["family", "accuracy", "parameters", "gflops"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("network")


def known_facts(soundings: Soundings) -> pd.DataFrame:
    """What the soundings say themselves (those of a survey do), else what torchvision says of its networks.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        >>> len(known_facts([measure(net, torch.randn(50, 4), samples=50)]))
        0
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, sounding in by_name(soundings).items():
        model = sounding.provenance.model
        recorded = model.get("facts")
        row = {k: recorded[k] for k in NUMBERS if k in recorded} if isinstance(recorded, dict) else {}
        family = model.get("family")
        if row or family:
            rows[name] = row | {"family": str(family) if family else None}
    own = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    for column in own.columns.intersection(list(NUMBERS)):
        own[column] = pd.to_numeric(own[column], errors="coerce")
    rest = {name: s for name, s in by_name(soundings).items() if name not in rows}
    try:
        theirs = torchvision_facts(rest) if rest else own.iloc[:0]
    except MissingExtraError:
        return own
    return pd.concat([part for part in (own, theirs) if len(part)]) if len(own) + len(theirs) else own


def _is_torchvisions(sounding: Sounding) -> bool:
    return str(sounding.provenance.model.get("name", "")).startswith("torchvision:")


def _row(models: Any, network: str, weights: str) -> dict[str, Any]:
    entries = models.get_model_weights(network)
    used = next((e for e in entries if weights and weights in (e.name, e.url.rpartition("/")[2])), None)
    meta = (used or entries.DEFAULT).meta
    accuracy = meta["_metrics"].get("ImageNet-1K", {}).get("acc@1") if used else None
    return {
        "family": models.get_model_builder(network).__module__.rpartition(".")[2],
        "accuracy": np.nan if accuracy is None else float(accuracy),
        "parameters": float(meta["num_params"]),
        "gflops": float(meta["_ops"]),
    }
