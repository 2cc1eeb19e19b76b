"""Facts about networks apart from their soundings: family, accuracy, depth, parameters, GFLOPS, year."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare.soundings import Soundings, by_name, short_name
from fathometer.errors import InputError

NUMBERS = ("accuracy", "depth", "parameters", "gflops", "year")
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan")


def read_facts(path: str | Path) -> pd.DataFrame:
    """Read a CSV with a column `network` and any of family, accuracy, depth, parameters, gflops, year.

    Every network has one row; empty cells are missing values.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # broken CSV, or not text
        raise InputError(f"{path}: not a CSV ({str(error).strip()})") from error
    if "network" not in table.columns:
        raise InputError(f"{path}: expected a column 'network', got {', '.join(map(str, table.columns))}")
    networks = table.pop("network").str.strip()
    if (networks == "").any():
        raise InputError(f"{path}: expected a name in the column 'network' of every row, got an empty one")
    if networks.duplicated().any():
        twice = networks[networks.duplicated()].iloc[0]
        raise InputError(f"{path}: {twice!r} appears twice; keep one of its rows")
    table = table.mask(table.isin(_MISSING)).set_index(networks)
    for column in table.columns.intersection(list(NUMBERS)):
        numbers = pd.to_numeric(table[column], errors="coerce")
        wrong = table.loc[numbers.isna() & table[column].notna(), column]
        if len(wrong):
            raise InputError(f"{path}: column {column!r}: expected numbers, got {wrong.iloc[0]!r}")
        table[column] = numbers
    return table


def facts_of(soundings: Soundings, table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of these soundings, under their names: by name, else by the network's own name.

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
    """Return the rows that belong to none of these soundings, perhaps because a name was mistyped."""
    used = set(_rows(soundings, table).values())
    return [str(network) for network in table.index if network not in used]


def known_facts(soundings: Soundings) -> pd.DataFrame:
    """Return facts recorded in the soundings (by a survey); missing cells come from torchvision's metadata.

    The metadata have family, parameters and GFLOPS of `torchvision:` networks, and the accuracy (top-1 on
    ImageNet, percent) of the measured weights, found by their name or the name of their file, but no depth.
    The year in which the architecture was published is from a table in this package. Networks of which
    nothing is known have no row. Nothing is downloaded.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        >>> len(known_facts([measure(net, torch.randn(50, 4), samples=50)]))
        0
    """
    # Imported here: no other function of a comparison, and no command that shows a result, needs models.
    from fathometer.models.from_torchvision import torchvision_facts, torchvision_family

    rows: dict[str, dict[str, Any]] = {}
    for name, sounding in by_name(soundings).items():
        model = sounding.provenance.model
        full_name, weights = str(model.get("name", "")), str(model.get("weights", ""))
        row: dict[str, Any] = {}
        if family := torchvision_family(full_name):
            row = {"family": family, **torchvision_facts(full_name, weights)}
        if model.get("family"):
            row["family"] = str(model["family"])
        recorded = model["facts"] if isinstance(model.get("facts"), dict) else {}
        for key in NUMBERS:
            number = float(pd.to_numeric(str(recorded.get(key)), errors="coerce"))
            row |= {} if np.isnan(number) else {key: number}
        if row:
            rows[name] = row
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    table = table.reindex(columns=[column for column in ("family", *NUMBERS) if column in table])
    return table.astype(dict.fromkeys(table.columns.drop("family", errors="ignore"), float))


def families_by_pattern(names: Iterable[str], patterns: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    """Assign each name the family of the first pattern that matches it; names without a match are left out.

    Example:
        >>> families_by_pattern(["vgg16", "resnet18", "mine"], {"VGG": "vgg*", "ResNet": ["resnet*"]})
        {'vgg16': 'VGG', 'resnet18': 'ResNet'}
    """
    names = list(names)
    several = {family: [given] if isinstance(given, str) else given for family, given in patterns.items()}
    found: dict[str, str] = {}
    for family, pattern in ((family, pattern) for family, given in several.items() for pattern in given):
        fits = [name for name in names if fnmatchcase(name, pattern)]
        if not fits:
            raise InputError(f"family {family}: no network matches {pattern!r}; there are {', '.join(names)}")
        for name in fits:
            found.setdefault(name, family)
    return {name: found[name] for name in names if name in found}


def family_table(values: pd.DataFrame, families: Mapping[str, str], overall: str = "all") -> pd.DataFrame:
    """Compute mean and population standard deviation over the members of each family (Table 1 from Table 2).

    Args:
        values: network × quantity; missing values are ignored.
        families: network → family, in the order of the result.
        overall: name of the last row, over all networks of `values`, with or without a family.

    Example:
        >>> table = pd.DataFrame({"cka": [0.0, 0.2, 1.0]}, index=["vgg11", "vgg13", "mine"])
        >>> family_table(table, {"vgg11": "VGG", "vgg13": "VGG"})["cka"].round(2).to_dict("index")
        {'VGG': {'mean': 0.1, 'std': 0.1, 'count': 2}, 'all': {'mean': 0.4, 'std': 0.43, 'count': 3}}
    """
    members: dict[str, list[str]] = {}
    for name, family in families.items():
        if name in values.index:
            members.setdefault(family, []).append(name)
    if overall in members:
        raise InputError(f"family {overall!r} is the name of the row over all networks; choose another name")
    groups = {**members, overall: list(values.index)}
    columns = {}
    for quantity in values.columns:
        parts = [values.loc[names, quantity].to_numpy(float) for names in groups.values()]
        parts = [part[np.isfinite(part)] for part in parts]
        columns[quantity, "mean"] = [part.mean() if len(part) else np.nan for part in parts]
        columns[quantity, "std"] = [part.std() if len(part) else np.nan for part in parts]
        columns[quantity, "count"] = [len(part) for part in parts]
    return pd.DataFrame(columns, index=pd.Index(list(groups), name="family"))


def _rows(soundings: Soundings, table: pd.DataFrame) -> dict[str, str]:
    """Map each sounding that has a row to its key."""
    keys = {}
    for name, sounding in by_name(soundings).items():
        key = next((key for key in (name, short_name(sounding)) if key in table.index), None)
        if key is not None:
            keys[name] = key
    return keys
