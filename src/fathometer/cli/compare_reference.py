"""The tables and the picture of `fathometer compare reference`."""

from __future__ import annotations

from collections.abc import Mapping

from fathometer.cli.outputs import ResultFolder
from fathometer.compare import cluster, known_facts
from fathometer.compare.clustering import Method
from fathometer.compare.distance import Metric
from fathometer.reference import load, place
from fathometer.report import plot_dendrogram
from fathometer.report.tables import families_of
from fathometer.results.sounding import Sounding

_OTHER_DATA = "the reference was measured on ImageNet and CIFAR-10; other data are part of a distance"


def compare_with_reference(
    named: Mapping[str, Sounding], gauge: str, metric: Metric, linkage: Method, results: ResultFolder
) -> None:
    """Show the nearest reference networks of each sounding, and how usual its statistics are."""
    known = load()
    found = place(named, gauge, metric)
    results.add("nearest", found.nearest.set_index("network"))
    results.add("percentiles", found.percentiles.set_index("network"))
    results.add("distances", found.distances.frame.rename_axis("network"))
    for name in named:
        nearest = found.nearest[found.nearest["network"] == name].drop(columns="network")
        results.show(nearest.set_index("nearest"), f"{name}: nearest of {len(known)} trained networks")
        usual = found.percentiles[found.percentiles["network"] == name].drop(columns="network")
        note = "percentile: per cent of the reference networks with a smaller value; low to high: theirs"
        results.show(usual.set_index("statistic"), f"{name}: {gauge} over its sites", note)
    results.say(_OTHER_DATA)
    families = families_of(known_facts(known)) | dict.fromkeys(named, "given")
    tree = cluster(found.distances, linkage)
    results.draw("dendrogram", lambda: plot_dendrogram(tree, families))
