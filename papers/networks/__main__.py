"""`python -m papers.networks measure|train|reference|distances`: the trained networks and their soundings."""

from __future__ import annotations

import sys
import warnings

import typer

from fathometer.errors import FathometerError
from papers.networks.distances import choose_distance
from papers.networks.measure import measure_networks
from papers.networks.reference import write_reference
from papers.networks.train import train_networks

app = typer.Typer(
    name="python -m papers.networks",
    help="Trained networks: measure those with published weights, train others, compare all of them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("measure")(measure_networks)
app.command("train")(train_networks)
app.command("reference")(write_reference)
app.command("distances")(choose_distance)


def main() -> None:
    """Run the command; an expected error is one line on stderr and exit code 2."""
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
    try:
        app()
    except FathometerError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
