"""Spectra of centred and raw samples, against NumPy's singular values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from fathometer.transport import kernels
from fathometer.transport import tridiagonal as module
from fathometer.transport.tridiagonal import _centred_and_raw, _raw_in_first_axis, spectra
from tests.data import correlated

SHAPES = [(40, 9), (30, 50), (20, 20), (12, 1), (2, 3), (2, 1)]


def group(n: int, d: int, shift: float = 3.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return two items of centred samples, their mean, and their smaller Gram matrix."""
    values = torch.stack([torch.from_numpy(correlated(n, d, seed)) for seed in range(2)])
    values = values + shift * torch.arange(1.0, d + 1)
    mean = values.mean(1)
    rows = values - mean[:, None]
    return rows, mean, rows @ rows.mT if n <= d else rows.mT @ rows


def check(found: tuple[Tensor, Tensor], rows: Tensor, mean: Tensor) -> None:
    """Compare both spectra with squared singular values; their rounding is that of the largest one."""
    for values, samples in zip(found, (rows, rows + mean[:, None]), strict=True):
        for item, sample in zip(values.cpu().numpy(), samples.cpu().numpy(), strict=True):
            right = np.linalg.svd(sample, compute_uv=False)[::-1] ** 2
            np.testing.assert_allclose(item, right, rtol=0, atol=1e-14 * max(right[-1], 1e-300))
            assert (np.diff(item) >= 0).all()


def test_spectra_are_squared_singular_values() -> None:
    groups = [group(n, d) for n, d in SHAPES]
    for found, (rows, mean, _) in zip(spectra(groups), groups, strict=True):
        check(found, rows, mean)
    assert spectra([]) == []


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_centred_and_raw_samples_differ_in_the_first_row_of_a_reflected_matrix(
    n: int, d: int, shift: float
) -> None:
    rows, mean, gram = group(n, d, shift)
    reflected, added = _raw_in_first_axis(rows, mean, gram)
    assert (added is None) == (n <= d)
    both: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for item in range(len(rows)):
        # LAPACK's reduction keeps the first axis as the kernels do
        _, diagonal, off_diagonal, _, _ = scipy.linalg.lapack.dsytrd(reflected[item].numpy(), lower=1)
        form = torch.from_numpy(diagonal)[None], torch.from_numpy(off_diagonal)[None]
        forms = _centred_and_raw(*form, None if added is None else added[item : item + 1])
        for found, (diagonal, off_diagonal) in zip(both, forms, strict=True):
            found.append(scipy.linalg.eigh_tridiagonal(diagonal[0], off_diagonal[0], eigvals_only=True))
    check((torch.tensor(np.stack(both[0])), torch.tensor(np.stack(both[1]))), rows, mean)


def test_where_kernels_fail_torch_computes_the_spectra(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = []
    monkeypatch.setattr(kernels, "_FAILURES", failures)
    monkeypatch.setattr(module, "can_run", lambda _: not failures)  # on a CPU they do fail
    rows, mean, gram = group(40, 9)
    with pytest.warns(UserWarning, match="slower; Triton needs a C compiler"):
        found = spectra([(rows, mean, gram)])
    check(found[0], rows, mean)
    kernels.disable_kernels(RuntimeError("once more"))  # without another warning
    with pytest.raises(MemoryError):
        kernels.disable_kernels(MemoryError())
