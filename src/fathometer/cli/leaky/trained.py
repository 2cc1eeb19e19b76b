"""`fathometer leaky measure`, `figures` and `theory`: what was trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from fathometer.cli import options as opt
from fathometer.cli.outputs import check_writable, print_result, write_files
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.leaky import LeakyRun, LeakySweep

OnlyOption: TypeAlias = Annotated[
    str | None,
    opt.option(
        "KEY=VALUE,…",
        "Networks of a sweep with these values of depth, rank, layers, scheme, decay, sigma or seed, "
        "such as rank=3,seed=0.",
    ),
]
_KEYS: dict[str, tuple[str, Callable[[str], object]]] = {
    "depth": ("effective_depth", float),
    "rank": ("rank", int),
    "layers": ("layers", int),
    "scheme": ("scheme", str),
    "decay": ("decay", float),
    "sigma": ("sigma", str),
    "seed": ("seed", int),
}
"""Keys of `--only`: the attribute of a design, and how its value is read."""

RunArgument: TypeAlias = Annotated[
    str, opt.argument("RUN", "A folder that `fathometer leaky train` or `sweep` wrote; a path or URL.")
]


def measure(
    run: RunArgument,
    network: opt.NetworkOption = None,
    only: OnlyOption = None,
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

    everything = _read_run(run).with_gamma(gamma)
    found = chosen_networks(everything, network, only)
    one = found.runs[0] if len(found.runs) == 1 else None
    check_writable(out, force, (".csv",))
    if one is None:
        table, view = found.table, sweep_view(found)
    else:  # a row for each point of the path, with the layer that starts there
        table = one.measures.points.merge(one.measures.layers, how="left", on="p")
        view = network_view(one, number_of(one, everything))
    console = print_result(table, view, as_json)
    write_files({out: table} if out else {}, console)
    for line in rank_lines(found.runs):
        console.print(line)


def _read_run(place: str) -> LeakySweep:
    from fathometer.leaky import load_sweep
    from fathometer.results.store import local_copy

    with local_copy(place) as folder:
        return load_sweep(folder)


def chosen_networks(found: LeakySweep, number: int | None, only: str | None) -> LeakySweep:
    """Return the network of that number, the networks that `--only` names, or all."""
    if number is not None and only is not None:
        raise InputError("--network and --only choose both; leave one out")
    if number is not None:
        if number >= len(found.runs):
            last = len(found.runs) - 1
            expected = f"a number from 0 to {last}" if last else "0, for there is one network"
            raise InputError(f"expected {expected}, got {number}", parameter="network")
        return replace(found, runs=(found.runs[number],))
    return found if only is None else found.only(**_attributes(only))


def _attributes(only: str) -> dict[str, object]:
    """Read `rank=3,seed=0`."""
    found = {}
    for part in only.split(","):
        key, _, value = (word.strip() for word in part.partition("="))
        try:
            name, kind = _KEYS[key]
            found[name] = kind(value)
        except (KeyError, ValueError) as error:
            raise InputError(
                f"expected values of {', '.join(_KEYS)}, such as rank=3,seed=0, got {part!r}",
                parameter="only",
            ) from error
    return found


def number_of(run: LeakyRun, found: LeakySweep) -> int | None:
    """Return the number of a network in a sweep; None if it is the only one."""
    return next(n for n, each in enumerate(found.runs) if each is run) if len(found.runs) > 1 else None


def figures(
    run: RunArgument,
    only: OnlyOption = None,
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
    Each names the network that it shows.

    For example:

    - `fathometer leaky figures leaky-sweep --format pdf`

    - of a sweep over ranks: `fathometer leaky figures leaky-sweep --only rank=3 --out rank-3`
    """
    from fathometer.cli.leaky.tables import name_network
    from fathometer.leaky import load_sweep
    from fathometer.progress import Terminal
    from fathometer.report import default_run, leaky_figures, require_matplotlib
    from fathometer.report.figures.kinds import PAPER_FIGURES
    from fathometer.results.store import is_url, local_copy

    require_matplotlib()
    with local_copy(run) as folder:
        everything = load_sweep(folder)
    found = chosen_networks(everything, None, only)
    out = out or (Path() if is_url(run) else folder) / "figures"
    files = {name: out / f"{name}.{form}" for name in PAPER_FIGURES}
    for path in files.values():
        check_writable(path, force)
    drawn, missing = leaky_figures(found)
    console = Terminal()
    write_files({files[name]: figure for name, figure in drawn.items()}, console)
    for name, reason in missing.items():
        console.say(f"no {name}: {reason}")
    shown = default_run(found)
    console.say(f"1b, 1c and affinity show {name_network(shown, number_of(shown, everything))}")


def theory(
    run: RunArgument,
    network: opt.NetworkOption = None,
    only: OnlyOption = None,
    gamma: opt.GammaOption = 1e-3,
    details: Annotated[bool, opt.flag("--details", "Show how each statement was decided.")] = False,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
) -> None:
    """Check every statement of the paper on a trained network, with both sides measured.

    An inequality has a margin, negative where it is violated; an equation has an error. `paper` is the right
    side as the paper prints it, where we correct it. Of several networks the deepest that did not diverge is
    used; Proposition 5 is about all depths with its other settings. `--out` writes a .csv.

    For example:

    - `fathometer leaky theory leaky-7-3-0 --details`

    - of a sweep over ranks: `fathometer leaky theory leaky-sweep --only rank=3,depth=8,seed=0`
    """
    import pandas as pd

    from fathometer.cli.leaky.tables import statements_view
    from fathometer.leaky.theory import check_all, not_applicable

    found = _read_run(run)
    some = chosen_networks(found, network, only)
    chosen = some.runs[0] if network is not None else max(some.trained, key=_depth)
    number = number_of(chosen, found)
    check_writable(out, force, (".csv",))
    others = [other.path for other in found.siblings(chosen)]
    statements = check_all(chosen.path, gamma, others if len(others) > 1 else ())
    table = pd.DataFrame([asdict(statement) for statement in statements]).drop(columns="details")
    table.insert(0, "network", number or 0)
    console = print_result(table, statements_view(chosen, number, statements, details), as_json)
    write_files({out: table} if out else {}, console)
    held = sum(statement.holds for statement in statements)
    for part, reason in not_applicable(chosen.path.sigma).items():
        console.say(f"{part}: not for σ = {chosen.design.sigma}, {reason}")
    console.print(f"{held} of {len(statements)} statements hold")


def _depth(run: LeakyRun) -> float:
    return run.design.effective_depth
