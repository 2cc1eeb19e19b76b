"""`fathometer activations`: the activation atlas (Figures 2 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from fathometer.activations import (
    PAPER_ACTIVATIONS,
    ActivationAtlas,
    AtlasSettings,
    activation_atlas,
    polynomial_scores,
    range_scores,
)
from fathometer.activations.atlas import PAPER_STDS
from fathometer.activations.curves import DEFAULT_RANGES, PAPER_DEGREES
from fathometer.cli.options import DeviceOption, ForceOption, out_option, usable_seed
from fathometer.cli.outputs import planned_outputs, write_table
from fathometer.errors import InputError, check_device
from fathometer.progress import Terminal, progress_bar
from fathometer.report import save_figure
from fathometer.report.figures import activations as pictures
from fathometer.transport import DEFAULT_RIDGE, Ridge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Number = TypeVar("Number", int, float)

_STDS = ",".join(f"{std:g}" for std in PAPER_STDS)
_DEGREES = ",".join(str(degree) for degree in PAPER_DEGREES)
_RANGES = ",".join(f"{low:g}:{high:g}" for low, high in DEFAULT_RANGES)
_BLOCKS = "▁▂▃▄▅▆▇█"


def activations(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME…", help="Activations of torch.nn, e.g. ReLU GELU Mish. Default: the paper's nine."
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option(metavar="LOW:HIGH", help="Interval that the means slide over.")
    ] = "-20:20",
    means: Annotated[int, typer.Option(metavar="N", help="How many means.")] = 20,
    stds: Annotated[str, typer.Option(metavar="NUMBERS", help="Standard deviations, with commas.")] = _STDS,
    samples: Annotated[int, typer.Option(metavar="N", help="Samples per score.")] = 1000,
    features: Annotated[int, typer.Option(metavar="N", help="Features per sample.")] = 300,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the random inputs.", min=0, callback=usable_seed)
    ] = 0,
    covariance: Annotated[
        Literal["ledoit-wolf", "sample"],
        typer.Option(metavar="KIND", help="Covariance estimator: ledoit-wolf or sample."),
    ] = "ledoit-wolf",
    ridge: Annotated[
        float,
        typer.Option(metavar="R", help="Added to the covariances' diagonal, times their mean variance."),
    ] = DEFAULT_RIDGE.value,
    absolute_ridge: Annotated[
        bool,
        typer.Option(
            "--absolute-ridge", metavar="", help="Add --ridge as it is (the paper's authors: 1e-6)."
        ),
    ] = False,
    device: DeviceOption = "cpu",
    polynomials: Annotated[
        bool, typer.Option("--polynomials", metavar="", help="Instead: scores of x^k on [-1, 1] (Figure 2C).")
    ] = False,
    degrees: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Degrees k for --polynomials, with commas.")
    ] = _DEGREES,
    input_ranges: Annotated[
        bool,
        typer.Option(
            "--input-ranges", metavar="", help="Instead: scores by the range of the input (Figure 2A, B)."
        ),
    ] = False,
    ranges: Annotated[
        str, typer.Option(metavar="RANGES", help="Ranges LOW:HIGH for --input-ranges, with commas.")
    ] = _RANGES,
    out: Annotated[
        Path | None,
        out_option("FILE", "A .png, .svg or .pdf picture with a .csv beside it; or a .csv alone."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """How affine are activation functions, and on which inputs?

    Draws X ~ N(m, s² I) for means m along an interval and several s, and scores (X, f(X)) for each
    activation f: 1 where f acts as an affine map, lower the more it bends. With the defaults this is
    Figure 6 of the paper (half a minute on two idle cores).

    For instance:

    - `fathometer activations --out atlas.png`

    - `fathometer activations ReLU Mish --samples 300 --features 50`

    - `fathometer activations --polynomials`

    - `fathometer activations ReLU --input-ranges --ranges=-1:1,0:1`
    """
    if polynomials and input_ranges:
        raise InputError("--polynomials and --input-ranges exclude each other: run them one by one")
    if polynomials and names:
        raise InputError(f"--polynomials takes no activations, got {' '.join(names)}")
    picture, table = planned_outputs(out, force)
    if polynomials:
        result = _polynomials(_numbers(degrees, int, "--degrees"), samples)
    elif input_ranges:
        pairs = [_pair(text, "--ranges") for text in ranges.split(",")]
        result = _input_ranges(names or ("ReLU", "Tanh", "Sigmoid"), pairs, samples)
    else:
        settings = AtlasSettings(
            interval=_pair(interval, "--interval"),
            means=means,
            stds=tuple(_numbers(stds, float, "--stds")),
            samples=samples,
            features=features,
            seed=seed,
            covariance=covariance,
            ridge=Ridge(ridge, relative=not absolute_ridge),
        )
        result = _atlas(names or PAPER_ACTIVATIONS, settings, check_device(device))
    console = Terminal()
    console.print(result.view)
    if table:
        write_table(result.scores, table)
    if picture:
        save_figure(result.figure(), picture)
    for path in filter(None, (picture, table)):
        console.print(f"wrote {path}")


class _Result(NamedTuple):
    scores: pd.DataFrame
    view: Table
    figure: Callable[[], Figure]


def _atlas(names: Sequence[str], settings: AtlasSettings, device: str) -> _Result:
    with progress_bar("scoring") as progress:
        atlas = activation_atlas(names, settings, device=device, progress=progress)
    return _Result(atlas.records(), _atlas_view(atlas), lambda: pictures.plot_atlas(atlas))


def _polynomials(degrees: Sequence[int], samples: int) -> _Result:
    scores = polynomial_scores(degrees, samples=samples)
    view = _score_table("Affinity score of x^k on [-1, 1]", scores)
    return _Result(scores, view, lambda: pictures.plot_polynomials(scores))


def _input_ranges(names: Sequence[str], ranges: Sequence[tuple[float, float]], samples: int) -> _Result:
    scores = range_scores(names, ranges=ranges, samples=samples)
    view = _score_table("Affinity score by the range of the input", scores)
    return _Result(scores, view, lambda: pictures.plot_ranges(scores))


def _atlas_view(atlas: ActivationAtlas) -> Table:
    low, high = atlas.settings.interval
    roomy = Console().width >= 58 + atlas.settings.means  # the small picture gives way to the numbers
    view = Table(
        title="Affinity score of activation functions on Gaussian inputs",
        caption="1 is affine. whole: inputs spread over the whole interval."
        + (f" ▁ … █: 0 … 1, the median over stds, for means from {low:g} to {high:g}." if roomy else ""),
    )
    view.add_column("activation")
    for column in ("lowest", "at mean, std", "median", "whole"):
        view.add_column(column, justify="right")
    if roomy:
        view.add_column("by mean", no_wrap=True)
    for name, row in atlas.summary().iterrows():
        view.add_row(
            str(name),
            f"{row['min']:.3f}",
            f"{row['at_mean']:.1f}, {row['at_std']:g}",
            f"{row['median']:.3f}",
            f"{row['baseline']:.3f}",
            *(["".join(_block(score) for score in atlas.medians(str(name)))] if roomy else []),
        )
    return view


def _score_table(title: str, scores: pd.DataFrame) -> Table:
    """The columns as they are, and a bar for the score."""
    view = Table(title=title)
    for column in scores.columns:
        view.add_column(column, justify="left" if column == "activation" else "right")
    view.add_column("")
    for row in scores.itertuples(index=False):
        *keys, score = row
        cells = [key if isinstance(key, str) else f"{key:g}" for key in keys]
        view.add_row(*cells, f"{score:.3f}", "█" * round(20 * score))
    return view


def _block(score: float) -> str:
    return _BLOCKS[min(int(score * len(_BLOCKS)), len(_BLOCKS) - 1)]


def _numbers(text: str, kind: Callable[[str], Number], option: str) -> list[Number]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option}: expected numbers with commas, got {text!r}") from error


def _pair(text: str, option: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise InputError(f"{option}: expected LOW:HIGH, e.g. -1:1, got {text!r}") from error
    return low, high
