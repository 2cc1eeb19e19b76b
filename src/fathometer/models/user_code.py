"""Imports the user's own code, named as `package.module:name`. Nothing else here imports such code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fathometer.errors import InputError, did_you_mean, first_line


def import_by_name(name: str, what: str) -> Any:
    """Return the object that `package.module:name` names; the current folder is searched, too.

    `what` begins the error if the name has another form.
    """
    import torch

    place, colon, attribute = name.strip().partition(":")
    if not colon or not place or not attribute:
        raise InputError(f"{what}: expected package.module:name, got {name!r}")
    with current_folder_on_path(), torch.random.fork_rng(devices=[]):
        # With a fixed seed a network that is made while importing has the same weights in every process.
        torch.default_generator.manual_seed(0)
        try:
            module = importlib.import_module(place)
        except Exception as error:  # the user's code
            raise InputError(
                f"importing {place} failed: {type(error).__name__}: {first_line(error)}"
            ) from error
    if not hasattr(module, attribute):
        similar = did_you_mean(attribute, (name for name in vars(module) if not name.startswith("_")))
        raise InputError(f"{place} has no {attribute!r}; {similar or 'expected a function or class of it'}")
    return getattr(module, attribute)


def is_module(name: str) -> bool:
    """Say whether there is such a module, in the current folder or installed, without importing it."""
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    with current_folder_on_path():
        try:
            return name in sys.modules or importlib.util.find_spec(name) is not None
        except ModuleNotFoundError as error:
            return error.name is None or not f"{name}.".startswith(f"{error.name}.")
        except Exception:  # a parent package that fails exists, and says so once it is loaded
            return True


@contextmanager
def current_folder_on_path() -> Iterator[None]:
    """Let imports find modules of the current folder, as `python -m` does."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)
