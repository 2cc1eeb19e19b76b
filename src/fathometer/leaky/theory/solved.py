"""Networks that are critical to rounding: not trained, but solved for layer by layer from A_0 and B_0."""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.errors import NumericalError
from fathometer.leaky.energy import require_depth
from fathometer.leaky.model import next_layer, nonlinearity, with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.steps import equidistant

ROUNDS = 500  # of the iteration in one layer, at most
SOLVED, GOOD_ENOUGH = 1e-15, 1e-12  # relative changes in its last round


def solved_path(
    start: Tensor, momentum: Tensor, effective_depth: float, steps: Tensor | int, sigma: str = "relu"
) -> RepresentationPath:
    """Solve for the path of a network with W_l = L̃ B_l σ(A_{l−1})ᵀ to rounding, from A_0 and B_0.

    It is a critical point of the loss whose target is Y = A_L + λNd/2 · B_L, with identity maps. The momenta
    follow from B_{l−1} = (1 − ρL̃) B_l + ρ σ'(A_{l−1}) ⊙ (V_lᵀ B_l), which is solved for B_l by iteration.

    Args:
        start: A_0, `[width, samples]`, float64.
        momentum: B_0, of the same shape.
        effective_depth: L̃.
        steps: ρ, or the number of equidistant layers.
        sigma: the nonlinearity.

    Raises:
        NumericalError: the iteration does not converge, for example with large steps or momenta.

    Example:
        >>> from fathometer.leaky.energy import criticality
        >>> a, b = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> criticality(solved_path(a, b / 10, 1.0, 20)).max().item() < 1e-12
        True
    """
    form, depth = nonlinearity(sigma), require_depth(effective_depth)
    rho = equidistant(steps) if isinstance(steps, int) else steps
    representations, momenta, weights = [start], [momentum], []
    for step in rho.tolist():
        a, b = representations[-1], momenta[-1]
        image = form.function(a)
        new, moved = b, torch.inf
        for _ in range(ROUNDS):
            pushed = depth * new @ image.mT
            following = (b - step * form.slope(image) * (pushed.mT @ new)) / (1 - step * depth)
            moved = float((following - new).norm() / following.norm().clamp(min=1e-300))
            new = following
            if moved < SOLVED:
                break
        if not moved < GOOD_ENOUGH:
            raise NumericalError(
                f"the iteration for the momenta does not converge (last change {moved:.1g}); use smaller "
                "steps or momenta"
            )
        weights.append(depth * new @ with_ones(image).mT)
        momenta.append(new)
        representations.append(next_layer(a.mT, weights[-1], step, depth, form).mT)
    return RepresentationPath(
        torch.stack(representations), rho, depth, form, torch.stack(momenta), torch.stack(weights)
    )
