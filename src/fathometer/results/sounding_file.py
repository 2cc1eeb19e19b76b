"""Soundings on disk: one file, JSON or Parquet, with a versioned schema. Nothing in it is ever executed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError, MissingExtraError
from fathometer.gauges.ranges import fault_of
from fathometer.results.files import check_format, complete_file
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import KEYS, Sounding
from fathometer.results.standard_json import as_json_number, json_number, strict_json

SCHEMA = "fathometer.sounding"
VERSION = 1


def save(sounding: Sounding, path: Path) -> Path:
    """Write the file; it appears once it is complete."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path.name}: expected a name that ends in {' or '.join(_FORMATS)}")
    write, _ = _FORMATS[path.suffix.lower()]
    with complete_file(path) as part:
        write(sounding, part)
    return path


def load(path: str | Path) -> Sounding:
    """A sounding from a file that `Sounding.save` wrote."""
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: expected a sounding, a file that ends in {' or '.join(_FORMATS)}")
    _, read = _FORMATS[path.suffix.lower()]
    return _checked(str(path), lambda: read(path))


def to_json(sounding: Sounding) -> str:
    """The text of a `.json` file."""
    columns = {key: [as_json_number(value) for value in values] for key, values in _columns(sounding).items()}
    return json.dumps({**_head(sounding), "records": columns}, indent=1, allow_nan=False) + "\n"


def from_json(text: str, name: str = "sounding") -> Sounding:
    """A sounding from the text of a `.json` file, which errors call by `name`."""
    return _checked(name, lambda: _parsed(text))


def _checked(path: str, read: Callable[[], tuple[Any, dict[str, list[Any]]]]) -> Sounding:
    try:
        head, columns = read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: broken, or not a sounding ({error})") from error
    check_format(head, SCHEMA, VERSION, path, "a sounding; `fathometer measure` writes them")
    try:
        return _assembled(head, columns)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{path}: broken, the parts do not fit ({error!r})") from error


def _assembled(head: dict[str, Any], columns: dict[str, list[Any]]) -> Sounding:
    sites = tuple(_site(entry) for entry in head["sites"])
    names = [site.name for site in sites]
    gauges = [str(gauge) for gauge in head["gauges"]]
    data: dict[str, Sequence[Any]] = {"site": [names[_index(i, len(names))] for i in columns["site"]]}
    for key, least in (("batch", 0), ("n", 1), ("d", 1)):
        data[key] = [_whole(value, least) for value in columns[key]]
    data |= {gauge: [_number(value) for value in columns[gauge]] for gauge in gauges}
    if len({len(values) for values in data.values()}) != 1:
        raise ValueError("columns of different length")
    if not gauges or not data["site"] or len(set(names)) != len(names) or set(gauges) & set(KEYS):
        raise ValueError("no gauges, no rows, or names that are not unique")
    records = pd.DataFrame(data)
    if fault := _fault(records):
        raise ValueError(fault)
    return Sounding(sites, records, _provenance(head["provenance"]))


def _fault(records: pd.DataFrame) -> str | None:
    """What cannot be, if anything."""
    if records.duplicated(["site", "batch"]).any():
        return "a site has two rows for one batch"
    shapes = records["n"], records["d"]  # d is of both sides: the gauges of the package take no other pair
    found = (fault_of(gauge, zip(records[gauge], *shapes, strict=True)) for gauge in _gauges(records))
    return next((fault for fault in found if fault), None)


def _gauges(records: pd.DataFrame) -> list[str]:
    return [str(column) for column in records if column not in KEYS]


def _provenance(entry: dict[str, Any]) -> Provenance:
    facts, plain = Provenance(**entry), Provenance()
    for name, value in facts.as_dict().items():
        kind = int | float if name == "seconds" else type(getattr(plain, name))
        if not isinstance(value, kind):
            raise TypeError(f"provenance: {name}")
    if isinstance(facts.seconds, bool) or not 0 <= float(facts.seconds) < math.inf:
        raise ValueError(f"provenance: seconds {facts.seconds}")
    return facts


def _site(entry: dict[str, Any]) -> Site:
    site = Site(**entry)
    kinds = {"module": str, "operator": str, "own": bool}
    if not all(isinstance(getattr(site, name), kind) for name, kind in kinds.items()):
        raise TypeError(f"site {entry}")
    return replace(site, call=_whole(site.call, 1), order=_whole(site.order, 0))


def _index(value: Any, count: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise IndexError(f"site {value} of {count}")
    return value


def _whole(value: Any, least: int) -> int:
    """A whole number, which an array of floats may hold, too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise TypeError(f"whole number {value!r}")
    if not least <= value < 2**63:
        raise ValueError(f"{value} is not a number from {least}")
    return int(value)


def _number(value: Any) -> float:
    return math.nan if value is None else json_number(value)


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


def _write_json(sounding: Sounding, path: Path) -> None:
    path.write_text(to_json(sounding), "utf-8")


def _read_json(path: Path) -> tuple[Any, dict[str, list[Any]]]:
    return _parsed(path.read_text("utf-8"))


def _parsed(text: str) -> tuple[Any, dict[str, list[Any]]]:
    content = strict_json(text)
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
    head = strict_json((table.schema.metadata or {}).get(SCHEMA.encode(), b"{}"))
    return head, table.to_pydict()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "a .parquet file") from error
    return pyarrow, parquet


_FORMATS = {".json": (_write_json, _read_json), ".parquet": (_write_parquet, _read_parquet)}
