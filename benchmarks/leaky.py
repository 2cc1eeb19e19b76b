"""Times the training of Leaky ResNets of the paper's size, in milliseconds per epoch.

    python -m benchmarks.leaky [--device cuda] [--record]

On a CPU: one network in one thread against its matrix products alone, and many networks in 1 and 2 threads.
On a GPU: stacks of 1, 10, 50 and 100 networks against the arithmetic lower bound. The reference is the
usual code: `torch.optim.Adam`, autograd, and a loop over networks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.records import add_record_option, record_benchmark
from fathometer.leaky import Phase, Recipe, Task, grid, preset, sweep
from fathometer.leaky.adam import Adam, cosine
from fathometer.leaky.plan import Design
from fathometer.leaky.stack import Stack, capture_cuda_graph
from fathometer.leaky.training import WARM_UP

DESIGN = preset("paper").design
SIZES = (1, 10, 50, 100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    add_record_option(parser)
    arguments = parser.parse_args()
    found = on_gpu() if arguments.device == "cuda" else on_cpu()
    if arguments.record:
        record_benchmark("leaky", found, arguments.device)


def flop(networks: int) -> float:
    """6 w² N L for each: forward, backward, and the gradients of the weights."""
    return 6.0 * DESIGN.width**2 * DESIGN.samples * DESIGN.layers * networks


def on_cpu() -> dict[str, Any]:
    torch.set_num_threads(1)
    print(f"CPU, torch {torch.__version__}, one thread; ms an epoch of one network")
    stack, task = stack_of([DESIGN], torch.device("cpu"))
    adam = Adam(stack, [1e-3], cosine(10_000))
    floor = best(products(stack))
    ours = best(adam.step)
    peer = best(autograd_step(DESIGN, task, torch.device("cpu")))
    print(
        f"products alone {floor:.1f} ({flop(1) / floor / 1e6:.0f} GFLOP/s), fathometer {ours:.1f}, ", end=""
    )
    print(f"autograd {peer:.1f}; fathometer / products {ours / floor:.2f}, ", end="")
    print(f"autograd / fathometer {peer / ours:.2f}")
    recipe = Recipe((Phase("adam", 100),))
    designs = grid(DESIGN, seeds=8)
    seconds = {}
    for threads in (1, 2):
        started = time.perf_counter()
        sweep(designs, recipe, threads=threads)
        seconds[threads] = time.perf_counter() - started
    print(f"8 networks × 100 epochs: 1 thread {seconds[1]:.1f} s, 2 threads {seconds[2]:.1f} s, ", end="")
    print(f"{seconds[1] / seconds[2]:.2f} times as fast")
    torch.set_num_threads(2)
    loop = 8 * 100 * best(autograd_step(DESIGN, task, torch.device("cpu"))) / 1e3
    print(f"autograd, a loop over networks with 2 threads each: {loop:.1f} s, ", end="")
    print(f"{loop / seconds[2]:.2f} times ours")
    return {"floor": floor, "fathometer": ours, "autograd": peer, "seconds": seconds, "loop": loop}


def on_gpu() -> list[dict[str, float]]:
    device = torch.device("cuda")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; ms an epoch")
    rows = []
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        rate = best_rate()
        print(f"{'TF32' if tf32 else 'float32'}: batched products at best {rate / 1e12:.1f} TFLOP/s")
        for networks in SIZES:
            stack, task = stack_of(grid(DESIGN, seeds=networks), device)
            adam = Adam(stack, [1e-3] * networks, cosine(10_000))
            row = {"tf32": float(tf32), "networks": float(networks), "floor": flop(networks) / rate * 1e3}
            row["eager"] = best(adam.step)
            for _ in range(WARM_UP):
                adam.step()
            row["fathometer"] = best(capture_cuda_graph(adam.step), 50)
            row["products"] = best(capture_cuda_graph(products(stack)))
            row["autograd"] = (
                networks * best(autograd_step(DESIGN, task, device)) if not tf32 else float("nan")
            )
            print(
                f"S = {networks:3d}: fathometer {row['fathometer']:.3f}, without graph {row['eager']:.2f}, "
                f"products alone {row['products']:.3f}, floor {row['floor']:.3f}, autograd in a loop "
                f"{row['autograd']:.1f}; fathometer / floor {row['fathometer'] / row['floor']:.2f}",
                flush=True,
            )
            rows.append(row)
            del stack, adam
            torch.cuda.empty_cache()
    return rows


def stack_of(designs: list[Design], device: torch.device) -> tuple[Stack, Task]:
    assert designs[0].teacher is not None
    task = designs[0].teacher.task(DESIGN.samples)
    nets = [design.network(30, 30) for design in designs]
    decays = [design.weight_decay for design in designs]
    return Stack(nets, [task] * len(nets), decays, device, torch.float32), task


def products(stack: Stack) -> Callable[[], None]:
    """The matrix products of an epoch, and nothing else."""
    weights, grads = stack.parameters.weights, torch.empty_like(stack.gradients.weights)
    width, columns = weights.shape[2:]
    s = weights.new_ones(stack.layers, len(stack), columns, stack.samples)
    g = weights.new_ones(stack.layers + 1, len(stack), width, stack.samples)

    def multiply() -> None:
        for weight, each in zip(weights, s, strict=True):
            torch.bmm(weight, each, out=g[0])
        for layer in range(stack.layers, 0, -1):
            torch.bmm(weights[layer - 1][..., :width].mT, g[layer], out=g[layer - 1])
        torch.bmm(g[1:].flatten(0, 1), s.flatten(0, 1).mT, out=grads.flatten(0, 1))

    return multiply


def best_rate() -> float:
    """FLOP/s of the same products in a very large batch."""
    a = torch.randn(2000, DESIGN.width, DESIGN.width, device="cuda")
    b = torch.randn(2000, DESIGN.width, DESIGN.samples, device="cuda")
    out = torch.empty_like(b)
    rates = [2 * a.numel() * DESIGN.samples / best(lambda: torch.bmm(a, b, out=out)) * 1e3]
    rates.append(2 * a.numel() * DESIGN.samples / best(lambda: torch.bmm(b, out.mT, out=a)) * 1e3)
    return max(rates)


def autograd_step(design: Design, task: Task, device: torch.device) -> Callable[[], object]:
    """One network by `nn.Module`, autograd and `torch.optim.Adam`."""
    net = design.network(30, 30).to(device, torch.float32)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-16)
    x, y = task.x.to(device, torch.float32), task.y.to(device, torch.float32)

    def step() -> None:
        optimiser.zero_grad()
        norms = (net.steps[:, None, None] * net.weights.square()).sum()
        norms = norms + net.input_map.square().sum() + net.output_map.square().sum()
        loss: Tensor = (net(x) - y).square().mean() + design.weight_decay / 2 * norms
        loss.backward()
        optimiser.step()

    return step


def best(call: Callable[[], object], repeats: int = 20) -> float:
    """The least ms of some calls."""
    on_device = torch.cuda.is_available()
    times = []
    for _ in range(repeats + 2):
        if on_device:
            torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        if on_device:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return min(times[2:]) * 1e3


if __name__ == "__main__":
    main()
