"""Write the reference networks of the package, and their page, from the soundings in this folder."""

from __future__ import annotations

from pathlib import Path

from fathometer import Sounding, load
from fathometer import reference as package
from fathometer.errors import InputError
from fathometer.progress import Terminal
from fathometer.results import complete_file
from papers.networks.measure import BATCHES, SOUNDINGS
from papers.networks.page import write_page

FILE = Path(package.__file__).parent / "networks.json.xz"
MAX_BYTES = 2**20


def recorded_soundings(folder: Path = SOUNDINGS) -> dict[str, Sounding]:
    """Read the soundings of all trained networks, by data, year and name: `imagenet/resnet50`."""
    found: dict[str, Sounding] = {}
    for data in BATCHES:
        networks = {file.stem: load(file) for file in (folder / data).glob("*.json")}
        ordered = sorted(networks, key=lambda name: (_year(networks[name]), name))
        found |= {f"{data}/{name}": networks[name] for name in ordered}
    return found


def write_reference() -> None:
    """Write all recorded soundings of trained networks as one file of the package, and docs/atlas.md."""
    found = recorded_soundings()
    content = package.pack(found)
    if len(content) > MAX_BYTES:
        raise InputError(f"{len(content)} bytes are more than {MAX_BYTES}; keep fewer networks or gauges")
    with complete_file(FILE) as part:
        part.write_bytes(content)
    write_page()
    Terminal().say(f"{len(found)} networks, {len(content)} bytes; wrote {FILE.name} and docs/atlas.md")


def _year(sounding: Sounding) -> int:
    return int(sounding.provenance.model["facts"]["year"])
