"""The result of measuring one network on one data set: site × batch × gauge, and how it came about."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError, MissingExtraError
from fathometer.files import complete_file
from fathometer.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "fathometer.sounding"
VERSION = 1
_KEYS = ("site", "batch", "n", "d")  # of a row of `records`; the rest are gauges


@dataclass(frozen=True, eq=False)
class Sounding:
    """What was measured, and how.

    Attributes:
        sites: in order of depth.
        records: a row for each site and batch: `site` (its name), `batch`, `n` samples, `d` features, and a
            column for each value of each gauge.
        provenance: model, data, settings, versions, device, date.
    """

    sites: tuple[Site, ...]
    records: pd.DataFrame
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def gauges(self) -> list[str]:
        """The names of what was measured."""
        return [str(column) for column in self.records.columns if column not in _KEYS]

    @property
    def signature(self) -> pd.Series[float]:
        """The non-linearity signature: the affinity score of every site, the mean over batches."""
        return self.mean("affinity")

    @property
    def table(self) -> pd.DataFrame:
        """Site × gauge: mean, standard deviation over batches, and number of batches."""
        grouped = self.records.groupby("site", sort=False)[self.gauges]
        return grouped.agg(["mean", "std", "count"]).reindex([site.name for site in self.sites])

    @property
    def batches(self) -> pd.DataFrame:
        """One row for each site and batch, by both."""
        return self.records.set_index(["site", "batch"])

    def mean(self, gauge: str) -> pd.Series[float]:
        """A gauge at every site, the mean over batches."""
        return self._by_site(gauge).mean().reindex([site.name for site in self.sites])

    def std(self, gauge: str) -> pd.Series[float]:
        """The standard deviation of a gauge over batches; missing where there is one batch."""
        return self._by_site(gauge).std().reindex([site.name for site in self.sites])

    def summary(self, gauge: str = "affinity") -> pd.Series[float]:
        """Of a gauge over the sites: min, median, max and their spread, max − min (Figure 3)."""
        values = self.mean(gauge)
        return pd.Series(
            {
                "min": values.min(),
                "median": values.median(),
                "max": values.max(),
                "spread": values.max() - values.min(),
            },
            name=gauge,
        )

    def plot(self, gauge: str = "affinity") -> Figure:
        """The gauge along depth, with error bars over batches. `figure.savefig("signature.png")` keeps it."""
        from fathometer.report.soundings import plot_soundings

        return plot_soundings([self], gauge)

    def save(self, path: str | Path) -> Path:
        """One file, `.json` or `.parquet`; it appears once it is complete."""
        path = Path(path)
        if path.suffix.lower() not in _FORMATS:
            raise InputError(f"{path.name}: expected a name that ends in {' or '.join(_FORMATS)}")
        write, _ = _FORMATS[path.suffix.lower()]
        with complete_file(path) as part:
            write(self, part)
        return path

    def _by_site(self, gauge: str) -> Any:
        if gauge not in self.gauges:
            raise InputError(f"{gauge!r} was not measured here, but {', '.join(self.gauges)}")
        return self.records.groupby("site", sort=False)[gauge]

    def __repr__(self) -> str:
        model, data = self.provenance.model.get("name", "?"), self.provenance.data.get("name", "?")
        count = self.records["batch"].nunique()
        counts = f"{len(self.sites)} sites, {count} batches, {len(self.gauges)} gauges"
        head = f"Sounding of {model} on {data}: {counts}"
        if "affinity" not in self.gauges:
            return head
        numbers = self.summary()
        return f"{head}; affinity {numbers['min']:.3f} … {numbers['median']:.3f} … {numbers['max']:.3f}"

    def _repr_html_(self) -> str:
        """For notebooks: the sites with a bar for the first gauge, and the rest as numbers."""
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


def load(path: str | Path) -> Sounding:
    """A sounding from a file that `Sounding.save` wrote. Nothing in the file is ever executed."""
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: expected a sounding, a file that ends in {' or '.join(_FORMATS)}")
    _, read = _FORMATS[path.suffix.lower()]
    try:
        head, columns = read(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise InputError(f"{path}: broken, or not a sounding ({error})") from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise InputError(f"{path}: not a sounding; `fathometer measure` writes them")
    if not isinstance(head.get("version"), int) or head["version"] > VERSION:
        raise InputError(
            f"{path}: written by a newer fathometer (format {head.get('version')}, this one reads up to "
            f"{VERSION}); update with pip install -U fathometer"
        )
    try:
        return _assembled(head, columns)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path}: broken, the parts do not fit ({error!r})") from error


def _assembled(head: dict[str, Any], columns: dict[str, list[Any]]) -> Sounding:
    sites = tuple(_site(entry) for entry in head["sites"])
    names = [site.name for site in sites]
    gauges = [str(gauge) for gauge in head["gauges"]]
    data: dict[str, Sequence[Any]] = {"site": [names[_index(i, len(names))] for i in columns["site"]]}
    data |= {key: [int(value) for value in columns[key]] for key in _KEYS[1:]}
    data |= {gauge: [_number(value) for value in columns[gauge]] for gauge in gauges}
    if len({len(values) for values in data.values()}) != 1:
        raise ValueError("columns of different length")
    return Sounding(sites, pd.DataFrame(data), Provenance(**head["provenance"]))


def _site(entry: dict[str, Any]) -> Site:
    site = Site(**entry)
    kinds = {"module": str, "operator": str, "call": int, "order": int, "own": bool}
    if not all(isinstance(getattr(site, name), kind) for name, kind in kinds.items()):
        raise TypeError(f"site {entry}")
    return site


def _index(value: Any, count: int) -> int:
    if not isinstance(value, int) or not 0 <= value < count:
        raise IndexError(f"site {value} of {count}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str | None):
        raise TypeError(f"number {value!r}")
    return math.nan if value is None else float(value)


def _head(sounding: Sounding) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "sites": [asdict(site) for site in sounding.sites],
        "gauges": sounding.gauges,
        "provenance": sounding.provenance.as_dict(),
    }


def _columns(sounding: Sounding) -> dict[str, list[Any]]:
    places = {site.name: place for place, site in enumerate(sounding.sites)}
    records = sounding.records
    columns: dict[str, list[Any]] = {key: records[key].to_list() for key in (*_KEYS, *sounding.gauges)}
    columns["site"] = [places[name] for name in columns["site"]]
    return columns


def _plain(value: Any) -> Any:
    """JSON has no inf and no NaN."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _write_json(sounding: Sounding, path: Path) -> None:
    columns = {key: [_plain(value) for value in values] for key, values in _columns(sounding).items()}
    path.write_text(
        json.dumps({**_head(sounding), "records": columns}, indent=1, allow_nan=False) + "\n", "utf-8"
    )


def _read_json(path: Path) -> tuple[Any, dict[str, list[Any]]]:
    content = json.loads(path.read_text("utf-8"))
    columns = content.pop("records", {}) if isinstance(content, dict) else {}
    return content, columns if isinstance(columns, dict) else {}


def _write_parquet(sounding: Sounding, path: Path) -> None:
    pyarrow, parquet = _pyarrow()
    table = pyarrow.table(_columns(sounding))
    head = json.dumps(_head(sounding), allow_nan=False).encode()
    parquet.write_table(table.replace_schema_metadata({SCHEMA.encode(): head}), path)


def _read_parquet(path: Path) -> tuple[Any, dict[str, list[Any]]]:
    pyarrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise ValueError(str(error).splitlines()[0]) from error
    head = json.loads((table.schema.metadata or {}).get(SCHEMA.encode(), b"{}"))
    return head, table.to_pydict()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "a .parquet file") from error
    return pyarrow, parquet


_FORMATS = {".json": (_write_json, _read_json), ".parquet": (_write_parquet, _read_parquet)}
