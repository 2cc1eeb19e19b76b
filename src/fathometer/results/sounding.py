"""The result of measuring one network on one data set: site × batch × gauge, with its provenance.

A sounding is one file, JSON or Parquet, with a versioned schema. Nothing in it is ever executed.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError, did_you_mean, first_line, import_extra, join_names
from fathometer.gauges.registry import GAUGES, out_of_range
from fathometer.results.checkup import Checkup
from fathometer.results.files import (
    as_json_number,
    assembled,
    check_format,
    complete_file,
    parse_json,
    strict_json,
)
from fathometer.results.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("site", "kind", "layer", "batch", "n", "d")
"""Columns of `Sounding.records` that are not gauges."""

_SAVED_KEYS = ("site", "batch", "n", "d")  # kind and layer are saved with the sites

SCHEMA = "fathometer.sounding"
VERSION = 1
SUFFIXES = (".json", ".parquet")

_PLURALS = {"site": "sites", "batch": "batches", "gauge": "gauges"}


@dataclass(frozen=True, eq=False)
class Sounding:
    """The values of all gauges at every site of a network, and how they came about.

    Attributes:
        sites: the sites in order of depth.
        records: a row for each site and batch: `site` (its name), its `kind` and `layer`, `batch`, `n`
            samples, `d` features, and a column for each value of each gauge.
        provenance: model, data, settings, versions, device, date.
        map: the similarity (CKA) of the outputs of every site with those of every other, site × site, if it
            was asked for. NaN where a site does not vary, or saw other samples than most.
    """

    sites: tuple[Site, ...]
    records: pd.DataFrame
    provenance: Provenance = field(default_factory=Provenance)
    map: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        """Add the kind and the layer of each site to the records, unless they come from another sounding."""
        if {"kind", "layer"} <= set(self.records.columns):
            return
        facts = {site.name: (site.kind, site.layer) for site in self.sites}
        found = [facts.get(name, (None, None)) for name in self.records["site"]]
        records = self.records.copy()
        records.insert(1, "kind", [kind for kind, _ in found])
        layers = pd.Series([layer for _, layer in found], records.index, dtype="Int64")
        records.insert(2, "layer", layers)
        object.__setattr__(self, "records", records)

    @property
    def gauges(self) -> list[str]:
        """The names of what was measured."""
        return [str(column) for column in self.records.columns if column not in KEYS]

    @property
    def accuracy(self) -> float | None:
        """The share of samples with the right label as the largest output; None if it is not known.

        It is known where the data have labels that number the network's outputs.
        """
        return self._outcome("accuracy")

    @property
    def loss(self) -> float | None:
        """The mean cross-entropy of outputs and labels, in nats; None if it is not known."""
        return self._outcome("loss")

    @property
    def perplexity(self) -> float | None:
        """Of a causal language model, exp(mean of −log p) of the tokens in the measured text; else None."""
        return self._outcome("perplexity")

    @property
    def outcome(self) -> str:
        """Accuracy and loss as text, or why there are none; empty if the data have no labels.

        Of a language model: its perplexity, or the share of hidden tokens that it finds.
        """
        known = self.provenance.data.get("outcome")
        if isinstance(known, dict) and "no_accuracy" in known:
            return f"no accuracy: {known['no_accuracy']}"
        if isinstance(known, dict) and self.perplexity is not None:
            return f"perplexity {self.perplexity:.4g} on {known.get('tokens', '?')} tokens"
        hidden = self._outcome("masked_accuracy")
        if isinstance(known, dict) and hidden is not None:
            return f"masked accuracy {hidden:.3f} on {known.get('hidden_tokens', '?')} hidden tokens"
        names = {"accuracy": "accuracy", "top5": "top-5", "loss": "loss"}
        numbers = {text: self._outcome(name) for name, text in names.items()}
        parts = ", ".join(f"{text} {number:.3f}" for text, number in numbers.items() if number is not None)
        count = self.provenance.data.get("samples_measured", "?")
        return parts and f"{parts} on {count} labelled samples"

    @property
    def signature(self) -> pd.Series[float]:
        """The non-linearity signature: the affinity score of every site, as a mean over batches."""
        return self.mean("affinity")

    @property
    def table(self) -> pd.DataFrame:
        """Site × gauge: mean and standard deviation over batches, and number of batches."""
        grouped = self.records.groupby("site", sort=False)[self.gauges]
        return grouped.agg(["mean", "std", "count"]).reindex([site.name for site in self.sites])

    @property
    def batches(self) -> pd.DataFrame:
        """One row for each site and batch, with both as index."""
        return self.records.set_index(["site", "batch"])

    def mean(self, gauge: str) -> pd.Series[float]:
        """Return a gauge at every site, as a mean over batches."""
        return self._by_site(gauge).mean().reindex([site.name for site in self.sites])

    def std(self, gauge: str) -> pd.Series[float]:
        """Return the standard deviation of a gauge over batches; NaN where there is only one batch."""
        return self._by_site(gauge).std().reindex([site.name for site in self.sites])

    @property
    def undersampled(self) -> tuple[str, ...]:
        """The sites with fewer samples than were asked for, in some batch, where other sites have them.

        Examples are a pooler, which sees one token of each text, and experts that get few tokens. With few
        samples, R² and scores tend to 1.
        """
        n = self.records.pivot(index="site", columns="batch", values="n").fillna(0)
        asked = self.provenance.settings.get("samples")
        expected = n.max().clip(upper=asked if isinstance(asked, int) else None)
        few = (n < expected).any(axis=1)
        return () if few.all() else tuple(site.name for site in self.sites if few[site.name])

    @property
    def few_samples(self) -> str:
        """At how many sites there are few samples for the width, with what to do; empty if at none.

        That is below n = d, or n = 2d where R² is read: docs/soundings.md has what was measured there.
        """
        sites = self.records.groupby("site", sort=False)
        width, samples = sites["d"].first(), sites["n"].min()
        is_fitted = sites["r2_heldout"].count() > 0 if "r2_heldout" in self.gauges else False
        few = int(((samples < 32) | (samples < width * (1 + is_fitted))).sum())
        sentence = f"{few} of these sites have few samples for their width, which biases scores and R²"
        return f"{sentence}; use more samples" if few else ""

    def with_enough_samples(self) -> Sounding:
        """Return the sounding without its `undersampled` sites, which a warning names, if there are any."""
        if not (few := self.undersampled):
            return self
        name = self.provenance.model.get("name", "network")
        warnings.warn(f"{name}: left out, with fewer samples: {join_names(few, 5)}", stacklevel=3)
        return self.at(site for site in self.sites if site.name not in few)

    def at(self, sites: Iterable[Site]) -> Sounding:
        """Return the sounding of some of its sites."""
        kept = tuple(sites)
        names = [site.name for site in kept]
        similarity = None if self.map is None else self.map.loc[names, names]
        records = self.records[self.records["site"].isin(names)].reset_index(drop=True)
        return Sounding(kept, records, self.provenance, similarity)

    def summary(self, gauge: str = "affinity") -> pd.Series[float]:
        """Return min, median, max and spread (max − min) of a gauge over the sites (Figure 3).

        Sites that are `undersampled` do not count.
        """
        values = self.mean(gauge).drop(list(self.undersampled))
        return pd.Series(
            {
                "min": values.min(),
                "median": values.median(),
                "max": values.max(),
                "spread": values.max() - values.min(),
            },
            name=gauge,
        )

    def plot(
        self,
        gauge: str | None = None,
        *,
        kind: str | None = None,
        columns: Literal[1, 2] = 2,
        strip: bool = False,
        distribution: bool = False,
    ) -> Figure:
        """Plot a gauge along depth, with error bars over batches; `figure.savefig("signature.pdf")` saves it.

        Args:
            gauge: the gauge to plot; affinity if left out, by layer also R² of the parts.
            kind: `signature`, `strip`, `distribution`; for parts of a transformer `layers`, or `gauges`, a
                heat map of layers × gauges. If left out, `layers` where there are parts, else `signature`.
            columns: width of the figure in columns of a page, 1 or 2.
            strip: whether to draw the network below a signature as a strip, coloured by value.
            distribution: whether to draw a histogram beside a signature.
        """
        from fathometer.report.figures.kinds import PlotOptions, draw_sounding

        options = PlotOptions(gauge or "affinity", gauge, columns, strip=strip, distribution=distribution)
        return draw_sounding(self, kind, options)

    def plot_map(self, *, columns: Literal[1, 2] = 2) -> Figure:
        """Plot the similarity of every site with every other, which `measure(..., map="cka")` computes."""
        from fathometer.report import plot_map

        return plot_map(self, columns=columns)

    def check(self) -> Checkup:
        """Say what is wrong with the network, as far as its values at the sites tell.

        `fathometer.check(model, data)` also looks at the network itself.
        """
        from fathometer.checking.rules import check_sounding

        return check_sounding(self)

    def save(self, path: str | Path) -> Path:
        """Save one file, `.json` or `.parquet`; it appears once it is complete."""
        path = Path(path)
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path.name}: expected a name that ends in {' or '.join(SUFFIXES)}")
        with complete_file(path) as part:
            if path.suffix.lower() == ".json":
                part.write_text(to_json(self), "utf-8")
            else:
                _write_parquet(self, part)
        return path

    def _outcome(self, name: str) -> float | None:
        known = self.provenance.data.get("outcome")
        value = known.get(name) if isinstance(known, dict) else None
        return float(value) if isinstance(value, int | float) else None

    def _by_site(self, gauge: str) -> Any:
        return self.records.groupby("site", sort=False)[column_of(gauge, self.gauges)]

    def __repr__(self) -> str:
        model, data = self.provenance.model.get("name", "?"), self.provenance.data.get("name", "?")
        count = self.records["batch"].nunique()
        sizes = {"site": len(self.sites), "batch": count, "gauge": len(self.gauges)}
        counts = ", ".join(f"{n} {what if n == 1 else _PLURALS[what]}" for what, n in sizes.items())
        parts = [f"Sounding of {model} on {data}: {counts}"]
        if "affinity" in self.gauges:
            low, middle, high = self.summary()[["min", "median", "max"]]
            parts.append(f"affinity {low:.3f} … {middle:.3f} … {high:.3f}")
        if self.outcome and not self.outcome.startswith("no accuracy"):
            parts.append(self.outcome)
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with a bar for the first gauge."""
        means = pd.DataFrame({gauge: self.mean(gauge) for gauge in self.gauges})
        first = means.iloc[:, 0]
        widest = max(1.0, float(first.max()))
        rows = []
        for site in self.sites:
            share = float(first[site.name]) / widest
            width = 0 if math.isnan(share) else round(120 * min(max(share, 0.0), 1.0))
            bar = f'<div style="background:#1f77a4;height:10px;width:{width}px"></div>'
            cells = "".join(f"<td>{value:.3f}</td>" for value in means.loc[site.name])
            rows.append(
                f"<tr><td>{escape(site.name)}</td><td>{escape(site.operator)}</td><td>{bar}</td>{cells}</tr>"
            )
        heads = "".join(f"<th>{escape(gauge)}</th>" for gauge in self.gauges)
        return (
            f"<p>{escape(repr(self))}</p><table><thead><tr><th>site</th><th>operator</th><th></th>{heads}"
            f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )


def column_of(gauge: str, measured: Sequence[str], where: str = "") -> str:
    """Return the column of a gauge among those that were measured: the first, if it has several.

    `where` is the beginning of the message if there is none.

    Example:
        >>> column_of("stable_rank", ["affinity", "stable_rank_x", "stable_rank_y"])
        'stable_rank_x'
    """
    columns = [gauge, *(GAUGES[gauge].ranges if gauge in GAUGES else ())]
    found = next((column for column in columns if column in measured), None)
    if found is None:
        hint = did_you_mean(gauge, measured)
        raise InputError(
            f"{where}{gauge!r} was not measured; choose from {', '.join(measured)}{hint and f' ({hint})'}",
            parameter="gauge",
        )
    return found


Number = int | float | Literal["nan", "inf", "-inf"] | None
"""A value of a gauge; numbers that JSON does not have are text."""


class _File(msgspec.Struct):
    """What a file holds beside its schema and version; `records` has a column for each key and gauge."""

    sites: tuple[Site, ...]
    gauges: Annotated[list[str], msgspec.Meta(min_length=1)]
    provenance: Provenance
    records: dict[str, list[Number]]
    map: list[list[Number]] | None = None


def to_json(sounding: Sounding) -> str:
    """Return the text of a `.json` file."""
    return json.dumps(to_plain(sounding), indent=1, allow_nan=False) + "\n"


def from_json(content: str | bytes, name: str = "sounding") -> Sounding:
    """Make a sounding from the content of a `.json` file; errors call it `name`."""
    return from_plain(parse_json(content, name, "a sounding"), name)


def to_plain(sounding: Sounding) -> dict[str, Any]:
    """Return a sounding as plain values, ready for JSON."""
    columns = {key: [as_json_number(value) for value in values] for key, values in _columns(sounding).items()}
    return {**_head(sounding), "records": columns}


def from_plain(content: Any, name: str = "sounding") -> Sounding:
    """Make a sounding from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a sounding; `fathometer measure` writes them")
    return assembled(name, lambda: _assembled(msgspec.convert(content, _File)))


def _assembled(file: _File) -> Sounding:
    names = [site.name for site in file.sites]
    indices = [_whole(value, 0, len(names) - 1) for value in file.records["site"]]
    data: dict[str, list[Any]] = {"site": [names[index] for index in indices]}
    for key, minimum in (("batch", 0), ("n", 1), ("d", 1)):
        data[key] = [_whole(value, minimum) for value in file.records[key]]
    for gauge in file.gauges:
        data[gauge] = [math.nan if value is None else float(value) for value in file.records[gauge]]
    if len({len(values) for values in data.values()}) != 1:
        raise ValueError("columns of different length")
    if not data["site"] or len(set(names)) != len(names) or set(file.gauges) & set(KEYS):
        raise ValueError("no rows, or names that are not unique")
    if not 0 <= file.provenance.seconds < math.inf:
        raise ValueError(f"provenance: seconds {file.provenance.seconds}")
    if fault := _find_impossible(data):
        raise ValueError(fault)
    similarity = None if file.map is None else similarity_frame(file.map, names, names)
    return Sounding(file.sites, pd.DataFrame(data), file.provenance, similarity)


def similarity_frame(
    values: Sequence[Sequence[Number]], rows: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """Return a similarity map from the numbers of a file."""
    numbers = [[math.nan if value is None else float(value) for value in row] for row in values]
    found = pd.DataFrame(np.array(numbers, float), index=list(rows), columns=list(columns))
    if not (found.isna() | (found.abs() <= 1 + 1e-6)).all(axis=None):
        raise ValueError("map: expected values from -1 to 1")
    return found


def similarity_plain(frame: pd.DataFrame) -> list[list[Any]]:
    """Return a similarity map as plain values, ready for JSON."""
    return [[as_json_number(value) for value in row] for row in frame.to_numpy(float).tolist()]


def _whole(value: Number, minimum: int, maximum: int = 2**63 - 1) -> int:
    """Return a whole number, which a column of floats may hold, too."""
    if not isinstance(value, int | float) or value != int(value) or not minimum <= value <= maximum:
        raise ValueError(f"expected a whole number from {minimum}, got {value!r}")
    return int(value)


def _find_impossible(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """Return what is impossible in the columns of records, if anything is."""
    rows = [*zip(columns["site"], columns["batch"], strict=True)]
    if len(set(rows)) < len(rows):
        return "a site has two rows for one batch"
    shapes = columns["n"], columns["d"]  # d is that of both sides: the package's gauges take no other pair
    for gauge in (column for column in columns if column not in KEYS):
        values = [*zip(columns["site"], columns[gauge], *shapes, strict=True)]
        read = {
            site for site, value, *_ in values if not math.isnan(value)
        }  # some gauges are not for all sites
        if fault := out_of_range(gauge, ((value, n, d) for site, value, n, d in values if site in read)):
            return fault
    return None


def _head(sounding: Sounding) -> dict[str, Any]:
    similarity = {} if sounding.map is None else {"map": similarity_plain(sounding.map)}
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "sites": msgspec.to_builtins(sounding.sites),
        "gauges": sounding.gauges,
        "provenance": sounding.provenance.as_dict(),
        **similarity,
    }


def _columns(sounding: Sounding) -> dict[str, list[Any]]:
    indices = {site.name: index for index, site in enumerate(sounding.sites)}
    records = sounding.records
    columns: dict[str, list[Any]] = {key: records[key].to_list() for key in (*_SAVED_KEYS, *sounding.gauges)}
    if fault := _find_impossible(columns):
        raise InputError(fault)
    columns["site"] = [indices[name] for name in columns["site"]]
    return columns


def _write_parquet(sounding: Sounding, path: Path) -> None:
    pyarrow = _pyarrow()
    table = pyarrow.table(_columns(sounding))
    head = json.dumps(_head(sounding), allow_nan=False).encode()
    pyarrow.parquet.write_table(table.replace_schema_metadata({SCHEMA.encode(): head}), path)


def load_parquet(path: Path, name: str) -> Sounding:
    """Read a `.parquet` file; errors call it `name`."""
    pyarrow = _pyarrow()
    try:
        table = pyarrow.parquet.read_table(path)
        head = strict_json((table.schema.metadata or {}).get(SCHEMA.encode(), b"{}"))
    except (pyarrow.ArrowException, ValueError, RecursionError) as error:
        raise InputError(f"{name}: broken, or not a sounding ({first_line(error)})") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    return from_plain({**head, "records": table.to_pydict()} if isinstance(head, dict) else head, name)


def _pyarrow() -> Any:
    return import_extra("pyarrow", "parquet", extra="parquet", purpose="a .parquet file")
