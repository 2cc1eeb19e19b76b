"""On a GPU: the same numbers as on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fathometer import affinity, affinity_score
from fathometer.errors import InputError
from tests.data import correlated

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("n", "d"), [(100, 20), (64, 64), (60, 100), (20, 200)])
@pytest.mark.parametrize("covariance", ["sample", "ledoit-wolf"])
def test_agrees_with_the_cpu(n: int, d: int, covariance: str) -> None:
    x = torch.from_numpy(np.stack([correlated(n, d, seed) for seed in range(3)]))
    y = torch.stack([x[0].relu(), x[1].tanh(), x[2].square()])
    here = affinity_score(x, y, covariance=covariance)  # type: ignore[arg-type]
    there = affinity_score(x.cuda(), y.cuda(), covariance=covariance)  # type: ignore[arg-type]
    assert list(there.coupling) == list(here.coupling)
    np.testing.assert_allclose(there.value, here.value, atol=1e-8)


def test_gradients() -> None:
    x = torch.from_numpy(correlated(12, 4)).cuda().requires_grad_()
    y = x.detach().relu().requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: affinity(a, b), (x, y))


def test_two_devices_do_not_mix() -> None:
    x = torch.randn(5, 2)
    with pytest.raises(InputError, match="on one device, got cuda:0 and cpu"):
        affinity_score(x.cuda(), x)
    assert affinity_score(x.cuda(), x.numpy()).n == 5
