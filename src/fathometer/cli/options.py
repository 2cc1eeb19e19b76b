"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

SitesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Only these sites: a pattern (layer1.\\*), an operator (relu), module:NAME. Repeatable."
    ),
]
ActivationOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="A class or function of your own that is an activation, package.module:name. Repeatable."
    ),
]
