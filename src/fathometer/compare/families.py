"""Which network belongs to which family: from a table, a mapping, or patterns of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

from fathometer.errors import InputError


def families_by_pattern(names: Iterable[str], patterns: Mapping[str, str]) -> dict[str, str]:
    """The family whose pattern fits a name, the first that does; names that fit none are left out.

    Example:
        >>> families_by_pattern(["vgg16", "resnet18", "mine"], {"VGG": "vgg*", "ResNet": "resnet*"})
        {'vgg16': 'VGG', 'resnet18': 'ResNet'}
    """
    names = list(names)
    for family, pattern in patterns.items():
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(f"family {family}: no network fits {pattern!r}; there are {', '.join(names)}")
    fits = {name: [f for f, pattern in patterns.items() if fnmatchcase(name, pattern)] for name in names}
    return {name: found[0] for name, found in fits.items() if found}


def family_table(values: pd.DataFrame, families: Mapping[str, str], overall: str = "all") -> pd.DataFrame:
    """Mean ± population standard deviation over the members of each family (Table 1 from Table 2).

    Args:
        values: network × quantity; missing values are left out of both.
        families: network → family, in the order of the result.
        overall: the name of a last row over all networks of `values`, with or without a family.

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
        raise InputError(f"family {overall!r} is the name of the row over all networks; give it another one")
    groups = {**members, overall: list(values.index)}
    columns = {}
    for quantity in values.columns:
        parts = [values.loc[names, quantity].to_numpy(float) for names in groups.values()]
        parts = [part[np.isfinite(part)] for part in parts]
        columns[quantity, "mean"] = [part.mean() if len(part) else np.nan for part in parts]
        columns[quantity, "std"] = [part.std() if len(part) else np.nan for part in parts]
        columns[quantity, "count"] = [len(part) for part in parts]
    return pd.DataFrame(columns, index=pd.Index(list(groups), name="family"))


def in_words(table: pd.DataFrame, digits: int = 2) -> pd.DataFrame:
    """The table as the paper prints it: `0.53 ± 0.04`."""
    quantities = list(dict.fromkeys(table.columns.get_level_values(0)))
    words = {
        quantity: [
            "–" if np.isnan(mean) else f"{mean:.{digits}f} ± {std:.{digits}f}"
            for mean, std in zip(table[quantity, "mean"], table[quantity, "std"], strict=True)
        ]
        for quantity in quantities
    }
    return pd.DataFrame(words, index=table.index)
