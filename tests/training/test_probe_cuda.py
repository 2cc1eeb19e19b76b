from __future__ import annotations

import pytest
import torch
from torch import nn

from fathometer.training import Probe

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def trained(probed: bool, keep_on: str) -> tuple[list[torch.Tensor], Probe | None]:
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 8), nn.Tanh()]
    model = nn.Sequential(*layers).cuda()
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    held_out = torch.randn(256, 32)
    probe = Probe(model, held_out, every=2, max_overhead=None, keep_on=keep_on) if probed else None
    if probe is not None:
        probe.step(0)
    for step in range(1, 11):
        loss = (model(torch.randn(64, 32, device="cuda")) - 0.5).square().mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if probe is not None:
            probe.step(step, loss=loss)
    return [*(value.clone() for value in model.state_dict().values()), torch.cuda.get_rng_state()], probe


@pytest.mark.parametrize("keep_on", ["cpu", "cuda"])
def test_training_on_a_gpu_goes_on_as_without_a_probe(keep_on: str) -> None:
    without, _ = trained(False, keep_on)
    left, probe = trained(True, keep_on)
    assert all(torch.equal(one, other) for one, other in zip(left, without, strict=True))
    assert probe is not None
    assert probe.history.steps == (0, 2, 4, 6, 8, 10)
    assert list(probe.history.metric("loss").index) == list(range(1, 11))
    assert "cuda" in probe.history.soundings[0].provenance.device
