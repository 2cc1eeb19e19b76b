"""Networks that another program has taken apart: traced, exported, scripted, compiled."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from tests.zoo.calls import Held, InPlace, Reused
from tests.zoo.entry import Awkward


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.GELU())


def exported() -> nn.Module:
    network = torch.export.export(InPlace().eval(), (torch.randn(6, 8),)).module()
    network.is_exported = True  # type: ignore[assignment]
    return network


def quietly(make: Any, *args: Any) -> Any:
    """Without warnings, such as that TorchScript is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args)


def bend(x: Tensor) -> Tensor:
    return torch.relu(x)


class Compiling(nn.Module):
    """Compiles when it is run: a function, and a module that it does not keep."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = quietly(torch.compile(bend, backend="eager"), self.linear(x))
        result: Tensor = quietly(torch.compile(nn.ReLU(), backend="eager"), y - 0.1)
        return result


def compiled() -> nn.Module:
    network: nn.Module = torch.compile(Reused(), backend="eager")  # type: ignore[assignment]
    return network


GRAPHS = {
    "traced by fx": Awkward("torch.fx.symbolic_trace", lambda: torch.fx.symbolic_trace(plain()), ["1", "3"]),
    "exported": Awkward(
        "torch.export",
        exported,
        ["/silu", "/hardswish"],
        becomes="seen, without the names of modules: `/relu`",
    ),
    "compiled": Awkward(
        "torch.compile", compiled, ["act", "act#2"], becomes="seen: it runs as it was written"
    ),
    "compiled part": Awkward(
        "a compiled module in one that is not",
        lambda: nn.Sequential(compiled(), nn.Tanh()),
        ["0.act", "0.act#2", "1"],
    ),
    "compiled function": Awkward(
        "a compiled function",
        lambda: Held(torch.compile(bend, backend="eager")),
        ["/relu"],
        run=quietly,  # dynamo looks at what torch warns of
        becomes="seen: it runs as it was written",
    ),
    "compiled in forward": Awkward(
        "something is compiled in forward, for the first time",
        Compiling,
        ["/relu", "/relu#2"],
        becomes="seen: it runs as it was written",
    ),
    "scripted function": Awkward(
        "a function by torch.jit.script",
        lambda: Held(quietly(torch.jit.script, bend)),
        [],
        hidden=1,
        becomes="not seen",
    ),
    "scripted": Awkward(
        "torch.jit.script",
        lambda: quietly(torch.jit.script, plain()),
        [],
        refused="ScriptModule",
        becomes="refused",
    ),
    "traced": Awkward(
        "torch.jit.trace",
        lambda: nn.Sequential(quietly(torch.jit.trace, plain(), torch.randn(6, 8))),
        [],
        refused="module '0' is a ScriptModule",
        becomes="refused",
    ),
}
