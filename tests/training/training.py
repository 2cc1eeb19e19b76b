"""Small networks, and a loop that trains them with or without a probe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.training import Probe

WATCHED = torch.randn(48, 6, generator=torch.Generator().manual_seed(7))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 8), nn.Tanh())


class Noisy(nn.Module):
    """BatchNorm and dropout on images; and noise that is drawn in eval mode, too."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.RReLU(),
            nn.Dropout2d(0.2),
            nn.Conv2d(4, 4, 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x.reshape(-1, 1, 2, 3))
        return nn.functional.dropout(torch.sigmoid(y), 0.1, training=True).flatten(1)


def trained(
    build: Callable[[], nn.Module],
    steps: int,
    probe: Callable[[nn.Module], Probe] | None,
    *,
    autocast: bool = False,
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model,
) -> tuple[dict[str, Any], Probe | None]:
    """Everything that training leaves behind, and the probe."""
    torch.manual_seed(3)
    model = wrap(build())
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    watcher = None if probe is None else probe(model)
    with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
        if watcher is not None:
            watcher.step(0)
        for step in range(1, steps + 1):
            output = model(torch.randn(10, 6))
            loss = (output.float() - 1).square().mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            if watcher is not None:
                watcher.step(step, loss=loss)
    if watcher is not None:
        watcher.finish()
    assert all(module.training for module in model.modules())
    left = {f"weight {name}": value for name, value in model.state_dict().items()}
    for place, state in optimiser.state_dict()["state"].items():
        left |= {f"Adam {place} {name}": value for name, value in state.items()}
    return {**left, "random": torch.get_rng_state()}, watcher


def assert_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    different = [name for name in one if not torch.equal(torch.as_tensor(one[name]), other[name])]
    assert different == []
