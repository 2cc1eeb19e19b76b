"""`fathometer plot`: results as publication figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from fathometer.cli.facts import FamiliesOption, FamilyOption, facts_for
from fathometer.cli.leaky.measure import only_network
from fathometer.cli.leaky.options import NetworkOption
from fathometer.cli.naming import slug
from fathometer.cli.options import ForceOption, MismatchOption, given, out_option
from fathometer.cli.outputs import check_writable
from fathometer.cli.results import Results, read_results
from fathometer.compare import comparable
from fathometer.errors import InputError
from fathometer.leaky import LeakySweep
from fathometer.progress import Terminal
from fathometer.report import Columns, plot_history, require_matplotlib, save_figure
from fathometer.report.figures.kinds import (
    KINDS,
    PICTURES,
    PlotOptions,
    draw_leaky,
    draw_soundings,
    usual_kind,
    usual_picture,
)
from fathometer.report.figures.style import PICTURE_SUFFIXES
from fathometer.results.history import History
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HISTORY = "history"
_ALWAYS = ("files", "kind", "columns", "out", "force")


def plot(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT…",
            help="Soundings, a folder of them, the folder of a leaky run or sweep, a history of a training.",
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option("--kind", "-k", metavar="KIND", help="Of picture. Default: by what is given."),
    ] = None,
    gauge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What is shown. Default: affinity, or the first that was measured."
        ),
    ] = None,
    columns: Annotated[
        int, typer.Option(metavar="1|2", help="Width in columns of a page: 3.5 or 7.2 inches.", min=1, max=2)
    ] = 2,
    out: Annotated[
        list[Path] | None,
        out_option("FILE", "A .pdf, .svg or .png. Repeatable. Default: by name and kind."),
    ] = None,
    strip: Annotated[
        bool, typer.Option("--strip", metavar="", help="Under a signature, the network as a strip.")
    ] = False,
    distribution: Annotated[
        bool, typer.Option("--distribution", metavar="", help="Beside a signature, its distribution.")
    ] = False,
    along: Annotated[
        Literal["depth", "dtw"],
        typer.Option(metavar="HOW", help="Of an overlay: relative depth, or dtw, aligned with the first."),
    ] = "depth",
    metric: Annotated[
        Literal["dtw", "euclidean", "wasserstein"],
        typer.Option(metavar="HOW", help="Of distances: dtw, euclidean or wasserstein."),
    ] = "dtw",
    linkage: Annotated[
        Literal["average", "complete", "single", "ward"],
        typer.Option(metavar="HOW", help="Of distances: average, complete, single or ward."),
    ] = "average",
    families: FamiliesOption = None,
    family: FamilyOption = None,
    network: NetworkOption = None,
    allow_mismatch: MismatchOption = False,
    force: ForceOption = False,
) -> None:
    """Draw a figure for print: one column or two, colours that all eyes tell apart, embedded letters.

    Kinds of one sounding: `signature`, `strip`, `distribution`; of a residual path: `path`.

    Of two: `alignment`, `difference`. Of several: `overlay`, `strip`, `distribution`, `years`, `distances`,
    `predictors`. Of a history: `history`.

    Of a leaky run: `1b` (spectra), `1c` (energies, Hamiltonian), `affinity`, `ranks`, `training`,
    `projection`; of a sweep also `1a`, `3` (several depths), `2a`, `2b`, `2c` (several schemes of steps).

    For instance:

    - `fathometer plot resnet18-photos.json --columns 1 --out signature.pdf`

    - `fathometer plot resnet18-photos.json --strip --distribution -o figure.pdf -o figure.png`

    - `fathometer plot resnet18.json vgg16.json --kind alignment`

    - `fathometer plot before.json after.json --kind difference --gauge stable_rank_y`

    - `fathometer plot results/ --kind distances --family "ResNet=resnet*" --family "VGG=vgg*"`

    - `fathometer plot results/ --kind years --families networks.csv` (a CSV with columns network and year)

    - `fathometer plot leaky-7-3-0 --kind 1c --columns 1 -o energies.svg`
    """
    require_matplotlib()
    for path in out or ():
        if path.suffix.lower() not in PICTURE_SUFFIXES:
            raise InputError(f"--out {path}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}")
        check_writable(path, force)
    width = cast("Columns", columns)
    results = read_results(files)
    kind = kind or _usual(results)
    _check_options(given(context), results, kind)
    if not out:
        of = f"-{slug(gauge)}" if gauge else ""
        out = [Path(f"{slug(Path(files[0]).resolve().stem)}-{slug(kind)}{of}.pdf")]
        check_writable(out[0], force)
    if isinstance(results, dict):
        figure = _of_soundings(
            results,
            kind,
            allow_mismatch,
            PlotOptions(
                gauge=gauge or _first_gauge(results),
                columns=width,
                along=along,
                metric=metric,
                method=linkage,
                strip=strip,
                distribution=distribution,
                facts=facts_for(results, families, family or []),
            ),
        )
    else:
        figure = _of_others(results, kind, gauge, width, network)
    console = Terminal()
    for path in out:
        save_figure(figure, path)
        console.print(f"wrote {path}", soft_wrap=True)


def _usual(results: Results) -> str:
    if isinstance(results, LeakySweep):
        return usual_picture(results)
    return _HISTORY if isinstance(results, History) else usual_kind(results)


def _check_options(names: list[str], results: Results, kind: str) -> None:
    """Refuse options that the picture does not look at."""
    if isinstance(results, dict):
        if kind not in KINDS:
            return  # which is refused when it is drawn
        what, looked_at = f"--kind {kind}", KINDS[kind].options
    elif isinstance(results, History):
        what, looked_at = "the picture of a history", ("gauge",)
    else:
        what, looked_at = "the pictures of a leaky run", ("network",)
    foreign = [f"--{name.replace(chr(95), chr(45))}" for name in names if name not in (*_ALWAYS, *looked_at)]
    if foreign:
        own = ", ".join(f"--{name.replace(chr(95), chr(45))}" for name in looked_at) or "no option of its own"
        raise InputError(f"{', '.join(foreign)}: not looked at by {what}, which takes {own}")


def _first_gauge(soundings: dict[str, Sounding]) -> str:
    measured = next(iter(soundings.values())).gauges
    return "affinity" if "affinity" in measured else measured[0]


def _of_soundings(named: dict[str, Sounding], kind: str, allow_mismatch: bool, wishes: PlotOptions) -> Figure:
    if kind in (*PICTURES, _HISTORY):
        whose = "a history" if kind == _HISTORY else "a leaky run"
        raise InputError(f"--kind {kind}: is of {whose}; of soundings there are {', '.join(KINDS)}")
    if kind in KINDS and KINDS[kind].alike and len(named) >= KINDS[kind].least:
        named = comparable(named, wishes.gauge, allow_mismatch=allow_mismatch)
    return draw_soundings(named, kind, wishes)


def _of_others(
    results: LeakySweep | History, kind: str, gauge: str | None, columns: Columns, network: int | None
) -> Figure:
    if isinstance(results, History):
        if kind != _HISTORY:
            raise InputError(f"--kind {kind}: of a history there is {_HISTORY}; `report` shows it as a film")
        return plot_history(results, gauge or "affinity", columns=columns)
    if kind not in PICTURES:
        raise InputError(f"--kind {kind}: of a leaky run there are {', '.join(PICTURES)}")
    chosen = results if network is None else only_network(results, network)
    return draw_leaky(chosen, kind, columns=columns)
