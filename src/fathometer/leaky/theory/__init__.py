"""Every statement of the paper as a function that measures both of its sides.

`stable_rank_bound`, `added_neuron` and `path_to_a_saddle` are about one representation, the rest about a path
with momenta. `check_all` runs all that apply. `solved_path` gives a path that is critical to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fathometer.leaky.dynamics import solved_path
from fathometer.leaky.energy import GAMMA, gamma_of
from fathometer.leaky.nonlinearity import Nonlinearity
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory.balance import balancedness, bias_balance, norm_balance, norm_growth
from fathometer.leaky.theory.hamiltonian import (
    hamiltonian_identity,
    hamiltonian_is_conserved,
    proposition_5,
    theorem_4,
    three_terms,
    weights_from_momenta,
)
from fathometer.leaky.theory.identity import (
    ConstantCostPath,
    added_neuron,
    constant_cost_path,
    cost_of,
    path_to_a_saddle,
    stable_rank_bound,
)
from fathometer.leaky.theory.linear import linear_flow, middle_term
from fathometer.leaky.theory.statement import TRAINED, Statement
from fathometer.leaky.theory.symmetries import integration_range, output_scaling

__all__ = [
    "TRAINED",
    "ConstantCostPath",
    "Statement",
    "added_neuron",
    "balancedness",
    "bias_balance",
    "check_all",
    "constant_cost_path",
    "cost_of",
    "hamiltonian_identity",
    "hamiltonian_is_conserved",
    "integration_range",
    "linear_flow",
    "middle_term",
    "norm_balance",
    "norm_growth",
    "not_applicable",
    "output_scaling",
    "path_to_a_saddle",
    "proposition_5",
    "solved_path",
    "stable_rank_bound",
    "theorem_4",
    "three_terms",
    "weights_from_momenta",
]

SADDLE_SAMPLES = 3  # at most: Proposition 3 needs a width above N(N + 1)


def check_all(
    path: RepresentationPath, gamma0: float = GAMMA, others: Sequence[RepresentationPath] = ()
) -> list[Statement]:
    """Check every statement that applies to a trained path.

    Propositions 1 to 3 are about ReLU and a single representation: they are checked at the middle layer,
    the third for its first few samples. Statements about critical points hold as far as the network is
    trained. A plain ResNet, L̃ = 0, has no energies: statements about them are left out.

    Args:
        path: path of a network, with momenta and weights.
        gamma0: γ₀.
        others: paths at other effective depths, at least two, for Proposition 5; without them it is left out.

    Example:
        >>> import torch
        >>> from fathometer.leaky.model import LeakyResNet
        >>> from fathometer.leaky.path import path_of
        >>> net = LeakyResNet(3, 3, width=16, effective_depth=1.0, steps=4).double()
        >>> x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> found = check_all(path_of(net, x, x, 0.1))
        >>> [s.name for s in found if not s.holds and s.name.startswith(("Proposition 1", "Section 1.2"))]
        []
    """
    path.require_momenta()
    homogeneous, leaky = path.sigma.homogeneous, path.effective_depth > 0
    statements: list[Statement] = []
    if path.sigma.name == "relu":
        statements += _of_one_representation(path, gamma0)
    if homogeneous and leaky:
        statements += balancedness(path)
    if leaky:
        statements.append(three_terms(path, gamma0))
    statements.append(weights_from_momenta(path))
    if leaky:
        statements += [hamiltonian_identity(path, gamma0), hamiltonian_is_conserved(path, gamma0)]
        statements += theorem_4(path, gamma0)
    statements += integration_range(path)
    room = 1 / path.steps.max().item() - path.effective_depth
    if room > 0 and homogeneous:
        statements += output_scaling(path, min(0.5, room / 2))
    if path.sigma.name == "identity":
        statements.append(linear_flow(path))
    if others and path.sigma.name == "relu":
        statements.append(proposition_5([path, *others], gamma0))
    return statements


def not_applicable(sigma: Nonlinearity) -> dict[str, str]:
    """Return the statements of the paper that do not apply to a network with this σ, each with the reason.

    What is left holds for any σ that is differentiable almost everywhere: the Lagrangian, W = L̃Bσᵀ, the
    Hamiltonian, appendix A.2, Theorem 4 and the symmetry of the integration range.

    Example:
        >>> from fathometer.leaky.nonlinearity import nonlinearity
        >>> list(not_applicable(nonlinearity("relu")))
        ['Footnote 1']
    """
    relu, linear = sigma.name == "relu", sigma.name == "identity"
    parts = {
        "Propositions 1 to 3": "they use ‖σ(A)‖ ≤ ‖A‖ and σ(A) = A exactly where A ≥ 0",
        "Proposition 5": "σ(A) = A for A ≥ 0 is what makes A non-negative, so −2H/L̃ need not be near a rank",
    }
    found = {} if relu else parts
    if not sigma.homogeneous:
        reason = "it needs σ(ca) = cσ(a) for c > 0"
        found |= {"Proposition 9": reason, "Section 1.2, output scaling": reason}
    return found if linear else found | {"Footnote 1": "it is about linear networks"}


def _of_one_representation(path: RepresentationPath, gamma0: float) -> list[Statement]:
    a = path.representations[len(path.representations) // 2]
    gamma = gamma_of(a.relu(), gamma0).item()
    found = [stable_rank_bound(a)]
    if gamma > 0:
        found.append(stable_rank_bound(a, gamma))
        if bool((a < 0).any()):
            found.append(added_neuron(a, gamma=gamma))
    count = max((n for n in range(1, SADDLE_SAMPLES + 1) if n * (n + 1) < len(a)), default=0)
    few = a[:, :count]
    if bool((few < 0).any()) and math.isfinite(cost_of(few)):
        found += path_to_a_saddle(few)
    return found
