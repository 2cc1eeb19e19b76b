"""Errors cross processes: what is raised on a cluster arrives as it was."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil

import numpy as np
import pytest
import torch

import fathometer
from fathometer import FathometerError, InputError
from fathometer.errors import MissingExtraError, check_device, check_positive, check_whole, did_you_mean


def all_errors() -> list[type[FathometerError]]:
    """Return all errors that the package defines."""
    for module in pkgutil.walk_packages(fathometer.__path__, "fathometer."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[FathometerError]] = [FathometerError]
    for kind in found:  # which grows meanwhile
        found += [other for other in kind.__subclasses__() if other not in found]
    return [kind for kind in found if kind.__module__.startswith("fathometer.")]


def test_every_error_survives_pickling_and_copying() -> None:
    errors = [kind("expected this, got that") for kind in all_errors() if kind is not MissingExtraError]
    errors += [MissingExtraError("rich", "all", "a table"), InputError("expected 1, got 2", parameter="n")]
    for error in errors:
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is type(error)
            assert str(again) == str(error)
            assert vars(again) == vars(error)


def test_whole_numbers_of_every_library_are_accepted_and_nothing_else() -> None:
    for value in (64, np.int64(64), torch.tensor(64)):
        number = check_whole("samples", value, minimum=2)
        assert type(number) is int
        assert number == 64
    for other in (1, True, 64.0, "64", None, np.float64(64), np.inf):
        with pytest.raises(InputError, match="samples: expected a whole number from 2"):
            check_whole("samples", other, minimum=2)


def test_positive_numbers_of_every_library_are_accepted_and_nothing_else() -> None:
    for value in (2, 2.0, np.float32(2), np.int64(2)):
        number = check_positive("gamma", value)
        assert type(number) is float
        assert number == 2
    assert check_positive("depth", np.float32(0), or_zero=True) == 0
    for other in (0, -1, True, np.inf, np.nan, np.float32(np.nan), "2", None, 2j):
        with pytest.raises(InputError, match="gamma: expected a finite number > 0"):
            check_positive("gamma", other)


def test_similar_names_are_suggested() -> None:
    known = ["stable_rank_x", "stable_rank_y", "Affinity"]
    assert did_you_mean("stable_rank", known) == "did you mean stable_rank_x or stable_rank_y?"
    assert did_you_mean("affinty", known) == "did you mean Affinity?"
    assert did_you_mean("", known) == did_you_mean("zzz", known) == ""


def test_a_device_is_checked_by_using_it() -> None:
    assert check_device("cpu") == "cpu"
    assert check_device("auto") in ("cpu", "cuda")
    for device in ("warp", "cuda:99", "meta", None):
        with pytest.raises(InputError, match=f"^keep_on: {device} is not usable here"):
            check_device(device, "keep_on")
