"""`fathometer leaky`: the leaky lab, one file per verb."""

from __future__ import annotations

import typer

from fathometer.cli.leaky.figures import figures
from fathometer.cli.leaky.measure import measure
from fathometer.cli.leaky.sweep import sweep
from fathometer.cli.leaky.theory import theory
from fathometer.cli.leaky.train import train

leaky = typer.Typer(
    name="leaky",
    help="Train Leaky ResNets, follow their representation, weigh its energies, test the theory.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for verb in (train, sweep, measure, figures, theory):
    leaky.command()(verb)
