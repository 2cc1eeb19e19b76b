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
import importlib
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
from typing import Any, TypeAlias

import pandas as pd
import torch
from matplotlib.figure import Figure
from PIL import Image

from benchmarks import linearize_page
from fathometer import Site, Sounding, load, measure, reference, similarity_map, write_report
from fathometer.activations import ActivationAtlas, AtlasSettings, activation_atlas
from fathometer.compare import cluster, known_distances, signatures, statistics
from fathometer.compare.distance import Metric
from fathometer.data import open_data
from fathometer.errors import InputError
from fathometer.leaky import LeakySweep, grid, preset, sweep
from fathometer.models import LoadedModel, load_model
from fathometer.report import (
    BLUE,
    GREY,
    RED,
    column_figure,
    for_print,
    plot_activation_atlas,
    plot_alignment,
    plot_bounded,
    plot_dendrogram,
    plot_difference,
    plot_dimensions,
    plot_distributions,
    plot_energies,
    plot_errors,
    plot_layers,
    plot_map,
    plot_overlay,
    plot_path,
    plot_plane,
    plot_signature,
    plot_spectra,
    plot_steps,
    plot_years,
    save_figure,
)
from fathometer.residual import residual_path
from fathometer.results.history import History
from papers.affinity.trained_figures import plot_residual
from papers.images.ensembles import Ensemble
from papers.leaky.networks import SCHEMES, scheme_design
from papers.networks.measure import NETWORKS, SOUNDINGS

ROOT = Path(__file__).parents[1]
REPRODUCTION, RECORDS = ROOT / "docs/reproduction", ROOT / "examples/records"
DOTS = 200  # per inch
DATA: list[Path] = []
"""Folders in which weights and images are searched for."""

bottleneck, film, gauges, intrinsic_dimension, penalty, straightened = (
    importlib.import_module(f"examples.{name}")  # scripts, not a package: mypy would see them twice
    for name in ("bottleneck training_film gauges intrinsic_dimension affinity_penalty straightened".split())
)

TITLES = {
    **{f"resnet{depth}": f"ResNet-{depth}" for depth in (18, 20, 32, 44, 50, 56, 110)},
    **{f"squeezenet1_{number}": f"SqueezeNet 1.{number}" for number in (0, 1)},
    **{f"mobilenet_v{number}": f"MobileNet v{number}" for number in (1, 2)},
    **{f"mobilenet_v3_{size}": f"MobileNet v3 {size}" for size in ("small", "large")},
    **{f"efficientnet_b{number}": f"EfficientNet-B{number}" for number in (0, 3)},
    **{f"efficientnet_lite{number}": f"EfficientNet-lite{number}" for number in (0, 1)},
    "alexnet": "AlexNet",
    "vgg16": "VGG-16",
    "cifar_vgg16": "VGG-16 (CIFAR-10)",
    "inception_v3": "Inception v3",
    "clip_vit_b16": "ViT-B/16 (CLIP)",
}
NINE = (  # of docs/compare.md
    *(f"cifar10/{name}" for name in ("resnet20", "resnet32", "resnet44", "resnet56", "cifar_vgg16")),
    *(f"imagenet/{name}" for name in ("squeezenet1_0", "mobilenet_v2", "efficientnet_lite0", "resnet50")),
)

Draw: TypeAlias = "Callable[[], Figure | bytes]"
PICTURES: dict[str, Draw] = {}
"""File name → what draws it: a function that returns a figure, or the bytes of the file."""


def picture(name: str) -> Callable[[Draw], Draw]:
    """Decorate a function that draws a picture."""

    def add(draw: Draw) -> Draw:
        PICTURES[name] = draw
        return draw

    return add


def find(name: str) -> Path:
    """Find weights or data by name."""
    for folder in DATA:
        if found := sorted(folder.rglob(name)):
            return found[0]
    raise InputError(f"needs {name} in a folder given by --data")


def recorded(*names: str) -> dict[str, Sounding]:
    """Return soundings of trained networks, such as `cifar10/resnet20`, by their titles."""
    return {TITLES[name.partition("/")[2]]: load(SOUNDINGS / f"{name}.json") for name in names}


def families_of(soundings: Mapping[str, Sounding]) -> dict[str, str]:
    """Return title → family."""
    return {name: str(each.provenance.model["family"]) for name, each in soundings.items()}


def imagenet() -> dict[str, Sounding]:
    """Return the networks that were measured on ImageNet images, by title."""
    return recorded(*(f"imagenet/{file.stem}" for file in sorted((SOUNDINGS / "imagenet").glob("*.json"))))


def tree_of(soundings: Mapping[str, Sounding], metric: Metric = "banded") -> Figure:
    """Draw the tree and the distances of soundings."""
    return plot_dendrogram(cluster(known_distances(soundings, "affinity", metric)), families_of(soundings))


# Trained networks


@picture("hero.png")
def hero() -> Figure:
    """Figure 5D of the first paper: ResNet-20, the same without residual connections, ResNet-56."""
    table = pd.read_csv(REPRODUCTION / "small/affinity-figure-5d/signatures.csv")
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


@picture("resnets.png")
def resnets() -> Figure:
    """ResNet-20 and ResNet-56 over each other."""
    return plot_overlay(recorded("cifar10/resnet20", "cifar10/resnet56"))


@picture("figure-signature.png")
def signature() -> Figure:
    """One network with all that belongs to it."""
    sounding = load(SOUNDINGS / "cifar10/resnet56.json")
    return plot_signature(sounding, label="ResNet-56, trained", strip=True, distribution=True)


@picture("figure-alignment.png")
def alignment() -> Figure:
    """Two networks, with lines between aligned sites."""
    return plot_alignment(recorded("cifar10/resnet20", "cifar10/resnet56"))


@picture("figure-difference.png")
def difference() -> Figure:
    """What training changed."""
    states = {"random weights": "cifar10-random", "trained": "cifar10"}
    named = {f"ResNet-20, {s}": load(SOUNDINGS / f"{f}/resnet20.json") for s, f in states.items()}
    return plot_difference(named)


@picture("figure-distances.png")
def tree() -> Figure:
    """The networks of ImageNet."""
    return tree_of(imagenet())


@picture("figure-years.png")
def years() -> Figure:
    """The same in order of publication."""
    named = imagenet()
    known = {name: each.provenance.model["facts"]["year"] for name, each in named.items()}
    return plot_years(named, pd.DataFrame({"year": known, "family": families_of(named)}))


@picture("compare-trained.png")
def nine_networks() -> Figure:
    """The networks of docs/compare.md, by the paper's distance."""
    return tree_of(recorded(*NINE), "paper")


@picture("compare-distributions.png")
def distributions() -> Figure:
    """Their scores."""
    named = recorded(*NINE)
    return plot_distributions(signatures(named), statistics=statistics(named))


@picture("compare-random.png")
def random_networks() -> Figure:
    """The networks of `examples.families`, which writes the folder `families`."""
    folder = find("plan.toml").parent
    families = {
        model: family
        for family, models in importlib.import_module("examples.families").FAMILIES.items()
        for model in models
    }
    every = [load(file) for file in sorted(folder.glob("*.json"))]
    named = {str(each.provenance.model["name"]).rpartition(":")[2]: each for each in every}
    return plot_dendrogram(cluster(known_distances(named, "affinity", "paper")), families)


@picture("reference-tree.png")
def reference_tree() -> Figure:
    """All networks that come with the package."""
    return tree_of({title_with_data(name): each for name, each in reference.load().items()})


def title_with_data(name: str) -> str:
    """Return the title of a reference network, and CIFAR-10 for those that learned it."""
    data, _, network = name.partition("/")
    return TITLES[network] + (", CIFAR-10" if data == "cifar10" and "CIFAR" not in TITLES[network] else "")


@picture("intrinsic-dimension.png")
def dimensions_along_depth() -> Figure:
    """Three recorded networks, and SmolLM2."""
    named = recorded("imagenet/resnet18", "imagenet/resnet50", "imagenet/clip_vit_b16")
    sites = [site for site in smollm2().sites if site.kind == "activation"]
    figure: Figure = intrinsic_dimension.picture({**named, "SmolLM2": smollm2().at(sites)})
    return figure


@picture("map-resnets.png")
def map_of_two() -> Figure:
    """ResNet-20 against ResNet-56 on the test set of CIFAR-10."""
    first, second = (_cifar_network(name, "trained") for name in ("resnet20", "resnet56"))
    data = open_data(find("cifar10_test.npz"), first.inputs, batch_size=256)
    return plot_map(similarity_map(first, second, data, samples=512, batch_size=256))


@picture("residual-path.png")
def path_of_blocks() -> Figure:
    """ResNet-56, trained and with random weights, along its blocks."""
    paths = {}
    for state in ("trained", "random weights"):
        network = _cifar_network("resnet56", state)
        data = open_data(find("cifar10_test.npz"), network.inputs, batch_size=100)
        paths[f"ResNet-56, {state}"] = residual_path(network, data, samples=1000, batches=5, batch_size=100)
    return plot_path(list(paths.values()), list(paths))


def _cifar_network(name: str, state: str) -> LoadedModel:
    network = NETWORKS["cifar10"][name]
    return replace(network.load(find(network.file) if state == "trained" else None), name=TITLES[name])


# Language models


@picture("language-models.png")
def parts_of_a_language_model() -> Figure:
    """R² of every part of SmolLM2, from the record of `examples.language_models`."""
    record = json.loads((ROOT / "docs/language-models.json").read_text("utf-8"))
    (found,) = [
        each
        for each in record["conditions"]
        if (each["model"], each["text"], each["length"]) == ("SmolLM2", "prose", 256)
    ]
    sites: list[Site] = []
    values = []
    for series, heldout in found["r2_heldout"].items():
        kind, _, residual = series.partition("+")
        for layer, (r2, trimmed) in enumerate(zip(heldout, found["r2_trimmed"][series], strict=True)):
            site = Site(f"{layer}.{kind}", kind, 1, len(sites), True, kind, layer, bool(residual))
            sites.append(site)
            row = {"site": site.name, "batch": 0, "n": 2048, "d": 576}
            values.append({**row, "r2_heldout": r2, "r2_trimmed": trimmed})
    return plot_layers({"SmolLM2-135M": Sounding(tuple(sites), pd.DataFrame(values))})


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


@picture("language-layers.png")
def layers() -> Figure:
    """Activations, attention and MLPs by layer."""
    return plot_layers([smollm2()])


# Functions and gauges


@picture("activations.png")
def activations() -> Figure:
    """Figure 6 of the first paper; the record has no scores over the whole interval, they are computed."""
    scores = pd.read_csv(REPRODUCTION / "small/affinity-figure-6/scores.csv")
    whole = activation_atlas(settings=AtlasSettings(means=1, stds=(1.0,))).baseline
    return plot_activation_atlas(ActivationAtlas(scores[scores["seed"] == 0], whole, AtlasSettings()))


PICTURES["companions.png"] = gauges.companion_picture
PICTURES["dimensions.png"] = gauges.dimension_picture
PICTURES["linearize.svg"] = lambda: linearize_page.draw(linearize_page.measured())


# Small trainings


@picture("straightened.png")
def without_a_relu() -> Figure:
    """What each ReLU is worth."""
    figure: Figure = straightened.picture(straightened.run(3, 12))
    return figure


@picture("affinity-penalty.png")
def trained_with_a_penalty() -> Figure:
    """Trained towards a score."""
    figure: Figure = penalty.picture(pd.read_csv(RECORDS / "affinity-penalty.csv"))
    return figure


@cache
def training() -> History:
    """Return the history of a small training."""
    history: History = film.train(40, 0, None, every=10)[0]
    return history


@picture("training.png")
def training_map() -> Figure:
    """All steps as a map."""
    return training().plot()


@cache
def tour() -> dict[str, Any]:
    """Run the code of docs/tour.md until its network is trained and measured."""
    names: dict[str, Any] = {}
    text = (ROOT / "docs/tour.md").read_text("utf-8")
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if "after" not in names:
            exec(code, names)  # noqa: S102 - the code of the page, as its readers run it
    return names


@picture("tour.png")
def tour_signature() -> Figure:
    """The figure that the tour draws."""
    figure: Figure = tour()["after"].plot()
    return figure


# Leaky ResNets


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


PICTURES |= {
    "bottleneck.png": lambda: bottleneck.picture(bottleneck.train(0)),
    "figure-energies.png": lambda: plot_energies(quick(effective_depth=(7.0,), rank=(3,)), columns=1),
    "leaky-1a.png": lambda: plot_dimensions(pd.read_csv(REPRODUCTION / "small/leaky-figure-1a/depths.csv")),
    "leaky-1b.png": lambda: plot_spectra(quick(effective_depth=(7.0,), rank=(3,))),
    "leaky-1c.png": lambda: plot_energies(quick(effective_depth=(7.0,), rank=(3,))),
    "leaky-2a.png": lambda: plot_errors(pd.read_csv(REPRODUCTION / "small/leaky-figure-2a/errors.csv")),
    "leaky-2b.png": lambda: plot_steps(schemes()),
    "leaky-2c.png": lambda: plot_plane(schemes()),
    "leaky-3.png": lambda: plot_bounded(pd.read_csv(REPRODUCTION / "small/leaky-figure-3/depths.csv")),
}


# Pages and the film


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


def sounding_page() -> bytes:
    """The report of ResNet-56."""
    return photograph(load(SOUNDINGS / "cifar10/resnet56.json"), 1250, title="ResNet-56 on CIFAR-10")


def page_of_several() -> bytes:
    """The report of three networks."""
    named = recorded("cifar10/cifar_vgg16", "cifar10/resnet20", "cifar10/resnet56")
    return photograph(named, 1300, title="Three networks on CIFAR-10")


def atlas_page() -> bytes:
    """All networks that come with the package."""
    named = {title_with_data(name): each for name, each in reference.load().items()}
    return photograph(named, 1050, atlas=True, allow_mismatch=True, title="Trained networks")


def leaky_page() -> bytes:
    """The report of a sweep over depths."""
    found = quick(effective_depth=(2.0, 4.0, 6.0, 8.0, 10.0), seeds=(0, 1, 2))
    return photograph(found, 1400, title="Leaky ResNets by depth")


PICTURES |= {
    "report-sounding.png": sounding_page,
    "report-several.png": page_of_several,
    "report-atlas.png": atlas_page,
    "report-leaky.png": leaky_page,
    "report-film.png": lambda: photograph(training(), 1050),
    "tour-report.png": lambda: photograph([tour()["before"], tour()["after"]], 800),
}


@picture("training.gif")
def training_film() -> bytes:
    """The signature while the network learns, with the loss below; a frame for each sounding."""
    history = training()
    frames = [_frame(history, place) for place in range(len(history.steps))]
    times = [80] * (len(frames) - 1) + [2500]
    written = io.BytesIO()
    shared = frames[-1].quantize(64)
    frames = [frame.quantize(palette=shared, dither=Image.Dither.NONE) for frame in frames]
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    return written.getvalue()


@for_print
def _draw_frame(history: History, place: int) -> Figure:
    table, loss, step = history.signature, history.metric("loss"), history.steps[place]
    figure = column_figure(2, 3.6)
    top, bottom = figure.subplots(2, 1, height_ratios=(1, 0.4))
    names = [str(name) for name in table.columns]
    top.plot(names, table.iloc[0], "o--", color=GREY, mfc="white", label="before training")
    top.plot(names, table.iloc[place], "o-", color=BLUE, label=f"step {step}")
    top.set(ylabel="affinity score", ylim=(table.to_numpy().min() - 0.02, 1.0))
    top.set_title("1 = affine, lower = more non-linear", loc="left")
    top.legend(loc="lower right")
    bottom.plot(loss.index, loss, color=GREY, linewidth=0.6)
    bottom.plot(loss.loc[:step], color=RED)
    bottom.set(xlabel="step", ylabel="loss (log)", yscale="log", xlim=(0, history.steps[-1]))
    return figure


def _frame(history: History, place: int) -> Image.Image:
    return Image.open(io.BytesIO(_png(_draw_frame(history, place), 100))).convert("RGB")


def _png(figure: Figure, dots: int) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dots)
    return drawn.getvalue()


def write(name: str, folder: Path) -> None:
    """Draw a picture and write it; a PNG with 256 colours, which is a third of the size."""
    drawn, path = PICTURES[name](), folder / name
    if path.suffix == ".png":
        image = Image.open(io.BytesIO(_png(drawn, DOTS) if isinstance(drawn, Figure) else drawn))
        few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
    elif isinstance(drawn, Figure):
        save_figure(drawn, path)
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
    chosen = [name for name in PICTURES if {name, name.partition(".")[0]} & set(options.names)]
    if options.names and not chosen:
        parser.error(f"NAME: expected some of {', '.join(PICTURES)}")
    DATA[:] = options.data
    options.out.mkdir(parents=True, exist_ok=True)
    for name in chosen or PICTURES:
        try:
            write(name, options.out)
            print(name, flush=True)
        except InputError as error:
            print(f"{name}: left as it is: {error}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the networks are too small to share
    main()
