"""Write the reference networks of the package from the soundings in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fathometer import load
from fathometer import reference as package
from fathometer.errors import InputError
from fathometer.progress import Terminal
from fathometer.results import complete_file
from papers.networks.measure import BATCHES, SOUNDINGS

FILE = Path(package.__file__).parent / "networks.json.gz"
MAX_BYTES = 2**20


def write_reference(
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the soundings.")] = SOUNDINGS,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")] = FILE,
) -> None:
    """Write all soundings of trained networks as the reference of the package, one file of at most 1 MB."""
    files = [file for data in BATCHES for file in sorted((folder / data).glob("*.json"))]
    found = {f"{file.parent.name}/{file.stem}": load(file) for file in files}
    ordered = sorted(found, key=lambda name: (name.partition("/")[0] != "imagenet", _year(found[name]), name))
    content = package.pack({name: found[name] for name in ordered})
    if len(content) > MAX_BYTES:
        raise InputError(f"{len(content)} bytes are more than {MAX_BYTES}; keep fewer networks or gauges")
    with complete_file(out) as part:
        part.write_bytes(content)
    Terminal().print(f"{len(found)} networks, {len(content)} bytes; wrote {out.name}")


def _year(sounding: object) -> int:
    return int(sounding.provenance.model["facts"]["year"])  # type: ignore[attr-defined]
