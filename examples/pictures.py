"""Draws every picture of the documentation, in one style, from recorded results.

    python -m examples.pictures                     # all; those that need data are left as they are
    python -m examples.pictures resnets bottleneck  # these
    python -m examples.pictures map-resnets --data A --data B

Most are drawn from results in this repository: soundings in `papers/networks/soundings`, verdicts in
`docs/reproduction`, and a table of `examples.affinity_penalty` in `examples/records`. Small networks are
trained again, which takes minutes. Some pictures need weights or images, which are searched for by name in
the folders `--data`. Pages are photographed by Chromium.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from PIL import Image

from benchmarks import linearize_page
from examples import (
    affinity_penalty,
    bottleneck,
    gauges,
    intrinsic_dimension,
    language_page,
    straightened,
    training_film,
)
from examples.families import FAMILIES
from fathometer import Site, Sounding, load, measure, reference, report, similarity_map, write_report
from fathometer.activations import ActivationAtlas, AtlasSettings, activation_atlas
from fathometer.compare import cluster, known_distances, signatures, statistics
from fathometer.compare.distance import Metric
from fathometer.data import open_data
from fathometer.errors import did_you_mean
from fathometer.leaky import LeakySweep, grid, preset, sweep
from fathometer.models import LoadedModel, load_model
from fathometer.residual import residual_path
from fathometer.results.history import History
from papers.affinity.trained_figures import plot_residual
from papers.images.ensembles import Ensemble
from papers.leaky.networks import SCHEMES, scheme_design
from papers.networks.measure import NETWORKS, SOUNDINGS

ROOT = Path(__file__).parents[1]
RECORDS, SMALL = ROOT / "examples/records", ROOT / "docs/reproduction/small"
DOTS = 200  # per inch
DATA: list[Path] = []
"""Folders in which weights and images are searched for."""

TITLES = {f"{data}/{name}": each.title for data, known in NETWORKS.items() for name, each in known.items()}
NINE = (  # of docs/compare.md
    *(f"cifar10/{name}" for name in ("resnet20", "resnet32", "resnet44", "resnet56", "cifar_vgg16")),
    *(f"imagenet/{name}" for name in ("squeezenet1_0", "mobilenet_v2", "efficientnet_lite0", "resnet50")),
)


class MissingDataError(Exception):
    """Weights or data are in none of the folders `--data`."""


def find(name: str) -> Path:
    """Find weights or data by name."""
    for folder in DATA:
        if found := sorted(folder.rglob(name)):
            return found[0]
    raise MissingDataError(f"needs {name} in a folder given by --data")


# Trained networks


def recorded(*names: str) -> dict[str, Sounding]:
    """Return soundings of trained networks, such as `cifar10/resnet20`, by their titles."""
    return {TITLES[name]: load(SOUNDINGS / f"{name}.json") for name in names}


def imagenet() -> dict[str, Sounding]:
    """Return the networks that were measured on ImageNet images, by title."""
    return recorded(*(f"imagenet/{file.stem}" for file in sorted((SOUNDINGS / "imagenet").glob("*.json"))))


def references() -> dict[str, Sounding]:
    """Return the networks that come with the package, by title and, for CIFAR-10, data."""
    named = {}
    for name, sounding in reference.load().items():
        title = TITLES[name]
        on_cifar = name.startswith("cifar10") and "CIFAR" not in title
        named[f"{title}, CIFAR-10" if on_cifar else title] = sounding
    return named


def families_of(soundings: Mapping[str, Sounding]) -> dict[str, str]:
    """Return title → family."""
    return {name: str(each.provenance.model["family"]) for name, each in soundings.items()}


def tree_of(
    soundings: Mapping[str, Sounding], metric: Metric = "banded", families: Mapping[str, str] | None = None
) -> Figure:
    """Draw the tree and the distances of soundings."""
    tree = cluster(known_distances(soundings, "affinity", metric))
    return report.plot_dendrogram(tree, families or families_of(soundings))


def hero() -> Figure:
    """Draw Figure 5D of the first paper: ResNet-20, the same without residual connections, ResNet-56."""
    table = pd.read_csv(SMALL / "affinity-figure-5d/signatures.csv")
    groups = {}
    for name, group in table.groupby("of", sort=False):
        seeds = (rows for _, rows in group.groupby("seed"))
        found = {seed: _sounding(rows) for seed, rows in enumerate(seeds)}
        groups[str(name).replace("plain 20", "20 layers without residual sums")] = Ensemble("", found)
    return plot_residual(groups)


def _sounding(rows: pd.DataFrame) -> Sounding:
    """Return a sounding of recorded scores."""
    sites = []
    for order, name in enumerate(rows["site"]):
        module, call = re.fullmatch(r"(.*)/relu(?:#(\d+))?", name).groups()  # type: ignore[union-attr]
        sites.append(Site(module, "relu", int(call or 1), order, is_module=False))
    values = {"site": rows["site"], "batch": 0, "n": 1, "d": 1, "affinity": rows["score"]}
    return Sounding(tuple(sites), pd.DataFrame(values))


def difference() -> Figure:
    """Draw what training changed."""
    states = {"random weights": "cifar10-random", "trained": "cifar10"}
    named = {f"ResNet-20, {s}": load(SOUNDINGS / f"{f}/resnet20.json") for s, f in states.items()}
    return report.plot_difference(named)


def years() -> Figure:
    """Draw the networks of ImageNet in order of publication."""
    named = imagenet()
    known = {name: each.provenance.model["facts"]["year"] for name, each in named.items()}
    return report.plot_years(named, pd.DataFrame({"year": known, "family": families_of(named)}))


def distributions() -> Figure:
    """Draw the scores of the networks of docs/compare.md."""
    named = recorded(*NINE)
    return report.plot_distributions(signatures(named), statistics=statistics(named))


def random_networks() -> Figure:
    """Draw the tree of the networks of `examples.families`, from the folder that it writes."""
    every = [load(file) for file in sorted(find("plan.toml").parent.glob("*.json"))]
    named = {str(each.provenance.model["name"]).rpartition(":")[2]: each for each in every}
    return tree_of(named, "paper", {name: family for family, names in FAMILIES.items() for name in names})


def map_of_two() -> Figure:
    """Compare ResNet-20 and ResNet-56 on the test set of CIFAR-10."""
    first, second = (_cifar_network(name, "trained") for name in ("resnet20", "resnet56"))
    data = open_data(find("cifar10_test.npz"), first.inputs, batch_size=256)
    return report.plot_map(similarity_map(first, second, data, samples=512, batch_size=256))


def path_of_blocks() -> Figure:
    """Draw ResNet-56, trained and with random weights, along its blocks."""
    paths = {}
    for state in ("trained", "random weights"):
        network = _cifar_network("resnet56", state)
        data = open_data(find("cifar10_test.npz"), network.inputs, batch_size=100)
        paths[f"ResNet-56, {state}"] = residual_path(network, data, samples=1000, batches=5, batch_size=100)
    return report.plot_path(list(paths.values()), list(paths))


def _cifar_network(name: str, state: str) -> LoadedModel:
    network = NETWORKS["cifar10"][name]
    return replace(network.load(find(network.file) if state == "trained" else None), name=network.title)


# Language models


@cache
def smollm2() -> Sounding:
    """Measure SmolLM2 on Python's help topics: activations, attention and MLPs."""
    from pydoc_data.topics import topics

    model = load_model(f"hf:{find('SmolLM2-135M*.gguf')}")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "topics.txt")
        text.write_text("\n".join(topics.values()), "utf-8")
        data = open_data(text, model.inputs, batch_size=8)
        wanted: Any = {"sites": "activations,mlp,attention", "residual": "both", "reduction": "tokens"}
        wanted["gauges"] = "affinity,r2_heldout,r2_trimmed,intrinsic_dimension"
        return measure(model, data, samples=2048, batches=1, name="SmolLM2-135M", **wanted)


def dimensions_along_depth() -> Figure:
    """Draw three recorded networks, and SmolLM2."""
    named = recorded("imagenet/resnet18", "imagenet/resnet50", "imagenet/clip_vit_b16")
    sites = [site for site in smollm2().sites if site.kind == "activation"]
    return intrinsic_dimension.picture({**named, "SmolLM2": smollm2().at(sites)})


# Functions, small trainings, Leaky ResNets


def activations() -> Figure:
    """Draw Figure 6 of the first paper; scores over the whole interval are not recorded, but computed."""
    scores = pd.read_csv(SMALL / "affinity-figure-6/scores.csv")
    whole = activation_atlas(settings=AtlasSettings(means=1, stds=(1.0,))).baseline
    return report.plot_activation_atlas(ActivationAtlas(scores[scores["seed"] == 0], whole, AtlasSettings()))


@cache
def training() -> History:
    """Return the history of a small training."""
    return training_film.train(40, 0, None, every=10)[0]


@cache
def tour() -> dict[str, Any]:
    """Run the code of docs/tour.md until its network is trained and measured."""
    names: dict[str, Any] = {}
    text = (ROOT / "docs/tour.md").read_text("utf-8")
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if "after" not in names:
            exec(code, names)  # noqa: S102 - the code of the page, as its readers run it
    return names


@cache
def quick(**changes: Any) -> LeakySweep:
    """Train networks of the preset `quick`."""
    known = preset("quick")
    return sweep(grid(known.design, **{k: list(v) for k, v in changes.items()}), known.recipe)


@cache
def schemes() -> LeakySweep:
    """Train a network for each scheme of steps."""
    known = preset("quick")
    return sweep(grid(scheme_design(known), layers=[24], scheme=SCHEMES, seeds=[0]), known.recipe)


# Pages


def photograph(results: Any, height: int, **options: Any) -> bytes:
    """Write a report, open it in Chromium, and return a PNG of its upper part, 1000 pixels wide."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = write_report(results, Path(folder, "page.html"), **options)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1000, "height": height})
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready=true]")
        tab.wait_for_timeout(1000)
        shown = tab.screenshot()
        browser.close()
    return shown


# All of them

PICTURES: dict[str, Callable[[], Figure | bytes]] = {
    "hero.png": hero,
    "resnets.png": lambda: report.plot_overlay(recorded("cifar10/resnet20", "cifar10/resnet56")),
    "figure-signature.png": lambda: report.plot_signature(
        load(SOUNDINGS / "cifar10/resnet56.json"), label="ResNet-56, trained", strip=True, distribution=True
    ),
    "figure-alignment.png": lambda: report.plot_alignment(recorded("cifar10/resnet20", "cifar10/resnet56")),
    "figure-difference.png": difference,
    "figure-distances.png": lambda: tree_of(imagenet()),
    "figure-years.png": years,
    "compare-trained.png": lambda: tree_of(recorded(*NINE), "paper"),
    "compare-distributions.png": distributions,
    "compare-random.png": random_networks,
    "reference-tree.png": lambda: tree_of(references()),
    "map-resnets.png": map_of_two,
    "residual-path.png": path_of_blocks,
    "language-models.png": lambda: language_page.picture(json.loads(language_page.RECORD.read_text("utf-8"))),
    "language-layers.png": lambda: report.plot_layers([smollm2()]),
    "intrinsic-dimension.png": dimensions_along_depth,
    "activations.png": activations,
    "companions.png": gauges.companion_picture,
    "dimensions.png": gauges.dimension_picture,
    "linearize.svg": lambda: linearize_page.draw(linearize_page.measured()),
    "straightened.png": lambda: straightened.picture(straightened.run(3, 12)),
    "affinity-penalty.png": lambda: affinity_penalty.picture(pd.read_csv(RECORDS / "affinity-penalty.csv")),
    "training.png": lambda: training().plot(),
    "training.gif": lambda: training_film.film(training()),
    "tour.png": lambda: tour()["after"].plot(),
    "bottleneck.png": lambda: bottleneck.picture(bottleneck.train(0)),
    "figure-energies.png": lambda: report.plot_energies(quick(effective_depth=(7.0,), rank=(3,)), columns=1),
    "leaky-1a.png": lambda: report.plot_dimensions(pd.read_csv(SMALL / "leaky-figure-1a/depths.csv")),
    "leaky-1b.png": lambda: report.plot_spectra(quick(effective_depth=(7.0,), rank=(3,))),
    "leaky-1c.png": lambda: report.plot_energies(quick(effective_depth=(7.0,), rank=(3,))),
    "leaky-2a.png": lambda: report.plot_errors(pd.read_csv(SMALL / "leaky-figure-2a/errors.csv")),
    "leaky-2b.png": lambda: report.plot_steps(schemes()),
    "leaky-2c.png": lambda: report.plot_plane(schemes()),
    "leaky-3.png": lambda: report.plot_bounded(pd.read_csv(SMALL / "leaky-figure-3/depths.csv")),
    "report-sounding.png": lambda: photograph(
        load(SOUNDINGS / "cifar10/resnet56.json"), 1250, title="ResNet-56 on CIFAR-10"
    ),
    "report-several.png": lambda: photograph(
        recorded("cifar10/cifar_vgg16", "cifar10/resnet20", "cifar10/resnet56"),
        1300,
        title="Three networks on CIFAR-10",
    ),
    "report-atlas.png": lambda: photograph(
        references(), 1050, atlas=True, allow_mismatch=True, title="Trained networks"
    ),
    "report-leaky.png": lambda: photograph(
        quick(effective_depth=(2.0, 4.0, 6.0, 8.0, 10.0), seeds=(0, 1, 2)),
        1400,
        title="Leaky ResNets by depth",
    ),
    "report-film.png": lambda: photograph(training(), 1050),
    "tour-report.png": lambda: photograph([tour()["before"], tour()["after"]], 800),
}
"""File name → what draws it: a function that returns a figure, or the bytes of the file."""


def write(name: str, folder: Path) -> None:
    """Draw a picture and write it; a PNG with 256 colours, which is a third of the size."""
    drawn, path = PICTURES[name](), folder / name
    if path.suffix == ".png":
        file = io.BytesIO(drawn if isinstance(drawn, bytes) else b"")
        if isinstance(drawn, Figure):
            drawn.savefig(file, dpi=DOTS)
        image = Image.open(file).convert("RGB")
        image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    elif isinstance(drawn, Figure):
        report.save_figure(drawn, path)
    else:
        path.write_bytes(drawn)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures, or some."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="file names, with or without their ending")
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images", metavar="FOLDER")
    options = parser.parse_args(arguments)
    known = {*PICTURES, *(Path(name).stem for name in PICTURES)}
    for name in options.names:
        if name not in known:
            hint = did_you_mean(name, PICTURES) or f"expected some of {', '.join(PICTURES)}"
            parser.error(f"there is no picture {name!r}; {hint}")
    chosen = [name for name in PICTURES if {name, Path(name).stem} & set(options.names)]
    DATA[:] = options.data
    options.out.mkdir(parents=True, exist_ok=True)
    for name in chosen or PICTURES:
        try:
            write(name, options.out)
            print(name, flush=True)
        except MissingDataError as error:
            print(f"{name}: left as it is: {error}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the networks are too small to share
    main()
