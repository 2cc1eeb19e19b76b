"""Errors cross processes: what is raised on a cluster arrives as it was."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil

import pytest

import fathometer
from fathometer import FathometerError
from fathometer.errors import MissingExtraError


def kinds() -> list[type[FathometerError]]:
    """All that the package defines."""
    for module in pkgutil.walk_packages(fathometer.__path__, "fathometer."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[FathometerError]] = [FathometerError]
    for kind in found:  # which grows meanwhile
        found += [other for other in kind.__subclasses__() if other not in found]
    return [kind for kind in found if kind.__module__.startswith("fathometer.")]


def test_every_error_survives_pickling_and_copying() -> None:
    found = kinds()
    assert MissingExtraError in found
    for kind in found:
        arguments = ("rich", "all", "a table") if kind is MissingExtraError else ("expected this, got that",)
        error = kind(*arguments)
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is kind
            assert str(again) == str(error)


def test_a_missing_extra_says_what_to_install() -> None:
    with pytest.raises(ImportError, match=r"needs the package .rich.: pip install 'fathometer\[all\]'"):
        raise MissingExtraError("rich", "all", "a table")
