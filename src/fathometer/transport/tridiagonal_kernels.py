"""Triton kernels behind `tridiagonal`: Householder reduction and bisection, float64, on a CUDA device.

They need Triton, which comes with torch for CUDA. Without it, this file can be imported all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for a CPU
    triton = None

PANEL = 16  # reflections between two updates of the matrix
LANES = 64  # eigenvalues of one program, of a warp
_MIN_STORAGE = 128  # rows and columns
_TILE = 4096  # entries: 16 for each thread of a program, which loads four tiles at a time
_BLOCK = 8  # rows of a Sturm sequence between two changes of scale
_STEPS = 54  # halvings of [-1, 1]


def _kernel(function: Callable[..., Any]) -> Any:
    return function if triton is None else triton.jit(function)


def storage_size(size: int) -> int:
    """Return the size of the square that a matrix is stored in: kernels are compiled for powers of 2."""
    return max(_MIN_STORAGE, 1 << (size - 1).bit_length())


def reduce_in_place(matrices: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
    """Return diagonals and off-diagonals `[batch, size]` of tridiagonal matrices QᵀAQ.

    Row by row as LAPACK's `dsytrd` (Dongarra, Sorensen and Hammarling, 1989): reflections of a panel are
    kept as V and W and the rest of the matrix is updated once a panel, A ← A − VWᵀ − WVᵀ. A program reduces
    one matrix, and reads the rest of it once for each row.

    Args:
        matrices: symmetric, with entries of at most 1, `[batch, size, size + 2 PANEL]`, where `size` is a
            `storage_size`. A small matrix has the last rows, and the last ones of `size` columns; all other
            entries are zero. Destroyed.
        sizes: how many rows each matrix has, in falling order.
    """
    batch, size, _ = matrices.shape
    diagonal, off_diagonal = matrices.new_zeros(2, batch, size).unbind()
    swapped = matrices.new_zeros(batch, 2 * PANEL, size)  # W above V; the last columns become V beside W
    with torch.cuda.device_of(matrices):
        for start in range(0, size, PANEL):
            end = start + PANEL
            count = sum(size - rows < end for rows in sizes)  # others begin later
            if not count:
                continue
            _reduce_panel[count,](
                matrices,
                swapped,
                diagonal,
                off_diagonal,
                start,
                size,
                PANEL,
                _TILE // size,
                4 * _TILE // size,
                num_warps=8,
            )
            if end < size:
                left, right = matrices[:count, end:, size:], swapped[:count, :, end:]
                matrices[:count, end:, end:size].baddbmm_(left, right, alpha=-1)
    return diagonal, off_diagonal


@_kernel
def _add3(a: tl.tensor, b: tl.tensor, c: tl.tensor, d: tl.tensor, e: tl.tensor, f: tl.tensor) -> tl.tensor:
    return a + d, b + e, c + f


@_kernel
def _reduce_panel(
    matrices: tl.tensor,
    swapped: tl.tensor,
    diagonal: tl.tensor,
    off_diagonal: tl.tensor,
    start: tl.tensor,
    SIZE: tl.constexpr,
    PANEL: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Reduce rows `start` to `start + PANEL` of one matrix for each program."""
    item = tl.program_id(0).to(tl.int64)
    STRIDE: tl.constexpr = SIZE + 2 * PANEL
    matrix = matrices + item * SIZE * STRIDE
    beside = matrix + SIZE  # V, W: row by row
    w_panel = swapped + item * 2 * PANEL * SIZE
    v_panel = w_panel + PANEL * SIZE
    columns = tl.arange(0, SIZE)
    rows = tl.arange(0, ROWS)
    before = tl.arange(0, PANEL)
    at = before[:, None] * SIZE + columns[None, :]
    at_row = columns[:, None] * STRIDE + before[None, :]
    for step in range(PANEL):
        k = start + step
        loaded = columns >= k // 16 * 16  # from an even column on: two at a time
        done = before < step
        pending = done[:, None] & loaded[None, :]
        # Row k after the reflections of this panel so far
        v_k = tl.load(beside + k * STRIDE + before, mask=done, other=0.0)
        w_k = tl.load(beside + k * STRIDE + PANEL + before, mask=done, other=0.0)
        row = tl.load(matrix + k * STRIDE + columns, mask=loaded, other=0.0)
        v = tl.load(v_panel + at, mask=pending, other=0.0)
        w = tl.load(w_panel + at, mask=pending, other=0.0)
        row -= tl.sum(v * w_k[:, None] + w * v_k[:, None], 0)
        # Reflection I − 2uuᵀ of the rest of the row
        tail = tl.where(columns > k + 1, row, 0.0)
        here, first, others = tl.reduce(
            (tl.where(columns == k, row, 0.0), tl.where(columns == k + 1, row, 0.0), tail * tail), 0, _add3
        )
        norm = tl.sqrt(first * first + others)
        reflects = others > 1e-280  # below, squares have lost digits; as rounding, they are left out
        image = tl.where(reflects, tl.where(first > 0, -norm, norm), first)
        length = tl.sqrt(2 * norm * (norm + tl.abs(first)))
        scale = tl.where(reflects, 1 / tl.where(reflects, length, 1.0), 0.0)
        u = tl.where(columns == k + 1, first - image, tail) * scale
        tl.store(diagonal + item * SIZE + k, here)
        tl.store(off_diagonal + item * SIZE + k, image)
        tl.store(v_panel + step * SIZE + columns, u)
        tl.store(beside + step + columns * STRIDE, u)
        tl.debug_barrier()
        # Au, with A as it was before this panel; all loads of a block are under way at the same time
        first_row = (k + 1) // BLOCK * BLOCK
        pointers = matrix + (first_row + rows[:, None]) * STRIDE + columns[None, :]
        weights = v_panel + step * SIZE + first_row + rows
        sums = tl.zeros((ROWS, SIZE), tl.float64)
        for top in range(first_row, SIZE, BLOCK):
            for part in tl.static_range(0, BLOCK, ROWS):
                needed = (top + part + rows > k)[:, None] & loaded[None, :]
                tile = tl.load(pointers + part * STRIDE, mask=needed, other=0.0, cache_modifier=".cg")
                sums += tile * tl.load(weights + part)[:, None]
            pointers += BLOCK * STRIDE
            weights += BLOCK
        product = tl.sum(sums, 0)
        # minus (VWᵀ + WVᵀ)u
        factor = tl.load(beside + at_row, mask=loaded[:, None], other=0.0)
        v_u = tl.sum(factor * u[:, None], 0)
        factor = tl.load(beside + PANEL + at_row, mask=loaded[:, None], other=0.0)
        w_u = tl.sum(factor * u[:, None], 0)
        v = tl.load(v_panel + at, mask=pending, other=0.0)
        w = tl.load(w_panel + at, mask=pending, other=0.0)
        correction = tl.sum(v * w_u[:, None] + w * v_u[:, None], 0)
        p = tl.where(columns > k, 2 * (product - correction), 0.0)
        new = p - tl.sum(p * u, 0) * u
        tl.store(w_panel + step * SIZE + columns, new)
        tl.store(beside + PANEL + step + columns * STRIDE, new)
        tl.debug_barrier()


def bisect(diagonal: Tensor, off_squared: Tensor, sizes: Tensor) -> Tensor:
    """Return all eigenvalues, ascending, of tridiagonal matrices with ‖T‖ ≤ 1, to about 2⁻⁵⁴.

    By bisection (Givens, 1954): as many eigenvalues are below x as the determinants of leading minors
    of T − x change their sign, p_i = (d_i − x) p_{i−1} − e²_{i−1} p_{i−2}.

    Args:
        diagonal: `[batch, rows]`; from `size` on, 2. `rows` is a multiple of `LANES`.
        off_squared: squares of the off-diagonal, e²_{i−1} in column i, of at least 1e-36: a sequence then
            shrinks to 1e-294 at most between two changes of scale.
        sizes: how many rows each matrix has, int32.
    """
    batch, rows = diagonal.shape
    values = torch.zeros_like(diagonal)
    grid = (batch, rows // LANES)
    with torch.cuda.device_of(diagonal):
        _bisect[grid](diagonal, off_squared, sizes, values, rows, _STEPS, LANES, _BLOCK, num_warps=1)
    return values


@_kernel
def _bisect(
    diagonal: tl.tensor,
    off_squared: tl.tensor,
    sizes: tl.tensor,
    values: tl.tensor,
    rows: tl.tensor,
    steps: tl.tensor,
    LANES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Find `LANES` eigenvalues of one matrix."""
    item = tl.program_id(0)
    size = tl.load(sizes + item)
    index = tl.program_id(1) * LANES + tl.arange(0, LANES)
    if tl.program_id(1) * LANES < size:
        low = tl.full((LANES,), -1.0000001, tl.float64)
        high = tl.full((LANES,), 1.0000001, tl.float64)
        for _ in range(steps):
            x = 0.5 * (low + high)
            p = tl.full((LANES,), 1.0, tl.float64)
            before = tl.zeros((LANES,), tl.float64)
            below = tl.zeros((LANES,), tl.int32)
            for begin in range(0, size, BLOCK):
                for row in tl.static_range(BLOCK):
                    at = item * rows + begin + row
                    d = tl.load(diagonal + at)
                    e2 = tl.load(off_squared + at)
                    after = (d - x) * p - e2 * before
                    changed = after.to(tl.int64, bitcast=True) ^ p.to(tl.int64, bitcast=True)
                    below += (changed < 0).to(tl.int32)
                    before = p
                    p = after
                largest = tl.maximum(tl.abs(p), tl.abs(before)).to(tl.int64, bitcast=True)
                scale = ((2046 - (largest >> 52)) << 52).to(tl.float64, bitcast=True)
                p *= scale
                before *= scale
            high = tl.where(below > index, x, high)
            low = tl.where(below > index, low, x)
        tl.store(values + item * rows + index, 0.5 * (low + high), mask=index < size)
