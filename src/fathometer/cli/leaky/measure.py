"""`fathometer leaky measure`: a table of what was trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fathometer.cli.leaky.options import RunArgument
from fathometer.cli.options import ForceOption, GammaOption, JsonOption, NetworkOption, OutOption
from fathometer.cli.outputs import check_writable, print_result, write_table
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.leaky import LeakyRun, LeakySweep


def measure(
    run: RunArgument,
    network: NetworkOption = None,
    gamma: GammaOption = 1e-3,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure trained networks: cost of identity, energies, Hamiltonian, affinity score, bottleneck rank.

    One network is shown along its path, a sweep with a row for each design. The Hamiltonian is given as
    −2H/L̃, in units of dimensions: near the bottleneck rank where the network is critical. `--out` writes a
    .csv with every column.

    For example:

    - `fathometer leaky measure leaky-7-3-0 --out path.csv`
    """
    from fathometer.cli.leaky.tables import network_view, rank_lines, sweep_view
    from fathometer.leaky import load_sweep

    found = load_sweep(run).with_gamma(gamma)
    one = only_network(found, network) if network is not None or len(found.runs) == 1 else None
    if out is not None:
        check_writable(out, force, (".csv",))
    if one is None:
        table = found.table
        console = print_result(table, lambda console: sweep_view(found, console), as_json)
    else:  # a row for each point of the path, with the layer that starts there
        table = one.measures.points.merge(one.measures.layers, how="left", on="p")
        console = print_result(table, lambda console: network_view(one, console), as_json)
    if out is not None:
        write_table(table, out)
        console.say(f"wrote {out}")
    for line in rank_lines(found.runs if one is None else [one]):
        console.print(line)


def only_network(found: LeakySweep, number: int | None) -> LeakyRun:
    """Return the network of that number."""
    number = number or 0
    if number >= len(found.runs):
        last = len(found.runs) - 1
        expected = f"a number from 0 to {last}" if last else "0, for there is one network"
        raise InputError(f"expected {expected}, got {number}", parameter="network")
    return found.runs[number]
