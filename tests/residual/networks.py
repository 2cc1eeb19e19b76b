"""Residual networks for these tests, and their ranks the long way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """x + W σ(x), or with a width that changes a projected shortcut."""

    def __init__(self, before: int, after: int, slope: float = 0.3) -> None:
        super().__init__()
        self.inner, self.slope = nn.Linear(before, after), slope
        self.shortcut = nn.Identity() if before == after else nn.Linear(before, after)

    def forward(self, x: Tensor) -> Tensor:
        out = self.inner(F.leaky_relu(x, self.slope))
        out += self.shortcut(x)
        return out


def network(*widths: int) -> nn.Sequential:
    torch.manual_seed(0)
    blocks = [Block(before, after) for before, after in pairwise(widths)]
    return nn.Sequential(nn.Linear(5, widths[0]), *blocks, nn.Linear(widths[-1], 3))


def dense_stable_rank(a: Tensor) -> float:
    values = np.linalg.svd(a.double().numpy(), compute_uv=False)
    return float(values.sum() ** 2 / (values**2).sum())


class Activated(nn.Module):
    """x + W σ(Vx), with σ of one's own, or none."""

    def __init__(self, width: int, *activations: nn.Module) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)
        self.activations = nn.ModuleList(activations)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        for activation in self.activations:
            y = activation(y)
        return x + self.outer(y)


class Gated(nn.Module):
    """Two gates and one activation; the noise is drawn in eval mode, too."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.inner(x)) + torch.randn_like(x)
        return x + torch.sigmoid(self.inner(y)) * y * torch.sigmoid(y)


# Small sizes of language models, and the names of their blocks.
USUAL = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48}
GROUPED = {**USUAL, "num_key_value_heads": 2}
LANGUAGE: dict[str, tuple[dict[str, int], str]] = {
    "albert": ({**USUAL, "embedding_size": 16}, "encoder.albert_layer_groups.0"),
    "bert": (USUAL, "encoder.layer"),
    "bloom": ({"n_layer": 3, "hidden_size": 32, "n_head": 2}, "h"),
    "deberta-v2": (USUAL, "encoder.layer"),
    "distilbert": ({"n_layers": 3, "dim": 32, "hidden_dim": 48, "n_heads": 2}, "transformer.layer"),
    "electra": ({**USUAL, "embedding_size": 16}, "encoder.layer"),
    "falcon": (USUAL, "h"),
    "gemma2": (GROUPED, "layers"),
    "gpt2": ({"n_layer": 3, "n_embd": 32, "n_head": 2}, "h"),
    "gpt_neox": (USUAL, "layers"),
    "llama": (GROUPED, "layers"),
    "mamba": ({"num_hidden_layers": 3, "hidden_size": 32}, "layers"),
    "mistral": (GROUPED, "layers"),
    "mixtral": ({**GROUPED, "num_local_experts": 2}, "layers"),
    "modernbert": (USUAL, "layers"),
    "opt": ({**USUAL, "ffn_dim": 48, "word_embed_proj_dim": 32}, "decoder.layers"),
    "phi": (USUAL, "layers"),
    "qwen2": (GROUPED, "layers"),
    "roberta": (USUAL, "encoder.layer"),
    "t5": ({"num_layers": 3, "d_model": 32, "d_ff": 48, "num_heads": 2, "d_kv": 16}, "encoder.block"),
    "xlnet": ({"n_layer": 3, "d_model": 32, "n_head": 2, "d_inner": 48}, "layer"),
}
