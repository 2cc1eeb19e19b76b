"""Energies along a path: kernel norms, Hamiltonians, kinetic and potential energy (sections 1.3 to 2.1).

Representations A and momenta B are `[..., width, samples]`, float64; L̃ is the effective depth.
K_p = σ(A_p)ᵀσ(A_p) holds the bias's row of ones wherever a Hamiltonian is meant, for only then is
∂A = L̃(BK − A). The ridge γ_p = γ₀‖K_p‖_op is scaled by K without it: that row has norm √N however small A is,
and would drown it. The cost of identity as a *dimension* has no such row either: `cost_of_identity` of the
gauges, or `exact_cost` here.

What belongs to layer l takes A at its start and, as the discrete network does, B at its end: the network is
a symplectic Euler scheme, W_l = L̃ B_l σ(A_{l−1})ᵀ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges.dimension import ridge_coordinates
from fathometer.gauges.spectrum import largest_eigenvalue, smaller_gram, squares
from fathometer.leaky.nonlinearity import Nonlinearity, with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.steps import is_positive

GAMMA = 1e-3  # γ₀
IN_THE_IMAGE = 1e-10  # the share of ‖A‖ outside the image of σ(A)ᵀ that still counts as rounding


class Hamiltonians(NamedTuple):
    """H of each layer, `[layers]`: three readings of one constant of motion."""

    staggered: Tensor
    plain: Tensor
    averaged: Tensor


class Energies(NamedTuple):
    """Stable energies of each layer, `[layers]`, with K_p + γ_p I in the place of K_p.

    Attributes:
        kinetic: 1/(2L̃) ‖∂A‖².
        potential: −L̃/2 ‖A‖².
        cross: ⟨∂A, A⟩ = Tr[∂A (K + γI)⁻¹ Aᵀ]; the paper writes a factor L̃ before it, which is not there.
    """

    kinetic: Tensor
    potential: Tensor
    cross: Tensor

    @property
    def hamiltonian(self) -> Tensor:
        """H_γ = 1/(2L̃) ‖∂A‖² − L̃/2 ‖A‖² (caption of Figure 1)."""
        return self.kinetic + self.potential

    @property
    def lagrangian(self) -> Tensor:
        """1/(2L̃) ‖L̃A + ∂A‖², as the sum of three terms (section 1.3)."""
        return self.kinetic + self.cross - self.potential


def kernel_norm2(m: Tensor, s: Tensor, gamma: Tensor | float) -> Tensor:
    """‖M‖²_(K+γI) = Tr M (K + γI)⁻¹ Mᵀ with K = sᵀs, `[...]`.

    It is the least of ‖W‖² + ‖M − Ws‖²/γ over all W. No samples × samples matrix is formed where s has
    fewer rows than columns.

    Args:
        m: `[..., rows, samples]`.
        s: `[..., width, samples]`, with or without a row of ones.
        gamma: γ itself, a number or `[...]`. Where it is 0, as `gamma_of` nothing, the norm is infinite,
            unless M = 0.

    Example:
        >>> s = torch.eye(3, dtype=torch.float64)
        >>> round(kernel_norm2(2 * s, s, 0.5).item(), 6)
        8.0
    """
    return _products(m, m[..., :0, :], s, gamma)[0]


def _products(m: Tensor, n: Tensor, s: Tensor, gamma: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    """‖M‖², ⟨M, N⟩ = Tr M (K + γI)⁻¹ Nᵀ and ‖N‖² from one factorisation."""
    if m.shape[-1] != s.shape[-1]:
        raise InputError(
            f"expected [..., rows, {s.shape[-1]}], as many samples as the kernel has, got {list(m.shape)}"
        )
    ridge = torch.as_tensor(gamma, dtype=s.dtype, device=s.device).expand(s.shape[:-2])
    if not bool(((ridge >= 0) & ridge.isfinite()).all()):
        raise InputError("gamma: expected finite numbers from 0, one for each kernel; gamma_of gives them")
    parts = ridge_coordinates(torch.cat([m, n], -2).mT, s.mT, torch.where(ridge > 0, ridge, 1.0))
    halves = [part.split(m.shape[-2], -1) for part in parts]

    def inner(first: int, second: int) -> Tensor:
        product = torch.stack([(h[first] * h[second]).sum((-2, -1)) for h in halves]).sum(0)
        return torch.where((ridge > 0) | (product == 0), product, torch.inf)

    return inner(0, 0), inner(0, -1), inner(-1, -1)


def gamma_of(images: Tensor, gamma0: float = GAMMA) -> Tensor:
    """γ_p = γ₀ ‖K_p‖_op = γ₀ ‖σ(A_p)‖_op² (after Theorem 4, whose second square is one too many).

    Args:
        images: σ(A) *without* the row of ones, `[..., width, samples]`.
        gamma0: γ₀.

    Example:
        >>> gamma_of(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), 0.5).item()
        4.5
    """
    if not is_positive(gamma0):
        raise InputError(f"gamma0: expected a finite number > 0, got {gamma0!r}")
    return gamma0 * largest_eigenvalue(smaller_gram(images))


def hamiltonian(a: Tensor, b: Tensor, sigma: Nonlinearity, effective_depth: float) -> Tensor:
    """H(A, B) = L̃/2 ‖Bσ(A)ᵀ‖² − L̃ Tr[BAᵀ] with the row of ones in σ(A), `[...]` (section 1.5).

    Example:
        >>> from fathometer.leaky.nonlinearity import nonlinearity
        >>> a = torch.tensor([[1.0, -1.0]])
        >>> hamiltonian(a, torch.tensor([[2.0, 1.0]]), nonlinearity("relu"), 3.0).item()
        16.5
    """
    if a.shape != b.shape:
        raise InputError(f"expected A and B of one shape, got {list(a.shape)} and {list(b.shape)}")
    pushed = squares(b @ with_ones(sigma.function(a)).mT)
    return effective_depth * (pushed / 2 - (a * b).sum((-2, -1)))


def in_dimensions(energy: Tensor, effective_depth: float) -> Tensor:
    """−2H/L̃, which is near the rank k* of the bottleneck where L̃ is large (Theorem 4)."""
    return -2 / require_depth(effective_depth) * energy


def hamiltonians(path: RepresentationPath) -> Hamiltonians:
    """H(A_{l−1}, B_l), H(A_l, B_l) and the mean of both, for each layer.

    The first has the right median with few layers already; the last is conserved best.
    """
    momenta, _ = path.require_momenta()
    a, b = path.representations, momenta[1:]
    staggered = hamiltonian(a[:-1], b, path.sigma, path.effective_depth)
    plain = hamiltonian(a[1:], b, path.sigma, path.effective_depth)
    return Hamiltonians(staggered, plain, (staggered + plain) / 2)


def energies(path: RepresentationPath, gamma0: float = GAMMA) -> Energies:
    """Kinetic and potential energy of each layer, at its start, with ∂A = (A_l − A_{l−1}) / ρ_l."""
    depth = require_depth(path.effective_depth)
    a, velocity = path.representations[:-1], path.velocities
    kernel, gamma = with_ones(path.images[:-1]), gamma_of(path.images[:-1], gamma0)
    moving, cross, standing = _products(velocity, a, kernel, gamma)
    return Energies(moving / (2 * depth), -depth / 2 * standing, cross)


def stable_identity(
    a: Tensor, b: Tensor, velocity: Tensor, sigma: Nonlinearity, effective_depth: float, gamma: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Both sides of −2H/L̃ = ‖A‖² − ‖∂A/L̃ + γB‖² + γ‖B‖², norms in K + γI (appendix A.2), `[...]`.

    They agree on an exact flow. In a network take A_{l−1}, B_l and `path.velocities`: there they agree as
    far as its weights are critical.
    """
    depth = require_depth(effective_depth)
    ridge = torch.as_tensor(gamma, dtype=a.dtype, device=a.device).expand(a.shape[:-2])
    kernel = with_ones(sigma.function(a))
    moved = velocity / depth + ridge[..., None, None] * b
    right = kernel_norm2(a, kernel, ridge) - kernel_norm2(moved, kernel, ridge) + ridge * squares(b)
    return in_dimensions(hamiltonian(a, b, sigma, depth), depth), right


def path_lengths(path: RepresentationPath, gamma0: float = GAMMA) -> tuple[float, float]:
    """∫‖∂A‖ dp in the Euclidean norm, and in that of K_p + γ_p I (Theorem 4, Figure 3)."""
    moves = path.representations.diff(dim=0)
    kernel, gamma = with_ones(path.images[:-1]), gamma_of(path.images[:-1], gamma0)
    lengths = squares(moves).sqrt(), kernel_norm2(moves, kernel, gamma).sqrt()
    return lengths[0].sum().item(), lengths[1].sum().item()


def exact_cost(a: Tensor, s: Tensor) -> Tensor:
    """‖A s⁺‖² with s = σ(A), the cost of identity without ridge, `[...]` (section 1.3).

    The least ‖W‖² with Ws = A, by singular values. It is infinite where there is no such W, that is, where
    more than `IN_THE_IMAGE`, 1e-10, of ‖A‖ lies outside the image of sᵀ. (‖As⁺‖² would be finite there, and
    too small.) That is the rule where A has negative entries and more samples than rows.

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
    return torch.where(residual <= IN_THE_IMAGE * squares(a).sqrt(), cost, torch.inf)


def require_depth(effective_depth: float) -> float:
    """L̃, or an error where it is 0: energies are divided by it."""
    if not 0 < effective_depth < math.inf:
        raise InputError(
            f"effective_depth: expected a finite number > 0, got {effective_depth!r}; a plain ResNet (0) has "
            "no energies of this kind, its representations can be measured alone"
        )
    return effective_depth
