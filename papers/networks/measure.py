"""Measure networks with published weights: one sounding each, with accuracy and loss in the same pass."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import torch
import typer
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.records import commit, processor
from fathometer import Sounding, measure
from fathometer.data import open_data
from fathometer.errors import InputError, check_device
from fathometer.models import LoadedModel
from fathometer.progress import Terminal, progress_bar
from papers.networks import cifar10, imagenet
from papers.networks.network import Data, Network

State: TypeAlias = Literal["trained", "random", "seeds"]
"""`random`: the same networks with random weights; `seeds`: some networks, trained with other seeds."""

SOUNDINGS = Path(__file__).parent / "soundings"
"""A folder for each data set, and beside it `-random` and `-seeds`: see `State`."""

RECORDS = Path(__file__).parent / "training"
"""The records of the networks that were trained here."""

GAUGES = "standard,cka"  # of the paper's companions, only cka is not in the standard set
DIGITS = 6  # to which values are rounded in a file


class Batches(NamedTuple):
    """How many samples, and of how many inputs a forward pass is."""

    samples: int
    batches: int
    batch_size: int


BATCHES: dict[Data, Batches] = {"imagenet": Batches(500, 2, 50), "cifar10": Batches(512, 4, 256)}
NETWORKS: dict[Data, Mapping[str, Network]] = {"imagenet": imagenet.NETWORKS, "cifar10": cifar10.NETWORKS}
NOTES: dict[Data, str] = {
    "imagenet": "most likely training images: the accuracy is above that on validation images",
    "cifar10": "test images",
}


def sounding_file(data: Data, name: str, state: State = "trained", folder: Path = SOUNDINGS) -> Path:
    """Return the file of a sounding."""
    return folder / (data if state == "trained" else f"{data}-{state}") / f"{name}.json"


def measure_network(network: Network, images: Path, file: Path | None, device: str = "cpu") -> Sounding:
    """Measure a network on images, with the weights of a file or with random ones, which need the score only.

    Random weights are drawn as the library does, and BatchNorm has not seen any data; one batch is enough.
    """
    loaded = network.load(file)
    facts = {"family": network.family, "facts": network.facts | size_of(loaded)}
    return measure_loaded(loaded, images, network.data, facts, device, random=file is None)


def measure_loaded(
    loaded: LoadedModel,
    images: Path,
    data: Data,
    facts: Mapping[str, Any],
    device: str = "cpu",
    *,
    random: bool = False,
) -> Sounding:
    """Measure a network; the provenance says what is known of it, on which commit and machine."""
    samples, batches, size = BATCHES[data]
    with progress_bar(loaded.name) as show:
        found = measure(
            loaded,
            open_data(images, loaded.inputs, batch_size=size),
            samples=samples,
            batches=1 if random else batches,
            gauges="affinity" if random else GAUGES,
            batch_size=size,
            device=device,
            progress=show,
        )
    known = found.provenance
    machine = processor() if device == "cpu" else known.device
    provenance = replace(
        known,
        model={**known.model, **facts},
        data={**known.data, "note": NOTES[data]},
        versions={**known.versions, "commit": commit()},
        device=machine,
    )
    records = found.records.copy()
    for gauge in found.gauges:
        records[gauge] = [float(f"{value:.{DIGITS}g}") for value in records[gauge]]
    return replace(found, records=records, provenance=provenance)


def size_of(loaded: LoadedModel) -> dict[str, float]:
    """Count parameters, convolutions and linear layers, and billions of multiply-adds for one input."""
    layers = (nn.Linear, nn.modules.conv._ConvNd)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        loaded.module(torch.zeros(1, *loaded.inputs.shape))
    return {
        "parameters": sum(parameter.numel() for parameter in loaded.module.parameters()),
        "depth": sum(isinstance(layer, layers) for layer in loaded.module.modules()),
        "gflops": round(counter.get_total_flops() / 2e9, 4),
    }


def images_in(data: Data, imagenet: Path | None, cifar10: Path | None) -> Path | None:
    """Return where the images of a data set are, if the user has named them."""
    if data == "imagenet" or cifar10 is None:
        return imagenet if data == "imagenet" else None
    file = cifar10 / "cifar10_test.npz"
    if not file.is_file():
        raise InputError(f"--cifar10 {cifar10}: expected a folder with cifar10_test.npz")
    return file


def chosen_networks(names: Sequence[str]) -> Iterator[Network]:
    """Yield all networks, or those that are named."""
    every = [network for networks in NETWORKS.values() for network in networks.values()]
    if unknown := sorted(set(names) - {network.name for network in every}):
        raise InputError(f"{unknown[0]!r}: unknown; the networks are {', '.join(n.name for n in every)}")
    yield from (network for network in every if not names or network.name in names)


def measure_networks(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Some networks only.")] = None,
    weights: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="Folders to search for files of weights.")
    ] = None,
    imagenet: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="ImageNet images with a labels.csv.")
    ] = None,
    cifar10: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of cifar10_test.npz.")
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", metavar="", help="Random weights instead of the published ones.")
    ] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="Torch device.")] = "cpu",
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Start no further network after so many seconds.")
    ] = float("inf"),
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the soundings.")] = SOUNDINGS,
) -> None:
    """Measure networks with published weights; soundings that exist are kept."""
    started, terminal, where = time.monotonic(), Terminal(), check_device(device)
    for network in chosen_networks(names or []):
        state: State = "random" if random else "trained"
        target = sounding_file(network.data, network.name, state, out)
        images = images_in(network.data, imagenet, cifar10)
        if target.exists() or images is None:
            continue
        if time.monotonic() - started > seconds:
            terminal.print("Time is up. Run the same command again to resume.")
            break
        file = network.weights_file(weights or [])
        if file is None and not random:
            terminal.print(f"{network.name}: no file {network.file} in --weights; left out")
            continue
        found = measure_network(network, images, None if random else file, str(where))
        target.parent.mkdir(parents=True, exist_ok=True)
        found.save(target)
        terminal.print(f"{found!r}, {found.provenance.seconds:.0f} s; wrote {target.name}")
