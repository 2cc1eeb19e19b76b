"""How far samples of one class have become one point, and the classes a simplex: neural collapse."""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.gauges.samples import Samples, prepare
from fathometer.transport.arrays import Array
from fathometer.transport.decompositions import eigh

_MIN_PER_CLASS = 2  # one sample has no variance within its class
_NEGLIGIBLE = 1e-10  # of the largest variance between classes: below, a direction is rounding
_ROUNDING = 1e-12  # of the spread of all samples: means of classes that are no farther apart are equal


@torch.no_grad()
def neural_collapse(x: Array, y: Array, *, labels: Tensor | None = None) -> dict[str, Tensor]:
    """Compute how near Y is to neural collapse (Papyan, Han and Donoho, 2020): 0 where it has collapsed.

    With the means μ_c of C classes, their mean μ, Σ_W the mean over samples of (y − μ_c)(y − μ_c)ᵀ, and Σ_B
    the mean over classes of (μ_c − μ)(μ_c − μ)ᵀ,

    - `nc1` = Tr(Σ_W Σ_B⁺) / C: the variance within classes, by that between them;
    - `nc2_norms`: the standard deviation of ‖μ_c − μ‖ over classes, divided by its mean;
    - `nc2_angles`: the mean of |cos(μ_c − μ, μ_c' − μ) + 1 / (C − 1)| over pairs of classes.

    Classes with a single sample are left out. NaN with fewer than two others, without labels, and where Y is
    constant or all means are equal; `nc2_angles` also where the mean of one class is μ. The theory
    is about the last features before the classifier, after long training; elsewhere the numbers describe, and
    say nothing about how well a classifier would do. With few samples per class `nc1` is too small, since
    means follow their samples. NC3 and NC4 need the classifier's weights.

    Args:
        x: inputs; they are not used.
        y: outputs.
        labels: the class of each sample, `[n]`, whole numbers.

    Example:
        >>> import torch
        >>> labels = torch.tensor([0, 0, 1, 1, 2, 2])
        >>> y = torch.eye(3)[labels]
        >>> {name: round(value.item(), 6) for name, value in neural_collapse(y, y, labels=labels).items()}
        {'nc1': 0.0, 'nc2_norms': 0.0, 'nc2_angles': 0.0}
    """
    samples = prepare(x, y).y
    missing = torch.full_like(samples.norms2[:, 0], torch.nan)
    found = dict.fromkeys(("nc1", "nc2_norms", "nc2_angles"), missing)
    if labels is not None:
        labels = labels.to(missing.device)
        classes, counts = labels.unique(return_counts=True)
        classes = classes[counts >= _MIN_PER_CLASS]
        if len(classes) > 1:
            found = _collapse(samples, (labels[:, None] == classes).to(missing))
    return {name: samples.each(value) for name, value in found.items()}


def _collapse(samples: Samples, members: Tensor) -> dict[str, Tensor]:
    """Compute the three numbers for `members`, `[n, C]`: 1 where a sample belongs to a class, 0 elsewhere.

    With the centred means A, `[C, d]`, Σ_B⁺ is C Aᵀ (AAᵀ)⁺² A, so that only a C × C matrix is decomposed.
    """
    rows, count = samples.centred, members.shape[-1]
    means = (members / members.sum(0)).mT @ rows
    centred = means - means.mean(-2, keepdim=True)
    gram = centred @ centred.mT
    values, vectors = eigh(gram)
    kept = values > _NEGLIGIBLE * values[:, -1:]
    inverse = torch.where(kept, 1 / torch.where(kept, values, 1.0), 0.0)
    directions = centred.mT @ (vectors * inverse[:, None])
    within = members.sum(-1, keepdim=True) * (rows @ directions) - members @ (means @ directions)
    norms = gram.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    differs = norms > _ROUNDING * samples.norms2.mean(-1, keepdim=True).sqrt()
    known = samples.varies & differs.any(-1)
    unit = torch.where(differs, norms, 1.0)
    angles = (gram / (unit[:, :, None] * unit[:, None]) + 1 / (count - 1)).abs()
    off_diagonal = angles.sum((-2, -1)) - angles.diagonal(dim1=-2, dim2=-1).sum(-1)
    found = {
        "nc1": within.square().sum((-2, -1)) / members.sum(),
        "nc2_norms": norms.std(-1, correction=0) / torch.where(known, norms.mean(-1), 1.0),
        "nc2_angles": torch.where(differs.all(-1), off_diagonal / (count * (count - 1)), torch.nan),
    }
    return {name: torch.where(known, value, torch.nan) for name, value in found.items()}
