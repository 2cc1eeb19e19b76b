"""`fathometer compare`: distances between soundings, their families, and what goes with what."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console

from fathometer.cli.compare_networks import compare_networks
from fathometer.cli.facts import FamiliesOption, FamilyOption, facts_for
from fathometer.cli.frames import frame_view
from fathometer.cli.options import ForceOption, MismatchOption, given, one_of, out_option
from fathometer.cli.outputs import ResultFolder
from fathometer.cli.results import read_soundings
from fathometer.compare import (
    cluster,
    comparable,
    criteria_spread,
    data_deviation,
    robustness,
    signature_distances,
    signature_table,
    signatures,
    training_change,
)
from fathometer.compare.clustering import Method
from fathometer.compare.distance import Metric
from fathometer.errors import InputError
from fathometer.progress import Terminal
from fathometer.results.sounding import Sounding

_ALWAYS = ("files", "reference", "over", "criteria", "allow_mismatch", "out", "force")
_OPTIONS = {"--reference": ("gauge", "metric"), "--over": ("gauge",), "--criteria": ()}
"""What each question looks at."""


def compare(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="Soundings: files of `fathometer measure`, or folders of them."),
    ],
    gauge: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What is compared: a gauge that was measured. `fathometer show FILE` names them.",
        ),
    ] = "affinity",
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            callback=one_of(*get_args(Metric)),
            help="dtw (in order of depth, any lengths; the default), euclidean (equal lengths; the default "
            "of --reference) or wasserstein (distributions of scores, order forgotten).",
        ),
    ] = None,
    linkage: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            callback=one_of(*get_args(Method)),
            help="average, complete, single or ward: the distance between clusters.",
        ),
    ] = "average",
    clusters: Annotated[
        int | None,
        typer.Option(metavar="N", help="Cut the tree into so many. Default: as many as families.", min=1),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            metavar="N", help="Draw the batches anew so many times and count which clusters come back.", min=0
        ),
    ] = 0,
    families: FamiliesOption = None,
    family: FamilyOption = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Instead: how far each network on other data is from itself on these."
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            callback=one_of("samples", "seed", "pooling", "weights", "data"),
            help="Instead: how far each network moves with samples, seed (of the order of the data), "
            "pooling, weights or data. A seed that also drew random weights is a case of weights. "
            "Two soundings over weights are before and after a training, in this order.",
        ),
    ] = None,
    criteria: Annotated[
        bool,
        typer.Option(
            "--criteria", metavar="", help="Instead: mean ± std of each gauge over trainings of one network."
        ),
    ] = False,
    allow_mismatch: MismatchOption = False,
    out: Annotated[Path | None, out_option("FOLDER", "For all tables (.csv) and pictures (.png).")] = None,
    force: ForceOption = False,
) -> None:
    """Compare soundings: which networks are alike, in which families, and what goes with the score.

    For instance:

    - `fathometer compare soundings/ --family "ResNet=resnet*" --family "VGG=vgg*" --out compared`

    - `fathometer compare soundings/ --families networks.csv --draws 100` (what is the tree worth?)

    - `fathometer compare a.json b.json c.json --gauge stable_rank_y --metric wasserstein`

    - `fathometer compare cifar/ noise/ --reference cifar10_test.npz` (Figure 15)

    - `fathometer compare n128.json n512.json --over samples` (Figures 7 and 8)

    - `fathometer compare init.json trained.json --over weights` (Figure 9: before, after, change)

    - `fathometer compare trained1.json trained2.json trained3.json --criteria` (Table 3)
    """
    _check_question(context, reference, over, criteria)
    named = read_soundings(files)
    console = Terminal()
    how, tree_method = cast("Metric | None", metric), cast("Method", linkage)
    results = ResultFolder(out, force)
    if reference is not None:
        table = data_deviation(named, reference, gauge, how or "euclidean", allow_mismatch=allow_mismatch)
        results.add("deviation.csv", table)
        title = f"{how or 'euclidean'} distance of {gauge} from that on {reference}"
        console.print(frame_view(table, title, "Figure 15", width=console.width))
    elif over is not None:
        _over(named, over, gauge, allow_mismatch, results, console)
    elif criteria:
        table = criteria_spread(named, allow_mismatch=allow_mismatch)
        results.add("criteria.csv", table)
        title, note = "Each gauge over trainings (Table 3)", "relative: std / |mean|"
        console.print(frame_view(table, title, note, width=console.width))
    else:
        kept = comparable(named, gauge, allow_mismatch=allow_mismatch)
        facts = facts_for(kept, families, family or [])
        found = signature_distances(signatures(kept, gauge), how or "dtw", gauge=gauge)
        tree = cluster(found, tree_method)
        compare_networks(kept, tree, facts, clusters, draws, results, console)
    for path in results.write():
        console.print(f"wrote {path}", soft_wrap=True)


def _check_question(context: typer.Context, reference: str | None, over: str | None, criteria: bool) -> None:
    """Refuse two questions at once, and options that the question does not look at."""
    questions = {"--reference": reference is not None, "--over": over is not None, "--criteria": criteria}
    asked = [question for question, is_asked in questions.items() if is_asked]
    if len(asked) > 1:
        raise InputError("--reference, --over and --criteria are three questions; ask one at a time")
    for question in asked:
        foreign = [f"--{name}" for name in given(context) if name not in (*_ALWAYS, *_OPTIONS[question])]
        if foreign:
            raise InputError(
                f"{', '.join(foreign)}: not looked at by {question}; leave it out, or ask without {question}"
            )


def _over(
    named: dict[str, Sounding],
    over: str,
    gauge: str,
    allow_mismatch: bool,
    results: ResultFolder,
    console: Console,
) -> None:
    table = robustness(named, over, gauge, allow_mismatch=allow_mismatch)
    results.add("over.csv", table)
    note = "std: over what was changed, mean of sites"
    console.print(frame_view(table, f"{gauge} over {over}", note, 4, width=console.width))
    if len(table) > 1:
        return
    with warnings.catch_warnings():
        if allow_mismatch:
            warnings.filterwarnings("ignore", message="compared although they differ")  # was told before
        sites = signature_table(named, over, gauge, allow_mismatch=allow_mismatch)
        results.add("signatures.csv", sites)
        if over != "weights" or len(named) != 2:
            console.print(frame_view(sites, f"{gauge} by {over}", width=console.width))
            return
        before, after = named.values()
        change = training_change(before, after, gauge, allow_mismatch=allow_mismatch)
    results.add("change.csv", change)
    first, second = sites.columns
    note = f"before: {first}, after: {second}, in the order of the files"
    title = f"{gauge} before and after training (Figure 9)"
    console.print(frame_view(change, title, note, width=console.width))
