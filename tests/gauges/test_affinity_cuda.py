"""On a GPU: the same numbers as on the CPU. `tests/testing` checks values and derivatives of all gauges."""

from __future__ import annotations

import pytest
import torch

from fathometer import affinity_score, affinity_scores
from fathometer.errors import InputError
from tests.data import correlated

pytestmark = pytest.mark.gpu


def test_pairs_of_many_widths_agree_with_the_cpu() -> None:
    shapes = [(64, 5), (64, 100), (64, 300), (64, 128), (32, 5), (64, 700)]
    here = [torch.from_numpy(correlated(n, d, seed)) for seed, (n, d) in enumerate(shapes)]
    pairs = [(x, x.relu()) for x in here] + [(here[0], torch.zeros_like(here[0]))]
    pairs += [(x, x.square()) for x in here]
    on_cpu = affinity_scores(pairs)
    on_gpu = affinity_scores([(x.cuda(), y.cuda()) for x, y in pairs])
    for a, b in zip(on_cpu, on_gpu, strict=True):
        assert float(a) == pytest.approx(float(b), abs=1e-8)
        assert (a.coupling, a.n, a.d) == (b.coupling, b.n, b.d)


def test_a_pair_is_on_one_device() -> None:
    x = torch.randn(5, 2)
    mixed = [(x.cuda(), x.cuda().relu()), (x, x.relu())]
    assert float(affinity_scores(mixed)[0]) == pytest.approx(float(affinity_scores(mixed)[1]))
    with pytest.raises(InputError, match="on one device, got cuda:0 and cpu"):
        affinity_score(x.cuda(), x)
    assert 0 <= float(affinity_score(x.cuda(), x.numpy())) <= 1
