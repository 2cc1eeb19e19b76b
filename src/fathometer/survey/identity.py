"""What is known about models, weights and data before a network is loaded.

They are identified by their contents and not by where they are. The address of a result is a hash of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fathometer.data.opening import contents_hash, inspect_data
from fathometer.errors import InputError
from fathometer.measuring.identity import code_hash
from fathometer.models.from_torchvision import default_weights, inputs_of_file
from fathometer.models.loading import SOURCES
from fathometer.models.user_code import import_by_name
from fathometer.survey.members import Member


def model_identity(member: Member) -> dict[str, Any]:
    """Identify a network and its weights: files by their contents, others by the name that a library has.

    No path is part of it: a file that was moved or renamed is the same.
    """
    source, _, rest = member.model_source.partition(":")
    if source == "onnx" or (source == "hf" and Path(rest).exists()):
        found: dict[str, Any] = {"source": source, "contents": contents_hash(rest)}
    elif source in SOURCES:
        found = {"name": member.model}
    else:
        found = {"name": member.model, "code": code_identity((member.model,))}
    if not member.weights_is_file:
        name = default_weights(member.model) if member.weights == "default" else None
        return {**found, "weights": name or member.weights}
    file = Path(member.weights_source)
    found["weights"] = {"contents": contents_hash(str(file))}
    if source == "torchvision":  # its own file names say which preprocessing belongs to them
        found["preprocess"] = repr(inputs_of_file(rest, file.name).preprocess)
    return found


def code_identity(names: Iterable[str]) -> dict[str, str]:
    """Hash the code of every `package.module:name` (`code_hash`)."""
    return {name: code_hash(import_by_name(name, "code")) for name in names if ":" in name}


def data_identity(source: str) -> dict[str, str]:
    """Identify a file or folder by its contents, and noise by its name."""
    contents, _ = inspect_data(source)
    return {"name": source} if contents is None else {"contents": contents}


def known_count(source: str) -> int | None:
    """Return the largest possible number of samples, or None if only a network can tell.

    Example:
        >>> known_count("random:32"), known_count("no such folder")
        (32, None)
    """
    try:
        return inspect_data(source)[1]
    except InputError:  # it is reported when the data are opened
        return None
