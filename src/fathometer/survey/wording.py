"""Errors in the words of a plan: what the rest of the package calls an option of the command line."""

from __future__ import annotations

import re
from dataclasses import fields

from fathometer.survey.settings import RunOptions, Settings

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: ([a-z0-9:]*[a-z0-9]))?")
_TABLES = {
    **{field.name: "[settings] " for field in fields(Settings)},
    **{field.name: "[run] " for field in fields(RunOptions)},
    "weights": "",
}


def in_words_of_a_plan(message: str) -> str:
    """A message with the keys of a plan in the place of options; what a plan does not have stays.

    Example:
        >>> in_words_of_a_plan("use --weights none, --leftover keep, or a smaller --batch-size")
        'use weights = "none", [settings] leftover = "keep", or a smaller [run] batch_size'
    """
    return _OPTION.sub(_key, message)


def _key(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    if name not in _TABLES:
        return option[0]
    return f"{_TABLES[name]}{name}" + (f' = "{option[2]}"' if option[2] else "")
