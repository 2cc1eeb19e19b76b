"""The residual path on a GPU, against the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fathometer import residual_path
from tests.residual.networks import Activated

pytestmark = pytest.mark.gpu


def test_gauges_match_the_cpu() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(Activated(48, act()) for act in (nn.ReLU, nn.GELU, nn.GELU, nn.PReLU))).double()
    data = torch.randn(256, 48, dtype=torch.float64)
    here, there = (residual_path(net, data, samples=128, device=device) for device in ("cpu", "cuda"))
    assert [site.name for site in here.sites] == [site.name for site in there.sites] == ["0", "1", "2", "3"]
    for gauge in here.gauges:
        assert there.mean(gauge).to_list() == pytest.approx(here.mean(gauge).to_list(), rel=1e-6), gauge
