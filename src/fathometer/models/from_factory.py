"""`package.module:factory`: a network that the user's own code makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from fathometer.data import Inputs
from fathometer.errors import InputError, first_line
from fathometer.models.inputs import guess_inputs, inputs_with_preprocess
from fathometer.models.sources import SourceResult, ready
from fathometer.models.user_code import current_folder_on_path, import_by_name


def load(name: str, weights: str | Path) -> SourceResult:
    """Call the factory, which returns a network, alone or with `Inputs` or a preprocessing of images."""
    made = _make(name)
    module, description = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, nn.Module):
        raise InputError(
            f"{name}: expected an nn.Module, (nn.Module, Inputs) or (nn.Module, preprocess), "
            f"got {type(made).__name__}"
        )
    module = ready(module)
    if isinstance(description, Inputs):
        inputs = description
    elif callable(description):
        inputs = inputs_with_preprocess(module, description)
    elif description is None:
        inputs = guess_inputs(module, name)
    else:
        raise InputError(
            f"{name}: expected Inputs or a preprocessing beside the network, got {type(description).__name__}"
        )
    return module, str(weights), inputs


def _make(name: str) -> Any:
    factory = import_by_name(name, "a model")
    if isinstance(factory, nn.Module) or not callable(factory):
        return factory
    try:
        with current_folder_on_path():
            return factory()
    except Exception as error:  # the user's code
        raise InputError(f"{name}() failed: {type(error).__name__}: {first_line(error)}") from error
