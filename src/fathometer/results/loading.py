"""One `load` for every kind of result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fathometer.results import history_file, sounding_file
from fathometer.results.files import read_json


def load(path: str | Path) -> Any:
    """Read a result that fathometer wrote: a `Sounding`, a `History`, or a folder of Leaky ResNets.

    Args:
        path: a `.json` or `.parquet` file, the folder of a leaky run, or a URL of one of these that fsspec
            opens (`s3://bucket/net.json`).

    Raises:
        InputError: if there is no such file, if it is broken, or if it is something else.
    """
    from fathometer.results.store import local_copy

    with local_copy(path) as place:
        if place.is_dir():
            from fathometer.leaky import load_sweep

            return load_sweep(place)
        if place.suffix.lower() != ".json":
            return sounding_file.load(place)
        content = read_json(place, "a result of fathometer")
    if isinstance(content, dict) and content.get("schema") == history_file.SCHEMA:
        return history_file.from_plain(content, str(path))
    return sounding_file.from_plain(content, str(path))
