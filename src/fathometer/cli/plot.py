"""`fathometer plot`: results as figures for print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from fathometer.cli import options as opt
from fathometer.cli.outputs import PICTURE_SUFFIXES, check_writable, slug, write_files
from fathometer.errors import check_choice

if TYPE_CHECKING:
    from fathometer.report import Columns

app = opt.new_app()

_ALWAYS = ("files", "kind", "columns", "out", "force", "strict")


@app.command()
def plot(
    context: typer.Context,
    files: opt.ResultsArgument,
    kind: Annotated[
        str | None, opt.option("KIND", "Kind of figure. Default: by what is given.", "--kind", "-k")
    ] = None,
    gauge: opt.GaugeOption = None,
    columns: Annotated[
        int, opt.option("1|2", "Width in columns of a page: 3.5 or 7.2 inches.", min=1, max=2)
    ] = 2,
    strip: Annotated[bool, opt.flag("--strip", "Draw the network as a strip below a signature.")] = False,
    distribution: Annotated[
        bool, opt.flag("--distribution", "Draw the distribution beside a signature.")
    ] = False,
    along: Annotated[
        Literal["depth", "dtw"],
        opt.option("HOW", "Axis of an overlay: relative depth, or dtw, aligned with the first."),
    ] = "depth",
    metric: opt.MetricOption = None,
    linkage: opt.LinkageOption = "average",
    families: opt.FamiliesOption = None,
    family: opt.FamilyOption = None,
    network: opt.NetworkOption = None,
    allow_mismatch: opt.MismatchOption = False,
    strict: opt.StrictOption = False,
    out: Annotated[list[Path] | None, opt.out_option(parser=opt.local_path)] = None,
    force: opt.ForceOption = False,
) -> None:
    """Draw a figure for print: one column or two, colour-blind-safe colours, embedded fonts.

    `--out` is a .pdf, .svg or .png, and repeatable; by default the name of the input and the kind, as .pdf.

    Kinds for one sounding: `signature`, `strip`, `distribution`, `map` (of `measure --map`); for a residual
    path: `path`. For two: `alignment`, `difference`. For several: `overlay`, `strip`, `distribution`,
    `years`, `distances`, `predictors`. For the history of a training: `history`. For two networks of
    `compare map`: `map`. For a linearized network: `curve`.

    For transformers with parts (`measure --sites activations,mlp,attention`): `layers`, of one network or
    several; `gauges`, a heat map of layers × gauges.

    For a leaky run: `1b` (spectra), `1c` (energies, Hamiltonian), `affinity`, `ranks`, `training`,
    `projection`; for a sweep also `1a`, `3` (several depths), `2a`, `2b`, `2c` (several schemes of steps).

    For example:

    - `fathometer plot resnet18-photos.json --columns 1 --out signature.pdf`

    - `fathometer plot resnet18-photos.json --strip --distribution -o figure.pdf -o figure.png`

    - `fathometer plot resnet18-photos.json --kind map`

    - `fathometer plot gpt2-book.json --kind layers` (MLP, attention and activations by layer)

    - `fathometer plot resnet18.json vgg16.json --kind alignment`

    - `fathometer plot before.json after.json --kind difference --gauge stable_rank_y`

    - `fathometer plot results/ --kind distances --family "ResNet=resnet*" --family "VGG=vgg*"`

    - `fathometer plot results/ --kind years --families networks.csv` (a CSV with columns network and year)

    - `fathometer plot leaky-7-3-0 --kind 1c --columns 1 -o energies.svg`
    """
    from fathometer.cli.leaky.trained import chosen_networks
    from fathometer.cli.results import choose_gauge, facts_for, read_results
    from fathometer.compare import DEFAULT_METRIC, comparable
    from fathometer.progress import Terminal
    from fathometer.report import plot_history, plot_linearized, plot_map, require_matplotlib
    from fathometer.report.figures import kinds
    from fathometer.results.history import History
    from fathometer.results.linearized import Linearized
    from fathometer.results.similarity import SimilarityMap

    require_matplotlib()
    for path in out or ():
        check_writable(path, force, PICTURE_SUFFIXES)
    width = cast("Columns", columns)
    results = read_results(files, strict=strict)
    options: dict[str, tuple[str, ...]]  # that a kind uses, by its name
    if isinstance(results, History):
        options, default = {"history": ("gauge",)}, "history"
    elif isinstance(results, SimilarityMap):
        options, default = {"map": ()}, "map"
    elif isinstance(results, Linearized):
        options, default = {"curve": ()}, "curve"
    elif isinstance(results, dict):
        options = {name: each.options for name, each in kinds.KINDS.items()}
        default = kinds.default_kind(results)
    else:
        shown = results if network is None else chosen_networks(results, network, None).runs[0]
        options, default = dict.fromkeys(kinds.LEAKY_KINDS, ("network",)), kinds.default_leaky_kind(shown)
    kind = kind or default
    check_choice("kind", kind, options)
    opt.refuse_unused(context, (*_ALWAYS, *options[kind]), f"--kind {kind}")
    if not out:
        of = f"-{slug(gauge)}" if gauge else ""
        out = [Path(f"{slug(Path(files[0]).resolve().stem)}-{slug(kind)}{of}.pdf")]
        check_writable(out[0], force)
    if isinstance(results, History):
        figure = plot_history(results, choose_gauge(gauge, results.soundings), columns=width)
    elif isinstance(results, SimilarityMap):
        figure = plot_map(results, columns=width)
    elif isinstance(results, Linearized):
        figure = plot_linearized(results, columns=width)
    elif isinstance(results, dict):
        layer_gauge, gauge = gauge, choose_gauge(gauge, results.values())
        if kinds.KINDS[kind].needs_comparable and len(results) >= kinds.KINDS[kind].min_count:
            results = comparable(results, gauge, allow_mismatch=allow_mismatch)
        drawing = kinds.PlotOptions(
            gauge=gauge,
            layer_gauge=layer_gauge,
            columns=width,
            along=along,
            metric=metric or DEFAULT_METRIC,
            method=linkage,
            strip=strip,
            distribution=distribution,
            facts=facts_for(results, families, family or []),
        )
        figure = kinds.draw_soundings(results, kind, drawing)
    else:
        figure = kinds.draw_leaky(shown, kind, columns=width)
    write_files(dict.fromkeys(out, figure), Terminal())
