"""`fathometer activations`: scores of activation functions (Figures 2 and 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fathometer.cli import options as opt
from fathometer.cli.outputs import picture_and_table, print_result, write_files
from fathometer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fathometer.activations import ActivationAtlas
    from fathometer.cli.tables import TableView

app = opt.new_app(
    "Measure how affine activation functions are, and on which inputs. `--out` is a .png, .svg or .pdf "
    "picture with a .csv beside it, or a .csv alone."
)

_BAR_LEVELS = "▁▂▃▄▅▆▇█"

NamesArgument = Annotated[
    list[str] | None,
    opt.argument("NAME…", "Activations of torch.nn, such as ReLU GELU Mish. Default: the paper's."),
]


@dataclass
class _Shared:
    """Options that these commands share, and what is done with them; `--out` is checked at once."""

    samples: opt.SamplesOption = 1000
    out: opt.OutOption = None
    force: opt.ForceOption = False
    as_json: opt.JsonOption = False

    def __post_init__(self) -> None:
        self._files = picture_and_table(self.out, self.force)

    def show(self, scores: pd.DataFrame, view: TableView, figure: Callable[[], Figure]) -> None:
        """Print the scores; write them and their figure."""
        console = print_result(scores, view, self.as_json)
        write_files(
            {path: scores if path.suffix.lower() == ".csv" else figure for path in self._files}, console
        )


@app.command()
@opt.with_options(*opt.fields_of(_Shared))
def atlas(
    names: NamesArgument = None,
    interval: Annotated[str, opt.option("LOW:HIGH", "Interval of the means of the inputs.")] = "-20:20",
    means: Annotated[int, opt.option("N", "Number of means.")] = 20,
    stds: Annotated[
        str | None, opt.option("NUMBERS", "Standard deviations, with commas. Default: the paper's.")
    ] = None,
    features: Annotated[int, opt.option("N", "Number of features per sample.")] = 300,
    seed: opt.SeedOption = 0,
    covariance: Annotated[
        Literal["ledoit-wolf", "sample"], opt.option("KIND", "Covariance estimator: ledoit-wolf or sample.")
    ] = "ledoit-wolf",
    ridge: Annotated[
        float | None,
        opt.option("R", "Added to the diagonal of the covariances, relative to their mean variance."),
    ] = None,
    absolute_ridge: Annotated[
        bool, opt.flag("--absolute-ridge", "Add --ridge as it is (the paper's authors: 1e-6).")
    ] = False,
    device: opt.DeviceOption = "cpu",
    **options: Any,
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

    shared = _Shared(**options)
    settings = AtlasSettings(
        interval=_pair(interval, "interval"),
        means=means,
        stds=PAPER_STDS if stds is None else tuple(opt.numbers(stds, float, "stds")),
        samples=shared.samples,
        features=features,
        seed=seed,
        covariance=covariance,
        ridge=Ridge(DEFAULT_RIDGE.value if ridge is None else ridge, relative=not absolute_ridge),
    )
    with progress_bar("scoring") as progress:
        found = activation_atlas(
            names or PAPER_ACTIVATIONS, settings, device=check_device(device), progress=progress
        )
    shared.show(found.records(), _atlas_view(found), lambda: plot_activation_atlas(found))


@app.command()
@opt.with_options(*opt.fields_of(_Shared))
def polynomials(
    degrees: Annotated[
        str | None, opt.option("NUMBERS", "Degrees k, with commas. Default: the paper's.")
    ] = None,
    **options: Any,
) -> None:
    """Score the polynomials x^k on [-1, 1] (Figure 2C).

    For example:

    - `fathometer activations polynomials --degrees 1,2,3,4`
    """
    from fathometer.activations import polynomial_scores
    from fathometer.activations.curves import PAPER_DEGREES
    from fathometer.report import plot_polynomials

    shared = _Shared(**options)
    chosen = PAPER_DEGREES if degrees is None else opt.numbers(degrees, int, "degrees")
    scores = polynomial_scores(chosen, samples=shared.samples)
    view = _scores_view("Affinity score of x^k on [-1, 1]", scores)
    shared.show(scores, view, lambda: plot_polynomials(scores))


@app.command()
@opt.with_options(*opt.fields_of(_Shared))
def ranges(
    names: NamesArgument = None,
    ranges: Annotated[str | None, opt.option("LOW:HIGH,…", "Ranges of the input, with commas.")] = None,
    **options: Any,
) -> None:
    """Score activation functions by the range of their input (Figure 2A and B).

    For example:

    - `fathometer activations ranges ReLU --ranges=-1:1,0:1`
    """
    from fathometer.activations import range_scores
    from fathometer.activations.curves import DEFAULT_RANGES
    from fathometer.report import plot_ranges

    shared = _Shared(**options)
    pairs = DEFAULT_RANGES if ranges is None else [_pair(text, "ranges") for text in ranges.split(",")]
    scores = range_scores(names or ("ReLU", "Tanh", "Sigmoid"), ranges=pairs, samples=shared.samples)
    view = _scores_view("Affinity score by the range of the input", scores)
    shared.show(scores, view, lambda: plot_ranges(scores))


def _atlas_view(atlas: ActivationAtlas) -> TableView:
    import pandas as pd

    from fathometer.cli.tables import TableView

    low, high = atlas.settings.interval
    summary = atlas.summary()
    frame = pd.DataFrame(
        {
            "lowest": summary["min"],
            "at mean, std": [f"{row.at_mean:.1f}, {row.at_std:g}" for row in summary.itertuples()],
            "median": summary["median"],
            "whole interval": summary["baseline"],
            "by mean": [
                "".join(_BAR_LEVELS[min(int(8 * score), 7)] for score in atlas.medians(str(name)))
                for name in summary.index
            ],
        }
    )
    return TableView(
        frame.rename_axis("activation"),
        "Affinity score of activation functions on Gaussian inputs",
        "1 is affine. whole: inputs spread over the whole interval. by mean: ▁ … █ are 0 … 1, the median "
        f"over stds, for means from {low:g} to {high:g}",
        optional=["by mean"],
    )


def _scores_view(title: str, scores: pd.DataFrame) -> TableView:
    """Show the columns, and a bar for the score."""
    from fathometer.cli.tables import TableView, bar

    bars = [bar(score, 20) for score in scores["score"]]
    return TableView(scores.assign(**{"": bars}).set_index(scores.columns[0]), title, number=".4g")


def _pair(text: str, parameter: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise InputError(f"expected LOW:HIGH, such as -1:1, got {text!r}", parameter=parameter) from error
    return low, high
