"""`fathometer models`: the networks that can be measured by name."""

from __future__ import annotations

from typing import Annotated

import typer

from fathometer.cli import options as opt
from fathometer.cli.outputs import print_json
from fathometer.errors import InputError

app = opt.new_app()


@app.command()
def models(
    pattern: Annotated[
        str, opt.argument("PATTERN", r"A pattern of names: torchvision:\*, \*vit\*, timm:resnet\*.")
    ] = "*",
    as_json: opt.JsonOption = False,
) -> None:
    """List the networks that the installed libraries know, one per line.

    Besides these, `measure` takes `hf:FOLDER`, `onnx:FILE` and `package.module:factory`.

    For example:

    - `fathometer models 'torchvision:*'`

    - `fathometer models '*convnext*'`
    """
    from fathometer.models import list_models

    found = list_models(pattern)
    if not found:
        hint = "" if "*" in pattern else f"; '*{pattern}*' finds parts of names"
        raise InputError(
            f"{pattern!r}: no model of that name in the installed libraries{hint}. torchvision and "
            "timm come with 'fathometer[vision]', transformers with 'fathometer[language]'"
        )
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(found))
