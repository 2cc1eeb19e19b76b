"""Measures what a survey adds to forward passes and gauges, and the gain from a second worker.

    python -m benchmarks.survey [--rounds 7] [--only scaling] [--record]

Overhead: a survey of 100 small soundings (4 networks × 5 data sets × 5 settings) in one process. After each,
its bare work is done again, forward passes with capture and gauges, with network and batches in memory.
Scaling: ResNet-18 (random weights, one thread) on Ray with 1 and with 2 CPUs and warm workers, and the gain
of bare forward passes from a second process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from benchmarks.records import add_record_option, record_benchmark
from fathometer import atlas
from fathometer.capture import Watch, watch
from fathometer.data import open_data
from fathometer.gauges.reading import read_gauges
from fathometer.measuring.batches import pieces
from fathometer.measuring.options import MeasureOptions
from fathometer.models import LoadedModel, load_model
from fathometer.survey import Event, Plan, Task, parse_plan, run_survey, tasks_of

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
BASE, SURVEY = "forward passes and gauges", "survey"
ONCE = "networks loaded and data read, once"

FloatArray: TypeAlias = npt.NDArray[np.float64]


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
    add_record_option(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    if arguments.only != "scaling":
        found["overhead"] = overhead(arguments.rounds)
    if arguments.only != "overhead":
        found["scaling"] = scaling(arguments.rounds)
    if arguments.record:
        record_benchmark("survey", found)


def overhead(rounds: int) -> dict[str, list[list[float]]]:
    """Return CPU time and time by the clock of everything, in seconds."""
    tasks = tasks_of(parse_plan(SMALL))
    seconds: dict[str, list[FloatArray]] = {}

    def timed(what: str, function: Callable[[], Any]) -> Any:
        begun = now()
        result = function()
        seconds.setdefault(what, []).append(now() - begun)
        return result

    bare(prepared(tasks).values())  # warm up
    for _ in range(rounds):
        plan = timed("plan read", partial(parse_plan, SMALL))
        timed("tasks and addresses", partial(tasks_of, plan))
        work = timed(ONCE, partial(prepared, tasks))
        with tempfile.TemporaryDirectory() as folder:
            survey, base = taking_turns(plan, folder, work)
            seconds.setdefault(SURVEY, []).append(survey)
            seconds.setdefault(BASE, []).append(base)
            timed("survey, all finished", partial(run_survey, plan, folder))
            timed("atlas", partial(atlas, folder))
    print(f"{len(tasks)} soundings; median (least to most) of {rounds} rounds, CPU time and by the clock")
    print(f"load of the machine, 1 and 15 minutes: {os.getloadavg()[0]:.1f}, {os.getloadavg()[2]:.1f}")
    for what, times in seconds.items():
        show(f"{what}, ms a sounding", 1000 / len(tasks) * np.array(times))
    base = np.array(seconds[BASE])
    show("survey / forward passes and gauges", np.array(seconds[SURVEY]) / base)
    show("with loading and reading alone (floor)", 1 + np.array(seconds[ONCE]) / base)
    return {what: np.array(times).tolist() for what, times in seconds.items()}


def now() -> FloatArray:
    """Return CPU time and the clock."""
    return np.array([time.process_time(), time.perf_counter()])


def show(what: str, values: FloatArray) -> None:
    """Print the median and the range of both columns."""
    columns = (f"{np.median(found):8.3f} ({found.min():.3f} to {found.max():.3f})" for found in values.T)
    print(f"{what:>56}" + "".join(f"{text:>28}" for text in columns))


def taking_turns(plan: Plan, folder: str, work: Mapping[str, Work]) -> tuple[FloatArray, FloatArray]:
    """Return the time of a survey, and of its bare work, which is done after each sounding."""
    spent = np.zeros(2)

    def note(event: Event) -> None:
        nonlocal spent
        if event.state == "measured":
            begun = now()
            bare([work[event.task.address]])
            spent = spent + now() - begun

    begun = now()
    outcome = run_survey(plan, folder, on_event=note)
    total = now() - begun
    assert len(outcome.measured) == len(work)
    return total - spent, spent


def prepared(tasks: Sequence[Task]) -> dict[str, Work]:
    """Load each network, and read each data set for it, once; return the work by address."""
    networks: dict[object, LoadedModel] = {}
    batches: dict[object, list[Any]] = {}
    work = {}
    for task in tasks:
        if task.network not in networks:
            networks[task.network] = load_model(task.member.model_source, "none", seed=task.seed)
        model = networks[task.network]
        if task.opened not in batches:
            batches[task.opened] = list(open_data(task.data, model.inputs, seed=task.seed))
        options = task.settings.options(task.seed)
        work[task.address] = Work(model.module, batches[task.opened], options)
    return work


def bare(work: Iterable[Work]) -> None:
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
