"""A sounding in ranges of batches, and ranges put together: the same values as in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from fathometer.capture import Site
from fathometer.errors import InputError
from fathometer.results.sounding import Sounding


class Range(NamedTuple):
    """Some batches of a sounding.

    Attributes:
        first: the number of the first.
        batches: how many, or none for all that come.
        reads_all: whether the data before are read, too, since some samples among them are unreadable.
    """

    first: int
    batches: int | None
    reads_all: bool = False


def ranges(batches: int, size: int, *, is_open: bool) -> list[Range]:
    """So many batches in ranges of `size`. With `is_open` the last one takes what the data still have.

    Example:
        >>> [tuple(part) for part in ranges(5, 2, is_open=False)]
        [(0, 2, False), (2, 2, False), (4, 1, False)]
    """
    found = [Range(first, min(size, batches - first)) for first in range(0, max(batches, 1), size)]
    return [*found[:-1], found[-1]._replace(batches=None)] if is_open else found


def doubtful(wanted: Sequence[Range], parts: Sequence[Sounding | None]) -> list[Range]:
    """The ranges, of which those begin anew that took all samples before them to be readable, and were wrong.

    A range that finds an unreadable sample is right itself, but all after it lie further back in the data.
    """
    found: list[Range] = []
    lost = False
    for part, sounding in zip(wanted, parts, strict=True):
        found.append(part._replace(reads_all=part.reads_all or lost))
        lost = lost or (sounding is not None and sounding.provenance.data["skipped"] > 0)
    return found


class RangesDifferError(InputError):
    """The ranges of a sounding are of different networks, data or machines."""


_LABELS = ("family", "facts")  # what the plan says of a model, which it may say otherwise later


def origin(part: Sounding) -> dict[str, Any]:
    """What all ranges of a sounding must share: network, weights, data, versions, device, address."""
    facts = part.provenance
    survey = facts.settings.get("survey")
    return {
        **{f"model {key}": value for key, value in facts.model.items() if key not in _LABELS},
        "first sample": facts.data.get("first_sample_sha256"),
        "number of samples": facts.data.get("count"),
        **{f"version of {name}": version for name, version in facts.versions.items()},
        "device": facts.device,
        "address": survey.get("address") if isinstance(survey, dict) else None,
    }


def differing(first: Sounding, second: Sounding) -> list[str]:
    """In what two ranges differ that they must share."""
    one, two = origin(first), origin(second)
    return [name for name in {**one, **two} if one.get(name) != two.get(name)]


def merged(parts: Sequence[Sounding], *, batches: int | None) -> Sounding:
    """One sounding of consecutive ranges, as if measured in one piece.

    Sites that a later range sees for the first time come after all that were seen before, as they would have.

    Args:
        parts: in the order of their batches.
        batches: how many were asked for in all, for the provenance.

    Raises:
        RangesDifferError: if they are not of one network, on one kind of machine.
    """
    if not parts:
        raise InputError("data: expected enough samples to fill a batch, got fewer; ask for fewer samples")
    first = parts[0]
    for part in parts[1:]:
        if found := differing(first, part):
            hint = "leave range out, or give all workers the same versions and devices"
            if "model sha256" in found:
                hint = "does its factory make other weights each time? Those drawn from torch are seeded"
            raise RangesDifferError(
                f"ranges: expected one network on one kind of machine, got other {', '.join(found)}; {hint}"
            )
    sites: dict[str, Site] = {}
    for part in parts:
        for site in part.sites:
            if site.name not in sites:
                order = site.order if part is first else 1 + max(known.order for known in sites.values())
                sites[site.name] = replace(site, order=order)
    ordered = tuple(sorted(sites.values(), key=lambda site: site.order))
    places = {site.name: place for place, site in enumerate(ordered)}
    records = pd.concat([part.records for part in parts], ignore_index=True)
    records = (
        records.assign(place=records["site"].map(places))
        .sort_values(["batch", "place"], kind="stable", ignore_index=True)
        .drop(columns="place")
    )
    facts = first.provenance
    data = {
        **facts.data,
        "samples_measured": sum(part.provenance.data["samples_measured"] for part in parts),
        "samples_left_over": parts[-1].provenance.data["samples_left_over"],
        "skipped": max(part.provenance.data["skipped"] for part in parts),
    }
    return Sounding(
        ordered,
        records,
        replace(
            facts,
            data=data,
            settings={**facts.settings, "batches": batches, "first_batch": 0},
            date=max(part.provenance.date for part in parts),
            seconds=round(sum(part.provenance.seconds for part in parts), 3),
        ),
    )
