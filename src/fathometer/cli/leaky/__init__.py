"""`fathometer leaky`: the leaky lab."""

from __future__ import annotations

from fathometer.cli.leaky.trained import figures, measure, theory
from fathometer.cli.leaky.training import sweep, train
from fathometer.cli.options import new_app

app = new_app("Train Leaky ResNets, follow their representation, measure its energies, test the theory.")
for command in (train, sweep, measure, figures, theory):
    app.command()(command)
