"""How far does training bring a linearized network back?

    python -m benchmarks.recovery resnet56 --criterion greedy-kl --count 27 --epochs 5 20 \
        --weights FOLDER… --data FOLDER --device cuda --record
    python -m benchmarks.recovery cifar_resnet18 --budget "50k elements" --epochs 60 …

With `--count`, the sites are those that `python -m benchmarks.linearize greedy` or `costs` has recorded; with
`--budget`, the criterion chooses them (`first`: the first sites of the network). They are replaced at once,
and the network is trained with `fathometer.recover`, under bfloat16 autocast on a GPU. With several budgets,
the network is also trained for `--between` epochs after each but the last, and the next sites are chosen in
the trained network. The accuracy is measured on the test images that `linearize` was not developed with,
before and after training. With `--held-out`, the last 5000 training images take their place and are not
trained on: to choose a learning rate and the number of epochs.

Targets, stated before the first run: ResNet-56 with 27 of 55 ReLUs replaced has at least 92.9 % after at most
20 epochs; `cifar_resnet18` (`python -m benchmarks.train_cifar`) has at least 93.5 % with 100k elements and
92.3 % with 50k.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.linearize import RECORDS, recorded_order
from benchmarks.networks import CIFAR, DEVELOPMENT_IMAGES, add_source_options, cifar, loaded
from benchmarks.records import add_record_option, write_record
from fathometer.linearizing.linearize import linearize
from fathometer.linearizing.recover import recover
from papers.images.training import PAD, augmented

HELD_OUT = 5000  # training images


class Augmented:
    """Training images in another order, shifted and mirrored in another way, each time they are read."""

    def __init__(self, batches: Sequence[tuple[Tensor, Tensor]], seed: int, size: int) -> None:
        self._images, self._labels = (torch.cat(each) for each in zip(*batches, strict=True))
        self._generator, self._size = torch.Generator().manual_seed(seed), size

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self._images) // self._size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self._images), generator=self._generator)
        device = self._images.device
        for chosen in order.split(self._size):
            shifts = torch.randint(2 * PAD + 1, (len(chosen), 2), generator=self._generator)
            flips = torch.rand(len(chosen), generator=self._generator) < 0.5
            rows = chosen.to(device)
            yield augmented(self._images[rows], shifts.to(device), flips.to(device)), self._labels[rows]


@torch.no_grad()
def accuracy(network: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the share of images whose label the network gives."""
    right = torch.cat([network(x).argmax(1) == y for x, y in batches])
    return round(float(right.float().mean()), 5)


def train_student(
    network: nn.Module,
    teacher: nn.Module,
    images: Sequence[tuple[Tensor, Tensor]],
    options: argparse.Namespace,
    epochs: int,
) -> None:
    """Train a network in place to give what its teacher gives."""
    with torch.autocast(torch.device(options.device).type, torch.bfloat16):
        data = Augmented(images, options.seed, options.batch)
        recover(network, teacher, data, epochs=epochs, learning_rate=options.rate, progress=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=CIFAR, metavar="NETWORK", help=", ".join(CIFAR))
    add_source_options(parser)
    parser.add_argument("--budget", nargs="+", default=[], help="what `linearize` may replace, in steps")
    parser.add_argument("--between", type=int, default=4, help="epochs after each budget but the last")
    parser.add_argument("--criterion", default="greedy-kl", help="what chooses the sites")
    parser.add_argument("--count", type=int, help="how many sites of that order are replaced")
    parser.add_argument("--epochs", type=int, nargs="+", default=[5, 20], help="a training for each")
    parser.add_argument("--rate", type=float, default=0.05, help="the highest learning rate")
    parser.add_argument("--batch", type=int, default=512, help="images in a step")
    parser.add_argument("--calibration", type=int, default=1000, help="training images of the fit")
    parser.add_argument("--seed", type=int, default=0, help="for the order and crops of images")
    parser.add_argument("--held-out", action="store_true", help="measure on training images")
    add_record_option(parser)
    options = parser.parse_args()
    name = options.network
    train = cifar(options, name, "train", 50_000 - (HELD_OUT if options.held_out else 0))
    test = cifar(options, name, "train", HELD_OUT, start=50_000 - HELD_OUT)
    if not options.held_out:
        test = cifar(options, name, "test", 10_000 - DEVELOPMENT_IMAGES, start=DEVELOPMENT_IMAGES)
    model: Any = loaded(options, name).module
    model.to(memory_format=torch.channels_last)
    criterion: Any = (lambda site: site.order) if options.criterion == "first" else options.criterion
    steps: list[dict[str, Any]] = [{"budget": each, "criterion": criterion} for each in options.budget]
    if not steps:
        steps = [{"sites": recorded_order(name, options.criterion)[: options.count]}]
    few = train[: -(-options.calibration // 500)]
    network: Any = model
    sites: list[str] = []
    elements: list[int] = []
    for number, step in enumerate(steps):
        if number:
            train_student(network, model, train, options, options.between)
        network = linearize(network, few, samples=options.calibration, **step, progress=True).eval()
        sites += network.linearized.replaced
        elements += network.linearized.curve["elements"].to_list()[number > 0 :]
    found = {
        "network": name,
        "criterion": options.criterion,
        "budget": options.budget[-1] if options.budget else None,
        "earlier budgets": options.budget[:-1],
        "epochs between": options.between,
        "sites": sites,
        "elements": elements,
        "calibration": options.calibration,
        "test": sum(len(y) for _, y in test),
        "rate": options.rate,
        "batch": options.batch,
        "seed": options.seed,
        "held out": options.held_out,
        "original": accuracy(model, test),
        "without training": accuracy(network, test),
        "recovered": {},
        "seconds": {},
    }
    print(name, found, flush=True)
    for epochs in options.epochs:
        student = copy.deepcopy(network)
        started = time.perf_counter()
        train_student(student, model, train, options, epochs)
        found["seconds"][epochs] = round(time.perf_counter() - started)
        found["recovered"][epochs] = accuracy(student, test)
        print(name, options.criterion, found["budget"] or options.count, found["recovered"], flush=True)
    if options.record:
        what = f"{options.criterion}-{found['budget'] or options.count}".replace(" ", "")
        what += f"-in-{len(steps)}-steps" if len(steps) > 1 else ""
        what += f"-seed{options.seed}" if options.seed else ""
        what += f"-held-out-rate{options.rate}" if options.held_out else ""
        path = RECORDS / f"recovery-{name}-{what}.json"
        write_record(path, {"benchmark": "linearize recovery", "found": found}, options.device)


if __name__ == "__main__":
    main()
