"""Random pairs, most of them awkward: constants, copies, low rank, outliers, wild scales, narrow dtypes.

Pairs of a block, `[pairs, n, d]` on either side, share their shape and dtype and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Matrix: TypeAlias = npt.NDArray[np.float64]

LARGEST = 40
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

FUNCTIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "step": np.sign,
    "square": np.square,
    "negative": np.negative,
    "affine": lambda x: 3 * x - 2,
    "equal": np.copy,
    "backwards": lambda x: x[::-1].copy(),
    "zero": np.zeros_like,
    "constant": lambda x: np.full_like(x, 0.1),
}
"""What may have made Y of X."""


def draw_block(rng: np.random.Generator, size: int) -> tuple[Tensor, Tensor]:
    """A block of pairs."""
    n, d = (int(length) for length in rng.integers((2, 1), LARGEST + 1))
    dtype = DTYPES[rng.integers(len(DTYPES))]
    pairs = [_draw_pair(rng, n, d) for _ in range(size)]
    return as_block([x for x, _ in pairs], dtype), as_block([y for _, y in pairs], dtype)


def as_block(matrices: list[Matrix], dtype: torch.dtype) -> Tensor:
    """Matrices in another dtype; what it cannot hold becomes its largest number."""
    largest = torch.finfo(dtype).max
    return torch.from_numpy(np.stack(matrices)).clamp(-largest, largest).to(dtype)


def _draw_pair(rng: np.random.Generator, n: int, d: int) -> tuple[Matrix, Matrix]:
    with np.errstate(over="ignore", under="ignore"):
        x = _draw_matrix(rng, n, d)
        if rng.random() < 0.1:
            return x, _draw_matrix(rng, n, d)  # Y has nothing to do with X
        y = FUNCTIONS[list(FUNCTIONS)[rng.integers(len(FUNCTIONS))]](x)
        if rng.random() < 0.2:
            y = y * _scale(rng)
        return x, np.nan_to_num(y)


def _draw_matrix(rng: np.random.Generator, n: int, d: int) -> Matrix:
    laws: list[Callable[[tuple[int, int]], Matrix]] = [
        rng.standard_normal,
        rng.random,
        rng.standard_cauchy,
        lambda shape: rng.integers(-2, 3, shape).astype(np.float64),
    ]
    x = laws[rng.integers(len(laws))]((n, d))
    for spoil in _SPOILS:
        if rng.random() < 0.15:
            x = spoil(x, rng)
    return np.nan_to_num(x)


def _scale(rng: np.random.Generator) -> float:
    """Mostly what networks have, sometimes what float64 can just hold."""
    return float(10 ** rng.uniform(-6, 6) if rng.random() < 0.7 else 10 ** rng.uniform(-320, 308))


def _scaled(x: Matrix, rng: np.random.Generator) -> Matrix:
    return x * _scale(rng)


def _uneven_features(x: Matrix, rng: np.random.Generator) -> Matrix:
    return x * 10 ** rng.uniform(-20, 20, size=x.shape[1])


def _constant_features(x: Matrix, rng: np.random.Generator) -> Matrix:
    return np.where(rng.random(x.shape[1]) < 0.5, x[0], x)


def _constant(x: Matrix, _: np.random.Generator) -> Matrix:
    return np.broadcast_to(x[:1], x.shape).copy()


def _copied_rows(x: Matrix, rng: np.random.Generator) -> Matrix:
    return x[rng.integers(0, max(1, len(x) // 3), size=len(x))]


def _low_rank(x: Matrix, rng: np.random.Generator) -> Matrix:
    columns = x[:, : rng.integers(1, 4)]
    return columns @ rng.standard_normal((columns.shape[1], x.shape[1]))


def _outlier(x: Matrix, rng: np.random.Generator) -> Matrix:
    x = x.copy()
    x[rng.integers(len(x)), rng.integers(x.shape[1])] *= 10.0 ** rng.integers(1, 60)
    return x


def _zeros_of_both_signs(x: Matrix, rng: np.random.Generator) -> Matrix:
    zeros = np.where(rng.random(x.shape) < 0.5, 0.0, -0.0)
    return np.where(rng.random(x.shape) < 0.5, zeros, x)


def _far_from_zero(x: Matrix, rng: np.random.Generator) -> Matrix:
    return x + 10.0 ** rng.integers(1, 18)


def _denormals(x: Matrix, rng: np.random.Generator) -> Matrix:
    tiny = rng.integers(-9, 10, size=x.shape) * 5e-324
    return np.where(rng.random(x.shape) < 0.3, tiny, x)


_SPOILS: tuple[Callable[[Matrix, np.random.Generator], Matrix], ...] = (
    _low_rank,
    _copied_rows,
    _outlier,
    _far_from_zero,
    _uneven_features,
    _constant_features,
    _zeros_of_both_signs,
    _denormals,
    _scaled,
    _constant,
)
