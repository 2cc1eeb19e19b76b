"""What is known of a network apart from its sounding: accuracy, depth, parameters, GFLOPS, family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from fathometer.compare.gathering import Soundings, by_name, short_name
from fathometer.errors import InputError
from fathometer.models.torchvision_facts import torchvision_facts as published_facts
from fathometer.models.torchvision_facts import torchvision_family

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
    that torchvision does not know have no row, nor has any without the extra `vision`. Nothing is downloaded.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, sounding in by_name(soundings).items():
        model = str(sounding.provenance.model.get("name", ""))
        family = torchvision_family(model)
        if family is not None:
            weights = str(sounding.provenance.model.get("weights", ""))
            rows[name] = {"family": family, **published_facts(model, weights)}
    columns = ["family", "accuracy", "parameters", "gflops"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("network")
    return table.astype(dict.fromkeys(columns[1:], float))


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
    theirs = torchvision_facts(rest) if rest else own.iloc[:0]
    return pd.concat([part for part in (own, theirs) if len(part)]) if len(own) + len(theirs) else own
