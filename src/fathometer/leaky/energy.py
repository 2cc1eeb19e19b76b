"""Energies along a path (sections 1.3 to 2.1), and what holds at a critical point (1.5 and appendix A.3).

Representations A and momenta B are `[..., width, samples]`, float64; L̃ is the effective depth.
K_p = σ(A_p)ᵀσ(A_p) holds the bias's row of ones wherever a Hamiltonian is meant, for only then is
∂A = L̃(BK − A). The ridge γ_p = γ₀‖K_p‖_op is scaled by K without it: that row has norm √N however small A is,
and would dominate. The cost of identity as a *dimension* has no such row either: `cost_of_identity` of the
gauges, or `exact_cost` here.

What belongs to layer l takes A at its start and, as the discrete network does, B at its end: the network is
a symplectic Euler scheme, W_l = L̃ B_l σ(A_{l−1})ᵀ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError, check_positive
from fathometer.gauges.dimensions import ridge_coordinates
from fathometer.gauges.spectrum import largest_eigenvalue, smaller_gram, squares
from fathometer.leaky.model import with_ones
from fathometer.leaky.nonlinearity import Nonlinearity
from fathometer.leaky.path import RepresentationPath

GAMMA = 1e-3  # γ₀
_ROUNDING = 1e-10  # share of ‖A‖ outside the image of σ(A)ᵀ that counts as rounding


class Hamiltonians(NamedTuple):
    """H of each layer, `[layers]`: three estimates of one constant of motion."""

    staggered: Tensor
    plain: Tensor
    averaged: Tensor


class KernelProducts(NamedTuple):
    """Of each layer, `[layers]`, in the norm of K_p + γ_p I at its start."""

    velocity_norm2: Tensor  # ‖∂A‖²; the kinetic energy is ‖∂A‖²/(2L̃)
    cross: Tensor  # ⟨∂A, A⟩ = Tr[∂A (K + γI)⁻¹ Aᵀ]
    position_norm2: Tensor  # ‖A‖², the cost of identity with bias; the potential energy is −L̃/2 ‖A‖²


def kernel_norm2(m: Tensor, s: Tensor, gamma: Tensor | float) -> Tensor:
    """Compute ‖M‖²_(K+γI) = Tr M (K + γI)⁻¹ Mᵀ with K = sᵀs, `[...]`.

    It is the minimum of ‖W‖² + ‖M − Ws‖²/γ over all W. No samples × samples matrix is formed where s has
    fewer rows than columns.

    Args:
        m: `[..., rows, samples]`.
        s: `[..., width, samples]`, with or without a row of ones.
        gamma: γ, a number or `[...]`. Where it is 0 the norm is infinite, unless M = 0.

    Example:
        >>> s = torch.eye(3, dtype=torch.float64)
        >>> round(kernel_norm2(2 * s, s, 0.5).item(), 6)
        8.0
    """
    return _products(m, m[..., :0, :], s, gamma)[0]


def _products(m: Tensor, n: Tensor, s: Tensor, gamma: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    """Compute ‖M‖², ⟨M, N⟩ = Tr M (K + γI)⁻¹ Nᵀ and ‖N‖² from one factorisation."""
    ridge = torch.as_tensor(gamma, dtype=s.dtype, device=s.device).expand(s.shape[:-2])
    if not bool(((ridge >= 0) & ridge.isfinite()).all()):
        raise InputError("expected finite numbers from 0, one for each kernel", parameter="gamma")
    parts = ridge_coordinates(torch.cat([m, n], -2).mT, s.mT, torch.where(ridge > 0, ridge, 1.0))
    halves = [part.split(m.shape[-2], -1) for part in parts]

    def inner(first: int, second: int) -> Tensor:
        product = torch.stack([(h[first] * h[second]).sum((-2, -1)) for h in halves]).sum(0)
        return torch.where((ridge > 0) | (product == 0), product, torch.inf)

    return inner(0, 0), inner(0, -1), inner(-1, -1)


def gamma_of(images: Tensor, gamma0: float = GAMMA) -> Tensor:
    """Compute γ_p = γ₀ ‖K_p‖_op = γ₀ ‖σ(A_p)‖_op² (after Theorem 4, which has one square too many).

    Args:
        images: σ(A) *without* the row of ones, `[..., width, samples]`.
        gamma0: γ₀.

    Example:
        >>> gamma_of(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), 0.5).item()
        4.5
    """
    return check_positive("gamma0", gamma0) * largest_eigenvalue(smaller_gram(images))


def hamiltonian(a: Tensor, b: Tensor, sigma: Nonlinearity, effective_depth: float) -> Tensor:
    """Compute H(A, B) = L̃/2 ‖Bσ(A)ᵀ‖² − L̃ Tr[BAᵀ] with the row of ones in σ(A), `[...]` (section 1.5).

    Example:
        >>> from fathometer.leaky.nonlinearity import nonlinearity
        >>> a = torch.tensor([[1.0, -1.0]])
        >>> hamiltonian(a, torch.tensor([[2.0, 1.0]]), nonlinearity("relu"), 3.0).item()
        16.5
    """
    pushed = squares(b @ with_ones(sigma.function(a)).mT)
    return effective_depth * (pushed / 2 - (a * b).sum((-2, -1)))


def in_dimensions(energy: Tensor, effective_depth: float) -> Tensor:
    """Compute −2H/L̃, which is near the rank k* of the bottleneck if L̃ is large (Theorem 4)."""
    return -2 / require_depth(effective_depth) * energy


def hamiltonians(path: RepresentationPath) -> Hamiltonians:
    """Compute H(A_{l−1}, B_l), H(A_l, B_l) and the mean of both, for each layer.

    The first has the right median even with few layers; the last is conserved best.
    """
    momenta, _ = path.require_momenta()
    a, b = path.representations, momenta[1:]
    staggered = hamiltonian(a[:-1], b, path.sigma, path.effective_depth)
    plain = hamiltonian(a[1:], b, path.sigma, path.effective_depth)
    return Hamiltonians(staggered, plain, (staggered + plain) / 2)


def kernel_products(path: RepresentationPath, gamma: Tensor) -> KernelProducts:
    """Compute the products of A and ∂A = (A_l − A_{l−1}) / ρ_l at the start of each layer.

    Args:
        path: the path.
        gamma: γ_p of each layer, `[layers]`; where it is 0, all but 0 is infinite.
    """
    return KernelProducts(
        *_products(path.velocities, path.representations[:-1], with_ones(path.images[:-1]), gamma)
    )


def exact_cost(a: Tensor, s: Tensor) -> Tensor:
    """Compute ‖A s⁺‖² with s = σ(A), the cost of identity without ridge, `[...]` (section 1.3).

    It is the smallest ‖W‖² with Ws = A, by singular values. It is infinite if there is no such W, that is, if
    more than 1e-10 of ‖A‖ lies outside the image of sᵀ. (‖As⁺‖² would be finite there, and too small.) This
    is usual if A has negative entries and more samples than rows.

    Example:
        >>> a = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], dtype=torch.float64)
        >>> round(exact_cost(a, a.relu()).item(), 6), exact_cost(a - 2, (a - 2).relu()).item()
        (1.0, inf)
    """
    _, values, right = torch.linalg.svd(s, full_matrices=False)
    kept = values > values[..., :1] * max(s.shape[-2:]) * torch.finfo(s.dtype).eps
    right = right * kept[..., None]
    inside = a @ right.mT
    residual = squares(a - inside @ right).sqrt()
    cost = squares(inside / torch.where(kept, values, 1.0)[..., None, :])
    return torch.where(residual <= _ROUNDING * squares(a).sqrt(), cost, torch.inf)


def require_depth(effective_depth: float) -> float:
    """Return L̃, or raise an error if it is 0: energies are divided by it."""
    if not 0 < effective_depth < math.inf:
        raise InputError(
            f"expected a finite number > 0, got {effective_depth!r}; a plain ResNet (0) has no such energies",
            parameter="effective_depth",
        )
    return effective_depth


class Balance(NamedTuple):
    """The terms of Proposition 9, `[layers]` each; `theory.norm_growth` is the statement."""

    norms: Tensor  # ‖W_l‖²
    changes: Tensor  # Tr[B_l A_lᵀ] − Tr[B_{l−1} A_{l−1}ᵀ]
    # ρ_l ‖b_l‖² / L̃, to which they are equal at a critical point, for any number of layers
    expected_changes: Tensor

    @property
    def error(self) -> float:
        """‖changes − expected‖ / ‖expected‖ over all layers."""
        off, size = (self.changes - self.expected_changes).norm(), self.expected_changes.norm()
        return 0.0 if off == 0 else (off / size).item()


def criticality(path: RepresentationPath) -> Tensor:
    """Compute ‖W_l − L̃ B_l σ(A_{l−1})ᵀ‖ / ‖W_l‖ of each layer: 0 at a critical point (section 1.5).

    Only there H is conserved. A plain ResNet has 1 in place of L̃ = 0: its loss is C + λ/2 Σ ρ_l ‖W_l‖², and
    B = −(1/λ) ∂C/∂A.
    """
    momenta, weights = path.require_momenta()
    expected = (path.effective_depth or 1.0) * momenta[1:] @ with_ones(path.images[:-1]).mT
    off = squares(weights - expected)
    return torch.where(off == 0, 0.0, (off / squares(weights)).sqrt())


def balance(path: RepresentationPath) -> Balance:
    """Compute the norms of the weights, and how much the bias makes them grow (Proposition 9).

    Scaling A by c and B by 1/c changes only the bias: ∂_p Tr[BAᵀ] = ‖b‖²/L̃, and since H is conserved,
    ∂_p‖W‖² = 2L̃‖b‖².
    """
    momenta, weights = path.require_momenta()
    depth = require_depth(path.effective_depth)
    if not path.sigma.homogeneous:
        raise InputError(
            f"balance: expected a nonlinearity with σ(ca) = cσ(a), such as relu or identity, got "
            f"{path.sigma.name}, whose weights are not balanced"
        )
    norms, growth = squares(weights), path.steps * weights[..., -1].square().sum(-1)
    changes = (momenta * path.representations).sum((-2, -1)).diff()
    return Balance(norms, changes, growth / depth)


def median(values: Tensor) -> Tensor:
    """Compute the median over the first axis; of an even number, the mean of the middle two.

    pandas does the same. `torch.median` takes the lower of the two, and would give other numbers.

    Example:
        >>> median(torch.tensor([4.0, 1.0, 2.0, 9.0])).item()
        3.0
    """
    ordered, count = values.sort(0).values, len(values)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
