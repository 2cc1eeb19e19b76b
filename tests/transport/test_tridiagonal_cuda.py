"""On a GPU: spectra by the kernels, against NumPy and `torch.linalg.eigvalsh`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fathometer.transport import kernels
from fathometer.transport.tridiagonal import MAX_SIZE, spectra, tridiagonal_eigenvalues, tridiagonalize
from tests.transport.test_tridiagonal import SHAPES, check, group

pytestmark = pytest.mark.gpu


def on_gpu(n: int, d: int, shift: float = 3.0) -> tuple[Tensor, Tensor, Tensor]:
    rows, mean, gram = group(n, d, shift)
    return rows.cuda(), mean.cuda(), gram.cuda()


def eigenvalues(*groups: Tensor) -> list[Tensor]:
    return tridiagonal_eigenvalues(tridiagonalize(groups))


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
def test_spectra_of_many_shapes_at_once_are_squared_singular_values(shift: float) -> None:
    shapes = [*SHAPES, (300, 64), (300, 130), (300, 300), (257, 512), (512, 511)]
    groups = [on_gpu(n, d, shift) for n, d in shapes]
    for found, (rows, mean, _) in zip(spectra(groups), groups, strict=True):
        check(found, rows, mean)


def test_awkward_matrices() -> None:
    """Zeros, the identity, one of low rank, tiny and huge ones, and one that is tridiagonal already."""
    one, eye = torch.ones(200, 200, dtype=torch.float64), torch.eye(200, dtype=torch.float64)
    rank_two = torch.randn(200, 2, dtype=torch.float64)
    low_rank = rank_two @ rank_two.mT
    chain = torch.diag(-one[0, 1:], 1)
    powers = torch.diag(10.0 ** -torch.arange(200, dtype=torch.float64))
    tridiagonal = 2 * eye + chain + chain.mT
    matrices = torch.stack(
        [0 * one, eye, low_rank, 1e-200 * one, 1e200 * one, tridiagonal, powers, eye + 1e-160 * low_rank]
    )
    values, right = eigenvalues(matrices.cuda())[0], torch.linalg.eigvalsh(matrices)
    error = (values.cpu() - right).abs().amax(-1)
    assert bool((error <= 1e-14 * right.abs().amax(-1)).all()), error


def test_more_matrices_than_one_batch_and_the_largest() -> None:
    shapes = [(150, 60), (150, 130), (5, MAX_SIZE)]
    grams = [torch.randn(items, k, k, dtype=torch.float64, device="cuda") for items, k in shapes]
    grams = [gram + gram.mT for gram in grams]
    for values, gram in zip(eigenvalues(*grams), grams, strict=True):
        right = torch.linalg.eigvalsh(gram)
        assert float(((values - right).abs() / right.abs().amax(-1, keepdim=True)).max()) < 1e-14
    rows, mean, gram = on_gpu(MAX_SIZE + 1, MAX_SIZE + 1)  # too large for the kernels
    torch.testing.assert_close(spectra([(rows, mean, gram)])[0][0], torch.linalg.eigvalsh(gram))


def test_nan_gives_nan() -> None:
    gram = torch.eye(8, dtype=torch.float64, device="cuda")[None].repeat(2, 1, 1)
    gram[0, 3, 4] = gram[0, 4, 3] = torch.nan
    values = eigenvalues(gram)[0]
    assert bool(values[0].isnan().all())
    assert values[1].tolist() == pytest.approx([1.0] * 8, abs=1e-15)


def test_without_triton_torch_computes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, mean, gram = on_gpu(40, 9)
    monkeypatch.setattr(kernels, "_is_supported", lambda _: False)
    check(spectra([(rows, mean, gram)])[0], rows, mean)
