"""How many dimensions a representation has: gauges from the mechanics of Leaky ResNets.

Pairs are `[samples, features]` or `[batch, samples, features]`, not centred: the paper's A is Xᵀ and
its σ(A) is Yᵀ, without the row of ones for the bias.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.errors import NumericalError, check_positive
from fathometer.gauges.samples import Samples, prepare
from fathometer.gauges.spectrum import diagonal_of, smaller_gram, squares, to_unit
from fathometer.transport.arrays import Array, as_samples

_MIN_SHARE = 1e-7  # of ‖X‖²: where less is left of it, the difference has lost digits


@torch.no_grad()
def stable_rank(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the stable rank of inputs and outputs: `stable_rank_of` each.

    Example:
        >>> import torch
        >>> x = torch.eye(4) - 0.5
        >>> {name: round(value.item(), 6) for name, value in stable_rank(x, x.relu()).items()}
        {'x': 4.0, 'y': 4.0}
    """
    return prepare(x, y).each_side(_stable_rank)


@torch.no_grad()
def stable_rank_of(a: Array) -> Tensor:
    """Compute ‖A‖*² / ‖A‖², the squared sum of singular values over the sum of their squares (Proposition 1).

    At most the rank, which it equals where all singular values but zeros are equal; 0 for A = 0. Singular
    values come from the smaller Gram matrix: those below some 1e-7 of the largest count as 0.

    Example:
        >>> import torch
        >>> round(stable_rank_of(torch.ones(5, 3)).item(), 6)
        1.0
    """
    samples = Samples(as_samples(a, "a", minimum=1), 0.0, "a")
    return samples.each(_stable_rank(samples))


@torch.no_grad()
def cost_of_identity(x: Array, y: Array, *, gamma: float = 1e-3) -> Tensor:
    """Compute COI_γ = Tr A (K + γI)⁻¹ Aᵀ with A = Xᵀ and K = YYᵀ: what it costs to get the inputs back.

    It is the least of ‖W‖² + ‖X − YW‖² / γ over all W. Where Y = X, it is Σ s² / (s² + γ) over the singular
    values s of X, about their number, the rank. With γ = `gamma` · ‖K‖_op a common scale of both does not
    matter. Where Y = 0, it is infinite, unless X = 0, which costs nothing.

    Args:
        x: inputs of the activation.
        y: its outputs.
        gamma: γ₀, relative to the largest eigenvalue of K.

    Example:
        >>> import torch
        >>> x = torch.eye(3)
        >>> round(cost_of_identity(x, x.relu()).item(), 2)
        3.0
        >>> round(cost_of_identity(x - 0.5, (x - 0.5).relu()).item(), 2)
        8.99
    """
    gamma = check_positive("gamma", gamma)
    pair = prepare(x, y)
    largest = pair.y.singular_values[:, 0].square()
    ridge = torch.where(largest > 0, gamma * largest, 1.0)
    lower = _root_with_ridge(pair.y.raw_gram.clone(), ridge)
    n, d = pair.x.values.shape[-2:]
    if n <= d:  # Tr (K + γI)⁻¹ XXᵀ
        identity = torch.eye(n, dtype=lower.dtype, device=lower.device)
        root = torch.linalg.solve_triangular(lower, identity, upper=False)
        cost = ((root @ pair.x.raw_gram) * root).sum((-2, -1))
    else:  # (‖X‖² − Tr XᵀY (YᵀY + γI)⁻¹ YᵀX) / γ
        products = torch.baddbmm(pair.cross.mT, pair.y.mean[:, :, None], pair.x.mean[:, None, :], alpha=n)
        total = diagonal_of(pair.x.raw_gram).sum(-1)
        left = total - squares(torch.linalg.solve_triangular(lower, products, upper=False))
        cost = left / ridge
        lossy = (left < _MIN_SHARE * total).nonzero().flatten()
        if lossy.numel():
            parts = ridge_coordinates(pair.x.items[lossy], pair.y.items[lossy], ridge[lossy])
            cost = cost.index_copy(0, lossy, torch.stack([squares(part) for part in parts]).sum(0))
    of_x, of_y = (diagonal_of(side.raw_gram).sum(-1) for side in (pair.x, pair.y))
    cost = torch.where(of_x > 0, torch.where(of_y > 0, cost, torch.inf), 0.0)
    if bool((cost.isinf() & (of_y > 0)).any()):
        raise NumericalError("the cost overflows float64: x is far larger than y; rescale one side first")
    return pair.x.each(cost)


@torch.no_grad()
def nonnegativity(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute how non-negative the inputs are: the share of `entries` ≥ 0, and of `energy`, ‖X₊‖² / ‖X‖².

    Both are 1 where X ≥ 0, which is where the cost of identity of a ReLU is the rank. `y` is not used.

    Example:
        >>> import torch
        >>> x = torch.tensor([[3.0, -1.0], [0.0, 1.0]])
        >>> {name: round(value.item(), 3) for name, value in nonnegativity(x, x.relu()).items()}
        {'entries': 0.75, 'energy': 0.909}
    """
    a, size = to_unit(prepare(x, y).x.values)
    total = squares(a)
    energy = torch.where(size > 0, squares(a.clamp(min=0)) / torch.where(size > 0, total, 1.0), 1.0)
    return {"entries": (a >= 0).to(a.dtype).mean((-2, -1)), "energy": energy}


def ridge_coordinates(x: Tensor, y: Tensor, ridge: Tensor) -> tuple[Tensor, ...]:
    """Return coordinates of X in which ⟨A, A'⟩ = Tr A (K + γI)⁻¹ A'ᵀ is a plain sum of products, by parts.

    With L Lᵀ = K + γI they are L⁻¹X. Where there are fewer features than samples, they are W and
    (X − YW) / √γ with W = (YᵀY + γI)⁻¹ YᵀX, whose squares add up to the same without an n × n matrix.

    Args:
        x: A = Xᵀ, `[..., n, d]`.
        y: of K = YYᵀ, `[..., n, e]`.
        ridge: γ > 0 itself, not relative to K, `[...]`.
    """
    lower = _root_with_ridge(smaller_gram(y), ridge)
    if y.shape[-2] <= y.shape[-1]:
        return (torch.linalg.solve_triangular(lower, x, upper=False),)
    w = torch.cholesky_solve(y.mT @ x, lower)
    return w, (x - y @ w) / ridge.sqrt()[..., None, None]


def _root_with_ridge(gram: Tensor, ridge: Tensor) -> Tensor:
    """Return L with L Lᵀ = G + γI; G is overwritten."""
    diagonal_of(gram).add_(ridge[..., None])
    lower, info = torch.linalg.cholesky_ex(gram)
    if bool(info.any()):
        raise NumericalError(
            f"K + γI is singular to rounding with γ = {ridge.min().item():g}; raise gamma, "
            "e.g. to 1e-10 of ‖K‖"
        )
    return lower


def _stable_rank(samples: Samples) -> Tensor:
    values = samples.singular_values
    unit = values / torch.where(values[:, :1] > 0, values[:, :1], 1.0)  # squares then stay within float64
    total = unit.square().sum(-1)
    return unit.sum(-1).square() / torch.where(total > 0, total, 1.0)
