"""Soundings on disk: one file, JSON or Parquet, with a versioned schema. Nothing in it is ever executed."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError, MissingExtraError, first_line
from fathometer.gauges.registry import fault_of
from fathometer.results.files import as_json_number, check_format, complete_file, read_json, strict_json
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import KEYS, Sounding

SCHEMA = "fathometer.sounding"
VERSION = 1
_SUFFIXES = (".json", ".parquet")
_LARGEST = 2**63

Number = int | float | Literal["nan", "inf", "-inf"] | None
"""A value of a gauge; numbers that JSON does not have are text."""


class _File(msgspec.Struct):
    """What a file holds beside its schema and version; `records` has a column for each key and gauge."""

    sites: tuple[Site, ...]
    gauges: Annotated[list[str], msgspec.Meta(min_length=1)]
    provenance: Provenance
    records: dict[str, list[Number]]


def save(sounding: Sounding, path: Path) -> Path:
    """Write the file; it appears once it is complete."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{path.name}: expected a name that ends in {' or '.join(_SUFFIXES)}")
    with complete_file(path) as part:
        if path.suffix.lower() == ".json":
            part.write_text(to_json(sounding), "utf-8")
        else:
            _write_parquet(sounding, part)
    return path


def load(path: str | Path) -> Sounding:
    """Read a sounding from a file that `Sounding.save` wrote."""
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{path}: expected a sounding, a file that ends in {' or '.join(_SUFFIXES)}")
    content = _read_parquet(path) if path.suffix.lower() == ".parquet" else read_json(path, "a sounding")
    return from_plain(content, str(path))


def to_json(sounding: Sounding) -> str:
    """Return the text of a `.json` file."""
    return json.dumps(to_plain(sounding), indent=1, allow_nan=False) + "\n"


def from_json(text: str, name: str = "sounding") -> Sounding:
    """Make a sounding from the text of a `.json` file; errors call it `name`."""
    try:
        content = strict_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: broken, or not a sounding ({error})") from error
    return from_plain(content, name)


def to_plain(sounding: Sounding) -> dict[str, Any]:
    """Return a sounding as plain values, ready for JSON."""
    columns = {key: [as_json_number(value) for value in values] for key, values in _columns(sounding).items()}
    return {**_head(sounding), "records": columns}


def from_plain(content: Any, name: str = "sounding") -> Sounding:
    """Make a sounding from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a sounding; `fathometer measure` writes them")
    try:
        return _assembled(msgspec.convert(content, _File))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, msgspec.ValidationError) as error:
        raise InputError(f"{name}: broken, the parts do not fit ({error})") from error


def _assembled(file: _File) -> Sounding:
    names = [site.name for site in file.sites]
    places = [_whole(value, 0, len(names) - 1) for value in file.records["site"]]
    data: dict[str, list[Any]] = {"site": [names[place] for place in places]}
    for key, least in (("batch", 0), ("n", 1), ("d", 1)):
        data[key] = [_whole(value, least) for value in file.records[key]]
    for gauge in file.gauges:
        data[gauge] = [math.nan if value is None else float(value) for value in file.records[gauge]]
    if len({len(values) for values in data.values()}) != 1:
        raise ValueError("columns of different length")
    if not data["site"] or len(set(names)) != len(names) or set(file.gauges) & set(KEYS):
        raise ValueError("no rows, or names that are not unique")
    if not 0 <= file.provenance.seconds < math.inf:
        raise ValueError(f"provenance: seconds {file.provenance.seconds}")
    records = pd.DataFrame(data)
    if fault := _fault(records):
        raise ValueError(fault)
    return Sounding(file.sites, records, file.provenance)


def _whole(value: Number, least: int, most: int = _LARGEST - 1) -> int:
    """Return a whole number, which a column of floats may hold, too."""
    if not isinstance(value, int | float) or value != int(value) or not least <= value <= most:
        raise ValueError(f"expected a whole number from {least}, got {value!r}")
    return int(value)


def _fault(records: pd.DataFrame) -> str | None:
    """Return what is impossible in these records, if anything is."""
    if records.duplicated(["site", "batch"]).any():
        return "a site has two rows for one batch"
    shapes = records["n"], records["d"]  # d is that of both sides: the package's gauges take no other pair
    gauges = [str(column) for column in records if column not in KEYS]
    found = (fault_of(gauge, zip(records[gauge], *shapes, strict=True)) for gauge in gauges)
    return next((fault for fault in found if fault), None)


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
    if fault := _fault(records):
        raise InputError(fault)
    columns: dict[str, list[Any]] = {key: records[key].to_list() for key in (*KEYS, *sounding.gauges)}
    columns["site"] = [places[name] for name in columns["site"]]
    return columns


def _write_parquet(sounding: Sounding, path: Path) -> None:
    pyarrow, parquet = _pyarrow()
    table = pyarrow.table(_columns(sounding))
    head = json.dumps(_head(sounding), allow_nan=False).encode()
    parquet.write_table(table.replace_schema_metadata({SCHEMA.encode(): head}), path)


def _read_parquet(path: Path) -> dict[str, Any]:
    pyarrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
        head = strict_json((table.schema.metadata or {}).get(SCHEMA.encode(), b"{}"))
    except (pyarrow.ArrowException, ValueError, RecursionError) as error:
        raise InputError(f"{path}: broken, or not a sounding ({first_line(error)})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return {**head, "records": table.to_pydict()} if isinstance(head, dict) else {}


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "a .parquet file") from error
    return pyarrow, parquet
