"""The result of `linearize`: what was lost after each step, and a table of the sites."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.results.files import as_json_number, assembled, check_format, save_json
from fathometer.results.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "fathometer.linearized"
VERSION = 1
KL = "KL divergence (nats)"
SQUARED_ERROR = "squared error / variance"

_CURVE = ("replaced", "site", "divergence", "elements", "flops", "seconds")
_TABLE = ("site", "operator", "width", "elements", "r2", "cost", "step")


@dataclass(frozen=True, eq=False)
class Linearized:
    """What replacing activations costs a network.

    Attributes:
        sites: the calls that could be replaced, in order of depth.
        curve: a row for the original network and one after each step: `replaced` (how many sites), `site`
            (the last one), `divergence` of the outputs from the original ones, `accuracy` and `loss` or
            `perplexity` where the data allow it, `agreement` of the predictions with the original ones,
            `elements` (activation elements left), `flops` (both for each input), `seconds` for each batch.
        table: a row for each site: `operator`, `width`, `elements`, `r2` (the share of the variance that its
            line explains), `cost` (by the criterion, at the beginning), `step` (0 if it stayed).
        divergence_name: how divergence is measured.
        provenance: network, data, settings, versions, date.
    """

    sites: tuple[Site, ...]
    curve: pd.DataFrame
    table: pd.DataFrame
    divergence_name: str
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The names of the sites that were replaced, in the order in which that happened."""
        chosen = self.table[self.table["step"] > 0]
        return tuple(str(name) for name in chosen.sort_values("step", kind="stable").index)

    @property
    def outcome(self) -> str:
        """What was lost, in words."""
        first, last = self.curve.iloc[0], self.curve.iloc[-1]
        parts = [f"{len(self.replaced)} of {len(self.sites)} sites replaced"]
        for name in ("accuracy", "perplexity", "agreement"):
            if name in self.curve and pd.notna(first[name]):
                parts.append(f"{name} {first[name]:.4g} → {last[name]:.4g}")
                break
        parts.append(f"{self.divergence_name} {last['divergence']:.3g}")
        inputs = self.provenance.settings.get("test_inputs")
        return ", ".join(parts) + (", on the calibration data" if inputs is None else f", on {inputs} inputs")

    def plot(self, *, columns: Literal[1, 2] = 2) -> Figure:
        """Plot the curve, and the cost of each site."""
        from fathometer.report import plot_linearized

        return plot_linearized(self, columns=columns)

    def save(self, path: str | Path) -> Path:
        """Save one `.json` file; it appears once it is complete. `fathometer.load` reads it."""
        plain = {
            "schema": SCHEMA,
            "version": VERSION,
            "sites": msgspec.to_builtins(self.sites),
            "curve": _records(self.curve),
            "table": _records(self.table.reset_index()),
            "divergence": self.divergence_name,
            "provenance": self.provenance.as_dict(),
        }
        return save_json(path, json.dumps(plain, allow_nan=False) + "\n")

    def __repr__(self) -> str:
        return f"Linearized {self.provenance.model.get('name', '?')}: {self.outcome}"


class _File(msgspec.Struct):
    """What a file holds besides its schema and version."""

    sites: tuple[Site, ...]
    curve: list[dict[str, str | float | int | None]]
    table: list[dict[str, str | float | int | None]]
    divergence: str
    provenance: Provenance


def from_plain(content: Any, name: str = "linearized network") -> Linearized:
    """Make a result from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a linearized network; `fathometer linearize` writes them")
    return assembled(name, lambda: _assembled(msgspec.convert(content, _File)))


def _assembled(file: _File) -> Linearized:
    curve, table = _frame(file.curve, _CURVE), _frame(file.table, _TABLE)
    if [site.name for site in file.sites] != list(table["site"]):
        raise ValueError("the table is not that of the sites")
    return Linearized(file.sites, curve, table.set_index("site"), file.divergence, file.provenance)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(n): as_json_number(v) for n, v in row.items()} for row in frame.to_dict("records")]


def _frame(rows: list[dict[str, Any]], needed: tuple[str, ...]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    if missing := [name for name in needed if name not in frame]:
        raise ValueError(f"no column {missing[0]}")
    texts = {"site", "operator"}
    for name in frame.columns:
        values = frame[name].tolist()
        if name not in texts:
            values = [float(value) if isinstance(value, str) else value for value in values]  # "nan"
        frame[name] = values
    return frame
