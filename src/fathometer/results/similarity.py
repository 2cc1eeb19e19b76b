"""The similarity of the sites of one network with those of another, in a file of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.results.files import assembled, check_format, save_json
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Number, similarity_frame, similarity_plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "fathometer.similarity_map"
VERSION = 1


@dataclass(frozen=True, eq=False)
class SimilarityMap:
    """How similar the outputs of every site of one network are to those of every site of another.

    Attributes:
        first: the sites of the first network, in order of depth.
        second: the sites of the second network.
        values: CKA, a row for each site of the first network, a column for each site of the second. NaN where
            a site does not vary, or saw other samples than most.
        provenance: both networks (`model["first"]`, `model["second"]`, with their accuracy where the data
            have labels), data, settings, versions, date.
    """

    first: tuple[Site, ...]
    second: tuple[Site, ...]
    values: pd.DataFrame
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def names(self) -> tuple[str, str]:
        """The names of both networks; where they are the same, with their weights, or which one it is."""
        first, second = (self.provenance.model.get(side) for side in ("first", "second"))
        return different_names(first, second)

    @property
    def outcome(self) -> str:
        """The accuracy of both networks as text, where the data have labels; otherwise empty."""
        known = [self.provenance.model.get(side, {}).get("accuracy") for side in ("first", "second")]
        parts = [f"{name} {a:.3f}" for name, a in zip(self.names, known, strict=True) if isinstance(a, float)]
        return f"accuracy: {', '.join(parts)}" if parts else ""

    @property
    def nearest(self) -> pd.DataFrame:
        """For each site of the first network, the most similar site of the second and its CKA."""
        known = self.values.dropna(axis=0, how="all")
        found = pd.DataFrame({"nearest": known.idxmax(axis=1), "cka": known.max(axis=1)})
        return found.reindex(self.values.index).rename_axis("site")

    def plot(self, *, columns: Literal[1, 2] = 2) -> Figure:
        """Plot the map, with a row for each site of the first network."""
        from fathometer.report import plot_map

        return plot_map(self, columns=columns)

    def save(self, path: str | Path) -> Path:
        """Save one `.json` file; it appears once it is complete. `fathometer.load` reads it."""
        plain = {
            "schema": SCHEMA,
            "version": VERSION,
            "first": msgspec.to_builtins(self.first),
            "second": msgspec.to_builtins(self.second),
            "values": similarity_plain(self.values),
            "provenance": self.provenance.as_dict(),
        }
        return save_json(path, json.dumps(plain, allow_nan=False) + "\n")

    def __repr__(self) -> str:
        one, other = self.names
        return f"SimilarityMap of {one} ({len(self.first)} sites) and {other} ({len(self.second)} sites)"


class _File(msgspec.Struct):
    """What a file holds beside its schema and version."""

    first: tuple[Site, ...]
    second: tuple[Site, ...]
    values: list[list[Number]]
    provenance: Provenance


def from_plain(content: Any, name: str = "similarity map") -> SimilarityMap:
    """Make a similarity map from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a similarity map; `fathometer compare map` writes them")
    return assembled(name, lambda: _assembled(msgspec.convert(content, _File)))


def _assembled(file: _File) -> SimilarityMap:
    sides = [[site.name for site in sites] for sites in (file.first, file.second)]
    if not all(sides) or any(len(set(side)) != len(side) for side in sides):
        raise ValueError("no sites, or names that are not unique")
    return SimilarityMap(file.first, file.second, similarity_frame(file.values, *sides), file.provenance)


def different_names(first: Any, second: Any) -> tuple[str, str]:
    """Return the names of two networks, with their weights if only these differ; a file may have anything.

    Example:
        >>> different_names({"name": "net", "weights": "a.pt"}, {"name": "net", "weights": "none"})
        ('net (a.pt)', 'net (none)')
    """
    known = [model if isinstance(model, dict) else {} for model in (first, second)]
    one, other = (str(model.get("name", "?")) for model in known)
    if one != other:
        return one, other
    weights = [str(model.get("weights") or "") for model in known]
    beside = weights if all(weights) and weights[0] != weights[1] else ["first", "second"]
    return f"{one} ({beside[0]})", f"{other} ({beside[1]})"
