"""Compares `fathometer.measure` with the language preset with the bare pass over the same tokens.

    python -m benchmarks.language [--model hf:FILE.gguf] [--device cpu] [--dtype float32] [--rounds 3]

Without `--model`, a Llama of the size of SmolLM2-135M with random weights. `--size 7b` is one of the size of
Llama 2 7B. Tokens are random. The sides take turns; the median of the ratios is reported.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.records import add_record_option, record_benchmark
from fathometer import measure
from fathometer.models import ensure_torchvision_operators, load_model

SIZES: dict[str, dict[str, Any]] = {
    "135m": {
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
    "7b": {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model")
    parser.add_argument("--size", choices=SIZES, default="135m")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sites", default="activations,mlp,attention")
    parser.add_argument("--residual", default="without")
    parser.add_argument("--samples", type=int, default=2048)
    add_record_option(parser)
    options = parser.parse_args()
    network, vocabulary = load(options)
    torch.manual_seed(0)
    ids = torch.randint(vocabulary, (options.tokens // options.length, options.length)).to(options.device)
    asked: dict[str, Any] = {"sites": options.sites.split(","), "residual": options.residual}
    asked |= {"samples": options.samples, "batches": options.tokens // options.samples}
    asked |= {"preset": "language", "batch_size": options.batch_size}
    sides = {
        "bare": lambda: bare(network, ids, options.batch_size),
        "measure": lambda: measure(network, {"input_ids": ids}, **asked),
    }
    rounds = []
    for number in range(options.rounds + 1):
        found = {side: seconds_and_peak(work, options.device) for side, work in sides.items()}
        if number or options.device == "cpu":  # a GPU compiles its kernels in the first
            rounds.append(found)
        if len(rounds) == options.rounds:
            break
    result = {
        "bare_s": statistics.median(found["bare"][0] for found in rounds),
        "measure_s": statistics.median(found["measure"][0] for found in rounds),
        "ratio": statistics.median(found["measure"][0] / found["bare"][0] for found in rounds),
        "more_mb": statistics.median(found["measure"][1] - found["bare"][1] for found in rounds),
    }
    print(f"{options.model or options.size}, {options.tokens} tokens, {options.device}, {options.dtype}")
    print("bare {bare_s:.3f} s, measure {measure_s:.3f} s, × {ratio:.2f}, {more_mb:+.0f} MB".format(**result))
    if options.record:
        record_benchmark(f"language-{options.size}", result, options.device)


def load(options: argparse.Namespace) -> tuple[nn.Module, int]:
    dtype = getattr(torch, options.dtype)
    if options.model:
        loaded = load_model(options.model)
        loaded.cast(options.dtype)
        network: nn.Module = loaded.module.to(options.device).eval()
        return network, int(network.get_input_embeddings().num_embeddings)  # type: ignore[operator]
    ensure_torchvision_operators()
    from transformers import LlamaConfig, LlamaForCausalLM

    size = SIZES[options.size]
    torch.manual_seed(0)
    with torch.device(options.device):
        torch.set_default_dtype(dtype)
        network = LlamaForCausalLM(LlamaConfig(**size))
        torch.set_default_dtype(torch.float32)
    return network.eval(), int(size["vocab_size"])  # type: ignore[no-untyped-call]


@torch.no_grad()
def bare(network: nn.Module, ids: Tensor, batch_size: int) -> None:
    for batch in ids.split(batch_size):
        network(input_ids=batch)


def seconds_and_peak(work: Any, device: str) -> tuple[float, float]:
    """Return the seconds of some work, and on a GPU the peak of the memory in MB."""
    if device == "cpu":
        started = time.perf_counter()
        work()
        return time.perf_counter() - started, 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started, torch.cuda.max_memory_allocated() / 1e6


if __name__ == "__main__":
    main()
