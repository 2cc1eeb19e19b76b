"""Which network belongs to which family: from a table, a mapping, or patterns of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

from fathometer.errors import InputError


def families_by_pattern(names: Iterable[str], patterns: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    """The family of which a pattern fits a name, the first that does; names that fit none are left out.

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
            raise InputError(f"family {family}: no network fits {pattern!r}; there are {', '.join(names)}")
        for name in fits:
            found.setdefault(name, family)
    return {name: found[name] for name in names if name in found}


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
