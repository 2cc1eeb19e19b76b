"""Every test has two sizes: a small one that runs with all tests, and a full one, marked `robustness`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.records import Row
from tests.robustness.processes import Processes, fork_server


@pytest.fixture(
    params=[pytest.param(False, id="small"), pytest.param(True, id="full", marks=pytest.mark.robustness)]
)
def full(request: pytest.FixtureRequest) -> bool:
    """Whether to try everything, which takes minutes, or a small part of it."""
    return bool(request.param)


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """One line of the table in docs/reliability.md; the test fills it."""
    found: Row = {}
    request.node.user_properties.append(("row", found))
    return found


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Runs commands in processes of their own."""
    with fork_server(tmp_path_factory.mktemp("processes")) as found:
        yield found
