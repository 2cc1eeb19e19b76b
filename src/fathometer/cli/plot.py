"""`fathometer plot`: results as figures for print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from fathometer.cli.options import (
    FamiliesOption,
    FamilyOption,
    ForceOption,
    GaugeOption,
    LinkageOption,
    MetricOption,
    MismatchOption,
    NetworkOption,
    ResultsArgument,
    StrictOption,
    given,
    new_app,
    out_option,
    refuse_unused,
)
from fathometer.cli.outputs import PICTURES as SUFFIXES
from fathometer.cli.outputs import check_writable, slug
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.cli.results import Results
    from fathometer.report import Columns

app = new_app()

_ALWAYS = ("files", "kind", "columns", "out", "force", "strict")


@app.command()
def plot(
    context: typer.Context,
    files: ResultsArgument,
    kind: Annotated[
        str | None,
        typer.Option("--kind", "-k", metavar="KIND", help="Kind of figure. Default: by what is given."),
    ] = None,
    gauge: GaugeOption = None,
    columns: Annotated[
        int,
        typer.Option(metavar="1|2", help="Width in columns of a page: 3.5 or 7.2 inches.", min=1, max=2),
    ] = 2,
    strip: Annotated[
        bool, typer.Option("--strip", metavar="", help="Draw the network as a strip below a signature.")
    ] = False,
    distribution: Annotated[
        bool, typer.Option("--distribution", metavar="", help="Draw the distribution beside a signature.")
    ] = False,
    along: Annotated[
        Literal["depth", "dtw"],
        typer.Option(
            metavar="HOW", help="Axis of an overlay: relative depth, or dtw, aligned with the first."
        ),
    ] = "depth",
    metric: MetricOption = None,
    linkage: LinkageOption = "average",
    families: FamiliesOption = None,
    family: FamilyOption = None,
    network: NetworkOption = None,
    allow_mismatch: MismatchOption = False,
    strict: StrictOption = False,
    out: Annotated[list[Path] | None, out_option()] = None,
    force: ForceOption = False,
) -> None:
    """Draw a figure for print: one column or two, colour-blind-safe colours, embedded fonts.

    `--out` is a .pdf, .svg or .png, and repeatable; by default the name of the input and the kind, as .pdf.

    Kinds for one sounding: `signature`, `strip`, `distribution`; for a residual path: `path`. For two:
    `alignment`, `difference`. For several: `overlay`, `strip`, `distribution`, `years`, `distances`,
    `predictors`. For the history of a training: `history`.

    For a leaky run: `1b` (spectra), `1c` (energies, Hamiltonian), `affinity`, `ranks`, `training`,
    `projection`; for a sweep also `1a`, `3` (several depths), `2a`, `2b`, `2c` (several schemes of steps).

    For example:

    - `fathometer plot resnet18-photos.json --columns 1 --out signature.pdf`

    - `fathometer plot resnet18-photos.json --strip --distribution -o figure.pdf -o figure.png`

    - `fathometer plot resnet18.json vgg16.json --kind alignment`

    - `fathometer plot before.json after.json --kind difference --gauge stable_rank_y`

    - `fathometer plot results/ --kind distances --family "ResNet=resnet*" --family "VGG=vgg*"`

    - `fathometer plot results/ --kind years --families networks.csv` (a CSV with columns network and year)

    - `fathometer plot leaky-7-3-0 --kind 1c --columns 1 -o energies.svg`
    """
    from fathometer.cli.results import default_gauge, facts_for, read_results
    from fathometer.compare import comparable
    from fathometer.progress import Terminal
    from fathometer.report import plot_history, require_matplotlib, save_figure
    from fathometer.report.figures.kinds import KINDS, PlotOptions, draw_soundings
    from fathometer.results.history import History

    require_matplotlib()
    for path in out or ():
        check_writable(path, force, SUFFIXES)
    width = cast("Columns", columns)
    results = read_results(files, strict=strict)
    what, kinds, usual = _kinds_of(results)
    kind = kind or usual
    if kind not in kinds:
        raise InputError(f"expected one of {', '.join(kinds)} for {what}, got {kind!r}", parameter="kind")
    if isinstance(results, dict):
        used = KINDS[kind].options
    else:
        used = ("gauge",) if kind == "history" else ("network",)
    refuse_unused(given(context), (*_ALWAYS, *used), f"--kind {kind}")
    if not out:
        of = f"-{slug(gauge)}" if gauge else ""
        out = [Path(f"{slug(Path(files[0]).resolve().stem)}-{slug(kind)}{of}.pdf")]
        check_writable(out[0], force)
    if isinstance(results, History):
        figure = plot_history(results, gauge or "affinity", columns=width)
    elif isinstance(results, dict):
        gauge = gauge or default_gauge(results.values())
        if KINDS[kind].alike and len(results) >= KINDS[kind].least:
            results = comparable(results, gauge, allow_mismatch=allow_mismatch)
        drawing = PlotOptions(
            gauge=gauge,
            columns=width,
            along=along,
            metric=metric or "dtw",
            method=linkage,
            strip=strip,
            distribution=distribution,
            facts=facts_for(results, families, family or []),
        )
        figure = draw_soundings(results, kind, drawing)
    else:
        from fathometer.cli.leaky.trained import only_network
        from fathometer.report.figures.kinds import draw_leaky

        figure = draw_leaky(
            results if network is None else only_network(results, network), kind, columns=width
        )
    console = Terminal()
    for path in out:
        save_figure(figure, path)
        console.say(f"wrote {path}")


def _kinds_of(results: Results) -> tuple[str, tuple[str, ...], str]:
    """Return what the results are, the kinds of figures that there are of them, and the default."""
    from fathometer.leaky import LeakySweep
    from fathometer.report.figures.kinds import KINDS, PICTURES, default_kind, default_picture

    if isinstance(results, LeakySweep):
        return "a leaky run", tuple(PICTURES), default_picture(results)
    if isinstance(results, dict):
        return "soundings", tuple(KINDS), default_kind(results)
    return "a history", ("history",), "history"
