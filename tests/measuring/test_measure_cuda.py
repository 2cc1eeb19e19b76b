"""A GPU gives what a CPU gives. `pytest -m gpu` runs these where there is one."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from torch import nn

from fathometer import InputError, measure, similarity_map, watch
from fathometer.models import load_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.ReLU(),
        nn.Conv2d(16, 40, 3),
        nn.GELU(),
        nn.Conv2d(40, 40, 3),
        nn.SiLU(inplace=True),
    )


def test_every_gauge_agrees_with_the_cpu_in_double() -> None:
    model, x = small().double(), torch.randn(150, 3, 12, 12, dtype=torch.float64)
    here = measure(model, x, samples=50)
    there = measure(model, x, samples=50, device="cuda")
    pd.testing.assert_frame_equal(here.records, there.records, rtol=1e-8, atol=1e-8)
    assert there.provenance.device.startswith("cuda")
    assert next(model.parameters()).device.type == "cpu"


def test_similarity_maps_agree_with_the_cpu() -> None:
    one, other, x = small().double(), small().double(), torch.randn(600, 3, 12, 12, dtype=torch.float64)
    here = similarity_map(one, other, x, samples=300)
    there = similarity_map(one, other, x, samples=300, device="cuda")
    pd.testing.assert_frame_equal(here.values, there.values, rtol=1e-8, atol=1e-8)
    assert there.provenance.device.startswith("cuda")
    assert next(other.parameters()).device.type == "cpu"


@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "densenet121"])
def test_scores_agree_with_the_cpu_in_float32(name: str) -> None:
    torch.manual_seed(0)
    loaded = load_model(f"torchvision:{name}", "none")
    shape = loaded.inputs.shape if name == "vit_b_16" else (3, 64, 64)
    x = torch.randn(64, *shape)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    here = measure(loaded, x, samples=64, gauges="affinity").signature
    there = measure(loaded, x, samples=64, gauges="affinity", device="cuda").signature
    assert float((here - there).abs().max()) < 1e-6


def test_outputs_are_unchanged_on_the_gpu() -> None:
    torch.backends.cudnn.deterministic = True
    for name in ("vit_b_16", "resnet18"):
        model = load_model(f"torchvision:{name}", "none").module.cuda()
        x = torch.randn(4, 3, 224, 224, device="cuda")
        for dtype in (torch.float32, torch.bfloat16):
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=dtype != torch.float32):
                expected = model(x)
                with watch(model) as record:
                    output = model(x)
            assert torch.equal(output, expected)
            assert {pair.x.device.type for pair in record.pairs.values()} == {"cuda"}


def test_nan_names_the_site_on_the_gpu() -> None:
    model = small().cuda()
    with torch.no_grad():
        model[4].weight[0] = torch.nan  # type: ignore[index]
    with pytest.raises(InputError, match="5: affinity: x: expected finite values"):
        measure(model, torch.randn(64, 3, 12, 12), samples=64)
