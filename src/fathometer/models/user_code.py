"""Code of the user's own, named as `package.module:name`. Nothing else in the package imports such code."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from fathometer.errors import InputError, first_line

_NAMES = 12  # of a module, that an error lists


def import_by_name(name: str, what: str) -> Any:
    """The object that `package.module:name` names, where the current folder is searched, too."""
    place, colon, attribute = name.strip().partition(":")
    if not colon or not place or not attribute:
        raise InputError(f"{what}: expected package.module:name, got {name!r}")
    with current_folder_on_path(), torch.random.fork_rng(devices=[]):
        # With a fixed seed a network that is made while importing has the same weights in every process.
        torch.default_generator.manual_seed(0)
        try:
            module = importlib.import_module(place)
        except Exception as error:  # the code of others
            raise InputError(
                f"importing {place} failed: {type(error).__name__}: {first_line(error)}"
            ) from error
    if not hasattr(module, attribute):
        raise InputError(f"{place} has no {attribute!r}; {_instead(module, attribute)}")
    return getattr(module, attribute)


def _instead(module: ModuleType, attribute: str) -> str:
    """What was probably meant, or what the module defines itself."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    near = difflib.get_close_matches(attribute, public, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    own = [
        name
        for name, value in public.items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    if not own:
        return "it defines no function or class"
    return f"it has {', '.join(own[:_NAMES])}{', …' if len(own) > _NAMES else ''}"


@contextmanager
def current_folder_on_path() -> Iterator[None]:
    """As `python -m` has it."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)
