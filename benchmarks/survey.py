"""Measures the overhead of a survey, and the gain from a second worker.

    python -m benchmarks.survey [--models 200] [--rounds 3] [--only scaling] [--json FILE]

Overhead: `--models` tiny networks × 3 data sets, as a survey in one process and as a loop of `measure`,
taking turns, in CPU time and wall time, with the load of the machine. Scaling: ResNet-18 (random weights,
one thread) on Ray with 1 and with 2 CPUs and warm workers, and the gain of bare forward passes from a
second process.
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
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from fathometer import atlas, measure
from fathometer.data import open_data
from fathometer.models import load_model
from fathometer.survey import Task, parse_plan, run_survey, tasks_of

TINY = """
models = [{models}]
weights = "none"
[data]
a = "random:64"
b = "random:96"
c = "random:128"
[settings]
samples = 64
gauges = ["affinity", "norm"]
[run]
threads = 1
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("overhead", "scaling"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    if arguments.only != "scaling":
        found["overhead"] = overhead(arguments.models, arguments.rounds)
    if arguments.only != "overhead":
        found["scaling"] = scaling(arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


def overhead(models: int, rounds: int) -> dict[str, list[float]]:
    names = ", ".join(f'"benchmarks.survey_nets:tiny{number}"' for number in range(models))
    seconds: dict[str, list[float]] = {}

    def timed(what: str, function: Callable[[], object]) -> Any:
        begun, clock = time.process_time(), time.perf_counter()
        result = function()
        seconds.setdefault(f"{what}, CPU", []).append(time.process_time() - begun)
        seconds.setdefault(f"{what}, clock", []).append(time.perf_counter() - clock)
        return result

    def round_of_all() -> int:
        plan = timed("plan read", lambda: parse_plan(TINY.format(models=names)))
        tasks = timed("tasks and addresses", lambda: tasks_of(plan))
        timed("measure in a loop", lambda: bare(tasks))
        with tempfile.TemporaryDirectory() as folder:
            timed("measure and save in a loop", lambda: bare(tasks, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            timed("survey", lambda: run_survey(plan, folder))
            timed("survey, all finished", lambda: run_survey(plan, folder))
            assert len(timed("atlas", lambda: atlas(folder))) == len(tasks)
        return len(tasks)

    count = max(round_of_all() for _ in range(rounds))
    each = {what: [1000 * second / count for second in times] for what, times in seconds.items()}
    print(f"{count} soundings; ms a sounding, median (least to most) of {rounds} rounds")
    print(f"load of the machine, 1 and 15 minutes: {os.getloadavg()[0]:.1f}, {os.getloadavg()[2]:.1f}")
    for what, times in each.items():
        print(f"{what:>34} {statistics.median(times):8.2f} ({min(times):.2f} to {max(times):.2f})")
    return each


def bare(tasks: Sequence[Task], folder: Path | None = None) -> None:
    """What one would write without a survey."""
    for task in tasks:
        model = load_model(task.member.model_source, "none", seed=task.seed)
        data = open_data(task.data, model.inputs, batch_size=32, seed=task.seed)
        sounding = measure(model, data, samples=64, gauges=["affinity", "norm"], batch_size=32)
        if folder is not None:
            sounding.save(folder / f"{task.stem}.json")


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
