"""Compares all standard gauges of a pair with the same quantities from other libraries, on a CPU, in one run.

    python -m benchmarks.gauges [--shapes 512x256,512x1024,2048x1536] [--threads 2] [--rounds 3] [--record]

The other side computes what `standard` contains, as far as a library has it: the affinity score from
scikit-learn's LedoitWolf, SciPy's sqrtm and POT's emd2 (tests/reference.py); RankMe and alpha by reptrix; the
intrinsic dimension by scikit-dimension (TwoNN and MLE); R², in the sample and left out, by
scikit-learn; singular values by NumPy. Each side of each round has a process of its own, since thread pools
disturb each other; the sides take turns, and medians are reported.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.records import add_record_option, record_benchmark

SHAPES = "512x256,512x1024,2048x1536"
SIDES = ("fathometer", "libraries")
Matrix = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default=SHAPES, help="samples x features, with commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    add_record_option(parser)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        side, shape = options.worker.split(",")
        print(json.dumps(WORK[side](*make_pair(shape))))
        return
    print(f"{platform.processor() or platform.machine()}, {options.threads} threads, seconds (median)")
    found = {shape: compare(shape, options) for shape in options.shapes.split(",")}
    if options.record:
        record_benchmark("gauges", found)


def compare(shape: str, options: argparse.Namespace) -> dict[str, float]:
    """Time both sides of one shape, in turns."""
    rounds = [
        {side: in_process(side, shape, options.threads) for side in SIDES} for _ in range(options.rounds)
    ]
    ours = statistics.median(found["fathometer"]["all standard gauges"] for found in rounds)
    result = {"fathometer, all standard gauges": ours}
    for library in rounds[0]["libraries"]:
        result[library] = statistics.median(found["libraries"][library] for found in rounds)
    ratios = [sum(found["libraries"].values()) / sum(found["fathometer"].values()) for found in rounds]
    result["ratio"] = statistics.median(ratios)
    print(f"\n{shape}")
    for name, value in result.items():
        print(f"  {value:9.3f}  {name}", flush=True)
    return result


def in_process(side: str, shape: str, threads: int) -> dict[str, float]:
    count = str(threads)
    limits = {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gauges", "--worker", f"{side},{shape}"]
    environment = {**os.environ, **limits, "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def make_pair(shape: str) -> tuple[Matrix, Matrix]:
    """Draw correlated samples of uneven scale, and their ReLU."""
    n, d = map(int, shape.split("x"))
    draw = np.random.default_rng(0).normal
    x = draw(size=(n, d)) @ (draw(size=(d, d)) / d**0.5) * np.exp(0.5 * draw(size=d)) + 0.3 * draw(size=d)
    return x, np.maximum(x, 0)


def time_fathometer(x: Matrix, y: Matrix) -> dict[str, float]:
    import torch

    from fathometer.gauges import choose_gauges, read_gauges

    gauges = choose_gauges("standard")
    warm, pair = (
        (torch.randn(600, 600), torch.randn(600, 600)),
        (torch.tensor(x).float(), torch.tensor(y).float()),
    )
    read_gauges(gauges, {"warm": warm})
    return {"all standard gauges": seconds(lambda: read_gauges(gauges, {"pair": pair}))}


def time_libraries(x: Matrix, y: Matrix) -> dict[str, float]:
    import skdim
    import torch
    from reptrix import alpha, rankme
    from sklearn.linear_model import LinearRegression, RidgeCV

    from tests.reference import dense_score

    warnings.simplefilter("ignore")
    sides = (x, y)
    dense_score(x[:64, :16], y[:64, :16])  # imports
    skdim.id.MLE().fit(x[:64, :16])
    return {
        "affinity: scikit-learn, SciPy, POT": seconds(lambda: dense_score(x, y)),
        "RankMe, alpha: reptrix": seconds(
            lambda: [(rankme.get_rankme(torch.tensor(s)), alpha.get_alpha(torch.tensor(s))) for s in sides]
        ),
        "intrinsic dimension: scikit-dimension": seconds(
            lambda: [(skdim.id.TwoNN().fit(s), skdim.id.MLE().fit(s)) for s in sides]
        ),
        "R², held out: scikit-learn": seconds(
            lambda: (
                LinearRegression().fit(x, y).score(x, y),
                RidgeCV((3.0, 0.3, 0.03, 1e-6), store_cv_results=True).fit(x, y),
            )
        ),
        "singular values: NumPy": seconds(lambda: [np.linalg.svd(s, compute_uv=False) for s in sides]),
    }


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


WORK: dict[str, Callable[[Matrix, Matrix], dict[str, float]]] = {
    "fathometer": time_fathometer,
    "libraries": time_libraries,
}


if __name__ == "__main__":
    main()
