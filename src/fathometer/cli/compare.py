"""`fathometer compare`: distances between soundings, their families, and what goes with what."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import typer
from rich.console import Console

from fathometer.cli.compare_networks import compare_networks
from fathometer.cli.options import ForceOption
from fathometer.cli.outputs import ResultFolder
from fathometer.cli.tables import frame_view
from fathometer.compare import (
    by_name,
    cluster,
    comparable,
    criteria_spread,
    data_deviation,
    facts_of,
    families_by_pattern,
    known_facts,
    read_facts,
    robustness,
    signature_distances,
    signature_table,
    signatures,
    training_change,
)
from fathometer.errors import InputError
from fathometer.sounding import Sounding
from fathometer.sounding_file import load

_SOUNDINGS = (".json", ".parquet")
_ALWAYS = ("files", "reference", "over", "criteria", "anyway", "out", "force")
_OPTIONS = {"--reference": ("gauge", "metric"), "--over": ("gauge",), "--criteria": ()}
"""What each question looks at."""


def compare(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(help="Soundings: files of `fathometer measure`, or folders of them.")
    ],
    gauge: Annotated[str, typer.Option(metavar="NAME", help="What is compared.")] = "affinity",
    metric: Annotated[
        Literal["dtw", "euclidean", "wasserstein"] | None,
        typer.Option(
            metavar="HOW",
            help="dtw (in order of depth, any lengths; the default), euclidean (equal lengths; the default "
            "of --reference) or wasserstein (distributions of scores, order forgotten).",
        ),
    ] = None,
    linkage: Annotated[
        Literal["average", "complete", "single", "ward"],
        typer.Option(metavar="HOW", help="average, complete, single or ward: the distance between clusters."),
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
    families: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A CSV with columns network, family, and any of accuracy, depth, parameters, gflops, year. "
            "Default: what the soundings of a survey, or torchvision, say.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATTERN",
            help="A family by the names of its networks. Repeatable; goes before FILE.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Instead: how far each network on other data is from itself on these."
        ),
    ] = None,
    over: Annotated[
        Literal["samples", "seed", "pooling", "weights", "data"] | None,
        typer.Option(
            metavar="WHAT",
            help="Instead: how far each network moves with samples, seed, pooling, weights or data. "
            "Two soundings over weights are before and after a training, in this order.",
        ),
    ] = None,
    criteria: Annotated[
        bool,
        typer.Option(
            "--criteria", metavar="", help="Instead: mean ± std of each gauge over trainings of one network."
        ),
    ] = False,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", metavar="", help="Warn, where data, reduction or samples differ, and go on."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For all tables (.csv) and pictures (.png).")
    ] = None,
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
    named = by_name(_load(files))
    console = Console(emoji=False)
    results = ResultFolder(out, force)
    if reference is not None:
        table = data_deviation(named, reference, gauge, metric or "euclidean", anyway=anyway)
        results.add("deviation.csv", table)
        title = f"{metric or 'euclidean'} distance of {gauge} from that on {reference}"
        console.print(frame_view(table, title, "Figure 15"))
    elif over is not None:
        _over(named, over, gauge, anyway, results, console)
    elif criteria:
        table = criteria_spread(named, anyway=anyway)
        results.add("criteria.csv", table)
        console.print(frame_view(table, "Each gauge over trainings (Table 3)", "relative: std / |mean|"))
    else:
        kept = comparable(named, gauge, anyway=anyway)
        facts = _facts(kept, families, family or [])
        tree = cluster(signature_distances(signatures(kept, gauge), metric or "dtw", gauge=gauge), linkage)
        compare_networks(kept, tree, facts, clusters, draws, results, console)
    for path in results.write():
        console.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)


def _check_question(context: typer.Context, reference: str | None, over: str | None, criteria: bool) -> None:
    """Refuse two questions at once, and options that the question does not look at."""
    questions = {"--reference": reference is not None, "--over": over is not None, "--criteria": criteria}
    asked = [question for question, is_asked in questions.items() if is_asked]
    if len(asked) > 1:
        raise InputError("--reference, --over and --criteria are three questions; ask one at a time")
    for question in asked:
        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
        foreign = [f"--{name}" for name in given if name not in (*_ALWAYS, *_OPTIONS[question])]
        if foreign:
            raise InputError(
                f"{', '.join(foreign)}: not looked at by {question}; leave it out, or ask without {question}"
            )


def _over(
    named: dict[str, Sounding],
    over: str,
    gauge: str,
    anyway: bool,
    results: ResultFolder,
    console: Console,
) -> None:
    table = robustness(named, over, gauge, anyway=anyway)
    results.add("over.csv", table)
    console.print(frame_view(table, f"{gauge} over {over}", "std: over what was changed, mean of sites", 4))
    if len(table) > 1:
        return
    with warnings.catch_warnings():
        if anyway:
            warnings.filterwarnings("ignore", message="compared anyway")  # was told before
        sites = signature_table(named, over, gauge, anyway=anyway)
        results.add("signatures.csv", sites)
        if over != "weights" or len(named) != 2:
            console.print(frame_view(sites, f"{gauge} by {over}"))
            return
        before, after = named.values()
        change = training_change(before, after, gauge, anyway=anyway)
    results.add("change.csv", change)
    first, second = sites.columns
    note = f"before: {first}, after: {second}, in the order of the files"
    console.print(frame_view(change, f"{gauge} before and after training (Figure 9)", note))


def _load(files: list[Path]) -> list[Sounding]:
    found: list[Path] = []
    for path in files:
        inside = sorted(file for file in path.iterdir() if file.suffix in _SOUNDINGS) if path.is_dir() else []
        if path.is_dir() and not inside:
            raise InputError(f"{path}: no .json or .parquet file in this folder")
        found += inside or [path]
    return [load(path) for path in dict.fromkeys(found)]


def _facts(named: dict[str, Sounding], file: Path | None, patterns: list[str]) -> pd.DataFrame:
    """What is known of the networks, from the file or else from themselves; families by pattern go first."""
    if file is not None:
        facts = facts_of(named, read_facts(file))
        if facts.empty:
            raise InputError(f"{file}: none of its networks is here; these are {', '.join(named)}")
    else:
        facts = known_facts(named)
    if patterns:
        wanted: dict[str, list[str]] = {}
        for family, pattern in map(_pattern, patterns):
            wanted.setdefault(family, []).append(pattern)
        found = families_by_pattern(named, wanted)
        written = facts["family"].dropna().to_dict() if "family" in facts else {}
        facts = facts.reindex(list(dict.fromkeys([*facts.index, *found])))
        facts["family"] = pd.Series(written | found, dtype=object).reindex(facts.index)
    return facts


def _pattern(text: str) -> tuple[str, str]:
    name, equals, pattern = text.partition("=")
    if not (name and equals and pattern):
        raise InputError(f"--family {text}: expected NAME=PATTERN, such as ResNet=resnet*")
    return name, pattern
