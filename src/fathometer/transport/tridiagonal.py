"""Eigenvalues of many symmetric matrices of several sizes at once, float64: fast on a CUDA device.

There, kernels written in Triton, which comes with torch, reduce all matrices to tridiagonal form at the same
time. Everywhere else, above `MAX_SIZE`, and where Triton finds no C compiler, `torch.linalg.eigvalsh` takes
them one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from fathometer.transport.decompositions import eigvalsh
from fathometer.transport.kernels import can_run, disable_kernels

MAX_SIZE = 1024
"""Rows of the largest matrix that the kernels take."""

_MAX_BATCH = 264  # matrices that are reduced at the same time: two for each multiprocessor of an H200
_MIN_OFF_DIAGONAL = 1e-18  # of ‖T‖: below, rounding; its square keeps Sturm sequences above zero


def spectra(samples: Sequence[tuple[Tensor, Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Compute the eigenvalues of the smaller Gram matrices of centred and of raw samples.

    With centred rows R and their mean μ, raw samples are V = R + 1μᵀ. One reduction to tridiagonal form T
    gives both spectra. If d < n, a reflection takes μ to the first axis, and VᵀV = RᵀR + n μμᵀ differs from
    RᵀR only in the first entry of T. Otherwise a reflection takes 1 to the first axis: R has no part there,
    and RRᵀ has the eigenvalues of VVᵀ's T without its first row and column, and a zero.

    Args:
        samples: for each group of items, centred rows `[items, n, d]`, their mean `[items, d]`, and
            their smaller Gram matrix `[items, k, k]`: RRᵀ if n ≤ d, otherwise RᵀR. float64.

    Returns:
        For each group the eigenvalues of the centred and of the raw Gram matrix, `[items, k]`, ascending.
        Their errors are a few roundings of the largest one.
    """
    fast = [i for i, (_, _, gram) in enumerate(samples) if gram.shape[-1] <= MAX_SIZE and can_run(gram)]
    reflected = [_raw_in_first_axis(*samples[index]) for index in fast]
    try:
        forms = tridiagonalize([matrix for matrix, _ in reflected])
        pairs = [_centred_and_raw(*form, added) for form, (_, added) in zip(forms, reflected, strict=True)]
        values = iter(tridiagonal_eigenvalues([form for pair in pairs for form in pair]))
    except Exception as error:
        disable_kernels(error)
        return spectra(samples)
    return [
        (next(values), next(values))
        if index in fast
        else (eigvalsh(gram), eigvalsh(raw_gram(rows, mean, gram)))
        for index, (rows, mean, gram) in enumerate(samples)
    ]


def tridiagonalize(matrices: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Reduce symmetric matrices to tridiagonal form T = QᵀAQ on a CUDA device, keeping the first axis.

    Q = diag(1, Q'): T without its first row and column has the eigenvalues of A without them.

    Args:
        matrices: groups `[items, k, k]`, float64, of at most `MAX_SIZE` rows.

    Returns:
        For each group the diagonals `[items, k]` and off-diagonals `[items, k - 1]`.
    """
    forms: list[list[tuple[Tensor, Tensor]]] = [[] for _ in matrices]
    for parts in _batches(matrices):
        for (index, _), form in zip(parts, _reduce([part for _, part in parts]), strict=True):
            forms[index].append(form)
    return [
        (torch.cat([form[0] for form in parts]), torch.cat([form[1] for form in parts])) for parts in forms
    ]


def _batches(matrices: Sequence[Tensor]) -> Iterator[list[tuple[int, Tensor]]]:
    """Yield parts of groups that are reduced together, the largest matrices first."""
    parts: list[tuple[int, Tensor]] = []
    free = _MAX_BATCH
    for index in sorted(range(len(matrices)), key=lambda index: -matrices[index].shape[-1]):
        rest = matrices[index]
        while len(rest):
            parts.append((index, rest[:free]))
            free, rest = free - len(parts[-1][1]), rest[free:]
            if not free:
                yield parts
                parts, free = [], _MAX_BATCH
    if parts:
        yield parts


def _reduce(groups: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Reduce groups, the largest matrices first, that fit into one batch."""
    from fathometer.transport import tridiagonal_kernels as kernels

    sizes = [group.shape[-1] for group in groups for _ in group]
    size = kernels.storage_size(sizes[0])
    packed = groups[0].new_zeros(len(sizes), size, size + 2 * kernels.PANEL)
    scales, begin = [], 0
    for group in groups:
        scale = group.abs().amax((-2, -1))
        scales.append(torch.where(scale > 0, scale, 1.0)[:, None])
        # At the end of the rows and columns: small matrices join in when large ones are down to their size
        place = packed[begin : begin + len(group), size - group.shape[-1] :, size - group.shape[-1] : size]
        torch.div(group, scales[-1][:, None], out=place)
        begin += len(group)
    diagonal, off_diagonal = kernels.reduce_in_place(packed, sizes)
    forms, begin = [], 0
    for group, scale in zip(groups, scales, strict=True):
        items, first = slice(begin, begin + len(group)), size - group.shape[-1]
        forms.append((diagonal[items, first:] * scale, off_diagonal[items, first:-1] * scale))
        begin += len(group)
    return forms


def tridiagonal_eigenvalues(forms: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """Compute the eigenvalues of symmetric tridiagonal matrices on a CUDA device, ascending.

    Args:
        forms: groups of diagonals `[items, k]` and off-diagonals `[items, k - 1]`, float64.
    """
    if not forms:
        return []
    from fathometer.transport import tridiagonal_kernels as kernels

    items = sum(len(diagonal) for diagonal, _ in forms)
    longest = max(diagonal.shape[-1] for diagonal, _ in forms)
    length = math.ceil(longest / kernels.LANES) * kernels.LANES
    like = forms[0][0]
    diagonals = like.new_full((items, length), 2.0)  # beyond all eigenvalues: ‖T‖ ≤ 1
    squares = like.new_full((items, length), _MIN_OFF_DIAGONAL**2)
    sizes = torch.empty(items, dtype=torch.int32, device=like.device)
    bounds, begin = [], 0
    for diagonal, off_diagonal in forms:
        size = diagonal.shape[-1]
        radius = torch.nn.functional.pad(off_diagonal.abs(), (1, 1))
        bound = (diagonal.abs() + radius[:, 1:] + radius[:, :-1]).amax(-1, keepdim=True)  # Gershgorin
        divisor = torch.where(bound == 0, 1.0, bound)
        end = begin + len(diagonal)
        diagonals[begin:end, :size] = diagonal / divisor
        squares[begin:end, 1:size] = (off_diagonal / divisor).square().clamp(min=_MIN_OFF_DIAGONAL**2)
        sizes[begin:end] = size
        bounds.append(bound)
        begin = end
    values = kernels.bisect(diagonals, squares, sizes)
    found, begin = [], 0
    for (diagonal, _), bound in zip(forms, bounds, strict=True):
        end = begin + len(diagonal)
        found.append(values[begin:end, : diagonal.shape[-1]] * bound)
        begin = end
    return found


def raw_gram(rows: Tensor, mean: Tensor, gram: Tensor) -> Tensor:
    """Return the smaller Gram matrix of samples with mean μ from that of their centred rows R.

    It is RᵀR + n μμᵀ if n > d, otherwise RRᵀ + Rμ1ᵀ + 1(Rμ)ᵀ + ‖μ‖² 11ᵀ.
    """
    n, d = rows.shape[-2:]
    if n > d:
        return torch.baddbmm(gram, mean[:, :, None], mean[:, None, :], alpha=n)
    shift = rows @ mean[:, :, None] + mean.square().sum(-1)[:, None, None] / 2
    return gram + shift + shift.mT


def _raw_in_first_axis(rows: Tensor, mean: Tensor, gram: Tensor) -> tuple[Tensor, Tensor | None]:
    """Reflect a Gram matrix such that only its first row and column differ between raw and centred samples.

    If n > d, returns the matrix of the centred samples, and what raw ones have more in its first entry,
    `[items]`. Otherwise returns the matrix of the raw samples, and None: the first row and column of the
    centred ones' is zero.
    """
    n, d = rows.shape[-2:]
    axis = torch.ones_like(rows[:, :, 0]) if n <= d else mean
    w = axis.clone()
    w[:, 0] += torch.where(axis[:, 0] < 0, -1.0, 1.0) * torch.linalg.vector_norm(axis, dim=-1)
    length = torch.linalg.vector_norm(w, dim=-1, keepdim=True)
    w = w / torch.where(length > 0, length, 1.0)  # I − 2wwᵀ takes the axis to ±‖axis‖ e₁: 1 to −√n e₁
    p = 2 * (gram @ w[:, :, None])
    q = p - (w[:, None, :] @ p) * w[:, :, None]
    left, right = torch.cat([w[:, :, None], q], -1), torch.cat([q, w[:, :, None]], -1)
    reflected = torch.baddbmm(gram, left, right.mT, alpha=-1)
    added = n * mean.square().sum(-1)
    if n > d:
        return reflected, added
    along = rows @ mean[:, :, None]
    along = along - 2 * (w[:, None, :] @ along) * w[:, :, None]
    reflected[:, 0, :] = reflected[:, :, 0] = -math.sqrt(n) * along[:, :, 0]
    reflected[:, 0, 0] = added
    return reflected, None


def _centred_and_raw(
    diagonal: Tensor, off_diagonal: Tensor, added: Tensor | None
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the tridiagonal forms of centred and of raw samples from that of `_raw_in_first_axis`."""
    first = torch.zeros_like(diagonal[:, 0]) if added is None else diagonal[:, 0] + added
    changed = torch.cat([first[:, None], diagonal[:, 1:]], 1)
    if added is not None:
        return (diagonal, off_diagonal), (changed, off_diagonal)
    uncoupled = torch.cat([torch.zeros_like(off_diagonal[:, :1]), off_diagonal[:, 1:]], 1)
    return (changed, uncoupled), (diagonal, off_diagonal)
