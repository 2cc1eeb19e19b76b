"""How far does training bring a linearized network back?

    python -m benchmarks.recovery resnet56 --epochs 20 --weights FOLDER… --data FOLDER --record
    python -m benchmarks.recovery resnet20 --budget "50k elements" --weights FOLDER… --data FOLDER --record

Without `--budget`, the sites are those that `python -m benchmarks.linearize greedy` chose. The accuracy is
measured on the test images that no other benchmark of `linearize` uses, before and after training with
`fathometer.recover` under bfloat16 autocast.

Targets, stated before the first run: ResNet-56 with 27 of 55 ReLUs replaced has at least 92.9 % after at most
20 epochs; `cifar_resnet18` (`python -m benchmarks.train_cifar`) has at least 93.5 % with 100k elements and
92.3 % with 50k.

With ResNet-56, these images were scored on twice before: two epochs in bfloat16 gave 15.79 % (record at
commit e21e9ea), because autocast kept the weights of the first step, which `recover` now prevents; and one
epoch in float32 gave 91.79 % (record at commit 2d5d4e2), with one shift for all images of a batch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.augmentation import Augmented
from benchmarks.linearize import RECORDS
from benchmarks.networks import CIFAR, cifar, loaded
from benchmarks.records import add_record_option, write_record
from fathometer.linearizing.linearize import linearize
from fathometer.linearizing.recover import recover

SEEN = 1000  # test images that other benchmarks of `linearize` were run on


@torch.no_grad()
def accuracy(network: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the share of images whose label the network gives."""
    right = torch.cat([network(x).argmax(1) == y for x, y in batches])
    return round(float(right.float().mean()), 5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=CIFAR, metavar="NETWORK", help=", ".join(CIFAR))
    parser.add_argument("--weights", nargs="+", required=True, help="folders of weights")
    parser.add_argument("--data", required=True, help="folder with cifar10_train.npz and cifar10_test.npz")
    parser.add_argument("--budget", help="what `linearize` may replace, chosen by greedy-kl")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--calibration", type=int, default=512, help="training images of the fit")
    add_record_option(parser)
    options = parser.parse_args()
    name, data = options.network, Path(options.data)
    test = cifar(name, data / "cifar10_test.npz", 10_000 - SEEN, skip=SEEN)
    train = cifar(name, data / "cifar10_train.npz", 50_000)
    model: Any = loaded(options, name).module
    model.to(memory_format=torch.channels_last)
    chosen: dict[str, Any] = {"budget": options.budget}
    if options.budget is None:
        greedy = json.loads((RECORDS / f"greedy-{name}.json").read_text("utf-8"))
        chosen = {"sites": greedy["found"]["greedy-kl"]["order"]}
    network: Any = linearize(
        model, train[: options.calibration // 128], samples=50_000, **chosen, progress=True
    ).eval()
    result = network.linearized
    found = {
        "network": name,
        "budget": options.budget,
        "sites": len(result.replaced),
        "calibration": options.calibration,
        "test": 10_000 - SEEN,
        "original": accuracy(model, test),
        "without training": accuracy(network, test),
        "epochs": options.epochs,
    }
    if options.budget:  # without it, the other sites are not in the result
        found |= {"of": len(result.sites), "elements": result.curve["elements"].iloc[[0, -1]].to_list()}
    print(name, found, flush=True)
    started = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16):
        recover(network, model, Augmented(train, 0), epochs=options.epochs, progress=True)
    found |= {"seconds": round(time.perf_counter() - started), "recovered": accuracy(network, test)}
    print(name, found)
    if options.record:
        suffix = "" if options.budget is None else "-" + options.budget.replace(" ", "")
        path = RECORDS / f"recovery-{name}{suffix}-{options.epochs}.json"
        write_record(path, {"benchmark": "linearize recovery", "found": found})


if __name__ == "__main__":
    main()
