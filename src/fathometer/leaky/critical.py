"""What holds at a critical point of the loss: W = L̃Bσᵀ (section 1.5) and balancedness (appendix A.3).

Both need the momenta of a trained network; results are `[layers]`, float64.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges.spectrum import squares
from fathometer.leaky.energy import require_depth
from fathometer.leaky.nonlinearity import with_ones
from fathometer.leaky.path import RepresentationPath

HOMOGENEOUS = ("relu", "identity")  # σ(ca) = cσ(a) for c > 0, which balancedness rests on


class Balance(NamedTuple):
    """What Proposition 9 is about, `[layers]` each; `norm_growth` of the theory is the statement.

    Attributes:
        norms: ‖W_l‖².
        changes: Tr[B_l A_lᵀ] − Tr[B_{l−1} A_{l−1}ᵀ].
        expected_changes: ρ_l ‖b_l‖² / L̃. It holds exactly for any number of layers.
    """

    norms: Tensor
    changes: Tensor
    expected_changes: Tensor

    @property
    def error(self) -> float:
        """‖changes − expected‖ / ‖expected‖ over all layers."""
        off, size = (self.changes - self.expected_changes).norm(), self.expected_changes.norm()
        return 0.0 if off == 0 else (off / size).item()


def criticality(path: RepresentationPath) -> Tensor:
    """‖W_l − L̃ B_l σ(A_{l−1})ᵀ‖ / ‖W_l‖ of each layer: 0 at a critical point, where alone H is conserved.

    A plain ResNet has 1 in the place of L̃ = 0: its loss is C + λ/2 Σ ρ_l ‖W_l‖², and B = −(1/λ) ∂C/∂A.
    """
    momenta, weights = path.require_momenta()
    expected = (path.effective_depth or 1.0) * momenta[1:] @ with_ones(path.images[:-1]).mT
    off = squares(weights - expected)
    return torch.where(off == 0, 0.0, (off / squares(weights)).sqrt())


def balance(path: RepresentationPath) -> Balance:
    """The norms of the weights, and how the bias makes them grow (Proposition 9).

    Scaling A by c and B by 1/c changes nothing but the bias: ∂_p Tr[BAᵀ] = ‖b‖²/L̃, and since H is conserved,
    ∂_p‖W‖² = 2L̃‖b‖².
    """
    momenta, weights = path.require_momenta()
    depth = require_depth(path.effective_depth)
    if path.sigma.name not in HOMOGENEOUS:
        raise InputError(
            f"balance: expected a nonlinearity with σ(ca) = cσ(a), {' or '.join(HOMOGENEOUS)}, got "
            f"{path.sigma.name}, whose weights are not balanced"
        )
    norms, growth = squares(weights), path.steps * weights[..., -1].square().sum(-1)
    changes = (momenta * path.representations).sum((-2, -1)).diff()
    return Balance(norms, changes, growth / depth)
