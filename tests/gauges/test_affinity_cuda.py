"""On a GPU: the same numbers as on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fathometer import affinity, affinity_score, affinity_scores
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


def test_pairs_of_many_widths_agree_with_the_cpu() -> None:
    shapes = [(64, 5), (64, 100), (64, 300), (64, 128), (32, 5), (64, 700)]
    here = [torch.from_numpy(correlated(n, d, seed)) for seed, (n, d) in enumerate(shapes)]
    pairs = [(x, x.relu()) for x in here] + [(here[0], torch.zeros_like(here[0]))]
    on_cpu = affinity_scores(pairs)
    on_gpu = affinity_scores([(x.cuda(), y.cuda()) for x, y in pairs])
    for a, b in zip(on_cpu, on_gpu, strict=True):
        assert float(a) == pytest.approx(float(b), abs=1e-8)
        assert (a.coupling, a.n, a.d) == (b.coupling, b.n, b.d)


def test_gradients() -> None:
    x = torch.from_numpy(correlated(12, 4)).cuda().requires_grad_()
    y = x.detach().relu().requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: affinity(a, b), (x, y))


def test_two_devices_do_not_mix() -> None:
    x = torch.randn(5, 2)
    with pytest.raises(InputError, match="on one device, got cuda:0 and cpu"):
        affinity_score(x.cuda(), x)
    assert 0 <= float(affinity_score(x.cuda(), x.numpy())) <= 1
