"""Measures what a probe costs: the same training with and without it, in three kinds of loop.

    python -m benchmarks.training [--kinds loop,lightning,transformers] [--rounds 3] [--seconds 60]
                                  [--cifar cifar10_train.npz] [--record]

loop: a small ResNet on scikit-learn's digits; lightning: the same on CIFAR-10 if the file is given,
otherwise on digits; transformers: a small GPT-2 on the bytes of this repository's documents. The number of
steps is chosen so that training takes `--seconds` of CPU time, and is the same on both sides. Each side has
a process of its own and one thread, and they take turns. Both must end with the same weights, bit for bit.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.records import ROOT, add_record_option, record_benchmark
from fathometer.models import ensure_torchvision_operators
from fathometer.results.history import History
from fathometer.results.provenance import weights_hash
from fathometer.training import Probe

TRIAL = 20  # steps, to see how long one takes
Outcome = tuple[nn.Module, History | None]


class Block(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        stride = 1 if width == out else 2
        self.first = nn.Sequential(nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out))
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.beside = nn.Identity() if stride == 1 else nn.Conv2d(width, out, 1, stride)
        self.inside, self.end = nn.ReLU(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.beside(x) + self.second(self.inside(self.first(x))))


def resnet(channels: int) -> nn.Module:
    blocks = [Block(16, 16), Block(16, 16), Block(16, 32), Block(32, 32), Block(32, 64), Block(64, 64)]
    stem = [nn.Conv2d(channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def images(cifar: Path | None) -> tuple[Tensor, Tensor]:
    if cifar is None:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        return torch.from_numpy(x).float().reshape(-1, 1, 8, 8) / 16, torch.from_numpy(y)
    with np.load(cifar) as file:
        arrays = {array.ndim: array[:6000] for array in file.values()}
    return torch.from_numpy(arrays[4]).float().permute(0, 3, 1, 2) / 255, torch.from_numpy(arrays[1]).long()


def batches(x: Tensor, y: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Without end; the last 512 are held out for the probe."""
    while True:
        for chosen in torch.randperm(len(x) - 512).split(size):
            yield x[chosen], y[chosen]


def in_a_loop(steps: int, options: dict[str, Any] | None, _: Path | None) -> Outcome:
    x, y = images(None)
    model = resnet(1)
    optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    probe = None if options is None else Probe(model, x[-512:], **options)
    if probe is not None:
        probe.step(0)
    for step, (inputs, labels) in enumerate(itertools.islice(batches(x, y, 64), steps), 1):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if probe is not None:
            probe.step(step, loss=loss)
    if probe is not None:
        probe.finish()
    return model, None if probe is None else probe.history


def by_lightning(steps: int, options: dict[str, Any] | None, cifar: Path | None) -> Outcome:
    ensure_torchvision_operators()
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.loggers import TensorBoardLogger
    from torch.utils.data import DataLoader, TensorDataset

    from fathometer.training.lightning import FathometerCallback

    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    x, y = images(cifar)

    class Task(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = resnet(x.shape[1])

        def training_step(self, batch: Any, index: int) -> Tensor:
            del index
            loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)

    task = Task()
    callback = None if options is None else FathometerCallback(x[-512:], network="net", **options)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            accelerator="cpu",
            devices=1,
            max_steps=steps,
            logger=TensorBoardLogger(folder),
            callbacks=[] if callback is None else [callback],
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        trainer.fit(task, DataLoader(TensorDataset(x[:-512], y[:-512]), 64, shuffle=True))
    return task, None if callback is None else callback.history


def by_transformers(steps: int, options: dict[str, Any] | None, _: Path | None) -> Outcome:
    ensure_torchvision_operators()
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    from fathometer.training.transformers import FathometerCallback

    logging.getLogger("transformers").setLevel(logging.ERROR)
    text = b"".join(path.read_bytes() for path in sorted(ROOT.glob("docs/*.md")))
    tokens = torch.tensor(list(text[: len(text) // 128 * 128])).reshape(-1, 128)
    sizes: dict[str, Any] = {"n_layer": 4, "n_embd": 128, "n_head": 4, "n_positions": 128}
    build: Any = GPT2LMHeadModel
    model = build(GPT2Config(vocab_size=256, bos_token_id=0, eos_token_id=0, **sizes))
    chosen = {} if options is None else {**options, "reduction": "tokens"}
    callback = None if options is None else FathometerCallback({"input_ids": tokens[:32]}, **chosen)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=steps, use_cpu=True, per_device_train_batch_size=8, report_to="tensorboard",
            logging_steps=50, save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        data: Any = [{"input_ids": row, "labels": row} for row in tokens[32:]]
        trainer = Trainer(model, arguments, train_dataset=data, callbacks=[callback] if callback else [])
        trainer.train()
    return model, None if callback is None else callback.history


KINDS: dict[str, Callable[[int, dict[str, Any] | None, Path | None], Outcome]] = {
    "loop": in_a_loop,
    "lightning": by_lightning,
    "transformers": by_transformers,
}


def one_side(kind: str, steps: int, bound: float | None, cifar: Path | None) -> dict[str, Any]:
    """Train once, after a few steps whose time does not count."""
    torch.set_num_threads(1)
    KINDS[kind](2, None, cifar)
    torch.manual_seed(0)
    wall, cpu = time.perf_counter(), time.process_time()
    model, history = KINDS[kind](steps, None if bound is None else {"max_overhead": bound}, cifar)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = {"wall": wall, "cpu": cpu, "weights": weights_hash(model.state_dict())}
    if history is None:
        return found
    cost = {"measuring": history.cost.seconds, "total": history.cost.total, "share": history.cost.share}
    return {**found, **cost, "soundings": len(history.steps), "sites": len(history.soundings[0].sites)}


def in_a_process(options: argparse.Namespace, kind: str, steps: int, bound: float | None) -> dict[str, Any]:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.training",
        "--kinds",
        kind,
        "--steps",
        str(steps),
    ]
    command += [] if bound is None else ["--bound", str(bound)]
    command += [] if options.cifar is None else ["--cifar", str(options.cifar)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(options: argparse.Namespace, kind: str) -> dict[str, Any]:
    trial = in_a_process(options, kind, TRIAL, None)["cpu"]
    steps = int(options.seconds / trial * TRIAL)
    rounds = []
    for _ in range(options.rounds):
        without = in_a_process(options, kind, steps, None)
        with_one = in_a_process(options, kind, steps, options.max_overhead)
        rounds.append((without, with_one))
        ratios = {name: with_one[name] / without[name] for name in ("wall", "cpu")}
        same = "the same" if without["weights"] == with_one["weights"] else "DIFFERENT"
        print(
            f"{kind}, {steps} steps: {without['wall']:.1f} s without, {with_one['wall']:.1f} s with "
            f"{with_one['soundings']} soundings of {with_one['sites']} sites, × {ratios['wall']:.3f}; "
            f"CPU {without['cpu']:.1f} and {with_one['cpu']:.1f} s, × {ratios['cpu']:.3f}; "
            f"History says {with_one['measuring']:.1f} of {with_one['total']:.1f} s, "
            f"{with_one['share']:.2%}; weights {same}",
            flush=True,
        )
    ratios = {
        name: statistics.median(with_one[name] / without[name] for without, with_one in rounds)
        for name in ("wall", "cpu")
    }
    share = statistics.median(with_one["share"] for _, with_one in rounds)
    print(f"{kind}, median: wall × {ratios['wall']:.3f}, CPU × {ratios['cpu']:.3f}, share {share:.2%}\n")
    return {"steps": steps, "rounds": rounds, **ratios, "share": share}


def idle_step() -> float:
    """Microseconds of a `step` that measures nothing."""
    probe = Probe(resnet(1), torch.rand(64, 1, 8, 8), every=10**9)
    probe.step(0)
    loss, calls = torch.rand(()), 20_000
    started = time.perf_counter()
    for step in range(1, calls + 1):
        probe.step(step, loss=loss)
    return (time.perf_counter() - started) / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--max-overhead", type=float, default=0.05)
    parser.add_argument("--cifar", type=Path)
    add_record_option(parser)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--bound", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.steps:
        print(json.dumps(one_side(options.kinds, options.steps, options.bound, options.cifar)))
        return
    print(f"a step that measures nothing: {idle_step():.1f} µs\n")
    found = {kind: compare(options, kind) for kind in options.kinds.split(",")}
    if options.record:
        record_benchmark("training", found)


if __name__ == "__main__":
    main()
