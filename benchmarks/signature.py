"""Compares `fathometer.measure` with the bare forward pass over the same data.

    python -m benchmarks.signature [--device cpu] [--models NAME,NAME] [--batches 1] [--record]

Inputs are noise that is made before the clock starts; weights are random. The sides take turns. Ratios are
to the bare pass of the same round, and their median is reported. On a CPU every side has a process of its
own, for its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import torch
from torch import Tensor, nn

from benchmarks.records import add_record_option, record_benchmark
from fathometer import measure
from fathometer.models import load_model

MODELS = "torchvision:resnet50,torchvision:vit_b_16"
SIDES = {"bare": "", "affinity": "affinity", "standard": "standard", "with map": "standard"}
Reading = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tf32", action="store_true", help="let a GPU multiply float32 as TF32")
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    add_record_option(parser)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(Bench(options, options.models).read(options.side)))
        return
    name = "signature-tf32" if options.tf32 else "signature"
    for model in options.models.split(","):
        rounds = in_processes(options, model) if options.device == "cpu" else in_turn(options, model)
        found = summarize(model, rounds)
        if options.record:
            record_benchmark(f"{name}-{model.partition(':')[2]}", found, options.device)


def in_turn(options: argparse.Namespace, model: str) -> list[dict[str, Reading]]:
    bench = Bench(options, model)
    return [{side: bench.read(side) for side in SIDES} for _ in range(options.rounds)]


def in_processes(options: argparse.Namespace, model: str) -> list[dict[str, Reading]]:
    command = [sys.executable, "-m", "benchmarks.signature", *sys.argv[1:], "--models", model, "--side"]
    return [
        {side: json.loads(subprocess.run([*command, side], check=True, stdout=-1).stdout) for side in SIDES}
        for _ in range(options.rounds)
    ]


def summarize(model: str, rounds: list[dict[str, Reading]]) -> dict[str, Reading]:
    print(f"\n{model}: seconds, ratio to the bare pass, peak memory above it")
    result = {}
    for side in SIDES:
        ratios = [readings[side]["seconds"] / readings["bare"]["seconds"] for readings in rounds]
        result[side] = {
            "seconds": statistics.median(readings[side]["seconds"] for readings in rounds),
            "ratio": statistics.median(ratios),
            "ratio_least": min(ratios),
            "ratio_most": max(ratios),
            "more_mb": statistics.median(
                readings[side]["peak_mb"] - readings["bare"]["peak_mb"] for readings in rounds
            ),
        }
        line = "{seconds:8.3f} s  × {ratio:.3f} ({ratio_least:.3f} to {ratio_most:.3f})  {more_mb:+.0f} MB"
        print(f"{side:>9} " + line.format(**result[side]), flush=True)
    return result


class Bench:
    """A network and its inputs on the device, warm."""

    def __init__(self, options: argparse.Namespace, model: str) -> None:
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
        loaded = load_model(model, "none")
        self.cuda, self.samples = options.device != "cpu", options.samples
        self.network = loaded.module.to(options.device)
        data = torch.randn(options.samples * options.batches, *loaded.inputs.shape).to(options.device)
        self.inputs = data.split(options.batch_size)

    def read(self, side: str) -> Reading:
        """Seconds and peak memory of one pass over the data, after a short one."""
        few = self.inputs if self.cuda else self.inputs[:1]
        self.work(side, few, self.samples if self.cuda else len(few[0]))
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        self.work(side, self.inputs, self.samples)
        if self.cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        peak = torch.cuda.max_memory_allocated() / 1e6 if self.cuda else _resident_mb()
        return {"seconds": seconds, "peak_mb": peak}

    def work(self, side: str, inputs: tuple[Tensor, ...], samples: int) -> None:
        if SIDES[side]:
            similarity = "cka" if side == "with map" else None
            measure(self.network, inputs, samples=samples, gauges=SIDES[side], map=similarity)
        else:
            bare(self.network, inputs)


@torch.no_grad()
def bare(network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    for batch in inputs:
        network(batch)


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3  # kilobytes on Linux


if __name__ == "__main__":
    main()
