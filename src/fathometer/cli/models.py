"""`fathometer models`: what can be measured by name."""

from __future__ import annotations

from typing import Annotated

import typer

from fathometer.errors import InputError
from fathometer.models import list_models


def models(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN", help=r"A pattern of names: torchvision:\*, \*vit\*, timm:resnet\*."
        ),
    ] = "*",
) -> None:
    """List the networks that the installed libraries know, one a line.

    Beside these, `measure` takes `hf:FOLDER`, `onnx:FILE` and `package.module:factory`.

    For instance:

    - `fathometer models 'torchvision:*'`

    - `fathometer models '*convnext*'`
    """
    found = list_models(pattern)
    if not found:
        hint = "" if "*" in pattern else f"; '*{pattern}*' finds parts of names"
        raise InputError(
            f"{pattern!r}: no model of that name in the installed libraries{hint}. torchvision and "
            "timm come with 'fathometer[vision]', transformers with 'fathometer[language]'"
        )
    typer.echo("\n".join(found))
