"""The zoo's part of the guide: awkward things, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.zoo.entry import Awkward


def table(zoo: Mapping[str, Awkward]) -> str:
    """Those of which there is something to say, as the guide has them."""
    rows = [f"| {entry.what} | {entry.becomes} |" for entry in zoo.values() if entry.becomes]
    return "\n".join(("| what is awkward | what happens |", "|---|---|", *rows)) + "\n"
