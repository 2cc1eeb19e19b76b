"""Measures what a survey adds to forward passes and gauges, and the gain from a second worker.

    python -m benchmarks.survey [--rounds 7] [--only scaling] [--json FILE]

Overhead: 100 small soundings (4 networks × 5 data sets × 5 settings), as a survey in one process and as the
bare loop of forward passes with capture and gauges over networks and batches in memory, taking turns.
Scaling: ResNet-18 (random weights, one thread) on Ray with 1 and with 2 CPUs and warm workers, and the gain
of bare forward passes from a second process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from fathometer import atlas
from fathometer.capture import Watch, watch
from fathometer.data import open_data
from fathometer.gauges.registry import read_gauges
from fathometer.measuring.batches import pieces
from fathometer.measuring.options import MeasureOptions
from fathometer.models import LoadedModel, load_model
from fathometer.survey import Task, parse_plan, run_survey, tasks_of

SMALL = """
models = ["benchmarks.survey_nets:cnn3", "benchmarks.survey_nets:cnn4", "benchmarks.survey_nets:cnn5",
          "benchmarks.survey_nets:cnn6"]
weights = "none"
[data]
a = "random:128"
b = "random:144"
c = "random:160"
d = "random:176"
e = "random:192"
[run]
threads = 1
device = "cpu"
[settings.affinity]
samples = 128
gauges = "affinity"
[settings.standard]
samples = 128
[settings.positions]
samples = 128
reduction = "position"
gauges = "affinity"
[settings.batches]
samples = 64
gauges = ["affinity", "norm", "cka"]
[settings.keep]
samples = 256
leftover = "keep"
gauges = "affinity"
"""
LARGE = """
models = ["torchvision:resnet18"]
weights = "none"
seeds = {seeds}
[data]
noise = "random:64"
[settings]
samples = 32
batches = 2
gauges = "affinity"
[run]
threads = 1
"""
WHAT = ("forward passes and gauges", "networks loaded and data read, once", "survey")


class Work(NamedTuple):
    """A sounding to take: all that it needs is in memory."""

    network: nn.Module
    batches: list[Any]
    options: MeasureOptions


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=("overhead", "scaling"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    if arguments.only != "scaling":
        found["overhead"] = overhead(arguments.rounds)
    if arguments.only != "overhead":
        found["scaling"] = scaling(arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


def overhead(rounds: int) -> dict[str, list[float]]:
    tasks = tasks_of(parse_plan(SMALL))
    seconds: dict[str, list[float]] = {}

    def timed(what: str, function: Callable[[], Any]) -> Any:
        begun, clock = time.process_time(), time.perf_counter()
        result = function()
        seconds.setdefault(f"{what}, CPU", []).append(time.process_time() - begun)
        seconds.setdefault(f"{what}, clock", []).append(time.perf_counter() - clock)
        return result

    bare(prepared(tasks))  # warm up
    for _ in range(rounds):
        plan = timed("plan read", partial(parse_plan, SMALL))
        timed("tasks and addresses", partial(tasks_of, plan))
        work = timed("networks loaded and data read, once", partial(prepared, tasks))
        timed("forward passes and gauges", partial(bare, work))
        with tempfile.TemporaryDirectory() as folder:
            outcome = timed("survey", partial(run_survey, plan, folder))
            assert len(outcome.measured) == len(tasks)
            timed("survey, all finished", partial(run_survey, plan, folder))
            timed("atlas", partial(atlas, folder))
    print(f"{len(tasks)} soundings; ms a sounding, median (least to most) of {rounds} rounds")
    print(f"load of the machine, 1 and 15 minutes: {os.getloadavg()[0]:.1f}, {os.getloadavg()[2]:.1f}")
    for what, times in seconds.items():
        each = [1000 * time / len(tasks) for time in times]
        print(f"{what:>42} {statistics.median(each):7.2f} ({min(each):.2f} to {max(each):.2f})")
    for clock in ("CPU", "clock"):
        base, once, survey = (seconds[f"{what}, {clock}"] for what in WHAT)
        ratios = [whole / part for whole, part in zip(survey, base, strict=True)]
        floor = statistics.median(1 + extra / part for extra, part in zip(once, base, strict=True))
        print(
            f"survey / forward passes and gauges, {clock}: {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}); with loading and reading alone {floor:.3f}"
        )
    return seconds


def prepared(tasks: Sequence[Task]) -> list[Work]:
    """Load each network, and read each data set for it, once."""
    networks: dict[object, LoadedModel] = {}
    batches: dict[object, list[Any]] = {}
    work = []
    for task in tasks:
        if task.network not in networks:
            networks[task.network] = load_model(task.member.model_source, "none", seed=task.seed)
        model = networks[task.network]
        if task.opened not in batches:
            batches[task.opened] = list(open_data(task.data, model.inputs, seed=task.seed))
        work.append(Work(model.module, batches[task.opened], task.settings.options(task.seed)))
    return work


def bare(work: Sequence[Work]) -> None:
    """Run forward passes with capture, and gauges, and nothing else."""
    for network, batches, options in work:
        with (
            torch.no_grad(),
            watch(network, reduction=options.reduction, capacity=options.samples) as record,
        ):
            for piece in pieces(batches, options.samples, 32, tokens=False):
                network(piece.value)
                if piece.completes:
                    read(record, options)
            if options.leftover == "keep" and not piece.completes:
                read(record, options)


def read(record: Watch, options: MeasureOptions) -> None:
    with torch._C.DisableTorchFunction():
        read_gauges(options.chosen_gauges, {site.name: pair for site, pair in record.pairs.items()})
    record.clear()


def passes(seconds: float) -> int:
    """How many forward passes of a ResNet-18 a process manages in that time."""
    torch.set_num_threads(1)
    model, images = load_model("torchvision:resnet18", "none").module, torch.randn(8, 3, 224, 224)
    count, end = 0, time.perf_counter() + seconds
    with torch.no_grad():
        while time.perf_counter() < end:
            model(images)
            count += 1
    return count


def attainable(seconds: float = 10.0) -> float:
    """What a second process brings to bare forward passes, on this machine with what else it is doing."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(passes, [1.0, 1.0]))
        one = pool.submit(passes, seconds).result()
        return sum(pool.map(passes, [seconds, seconds])) / one


def scaling(rounds: int) -> dict[str, list[float]]:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        found.setdefault("attainable", []).append(attainable())
        for cpus in (1, 2):
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False)
            try:
                warm = parse_plan(LARGE.format(seeds="[90]"))
                with tempfile.TemporaryDirectory() as folder:
                    run_survey(warm, folder, backend="ray")
                plan = parse_plan(LARGE.format(seeds="[0, 1, 2, 3]"))
                with tempfile.TemporaryDirectory() as folder:
                    begun = time.perf_counter()
                    outcome = run_survey(plan, folder, backend="ray")
                    taken = time.perf_counter() - begun
                assert len(outcome.measured) == 4
                found.setdefault(str(cpus), []).append(taken)
            finally:
                ray.shutdown()
    print("4 soundings of ResNet-18, 2 batches of 32 each; s, median (least to most)")
    ceiling = found.pop("attainable")
    for what, times in found.items():
        print(f"{what:>12} worker(s) {statistics.median(times):6.1f} ({min(times):.1f} to {max(times):.1f})")
    one, two = (statistics.median(found[cpus]) for cpus in ("1", "2"))
    print(f"two workers: {one / two:.2f} times as fast")
    print(f"bare forward passes in two processes: {statistics.median(ceiling):.2f} times as many as in one")
    return {**found, "attainable": ceiling}


if __name__ == "__main__":
    main()
