"""What is known of a network apart from its sounding: accuracy, depth, parameters, GFLOPS, year, family."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd

from fathometer.compare.aspects import short_name
from fathometer.compare.gathering import Soundings, by_name
from fathometer.errors import InputError
from fathometer.models.torchvision_facts import torchvision_facts as published_facts
from fathometer.models.torchvision_facts import torchvision_family, torchvision_year

NUMBERS = ("accuracy", "depth", "parameters", "gflops", "year")
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan")


def read_facts(path: str | Path) -> pd.DataFrame:
    """A CSV with a column `network` and any of family, accuracy, depth, parameters, gflops, year.

    Every network has one row; what is empty is missing.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # broken CSV, or not text
        raise InputError(f"{path}: not a CSV ({str(error).strip()})") from error
    if "network" not in table.columns:
        raise InputError(f"{path}: expected a column 'network', got {', '.join(map(str, table.columns))}")
    table["network"] = table["network"].str.strip()
    if (table["network"] == "").any():
        line = _line(path, int((table["network"] == "").to_numpy().argmax()))
        raise InputError(f"{path}, line {line}: expected a name in the column 'network', got nothing")
    doubled = table.loc[table["network"].duplicated(), "network"]
    if len(doubled):
        raise InputError(f"{path}: {doubled.iloc[0]!r} stands there twice; keep one of its rows")
    others = table.columns.drop("network")
    table[others] = table[others].mask(table[others].isin(_MISSING))
    for column in others.intersection(list(NUMBERS)):
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
    keys = _rows(soundings, table)
    found = table.loc[list(keys.values())]
    return found.set_axis(pd.Index(list(keys), name="network"))


def unknown_networks(soundings: Soundings, table: pd.DataFrame) -> list[str]:
    """The rows that belong to none of these soundings: perhaps a name that was mistyped."""
    used = set(_rows(soundings, table).values())
    return [str(network) for network in table.index if network not in used]


def torchvision_facts(soundings: Soundings) -> pd.DataFrame:
    """For networks `torchvision:NAME`, from its metadata: family, accuracy, parameters, GFLOPS, year.

    Accuracy (top-1 on ImageNet, percent) is that of the weights which were measured, by their name or the
    name of their file; with other or random weights it is missing. Depth is not in the metadata. The year is
    that in which the architecture was published, from a table of our own. Networks that torchvision does not
    know have no row, nor has any without the extra `vision`. Nothing is downloaded.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, sounding in by_name(soundings).items():
        model = str(sounding.provenance.model.get("name", ""))
        family = torchvision_family(model)
        if family is not None:
            weights = str(sounding.provenance.model.get("weights", ""))
            rows[name] = {"family": family, "year": torchvision_year(model)}
            rows[name] |= published_facts(model, weights)
    columns = ["family", "accuracy", "parameters", "gflops", "year"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("network")
    return table.astype(dict.fromkeys(columns[1:], float))


def known_facts(soundings: Soundings) -> pd.DataFrame:
    """What the soundings say themselves (those of a survey do), else what torchvision says of its networks.

    Cell by cell: what a sounding leaves open is taken from torchvision.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        >>> len(known_facts([measure(net, torch.randn(50, 4), samples=50)]))
        0
    """
    named = by_name(soundings)
    published = torchvision_facts(named).to_dict("index")
    rows: dict[str, dict[str, Any]] = {}
    for name, sounding in named.items():
        model = sounding.provenance.model
        recorded = model.get("facts")
        own: dict[str, Any] = {"family": str(model["family"])} if model.get("family") else {}
        if isinstance(recorded, dict):
            own |= {key: _number(recorded[key]) for key in NUMBERS if key in recorded}
        row: dict[str, Any] = {str(key): value for key, value in published.get(name, {}).items()}
        row |= {key: value for key, value in own.items() if value is not None}
        if row:
            rows[name] = row
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    return table.reindex(columns=[column for column in ("family", *NUMBERS) if column in table])


def _rows(soundings: Soundings, table: pd.DataFrame) -> dict[str, str]:
    """The row of each sounding that has one."""
    keys = {}
    for name, sounding in by_name(soundings).items():
        key = next((key for key in (name, short_name(sounding)) if key in table.index), None)
        if key is not None:
            keys[name] = key
    return keys


def _number(value: object) -> float | None:
    number = float(pd.to_numeric(str(value), errors="coerce"))
    return None if pd.isna(number) else number


def _line(path: str | Path, row: int) -> int:
    """The line of a file on which a row of its table ends; empty lines are no rows."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        lines = [reader.line_num for cells in reader if cells]
    return lines[row + 1]
