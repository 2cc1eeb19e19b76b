"""What must never happen, tried: code from files, files outside a folder, names that are more than names."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from soak.program import Effort, Outcome, Program, Row
from soak.security.bombs import bombs_are_refused
from soak.security.code import user_code_runs_only_when_named
from soak.security.evil import NAMES, PATHS
from soak.security.pickles import nothing_is_unpickled
from soak.security.places import a_survey_stays_in_its_folder, names_become_files
from soak.security.scan import ALLOWED, no_call_runs_code_from_data
from soak.security.shown import pages_hold_no_element_from_a_name
from soak.security.trial import Point
from soak.security.verbs import the_terminal_is_not_commanded


def run(effort: Effort) -> Outcome:
    """Every promise, in a folder of its own."""
    full = effort == "full"
    names, paths = (NAMES, PATHS) if full else (NAMES[1::10], PATHS[:4])
    promises: list[Callable[[Path], Point]] = [
        nothing_is_unpickled,
        lambda _: no_call_runs_code_from_data(),
        lambda folder: a_survey_stays_in_its_folder(folder, paths),
        names_become_files,
        lambda _: pages_hold_no_element_from_a_name(names),
        lambda folder: the_terminal_is_not_commanded(folder, names if full else names[1:]),
        user_code_runs_only_when_named,
        bombs_are_refused,
    ]
    rows: list[Row] = []
    failures: list[str] = []
    for promise in promises:
        with tempfile.TemporaryDirectory() as folder:
            point = promise(Path(folder).resolve())
        rows.append({"promise": point.promise, "tried": point.tried, "broken": len(point.broken)})
        failures += point.broken
    return Outcome(
        rows, failures, [f"{file} may call {call}: {why}" for (file, call), why in ALLOWED.items()]
    )


SECURITY = Program(
    "security",
    "Files and names that mean harm",
    "Pickles in the place of every file, plans and names that look like paths, names that look like HTML, "
    "terminal commands or markup, results that name code which lies beside them. A failure is code that "
    "ran, a file outside the results folder, an element on a page or a control character in the terminal"
    " that came from a name.",
    run,
)
