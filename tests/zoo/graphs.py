"""Networks that call `torch.vmap` and `torch.func`, or were traced, exported, scripted, compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import grad, vjp, vmap

from tests.zoo.calls import Reused, holding, in_place
from tests.zoo.entry import Awkward, Net


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.GELU())


def exported() -> nn.Module:
    network = torch.export.export(in_place().eval(), (torch.randn(6, 8),)).module()
    network.is_exported = True  # type: ignore[assignment]
    return network


def quietly(make: Any, *args: Any) -> Any:
    """Without warnings, such as that TorchScript is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args)


def bend(x: Tensor) -> Tensor:
    return torch.relu(x)


def compiling(network: Any, x: Tensor) -> Tensor:
    """Compile when it is run: a function, and a module that it does not keep."""
    y: Tensor = quietly(torch.compile(bend, backend="eager"), network.linear(x))
    result: Tensor = quietly(torch.compile(nn.ReLU(), backend="eager"), y - 0.1)
    return result


def compiled() -> nn.Module:
    network: nn.Module = torch.compile(Reused(), backend="eager")  # type: ignore[assignment]
    return network


def mapped(body: Callable[..., Tensor]) -> Net:
    """One layer and the weights of five more."""
    return Net(body, linear=nn.Linear(8, 8), five=nn.Parameter(torch.randn(5, 8, 8)))


def activated(network: Any, x: Tensor) -> Tensor:
    return torch.tanh(network.linear(x))


def differentiated(network: Any, x: Tensor) -> Tensor:
    value, backward, *_ = vjp(lambda a: activated(network, a), x)
    return grad(lambda a: activated(network, a).sum())(x) + backward(torch.ones_like(value))[0]


GRAPHS = {
    "mapped": Awkward(
        "torch.vmap in forward, around an activation",
        lambda: mapped(lambda net, x: vmap(lambda row: torch.tanh(net.linear(row)))(x)),
        [],
        refused="/tanh: expected a plain call, got one inside torch.vmap",
        becomes="refused",
    ),
    "mapped over weights": Awkward(
        "torch.vmap over weights",
        lambda: mapped(lambda net, x: vmap(lambda weight: torch.tanh(x @ weight))(net.five).sum(0)),
        [],
        refused="/tanh: expected a plain call, got one inside torch.vmap",
    ),
    "mapped from outside": Awkward(
        "run by torch.vmap as a whole",
        lambda: mapped(activated),
        [],
        run=lambda network, x: vmap(network)(x),
        refused="expected a plain call of the network, got one by torch.vmap",
        becomes="refused",
    ),
    "mapped elsewhere": Awkward(
        "torch.vmap in forward, without an activation in it",
        lambda: mapped(lambda net, x: torch.tanh(vmap(net.linear)(x))),
        ["/tanh"],
        becomes="seen",
    ),
    "differentiated": Awkward(
        "torch.func.grad and torch.func.vjp in forward",
        lambda: mapped(differentiated),
        ["/tanh", "/tanh#2"],
        becomes="seen",
    ),
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
        lambda: holding(torch.compile(bend, backend="eager")),
        ["/relu"],
        run=quietly,  # dynamo looks at what torch warns of
        becomes="seen: it runs as it was written",
    ),
    "compiled in forward": Awkward(
        "something is compiled in forward, for the first time",
        lambda: Net(compiling, linear=nn.Linear(8, 8)),
        ["/relu", "/relu#2"],
        becomes="seen: it runs as it was written",
    ),
    "scripted function": Awkward(
        "a function by torch.jit.script",
        lambda: holding(quietly(torch.jit.script, bend)),
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
