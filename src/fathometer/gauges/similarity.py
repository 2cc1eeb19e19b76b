"""The similarity of every site with every other: linear CKA, unbiased, summed over minibatches.

For matrices X and Y of the same n samples, with Gram matrices K = XXᵀ and L = YYᵀ whose diagonals are set to
0, the unbiased estimate of their Hilbert-Schmidt independence criterion (Song et al., 2012) is

    HSIC₁(K, L) = [Tr KL + 1ᵀK1 1ᵀL1 / ((n − 1)(n − 2)) − 2 1ᵀKL1 / (n − 2)] / (n (n − 3)).

It is averaged over minibatches, and then CKA = HSIC₁(K, L) / √(HSIC₁(K, K) HSIC₁(L, L)) (Nguyen, Raghu and
Kornblith, 2021). Centring the samples changes nothing in HSIC₁, and with centred samples the row sums of K
are −aᵢ = −‖xᵢ‖², so that only Tr KL is a product of matrices.

For S sites a minibatch of n samples takes 2 n² Σd operations for the Gram matrices, S² n² for all products of
two of them, and 4 S n² bytes: the half above the diagonal, 0.26 MB for each site if n = 256.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges.gauge import indices_of_equal
from fathometer.transport.arrays import check_finite, exceeds_rounding, resolution
from fathometer.transport.moments import centre

MIN_SAMPLES = 4
"""HSIC₁ divides by n − 3."""
MINIBATCH = 256
"""So many samples at most are compared with each other; more are cut into minibatches of about equal size."""
_STACKED = 2**21  # entries of samples or Gram matrices at a time: 16 MiB
_NEGLIGIBLE = 1e-12  # HSIC₁(K, K) relative to ‖K‖² that is rounding: a single sample differs from the rest


@torch.no_grad()
def hsic_sums(
    samples: Mapping[str, Tensor], resolutions: Mapping[str, float] | None = None
) -> npt.NDArray[np.float64]:
    """Return Σ n HSIC₁ over minibatches for every two of the matrices, `[sites, sites]`.

    Args:
        samples: by name, `[n, d]` each, with the same n samples in the same order. The sums are computed
            in float64, on the device of the first.
        resolutions: the relative spacing of the numbers that the samples were computed in; that of their
            dtypes if left out. What varies less than that is a constant: its sums are 0.

    Example:
        >>> x = torch.randn(100, 8, dtype=torch.float64)
        >>> sums = hsic_sums({"x": x, "turned": x.flip(1)})
        >>> bool(np.allclose(cka_from_sums(sums), 1))
        True
    """
    counts = {len(values) for values in samples.values()}
    if len(counts) != 1 or min(counts) < MIN_SAMPLES:
        raise InputError(
            f"similarity: expected the same samples for every site, at least {MIN_SAMPLES}, "
            f"got {', '.join(map(str, sorted(counts))) or 'none'}"
        )
    every = list(samples.values())
    spacing = [(resolutions or {}).get(name) or resolution(values) for name, values in samples.items()]
    device = every[0].device if every[0].device.type != "mps" else torch.device("cpu")  # no float64 there
    total = torch.zeros(len(every), len(every), dtype=torch.float64, device=device)
    groups = indices_of_equal(zip((values.shape[1] for values in every), spacing, strict=True))
    parts = math.ceil(counts.pop() / MINIBATCH)
    for part in range(parts):
        rows = [values.tensor_split(parts)[part] for values in every]
        n = len(rows[0])
        above = torch.ones(n, n, dtype=torch.bool, device=device).triu_(1).flatten().nonzero().flatten()
        grams, norms = total.new_empty(len(rows), len(above)), total.new_empty(len(rows), n)
        for group in groups:
            size = max(1, _STACKED // (n * max(n, rows[group[0]].shape[1])))
            for some in (group[start : start + size] for start in range(0, len(group), size)):
                stack = torch.stack([rows[index].to(device, torch.float64) for index in some])
                mean, centred = centre(stack)
                centred *= exceeds_rounding(mean, centred, spacing[some[0]]).any(-1)[:, None, None]
                gram = centred @ centred.mT
                grams[some], norms[some] = gram.flatten(1)[:, above], gram.diagonal(dim1=1, dim2=2)
        squares = grams @ grams.T * 2
        trace = norms.sum(1)
        hsic = squares + torch.outer(trace, trace) / ((n - 1) * (n - 2)) - 2 * norms @ norms.T / (n - 2)
        is_zero = hsic.diagonal() <= _NEGLIGIBLE * squares.diagonal()
        total += hsic.masked_fill_(is_zero | is_zero[:, None], 0) / (n - 3)
    if not bool(total.isfinite().all()):
        for name, values in samples.items():
            check_finite(values, name)
        raise InputError("similarity: the squares of some values overflow; rescale them first")
    return total.cpu().numpy()


def cka_from_sums(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return HSIC₁(K, L) / √(HSIC₁(K, K) HSIC₁(L, L)) from sums of HSIC₁; NaN where a site does not vary.

    It is between −1 and 1, exactly 1 for a site with itself, and not limited to positive values: where two
    sites have nothing in common, the unbiased estimate is as often below 0 as above.
    """
    scale = np.sqrt(np.diagonal(sums))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = sums / np.outer(scale, scale)
    np.fill_diagonal(found, np.where(scale > 0, 1.0, np.nan))
    return found
