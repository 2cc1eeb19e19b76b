"""`fathometer activations`: scores of activation functions (Figures 2 and 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fathometer.cli.options import (
    DeviceOption,
    ForceOption,
    JsonOption,
    OutOption,
    SamplesOption,
    SeedOption,
    new_app,
    numbers,
)
from fathometer.cli.outputs import picture_and_table, print_result, write_table
from fathometer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

    from fathometer.activations import ActivationAtlas

app = new_app(
    "Measure how affine activation functions are, and on which inputs. `--out` is a .png, .svg or .pdf "
    "picture with a .csv beside it, or a .csv alone."
)

_BLOCKS = "▁▂▃▄▅▆▇█"

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME…", help="Activations of torch.nn, such as ReLU GELU Mish. Default: the paper's."
    ),
]


@app.command()
def atlas(
    names: NamesArgument = None,
    interval: Annotated[
        str, typer.Option(metavar="LOW:HIGH", help="Interval over which the means slide.")
    ] = "-20:20",
    means: Annotated[int, typer.Option(metavar="N", help="Number of means.")] = 20,
    stds: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Standard deviations, with commas. Default: the paper's."),
    ] = None,
    samples: SamplesOption = 1000,
    features: Annotated[int, typer.Option(metavar="N", help="Number of features per sample.")] = 300,
    seed: SeedOption = 0,
    covariance: Annotated[
        Literal["ledoit-wolf", "sample"],
        typer.Option(metavar="KIND", help="Covariance estimator: ledoit-wolf or sample."),
    ] = "ledoit-wolf",
    ridge: Annotated[
        float | None,
        typer.Option(
            metavar="R", help="Added to the diagonal of the covariances, relative to their mean variance."
        ),
    ] = None,
    absolute_ridge: Annotated[
        bool,
        typer.Option(
            "--absolute-ridge", metavar="", help="Add --ridge as it is (the paper's authors: 1e-6)."
        ),
    ] = False,
    device: DeviceOption = "cpu",
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score activation functions on Gaussian inputs of many means and standard deviations (Figure 6).

    Draws X ~ N(m, s² I) for means m along an interval and several s, and scores (X, f(X)) for each
    activation f: 1 where f acts as an affine map, lower the more it bends. The defaults are those of Figure 6
    (half a minute on two idle cores).

    For example:

    - `fathometer activations atlas --out atlas.png`

    - `fathometer activations atlas ReLU Mish --samples 300 --features 50`
    """
    from fathometer.activations import PAPER_ACTIVATIONS, AtlasSettings, activation_atlas
    from fathometer.activations.atlas import PAPER_STDS
    from fathometer.errors import check_device
    from fathometer.progress import progress_bar
    from fathometer.report import plot_activation_atlas
    from fathometer.transport import DEFAULT_RIDGE, Ridge

    files = picture_and_table(out, force)
    settings = AtlasSettings(
        interval=_pair(interval, "interval"),
        means=means,
        stds=PAPER_STDS if stds is None else tuple(numbers(stds, float, "stds")),
        samples=samples,
        features=features,
        seed=seed,
        covariance=covariance,
        ridge=Ridge(DEFAULT_RIDGE.value if ridge is None else ridge, relative=not absolute_ridge),
    )
    with progress_bar("scoring") as progress:
        found = activation_atlas(
            names or PAPER_ACTIVATIONS, settings, device=check_device(device), progress=progress
        )
    _finish(
        found.records(),
        lambda console: _atlas_view(found, console.width),
        lambda: plot_activation_atlas(found),
        files,
        as_json,
    )


@app.command()
def polynomials(
    degrees: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Degrees k, with commas. Default: the paper's.")
    ] = None,
    samples: SamplesOption = 1000,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score the polynomials x^k on [-1, 1] (Figure 2C).

    For example:

    - `fathometer activations polynomials --degrees 1,2,3,4`
    """
    from fathometer.activations import polynomial_scores
    from fathometer.activations.curves import PAPER_DEGREES
    from fathometer.report import plot_polynomials

    files = picture_and_table(out, force)
    chosen = PAPER_DEGREES if degrees is None else numbers(degrees, int, "degrees")
    scores = polynomial_scores(chosen, samples=samples)
    title = "Affinity score of x^k on [-1, 1]"
    _finish(scores, lambda _: _score_table(title, scores), lambda: plot_polynomials(scores), files, as_json)


@app.command()
def ranges(
    names: NamesArgument = None,
    ranges: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH,…", help="Ranges of the input, with commas.")
    ] = None,
    samples: SamplesOption = 1000,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score activation functions by the range of their input (Figure 2A and B).

    For example:

    - `fathometer activations ranges ReLU --ranges=-1:1,0:1`
    """
    from fathometer.activations import range_scores
    from fathometer.activations.curves import DEFAULT_RANGES
    from fathometer.report import plot_ranges

    files = picture_and_table(out, force)
    pairs = DEFAULT_RANGES if ranges is None else [_pair(text, "ranges") for text in ranges.split(",")]
    scores = range_scores(names or ("ReLU", "Tanh", "Sigmoid"), ranges=pairs, samples=samples)
    title = "Affinity score by the range of the input"
    _finish(scores, lambda _: _score_table(title, scores), lambda: plot_ranges(scores), files, as_json)


def _finish(
    scores: pd.DataFrame,
    view: Callable[[Console], Table],
    figure: Callable[[], Figure],
    files: tuple[Path | None, Path | None],
    as_json: bool,
) -> None:
    from fathometer.report import save_figure

    console = print_result(scores, view, as_json)
    picture, table = files
    if table:
        write_table(scores, table)
    if picture:
        save_figure(figure(), picture)
    for path in filter(None, files):
        console.say(f"wrote {path}")


def _atlas_view(atlas: ActivationAtlas, width: int) -> Table:
    from rich.table import Table

    low, high = atlas.settings.interval
    roomy = width >= 58 + atlas.settings.means  # numbers come before the small picture
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
        blocks = "".join(_BLOCKS[min(int(8 * score), 7)] for score in atlas.medians(str(name)))
        view.add_row(
            str(name),
            f"{row['min']:.3f}",
            f"{row['at_mean']:.1f}, {row['at_std']:g}",
            f"{row['median']:.3f}",
            f"{row['baseline']:.3f}",
            *([blocks] if roomy else []),
        )
    return view


def _score_table(title: str, scores: pd.DataFrame) -> Table:
    """Show the columns, and a bar for the score."""
    from rich.table import Table

    view = Table(title=title)
    for column in scores.columns:
        view.add_column(column, justify="left" if column == "activation" else "right")
    view.add_column("")
    for row in scores.itertuples(index=False):
        *keys, score = row
        cells = [key if isinstance(key, str) else f"{key:g}" for key in keys]
        view.add_row(*cells, f"{score:.3f}", "█" * round(20 * score))
    return view


def _pair(text: str, option: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise InputError(f"expected LOW:HIGH, such as -1:1, got {text!r}", parameter=option) from error
    return low, high
