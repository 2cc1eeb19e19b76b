"""Writes docs/reliability from the full robustness tests.

`pytest -m robustness -p tests.robustness.recording tests/robustness` writes one JSON record for each test
module, `docs/reliability/NAME.json`, and then the page `docs/reliability.md` from all records. The first line
of a module's docstring is its heading, the rest says what is tried. `python -m tests.robustness.recording`
writes the page alone.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from benchmarks.records import ROOT, Row, escaped, footer, markdown_table, write_record

Record: TypeAlias = "dict[str, Any]"

FOLDER = ROOT / "docs" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
_HEAD = """\
# Robustness

The tests in `tests/robustness` try to break fathometer: killed processes, full disks, broken files, harmful
names, unusual numbers, and the networks of torchvision, timm and transformers. A small version of each runs
with the tests (`make test`). `make robustness` runs the full versions and writes this page from the records
in `docs/reliability/`.
"""
_ORDER = "gauges networks killed disk two_processes broken_files security".split()

_items: dict[str, pytest.Item] = {}
_records: dict[str, Record] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Remember the tests, whose module docstrings become headings."""
    _items.update({item.nodeid: item for item in items})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the row of a full test that has run to the record of its module."""
    if report.when != "call" or report.skipped or "robustness" not in report.keywords:
        return
    item = _items[report.nodeid]
    module: Any = item.getparent(pytest.Module)
    heading, _, tried = (inspect.getdoc(module.obj) or "").partition("\n")
    record = _records.setdefault(
        module.path.stem.removeprefix("test_"),
        {
            "title": heading.rstrip("."),
            "tried": " ".join(tried.split()),
            "rows": [],
            "failures": [],
            "seconds": 0.0,
        },
    )
    record["seconds"] += report.duration
    row = dict(report.user_properties).get("row")
    record["rows"] += [row] if row else []
    if report.failed:
        said: Any = getattr(report.longrepr, "reprcrash", None)
        record["failures"].append(f"{item.name}: {str(said.message if said else report.longrepr)[:500]}")


def pytest_sessionfinish() -> None:
    """Write what was found."""
    for name, record in _records.items():
        device = "cuda" if name.endswith("cuda") else "cpu"
        found = {"name": name, **record, "seconds": round(record["seconds"], 1)}
        write_record(FOLDER / f"{name}.json", found, device)
    write_page()


def write_page() -> None:
    """Write the page from the records that are there."""
    PAGE.write_text(page(read_records()), "utf-8")


def read_records() -> list[Record]:
    """Read all records, in the order of the page."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
    return [found[name] for name in [*_ORDER, *sorted(set(found) - set(_ORDER))] if name in found]


def page(records: Sequence[Record]) -> str:
    """Return the text of the page: an overview, and a section for each record."""
    overview: list[Row] = [
        {
            "test": f"[{record['title']}](#{_anchor(record['title'])})",
            "failures": len(record["failures"]),
            "duration": _duration(record["seconds"]),
            "date": record["date"][:10],
        }
        for record in records
    ]
    missing = [f"`test_{name}.py`" for name in _ORDER if name not in {record["name"] for record in records}]
    gaps = [f"No full run is on record for {', '.join(missing)}.\n"] if missing else []
    return "\n".join(
        [_HEAD, *([markdown_table(overview)] if records else []), *gaps, *map(_section, records)]
    )


def _section(record: Record) -> str:
    failures = [f"- **Failure:** {escaped(failure)}" for failure in record["failures"]]
    return "\n".join(
        [
            f"## {record['title']}\n",
            f"{record['tried']}\n",
            markdown_table(record["rows"]),
            "\n".join(failures) or "No failure.",
            f"\n<small>`tests/robustness/test_{record['name']}.py`, {_duration(record['seconds'])} on "
            f"{footer(record)}.</small>\n",
        ]
    )


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    write_page()
    print(f"wrote {PAGE}")
