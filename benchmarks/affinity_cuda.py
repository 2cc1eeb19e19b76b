"""Times the affinity scores of one network's sites on a GPU: 49 ReLU calls of ResNet-50, 512 samples.

    python -m benchmarks.affinity_cuda [--pairs FILE] [--samples 512] [--record]

FILE holds the real pairs, saved by `torch.save` as a list of (x, y). Without it, pairs of the same shapes
and with a similar spectrum are drawn. Prints the ways of taking a matrix root, the ways of batching, and
the total against the arithmetic lower bound.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.records import add_record_option, record_benchmark
from fathometer import affinity_score, affinity_scores
from fathometer.transport import moments, riccati
from fathometer.transport.decompositions import _steps, cholesky_factor

WIDTHS = {64: 7, 128: 8, 256: 15, 512: 10, 1024: 6, 2048: 3}  # of ResNet-50's ReLU calls
Pairs = list[tuple[Tensor, Tensor]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--samples", type=int, default=512)
    add_record_option(parser)
    arguments = parser.parse_args()
    pairs = load(arguments.pairs) if arguments.pairs else draw(arguments.samples)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {len(pairs)} pairs\n")
    found = {"roots": compare_roots(pairs), "batching": compare_batching(pairs), "floor": floor(pairs)}
    if arguments.record:
        record_benchmark("affinity", found, "cuda")


def compare_roots(pairs: Pairs) -> dict[str, dict[str, float]]:
    """Ms for the map A between the covariances of all pairs of a width, by each way to take the root."""
    roots: dict[str, Callable[..., Tensor]] = {
        "eigh": lambda *a: riccati.solve_riccati(*a, method="eigh"),
        "Newton-Schulz on the product": newton_schulz,
        "QDWH polar (Cholesky)": qdwh,
        "scaled Newton-Schulz polar": lambda *a: riccati.solve_riccati(*a, method="polar"),
    }
    print(
        "ms for A of all pairs of one width, in one batch; in brackets the residual max|A Σ_X A − Σ_Y|/|Σ_Y|"
    )
    found: dict[str, dict[str, float]] = {}
    for width in (64, 256, 512, 1024):
        chosen = [p for p in pairs if p[0].shape[1] == width]
        x, y = (torch.stack([p[side] for p in chosen]).double() for side in (0, 1))
        of_x, of_y = moments(x), moments(y)
        inputs = (of_x.covariance, of_y.covariance, of_x.floor, of_y.floor)
        line = []
        for name, solve in roots.items():
            a = solve(*inputs)
            residual = float((a @ inputs[0] @ a - inputs[1]).abs().max() / inputs[1].abs().max())
            ms = timed(partial(solve, *inputs))
            line.append(f"{name} {ms:.2f} ({residual:.0e})")
            found.setdefault(str(width), {})[name] = ms
        print(f"{len(chosen):3d} × {width:4d}: " + ", ".join(line), flush=True)
    return found


def compare_batching(pairs: Pairs) -> dict[str, float]:
    """Ms for all scores: one by one, a batch a width, and as the package arranges them."""
    widths = sorted({x.shape[1] for x, _ in pairs})
    groups = [[p for p in pairs if p[0].shape[1] == w] for w in widths]
    stacked = [tuple(torch.stack([p[side] for p in group]) for side in (0, 1)) for group in groups]
    ways: dict[str, Callable[[], object]] = {
        "one by one": lambda: [affinity_score(x, y) for x, y in pairs],
        "a batch a width": lambda: [affinity_score(x, y) for x, y in stacked],
        "affinity_scores": lambda: affinity_scores(pairs),
    }
    couplings = Counter(str(score.coupling) for score in affinity_scores(pairs))
    print(f"\nall {len(pairs)} scores ({dict(couplings)}):")
    found = {}
    for name, way in ways.items():
        found[name] = timed(way)
        print(f"  {name:16s} {found[name]:8.1f} ms, {found[name] / len(pairs):.2f} ms a score", flush=True)
    return found


def floor(pairs: Pairs) -> dict[str, float]:
    """The least time for the operations that the method needs, at the measured rate of large products."""
    big = torch.randn(4096, 4096, dtype=torch.float64, device="cuda")
    rate = 2 * 4096**3 / timed(lambda: big @ big)  # per ms
    operations = 0.0
    for x, y in pairs:
        n, d = x.shape
        w = min(d, 2 * n)
        of_x, of_y = moments(x), moments(y)
        low = float((of_x.floor * of_y.floor).sqrt() / (of_x.trace * of_y.trace).sqrt())
        steps = len(_steps(low)) + 1
        span = 2 * d * (2 * n) ** 2 if d >= 2 * n else 0
        operations += (
            span + 4 * n * w**2 + 2 * w**3 / 3 + (4 * steps + 4 + 1) * w**3 + 2 * n * w**2 + 2 * n**2 * w
        )
    ms = operations / rate
    print(f"\nfloor: {operations / 1e9:.0f} GFLOP at {rate / 1e9:.1f} TFLOP/s = {ms:.1f} ms")
    return {"gflop": operations / 1e9, "tflops": rate / 1e9, "ms": ms}


def newton_schulz(source: Tensor, target: Tensor, source_floor: Tensor, _: Tensor) -> Tensor:
    """A = L⁻ᵀ M^½ L⁻¹ with the coupled iteration for the root of M = Lᵀ Σ_Y L, until it stands still."""
    lower = cholesky_factor(source, source_floor)
    m = lower.mT @ target @ lower
    norm = torch.linalg.matrix_norm(m)[:, None, None]
    eye = torch.eye(m.shape[-1], dtype=m.dtype, device=m.device)
    y, z = m / norm, eye.expand_as(m)
    for _step in range(60):
        t = (3 * eye - z @ y) / 2
        y, z = y @ t, t @ z
        if _step % 5 == 4 and float((t - eye).abs().max()) < 1e-12:
            break
    half = torch.linalg.solve_triangular(lower.mT, y * norm.sqrt(), upper=True)
    return torch.linalg.solve_triangular(lower.mT, half.mT, upper=True)


def qdwh(source: Tensor, target: Tensor, source_floor: Tensor, target_floor: Tensor) -> Tensor:
    """A from the polar factor by the dynamically weighted Halley iteration (Nakatsukasa et al., 2010)."""
    lower = cholesky_factor(source, source_floor)
    of_target = cholesky_factor(target, target_floor)
    g = of_target.mT @ lower
    norm = torch.linalg.matrix_norm(g)
    low = float(((source_floor * target_floor).sqrt() / norm).min())
    u = g / norm[:, None, None]
    eye = torch.eye(u.shape[-1], dtype=u.dtype, device=u.device)
    while low < 1 - 1e-15:
        square = low * low
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        a = (1 + d) ** 0.5 + 0.5 * (8 - 4 * d + 8 * (2 - square) / (square * (1 + d) ** 0.5)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        factor = torch.linalg.cholesky(eye + c * (u.mT @ u))
        u = b / c * u + (a - b / c) * torch.cholesky_solve(u.mT, factor).mT
        low = min(1.0, low * (a + b * square) / (1 + c * square))
    return torch.linalg.solve_triangular(lower.mT, (of_target @ u).mT, upper=True)


def draw(n: int) -> Pairs:
    """Correlated inputs of ReLU, of the shapes of the sites, in float32 as a network gives them."""
    generator = torch.Generator("cuda").manual_seed(0)
    pairs = []
    for width, count in WIDTHS.items():
        spectrum = torch.arange(1, width + 1, device="cuda") ** -0.6
        for _ in range(count):
            mixing = torch.linalg.qr(torch.randn(width, width, generator=generator, device="cuda"))[0]
            x = torch.randn(n, width, generator=generator, device="cuda") * spectrum @ mixing
            pairs.append((x, x.relu()))
    return pairs


def load(path: Path) -> Pairs:
    stored = torch.load(path, weights_only=True)
    return [(x.float().cuda(), y.float().cuda()) for x, y in stored]


def timed(call: Callable[[], object], repeats: int = 7) -> float:
    """Median ms of a call, device included."""
    seconds = []
    for _ in range(repeats + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return 1e3 * sorted(seconds[2:])[repeats // 2]


if __name__ == "__main__":
    main()
