"""Write the page of the reference networks, docs/atlas.md; `examples.pictures` draws their tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.records import markdown_table
from fathometer import Sounding, reference
from fathometer.compare import cluster, family_agreement, known_distances
from papers.networks.measure import RECORDS

DOCS = Path(__file__).parents[2] / "docs"
_TITLES = {
    "imagenet": "ImageNet",
    "cifar10": "CIFAR-10",
}
_HEAD = """\
# The reference networks

The package comes with soundings of {count} trained networks, with all standard gauges and `cka`, to compare
your own with. When the documentation is built, they also become an
[interactive atlas](reference-networks.html) to search and to choose from.

```bash
fathometer measure torchvision:resnet18 --weights mine.pt --data photos/ --samples 500 --out mine.json
fathometer compare reference mine.json --out placed   # nearest networks, percentiles, a tree
```

```python
from fathometer import reference

networks = reference.load("imagenet")  # soundings by name; each has one batch, the mean over batches
sites = reference.table()  # a row for each network and site
nearest = reference.place({{"mine": networks["imagenet/resnet18"]}}, data="imagenet").nearest
print(nearest["nearest"].to_list()[0], len(sites) > 100)
```

```text
imagenet/resnet18 True
```

The distance is the [default](distances.md) one. Measure as the reference was measured, with some 500
samples in a batch and the mean over positions. Other data than those below are part of a distance. This
page is written by `python -m papers.networks reference` from the soundings in
`papers/networks/soundings`; `papers/networks` also lists where the weights come from, and trains others
(`python -m papers.networks train`).
"""
_IMAGENET_NOTE = """\
Two batches of 500 images, one image of each class. They are most likely *training* images, so that the
measured accuracy is above the published one: it confirms that weights and inputs fit, and is no estimate
of the accuracy on other images. The published accuracy of EfficientNet-B0 has not been
checked against its source.
"""
_CIFAR_NOTE = "Four batches of 512 images of the test set; the measured accuracy is that on these 2048.\n"
_TRAINING_NOTE = """\
torchvision's code with ten classes, CIFAR-10 enlarged to 128 pixels; accuracy and loss on all 10,000 test
images. `papers/networks/recipes.py` has the recipes.
"""


def write_page(docs: Path = DOCS) -> None:
    """Write the page."""
    every = reference.load()
    parts = [_HEAD.format(count=len(every))]
    for data, title in _TITLES.items():
        if known := reference.load(data):
            rows = [_row(name.partition("/")[2], sounding) for name, sounding in known.items()]
            note = _IMAGENET_NOTE if data == "imagenet" else _CIFAR_NOTE
            parts += [f"## {title}\n", note, markdown_table(rows), _notes(known)]
    parts += _trainings()
    families = {name: str(each.provenance.model["family"]) for name, each in every.items()}
    tree = cluster(known_distances(every, "affinity"))
    agreement = family_agreement(tree.distances, families)
    several = agreement[agreement["same"].notna()]
    same = int((several["same"] == True).sum())  # noqa: E712 - the column also holds None
    parts += [
        "## Their tree\n",
        "![Tree of the reference networks](images/reference-tree.png)\n",
        f"The nearest neighbour is of the same family for {same} of {len(several)} networks whose family has "
        "others here.\n",
    ]
    (docs / "atlas.md").write_text("\n".join(parts), "utf-8")


def _trainings() -> list[str]:
    """Return the table of the networks that were trained here, if there are any."""
    records = [json.loads(file.read_text("utf-8")) for file in sorted(RECORDS.glob("*.json"))]
    rows = [
        {
            "network": each["network"],
            "seed": str(each["seed"]),
            "parameters, M": f"{each['parameters'] / 1e6:.2f}",
            "optimiser": f"{each['recipe']['optimiser']}, {each['recipe']['rate']:g}",
            "epochs": each["recipe"]["epochs"],
            "seconds": each["seconds"],
            "accuracy, %": f"{each['accuracy']:.2f}",
            "loss": f"{each['loss']:.3f}",
            "machine": each["machine"],
            "commit": each["commit"],
        }
        for each in records
    ]
    return ["### Trained here\n", _TRAINING_NOTE, markdown_table(rows)] if rows else []


def _row(name: str, sounding: Sounding) -> dict[str, str | int | float]:
    model: dict[str, Any] = sounding.provenance.model
    facts, summary = model["facts"], sounding.summary()
    published = f"{facts['accuracy']:.2f} ({facts['accuracy_by']})" if "accuracy" in facts else "–"
    return {
        "network": name,
        "family": model["family"],
        "year": str(facts["year"]),
        "parameters, M": f"{facts['parameters'] / 1e6:.2f}",
        "published accuracy, %": published,
        "measured, %": "–" if sounding.accuracy is None else f"{100 * sounding.accuracy:.1f}",
        "sites": len(sounding.sites),
        "affinity min": f"{summary['min']:.3f}",
        "median": f"{summary['median']:.3f}",
        "max": f"{summary['max']:.3f}",
    }


def _notes(known: dict[str, Sounding]) -> str:
    """List where the weights come from, and what is peculiar about them."""
    lines: dict[str, list[str]] = {}
    for name, sounding in known.items():
        facts = sounding.provenance.model["facts"]
        words = "; ".join([facts["source"], *facts.get("notes", [])])
        lines.setdefault(words, []).append(f"`{name.partition('/')[2]}`")
    return "\n".join(f"- {', '.join(names)}: {words}." for words, names in lines.items()) + "\n"
