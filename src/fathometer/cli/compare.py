"""`fathometer compare`: networks, data, conditions or trainings side by side."""

from __future__ import annotations

import warnings
from typing import Annotated, Literal

import typer

from fathometer.cli.options import (
    FamiliesOption,
    FamilyOption,
    ForceOption,
    GaugeOption,
    JsonOption,
    LinkageOption,
    MetricOption,
    MismatchOption,
    OutOption,
    ResultsArgument,
    StrictOption,
    new_app,
)
from fathometer.cli.outputs import ResultFolder

app = new_app(
    "Compare soundings: which networks are alike (`networks`), and how much data (`data`), settings and "
    "weights (`conditions`) or several trainings (`trainings`) change a signature. `--out` writes all tables "
    "(.csv) and pictures (.png) into a folder."
)


@app.command()
def networks(
    files: ResultsArgument,
    gauge: GaugeOption = None,
    metric: MetricOption = None,
    linkage: LinkageOption = "average",
    clusters: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Cut the tree into so many clusters. Default: as many as families.", min=1
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            metavar="N", help="Resample the batches so many times and count which clusters return.", min=0
        ),
    ] = 0,
    families: FamiliesOption = None,
    family: FamilyOption = None,
    allow_mismatch: MismatchOption = False,
    strict: StrictOption = False,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare networks: distances (default: dtw), a tree, families, correlations, predictors of accuracy.

    For example:

    - `fathometer compare networks soundings/ --family "ResNet=resnet*" --family "VGG=vgg*" --out compared`

    - `fathometer compare networks soundings/ --families networks.csv --draws 100`

    - `fathometer compare networks a.json b.json c.json --gauge stable_rank_y --metric wasserstein`
    """
    from fathometer.cli.compare_networks import compare_networks
    from fathometer.cli.results import default_gauge, facts_for, read_soundings
    from fathometer.compare import cluster, comparable, signature_distances, signatures

    named = read_soundings(files, strict=strict)
    gauge = gauge or default_gauge(named.values())
    results = ResultFolder(out, force, as_json)
    kept = comparable(named, gauge, allow_mismatch=allow_mismatch)
    facts = facts_for(kept, families, family or [])
    tree = cluster(signature_distances(signatures(kept, gauge), metric or "dtw", gauge=gauge), linkage)
    compare_networks(kept, tree, facts, clusters, draws, results)
    results.finish()


@app.command()
def data(
    files: ResultsArgument,
    reference: Annotated[
        str,
        typer.Option(
            metavar="DATA",
            help="Name of the data to compare the others with, as `fathometer show` prints it.",
        ),
    ],
    gauge: GaugeOption = None,
    metric: MetricOption = None,
    allow_mismatch: MismatchOption = False,
    strict: StrictOption = False,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare data: the distance (default: euclidean) of each network from itself on reference data.

    For example:

    - `fathometer compare data cifar/ noise/ --reference cifar10_test.npz` (Figure 15)
    """
    from fathometer.cli.results import default_gauge, read_soundings
    from fathometer.compare import data_deviation

    named = read_soundings(files, strict=strict)
    gauge, metric = gauge or default_gauge(named.values()), metric or "euclidean"
    results = ResultFolder(out, force, as_json)
    table = data_deviation(named, reference, gauge, metric, allow_mismatch=allow_mismatch)
    results.add("deviation", table)
    results.show(table, f"{metric} distance of {gauge} from that on {reference}", "Figure 15")
    results.finish()


@app.command()
def conditions(
    files: ResultsArgument,
    over: Annotated[
        Literal["samples", "seed", "pooling", "weights", "data"],
        typer.Option(
            metavar="WHAT",
            help="What differs: samples, seed (order of the data), pooling, weights or data.",
        ),
    ],
    gauge: GaugeOption = None,
    allow_mismatch: MismatchOption = False,
    strict: StrictOption = False,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare conditions: how much the signature of each network changes with one of them.

    Seeds that also drew random weights are a case of weights. Two soundings over weights are before and
    after a training, in this order.

    For example:

    - `fathometer compare conditions n128.json n512.json --over samples` (Figures 7 and 8)

    - `fathometer compare conditions init.json trained.json --over weights` (Figure 9: before, after, change)
    """
    from fathometer.cli.results import default_gauge, read_soundings
    from fathometer.compare import robustness, signatures_over

    named = read_soundings(files, strict=strict)
    gauge = gauge or default_gauge(named.values())
    results = ResultFolder(out, force, as_json)
    table = robustness(named, over, gauge, allow_mismatch=allow_mismatch)
    results.add("over", table)
    results.show(table, f"{gauge} over {over}", "std: over what was changed, mean of sites", 4)
    if len(table) == 1:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="compared although they differ")  # said before
            sites = signatures_over(named, over, gauge, allow_mismatch=allow_mismatch)
            results.add("signatures", sites)
            if over == "weights" and len(named) == 2:
                first, second = sites.columns
                change = sites.set_axis(["before", "after"], axis=1)
                change["change"] = change["after"] - change["before"]
                results.add("change", change)
                note = f"before: {first}, after: {second}, in the order of the files"
                results.show(change, f"{gauge} before and after training (Figure 9)", note)
            else:
                results.show(sites, f"{gauge} by {over}")
    results.finish()


@app.command()
def trainings(
    files: ResultsArgument,
    allow_mismatch: MismatchOption = False,
    strict: StrictOption = False,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare trainings of one architecture: mean and standard deviation of each gauge over them.

    For example:

    - `fathometer compare trainings trained1.json trained2.json trained3.json` (Table 3)
    """
    from fathometer.cli.results import read_soundings
    from fathometer.compare import criteria_spread

    named = read_soundings(files, strict=strict)
    results = ResultFolder(out, force, as_json)
    table = criteria_spread(named, allow_mismatch=allow_mismatch)
    results.add("criteria", table)
    results.show(table, "Each gauge over trainings (Table 3)", "relative: std / |mean|")
    results.finish()
