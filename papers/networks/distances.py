"""Choose the default distance between signatures by a criterion over trained networks.

The criterion, stated before any distance was computed on these soundings:

1. *Family.* The nearest neighbour of a trained network, among the trained networks on the same data, is of
   the same family. Counted over networks whose family has at least two members there.
2. *Trained.* The nearest neighbour of a trained network, among all other networks on the same data, trained
   or with random weights, is trained.

The score of a distance is the mean of the two shares, each over the networks of all data together. The
distance with the highest score becomes the default. Of equal scores, the one with the higher mean silhouette
of the families wins; then the simpler one, in the order of `CANDIDATES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from benchmarks.records import footer, markdown_table, write_record
from fathometer import Sounding, load
from fathometer.compare import (
    DEFAULT_METRIC,
    Distances,
    after_sums,
    family_agreement,
    signature_distances,
    signatures,
)
from fathometer.progress import Terminal
from papers.networks.measure import BATCHES, SOUNDINGS

RECORD = Path(__file__).parent / "distances.json"
PAGE = Path(__file__).parents[2] / "docs" / "distances.md"
_RANDOM = "-random"
_TEXT = """\
# Which distance between networks

Networks have signatures of different lengths, and `fathometer.compare.distances` aligns them by dynamic
time warping (DTW). The paper's distance is the root of the *sum* of squared differences along the best
path: it grows with depth, so that deep networks are far from everything. With it a trained ResNet-20 is
{example}.

| metric | what it is |
|---|---|
| `normalised` | the root *mean* square difference along the best path, in units of the score |
| `banded` | the same; only sites are paired whose relative depths differ by at most 0.1 |
| `paper` | DTW as in the paper |
| `wasserstein` | W₁ between the distributions of scores, whatever their order |
| `euclidean` | for signatures of equal length |

In the first two a step in both networks counts twice, so that all paths have the same total weight; and
sites after a residual sum (`Site.after_sum`) are aligned with each other alone, and so are all other
sites, if both networks have both kinds. In a ResNet the two kinds alternate, and alignment by depth alone
pairs one with the other.

## The criterion for the default

Stated in [papers/networks/distances.py](../papers/networks/distances.py) before any distance was
computed: the mean of two shares. *Family*: the nearest trained network is of the same family, for
networks whose family has others on the same data. *Trained*: the nearest of all networks, trained ones
and the same with random weights, is trained. Ties are broken by the silhouette of the families, then by
simplicity. The networks are the [reference networks](atlas.md): {counts}, and {random} with random
weights.

{table}

Highest score: **{best}**. The default is `{default}`. With this number of networks a difference of one or
two networks is noise. The criterion was stated before it was applied, and the result was looked at with 12,
17, 19 and 21 networks on the way: `normalised` led with 12, `banded` from 17 on.

{origin}. `python -m papers.networks distances --write` repeats it.
"""
_EXAMPLE = ("resnet20", "resnet20" + _RANDOM, "resnet56")  # of the issue that led to this


def _with_roles(metric: Any) -> Callable[[Mapping[str, Sounding]], Distances]:
    return lambda named: signature_distances(signatures(named), metric, roles=after_sums(named))


def _without(metric: Any) -> Callable[[Mapping[str, Sounding]], Distances]:
    return lambda named: signature_distances(signatures(named), metric)


CANDIDATES: dict[str, Callable[[Mapping[str, Sounding]], Distances]] = {
    "paper": _without("paper"),
    "wasserstein": _without("wasserstein"),
    "normalised, roles ignored": _without("normalised"),
    "banded, roles ignored": _without("banded"),
    "normalised": _with_roles("normalised"),
    "banded": _with_roles("banded"),
}
"""Distances of soundings, from the simplest on."""


@dataclass(frozen=True)
class NetworkSet:
    """Networks on the same data, trained and with random weights."""

    data: str
    trained: Mapping[str, Sounding]
    random: Mapping[str, Sounding]

    @classmethod
    def read(cls, data: str, folder: Path = SOUNDINGS) -> NetworkSet:
        """Read the soundings of a folder, and of the one of random weights beside it."""
        trained = {file.stem: load(file) for file in sorted((folder / data).glob("*.json"))}
        found = sorted((folder / f"{data}{_RANDOM}").glob("*.json"))
        return cls(data, trained, {f"{file.stem}{_RANDOM}": load(file) for file in found})

    @property
    def families(self) -> dict[str, str]:
        """Trained network → family."""
        return {name: str(each.provenance.model["family"]) for name, each in self.trained.items()}


def judge(candidate: Callable[[Mapping[str, Sounding]], Distances], sets: list[NetworkSet]) -> dict[str, Any]:
    """Apply the criterion to a distance."""
    agreements, next_to_trained = [], []
    for each in sets:
        if len(set(each.families.values())) > 1:
            agreements.append(family_agreement(candidate(each.trained), each.families))
        every = candidate({**each.trained, **each.random}).frame
        for name in each.trained:
            nearest = every.loc[name].drop(name).idxmin()
            next_to_trained.append(not str(nearest).endswith(_RANDOM))
    table = pd.concat(agreements)
    table = table[table["same"].notna()]
    same, of = int((table["same"] == True).sum()), len(table)  # noqa: E712 - the column also holds None
    trained, networks = sum(next_to_trained), len(next_to_trained)
    return {
        "same_family": same,
        "with_family": of,
        "next_to_trained": trained,
        "networks": networks,
        "score": round((same / of + trained / networks) / 2, 4),
        "silhouette": round(float(table["silhouette"].mean()), 4),
    }


def choose_distance(
    write: Annotated[
        bool, typer.Option("--write", metavar="", help="Write the record and the page.")
    ] = False,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the soundings.")] = SOUNDINGS,
) -> None:
    """Apply the criterion to every distance, over all soundings."""
    sets = [NetworkSet.read(data, folder) for data in BATCHES]
    found = {name: judge(candidate, sets) for name, candidate in CANDIDATES.items()}
    best = max(
        found, key=lambda name: (found[name]["score"], found[name]["silhouette"])
    )  # the first of equals
    cifar = next(each for each in sets if each.data == "cifar10")
    trained, random, other = _EXAMPLE
    for name, candidate in CANDIDATES.items():
        frame = candidate({**cifar.trained, **cifar.random}).frame
        found[name] |= {"to_random": frame.loc[trained, random], "to_trained": frame.loc[trained, other]}
    sizes = {each.data: {"trained": len(each.trained), "random": len(each.random)} for each in sets}
    rows = [_row(name, numbers) for name, numbers in found.items()]
    Terminal().print(pd.DataFrame(rows).to_string(index=False))
    Terminal().print(f"highest score: {best}")
    if write:
        write_record(RECORD, {"sets": sizes, "best": best, "found": found})
        PAGE.write_text(_page(json.loads(RECORD.read_text("utf-8"))), "utf-8")


def _page(record: Mapping[str, Any]) -> str:
    sets = record["sets"]
    counts = ", ".join(f"{each['trained']} on {data}" for data, each in sets.items() if each["trained"])
    paper = record["found"]["paper"]
    words = ("closer", "to") if paper["to_random"] < paper["to_trained"] else ("farther", "from")
    example = "{0} {1} a random ResNet-20 than {1} a trained ResNet-56".format(*words)
    rows = [_row(name, numbers) for name, numbers in record["found"].items()]
    return _TEXT.format(
        counts=counts,
        random=sum(each["random"] for each in sets.values()),
        best=record["best"],
        default=DEFAULT_METRIC,
        example=example,
        table=markdown_table(rows).rstrip(),
        origin=footer(record),
    )


def _row(name: str, numbers: Mapping[str, Any]) -> dict[str, str | int | float]:
    return {
        "distance": name,
        "family": f"{numbers['same_family']} of {numbers['with_family']}",
        "trained": f"{numbers['next_to_trained']} of {numbers['networks']}",
        "score": f"{numbers['score']:.3f}",
        "silhouette": f"{numbers['silhouette']:.2f}",
        "ResNet-20 to random ResNet-20": f"{numbers['to_random']:.3f}",
        "to trained ResNet-56": f"{numbers['to_trained']:.3f}",
    }
