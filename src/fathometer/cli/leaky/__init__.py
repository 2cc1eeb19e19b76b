"""`fathometer leaky`: the leaky lab, one file per command."""

from __future__ import annotations

from fathometer.cli.leaky.figures import figures
from fathometer.cli.leaky.measure import measure
from fathometer.cli.leaky.sweep import sweep
from fathometer.cli.leaky.theory import theory
from fathometer.cli.leaky.train import train
from fathometer.cli.options import new_app

app = new_app("Train Leaky ResNets, follow their representation, measure its energies, test the theory.")
for command in (train, sweep, measure, figures, theory):
    app.command()(command)
