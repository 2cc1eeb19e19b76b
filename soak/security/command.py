"""The command `fathometer` as a user starts it, in this process."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from fathometer.cli import main


class Ran(NamedTuple):
    """How a command ended: its exit code, and all that it wrote."""

    code: int
    text: str


def command(*arguments: str) -> Ran:
    """Run it; an error that it did not foresee is exit code 1, as Python has it."""
    written = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["fathometer", *arguments]),
        mock.patch.dict(os.environ, {"COLUMNS": "300"}),
        redirect_stdout(written),
        redirect_stderr(written),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as end:
            return Ran(int(end.code or 0), written.getvalue())
        except Exception as error:
            return Ran(1, f"{written.getvalue()}{error!r}")
    return Ran(0, written.getvalue())
