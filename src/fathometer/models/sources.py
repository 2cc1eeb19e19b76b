"""What every source of networks offers, and the complaints they share."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from torch import nn

from fathometer.data.inputs import Inputs
from fathometer.errors import InputError, MissingExtraError, first_line
from fathometer.models.torchvision_operators import ensure_torchvision_operators

FROM_A_FILE = "from a file"

Found: TypeAlias = tuple[nn.Module, str, Inputs]
"""The network, the name of its weights, what it takes in."""


class Source(NamedTuple):
    """Where networks come from.

    Attributes:
        load: from a name and `default`, `none`, `FROM_A_FILE` (they follow) or a name of weights.
        names: what there is; a `MissingExtraError` if its library is not installed.
        names_weights: whether weights have names of their own.
        inputs_of_file: from a name and the name of a file of weights to the inputs that they expect, where
            that depends on the file.
    """

    load: Callable[[str, str], Found]
    names: Callable[[], list[str]]
    names_weights: bool = False
    inputs_of_file: Callable[[str, str], Inputs] | None = None


def ready(module: nn.Module) -> nn.Module:
    """Return the network on the CPU and in eval mode."""
    try:
        return module.cpu().eval()
    except NotImplementedError:  # from torch.export, which fixed the mode
        return module


def import_optional(package: str, *submodules: str, extra: str, purpose: str) -> Any:
    """The package, with some of its submodules; without it, an error that names the extra."""
    ensure_torchvision_operators()
    try:
        found = importlib.import_module(package)
        for submodule in submodules:
            importlib.import_module(f"{package}.{submodule}")
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error
    return found


def unknown_model(source: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that a source does not have."""
    near = difflib.get_close_matches(name.lower(), list(known), n=3)
    hint = (
        f"did you mean {' or '.join(f'{source}:{n}' for n in near)}?"
        if near
        else "`fathometer models` lists them"
    )
    return InputError(f"{source}:{name}: there is no such model; {hint}")


def no_default_weights(name: str, error: Exception) -> InputError:
    """The error for weights that did not arrive."""
    return InputError(
        f"{name}: its weights could not be had ({first_line(error)}); use --weights none or a local file"
    )
