"""`fathometer leaky measure`, `figures` and `theory`: what was trained."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from fathometer.cli import options as opt
from fathometer.cli.outputs import check_writable, print_result, write_files
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.leaky import LeakyRun, LeakySweep

RunArgument: TypeAlias = Annotated[
    str, opt.argument("RUN", "A folder that `fathometer leaky train` or `sweep` wrote; a path or URL.")
]


def measure(
    run: RunArgument,
    network: opt.NetworkOption = None,
    gamma: opt.GammaOption = 1e-3,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
) -> None:
    """Measure trained networks: cost of identity, energies, Hamiltonian, affinity score, bottleneck rank.

    One network is shown along its path, a sweep with a row for each design. The Hamiltonian is given as
    −2H/L̃, in units of dimensions: near the bottleneck rank if training has converged. `--out` writes a
    .csv with every column.

    For example:

    - `fathometer leaky measure leaky-7-3-0 --out path.csv`
    """
    from fathometer.cli.leaky.tables import network_view, rank_lines, sweep_view

    found = _read_run(run).with_gamma(gamma)
    one = only_network(found, network or 0) if network is not None or len(found.runs) == 1 else None
    check_writable(out, force, (".csv",))
    if one is None:
        table, view = found.table, sweep_view(found)
    else:  # a row for each point of the path, with the layer that starts there
        table = one.measures.points.merge(one.measures.layers, how="left", on="p")
        view = network_view(one)
    console = print_result(table, view, as_json)
    write_files({out: table} if out else {}, console)
    for line in rank_lines(found.runs if one is None else [one]):
        console.print(line)


def _read_run(place: str) -> LeakySweep:
    from fathometer.leaky import load_sweep
    from fathometer.results.store import local_copy

    with local_copy(place) as folder:
        return load_sweep(folder)


def only_network(found: LeakySweep, number: int) -> LeakyRun:
    """Return the network of that number."""
    if number >= len(found.runs):
        last = len(found.runs) - 1
        expected = f"a number from 0 to {last}" if last else "0, for there is one network"
        raise InputError(f"expected {expected}, got {number}", parameter="network")
    return found.runs[number]


def figures(
    run: RunArgument,
    out: opt.OutOption = None,
    form: Annotated[
        Literal["png", "svg", "pdf"],
        opt.option("FORM", "Format of the figures: png, svg or pdf.", "--format"),
    ] = "png",
    force: opt.ForceOption = False,
) -> None:
    """Draw Figures 1a-c, 2a-c and 3, and the affinity score along the path, as far as the networks allow.

    Figures 1a and 3 need several depths, Figure 2 several schemes of steps: see
    `fathometer leaky sweep --help`. They go into a folder (default: RUN/figures; of a URL: figures).

    For example:

    - `fathometer leaky figures leaky-sweep --format pdf`
    """
    from fathometer.leaky import load_sweep
    from fathometer.progress import Terminal
    from fathometer.report import leaky_figures, require_matplotlib
    from fathometer.report.figures.kinds import PAPER_FIGURES
    from fathometer.results.store import is_url, local_copy

    require_matplotlib()
    with local_copy(run) as folder:
        found = load_sweep(folder)
    out = out or (Path() if is_url(run) else folder) / "figures"
    files = {name: out / f"{name}.{form}" for name in PAPER_FIGURES}
    for path in files.values():
        check_writable(path, force)
    drawn, missing = leaky_figures(found)
    console = Terminal()
    write_files({files[name]: figure for name, figure in drawn.items()}, console)
    for name, reason in missing.items():
        console.say(f"no {name}: {reason}")


def theory(
    run: RunArgument,
    network: opt.NetworkOption = None,
    gamma: opt.GammaOption = 1e-3,
    details: Annotated[bool, opt.flag("--details", "Show how each statement was decided.")] = False,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
) -> None:
    """Check every statement of the paper on a trained network: both sides measured, and the slack.

    Of a sweep, the deepest network that did not diverge is used; Proposition 5 is about all depths with its
    other settings. `--out` writes a .csv.

    For example:

    - `fathometer leaky theory leaky-7-3-0 --details`
    """
    import pandas as pd

    from fathometer.cli.leaky.tables import statements_view
    from fathometer.leaky.theory import check_all

    found = _read_run(run)
    if network is None:
        chosen = max(found.trained, key=lambda run: run.design.effective_depth)
    else:
        chosen = only_network(found, network)
    check_writable(out, force, (".csv",))
    others = [other.path for other in found.siblings(chosen)]
    statements = check_all(chosen.path, gamma, others if len(others) > 1 else ())
    table = pd.DataFrame([asdict(statement) for statement in statements]).drop(columns="details")
    console = print_result(table, statements_view(chosen, statements, details), as_json)
    write_files({out: table} if out else {}, console)
    held = sum(statement.holds for statement in statements)
    console.print(f"{held} of {len(statements)} statements hold")
