"""Many soundings in one small file: means and standard deviations over batches, rounded and compressed."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError
from fathometer.results.files import check_format, strict_json
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding

SCHEMA = "fathometer.reference"
VERSION = 1
MEAN_DIGITS, STD_DIGITS = 4, 2  # significant ones


class Unpacked(NamedTuple):
    """What a file holds.

    Attributes:
        soundings: by name; each has one batch, with the means over the batches that were measured.
        stds: the standard deviations over these batches, site × gauge, by the same names.
    """

    soundings: dict[str, Sounding]
    stds: dict[str, pd.DataFrame]


class _Network(msgspec.Struct):
    name: str
    batches: int
    sites: tuple[Site, ...]
    n: list[int]
    d: list[int]
    mean: dict[str, list[float | None]]
    std: dict[str, list[float | None]]
    provenance: Provenance


def pack(soundings: Mapping[str, Sounding]) -> bytes:
    """Return the content of a file; the same soundings give the same bytes."""
    networks = [_packed(name, sounding) for name, sounding in soundings.items()]
    content = {"schema": SCHEMA, "version": VERSION, "networks": msgspec.to_builtins(networks)}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return lzma.compress(text.encode(), preset=9)


def unpack(content: bytes, name: str = "reference") -> Unpacked:
    """Read the content of a file; errors call it `name`."""
    try:
        plain = strict_json(lzma.decompress(content))
        check_format(plain, SCHEMA, VERSION, name, "a file of reference networks")
        networks = msgspec.convert(plain["networks"], list[_Network])
    except (lzma.LZMAError, EOFError, KeyError, ValueError, msgspec.ValidationError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: broken, or not a file of reference networks ({error})") from error
    stds = {each.name: _frame(each, each.std) for each in networks}
    return Unpacked({each.name: _sounding(each) for each in networks}, stds)


def _packed(name: str, sounding: Sounding) -> _Network:
    first = sounding.records.groupby("site", sort=False)[["n", "d"]].first()
    first = first.loc[[site.name for site in sounding.sites]]
    return _Network(
        name=name,
        batches=int(sounding.records["batch"].nunique()),
        sites=sounding.sites,
        n=first["n"].to_list(),
        d=first["d"].to_list(),
        mean={gauge: _rounded(sounding.mean(gauge), MEAN_DIGITS) for gauge in sounding.gauges},
        std={gauge: _rounded(sounding.std(gauge), STD_DIGITS) for gauge in sounding.gauges},
        provenance=sounding.provenance,
    )


def _rounded(values: Iterable[Any], digits: int) -> list[float | None]:
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


def _frame(network: _Network, columns: Mapping[str, list[float | None]]) -> pd.DataFrame:
    names = pd.Index([site.name for site in network.sites], name="site")
    return pd.DataFrame(columns, index=names, dtype=float)


def _sounding(network: _Network) -> Sounding:
    values = _frame(network, network.mean).reset_index()
    values.insert(1, "batch", 0)
    values.insert(2, "n", network.n)
    values.insert(3, "d", network.d)
    return Sounding(network.sites, values, network.provenance)
