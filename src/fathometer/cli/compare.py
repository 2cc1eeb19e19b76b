"""`fathometer compare`: networks, data, conditions or trainings side by side."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fathometer.cli import options as opt
from fathometer.cli.outputs import ResultFolder, check_writable, print_result, slug
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.results.sounding import Sounding

app = opt.new_app(
    "Compare soundings: which networks are alike (`networks`, `reference`), and how much data (`data`), "
    "settings and weights (`conditions`) or several trainings (`trainings`) change a signature. `--out` "
    "writes all tables (.csv) and pictures (.png) into a folder. `map` runs two networks, and compares their "
    "sites."
)


@dataclass
class _Shared:
    """Options that these commands share, and what is read and written with them."""

    files: opt.ResultsArgument
    gauge: opt.GaugeOption = None
    allow_mismatch: opt.MismatchOption = False
    strict: opt.StrictOption = False
    out: opt.OutOption = None
    force: opt.ForceOption = False
    as_json: opt.JsonOption = False

    def read(self) -> tuple[dict[str, Sounding], str]:
        """Return the soundings by name, and the gauge to compare."""
        from fathometer.cli.results import choose_gauge, read_soundings

        named = read_soundings(self.files, strict=self.strict)
        return named, choose_gauge(self.gauge, named.values())

    @cached_property
    def results(self) -> ResultFolder:
        """The results of the command, in a folder that can be written."""
        return ResultFolder(self.out, self.force, self.as_json)


@app.command()
@opt.with_options(*opt.fields_of(_Shared))
def networks(
    metric: opt.MetricOption = None,
    linkage: opt.LinkageOption = "average",
    clusters: Annotated[
        int | None,
        opt.option("N", "Number of clusters to cut the tree into. Default: as many as families.", min=1),
    ] = None,
    draws: Annotated[
        int,
        opt.option("N", "Number of times to resample the batches, to count which clusters return.", min=0),
    ] = 0,
    families: opt.FamiliesOption = None,
    family: opt.FamilyOption = None,
    **options: Any,
) -> None:
    """Compare networks: distances, a tree, families, correlations, predictors of accuracy.

    For example:

    - `fathometer compare networks soundings/ --family "ResNet=resnet*" --family "VGG=vgg*" --out compared`

    - `fathometer compare networks soundings/ --families networks.csv --draws 100`

    - `fathometer compare networks a.json b.json c.json --gauge stable_rank_y --metric wasserstein`
    """
    from fathometer.cli.compare_networks import compare_networks
    from fathometer.cli.results import facts_for
    from fathometer.compare import DEFAULT_METRIC, cluster, comparable, known_distances

    shared = _Shared(**options)
    named, gauge = shared.read()
    kept = comparable(named, gauge, allow_mismatch=shared.allow_mismatch)
    facts = facts_for(kept, families, family or [])
    results = shared.results
    tree = cluster(known_distances(kept, gauge, metric or DEFAULT_METRIC), linkage)
    compare_networks(kept, tree, facts, clusters, draws, results)
    results.finish()


@app.command()
@opt.with_options(*opt.fields_of(_Shared, without="allow_mismatch"))
def reference(
    metric: opt.MetricOption = None, linkage: opt.LinkageOption = "average", **options: Any
) -> None:
    """Compare networks with trained ones that come with the package: the nearest, percentiles, a tree.

    For example:

    - `fathometer compare reference mine.json --out placed`
    """
    from fathometer.cli.compare_reference import compare_with_reference
    from fathometer.compare import DEFAULT_METRIC

    shared = _Shared(**options)
    named, gauge = shared.read()
    compare_with_reference(named, gauge, metric or DEFAULT_METRIC, linkage, shared.results)
    shared.results.finish()


@app.command()
@opt.with_options(*opt.fields_of(_Shared))
def data(
    reference: Annotated[
        str,
        opt.option("DATA", "Name of the data to compare the others with, as `fathometer show` prints it."),
    ],
    metric: opt.MetricOption = None,
    **options: Any,
) -> None:
    """Compare data: the distance (default: euclidean) of each network from itself on reference data.

    For example:

    - `fathometer compare data cifar/ noise/ --reference cifar10_test.npz` (Figure 15)
    """
    from fathometer.compare import data_deviation

    shared = _Shared(**options)
    named, gauge = shared.read()
    metric = metric or "euclidean"
    table = data_deviation(named, reference, gauge, metric, allow_mismatch=shared.allow_mismatch)
    shared.results.add("deviation", table)
    shared.results.show(table, f"{metric} distance of {gauge} from that on {reference}", "Figure 15")
    shared.results.finish()


@app.command()
@opt.with_options(*opt.fields_of(_Shared))
def conditions(
    over: Annotated[
        Literal["samples", "seed", "pooling", "weights", "data"],
        opt.option("WHAT", "What differs: samples, seed (order of the data), pooling, weights or data."),
    ],
    **options: Any,
) -> None:
    """Compare conditions: how much the signature of each network changes with one of them.

    Seeds that also drew random weights are a case of weights. Two soundings over weights are before and
    after a training, in this order.

    For example:

    - `fathometer compare conditions n128.json n512.json --over samples` (Figures 7 and 8)

    - `fathometer compare conditions init.json trained.json --over weights` (Figure 9: before, after, change)
    """
    from fathometer.compare import robustness, signatures_over

    shared = _Shared(**options)
    named, gauge = shared.read()
    table = robustness(named, over, gauge, allow_mismatch=shared.allow_mismatch)
    results = shared.results
    results.add("over", table)
    results.show(table, f"{gauge} over {over}", "std: over what was changed, mean of sites", ".4f")
    if len(table) == 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `robustness` gave the same warnings
            sites = signatures_over(named, over, gauge, allow_mismatch=shared.allow_mismatch)
        results.add("signatures", sites)
        if over == "weights" and len(sites.columns) == 2:
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
@opt.with_options(*opt.fields_of(_Shared, without="gauge"))
def trainings(
    **options: Any,
) -> None:
    """Compare trainings of one architecture: mean and standard deviation of each gauge over them.

    For example:

    - `fathometer compare trainings trained1.json trained2.json trained3.json` (Table 3)
    """
    from fathometer.compare import criteria_spread

    shared = _Shared(**options)
    table = criteria_spread(shared.read()[0], allow_mismatch=shared.allow_mismatch)
    shared.results.add("criteria", table)
    shared.results.show(table, "Each gauge over trainings (Table 3)", "relative: std / |mean|")
    shared.results.finish()


@app.command("map")
@opt.with_options(
    *opt.measure_options(
        *("samples", "batches", "sites", "activations", "reduction", "pool_first", "channel_axis"),
        *("leftover", "seed"),
    ),
    *opt.loading_options(),
)
def similarity(
    first: Annotated[str, opt.argument("FIRST", "A network, as for `fathometer measure`.")],
    second: Annotated[str, opt.argument("SECOND", "Another network.")],
    data: opt.DataOption,
    second_weights: Annotated[
        str | None, opt.option("WHICH", "Weights of the second network. Default: as --weights.")
    ] = None,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """Compare the sites of two networks: the similarity (CKA) of every site with every site of the other.

    Both run side by side over the same data, each with its own preprocessing. The result is one file
    (default: FIRST-SECOND-map.json) for `fathometer plot`, `report` and `fathometer.load`. Patterns of
    `--sites` see names that begin with `first.` and `second.`. For one network: `fathometer measure --map`.

    For example:

    - `fathometer compare map torchvision:resnet18 torchvision:resnet50 --data photos/`

    - `fathometer compare map nets:small nets:large --weights a.pt --second-weights b.pt --data test.npz`
    """
    from fathometer.cli.measure import load_model_and_data, skipped_line
    from fathometer.cli.tables import TableView
    from fathometer.measuring.two_networks import similarity_map

    chosen = opt.chosen_options(options)
    out = out or Path(f"{slug(first)}-{slug(second)}-map.json")
    check_writable(out, force, (".json",))
    one = load_model_and_data(first, data, chosen.seed, options)
    own = {**options, "weights": second_weights or options["weights"]}
    try:
        other = load_model_and_data(second, data, chosen.seed, own)
    except InputError as error:
        if error.parameter == "weights" and second_weights:
            raise InputError(error.reason, parameter="second_weights") from error
        raise
    found = similarity_map(
        one.model,
        other.model,
        one.data,
        chosen,
        second_data=other.data,
        batch_size=options["batch_size"],
        device=one.device,
        progress=True,
    )
    found.save(out)
    title = f"The most similar site of {found.names[1]} for each of {found.names[0]}"
    terminal = print_result(found.nearest, TableView(found.nearest, title), as_json)
    if found.outcome:
        terminal.say(found.outcome)
    if one.data.skipped:
        terminal.say(skipped_line(one.data.skipped))
    terminal.say(f"wrote {out}; `fathometer plot` draws it")
