"""Compares the speed of the affinity score with a plain dense reference, on the CPU, in one run.

    python -m benchmarks.affinity [--widths 64,256,…] [--samples 512] [--threads 2] [--record]

The reference uses scikit-learn's LedoitWolf, SciPy's sqrtm and POT's emd2, all in float64
(tests/reference.py). Each side runs in a process of its own with the same number of threads, because their
thread pools disturb each other. Times are the best of several calls in three processes (in one where the
reference takes over 10 s). Memory is the rise of the process's peak after the inputs were made and
everything was imported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.records import ROOT, add_record_option, processor, record_benchmark

WIDTHS = (64, 256, 512, 1024, 2048, 4096)
SIDES = ("fathometer", "reference")


def main() -> None:
    arguments = _parse()
    if arguments.worker:
        side, n, d = arguments.worker.split(",")
        print(json.dumps(measure(side, int(n), int(d))))
        return
    print(f"n = {arguments.samples}; {processor()}, {arguments.threads} threads\n")
    rows = [compare(arguments.samples, d, arguments.threads) for d in arguments.widths]
    fits = [fit_cost(arguments.threads)] if arguments.fit else []
    if arguments.record:
        record_benchmark("affinity", {"rows": rows, "fits": fits})


def compare(n: int, d: int, threads: int) -> dict[str, object]:
    """One line of the table: both sides at one shape."""
    ours, theirs = (_in_process(side, n, d, threads) for side in SIDES)
    for _ in range(2 if theirs["seconds"] < 10 else 0):  # processes differ more than calls do
        ours = min(ours, _in_process("fathometer", n, d, threads), key=_seconds)
        theirs = min(theirs, _in_process("reference", n, d, threads), key=_seconds)
    apart = abs(ours["score"] - theirs["score"])
    print(
        f"d = {d:5d}  fathometer {1e3 * ours['seconds']:8.1f} ms {ours['megabytes']:7.0f} MB   "
        f"reference {1e3 * theirs['seconds']:9.1f} ms {theirs['megabytes']:7.0f} MB   "
        f"{theirs['seconds'] / ours['seconds']:6.1f}× faster, "
        f"1/{theirs['megabytes'] / max(ours['megabytes'], 0.1):.0f} of the memory, scores {apart:.0e} apart",
        flush=True,
    )
    return {"n": n, "d": d, "fathometer": ours, "reference": theirs}


def measure(side: str, n: int, d: int) -> dict[str, float]:
    """Seconds, peak memory and the score itself, in this process."""
    rng = np.random.default_rng(0)
    spectrum = (1 + np.arange(d)) ** -0.5  # uneven, as activations are
    x = rng.normal(size=(n, d)) * spectrum @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    y = np.maximum(x, 0)
    score = _scorer(side)
    score(x[:, :8], y[:, :8])  # imports, thread pools
    before = _reset_peak()
    seconds, value, budget = float("inf"), 0.0, time.perf_counter() + 3
    while True:
        start = time.perf_counter()
        value = score(x, y)
        seconds = min(seconds, time.perf_counter() - start)
        if time.perf_counter() > budget:
            break
    return {"seconds": seconds, "megabytes": (_peak() - before) / 1e6, "score": value}


def fit_cost(threads: int) -> dict[str, float]:
    """Exponents of seconds ∝ nᵃ dᵇ, where d ≤ n and where d > 2n, by least squares on the logarithms."""
    shapes = {
        "d ≤ n": [(n, d) for n in (512, 1024, 2048) for d in (128, 256, 512)],
        "d > 2n": [(n, d) for n in (128, 256, 512) for d in (2048, 4096, 8192)],
    }
    found: dict[str, float] = {}
    print()
    for name, grid in shapes.items():
        seconds = [_in_process("fathometer", n, d, threads)["seconds"] for n, d in grid]
        system = np.array([[1, np.log(n), np.log(d)] for n, d in grid])
        (_, a, b), *_ = np.linalg.lstsq(system, np.log(seconds), rcond=None)
        (n_low, d_low), (n_high, d_high) = grid[0], grid[-1]
        ranges = f"n {n_low} to {n_high}, d {d_low} to {d_high}"
        print(f"cost where {name}: seconds ∝ n^{a:.2f} d^{b:.2f}  ({ranges})")
        found |= {f"{name}: n": float(a), f"{name}: d": float(b)}
    return found


def _seconds(figures: dict[str, float]) -> float:
    return figures["seconds"]


def _scorer(side: str) -> Callable[[np.ndarray, np.ndarray], float]:
    if side == "fathometer":
        from fathometer import affinity_score

        return lambda x, y: float(affinity_score(x, y))
    from tests.reference import dense_score

    return lambda x, y: dense_score(x, y)


def _in_process(side: str, n: int, d: int, threads: int) -> dict[str, float]:
    limits = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = os.environ | dict.fromkeys(limits, str(threads)) | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.affinity", "--worker", f"{side},{n},{d}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _reset_peak() -> float:
    """Forget the peak so far, where the system can (Linux), and return what is held now, in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _peak()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * resource.getpagesize())


def _peak() -> float:
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    except OSError:
        return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--widths", type=lambda t: [int(d) for d in t.split(",")], default=list(WIDTHS))
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    add_record_option(parser)
    parser.add_argument(
        "--no-fit", dest="fit", action="store_false", help="leave out the cost against n and d"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
