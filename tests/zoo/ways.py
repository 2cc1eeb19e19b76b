"""Networks that are run in an unusual way, or change while they run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from tests.zoo.calls import Reused
from tests.zoo.entry import Awkward, Net
from tests.zoo.modules import Tables


def on_other_weights(network: nn.Module, x: Tensor) -> Any:
    weights = {name: 2 * value for name, value in network.state_dict().items()}
    return functional_call(network, weights, (x,))


def checkpointed(*, reentrant: bool) -> Net:
    def body(net: Any, x: Tensor) -> Tensor:
        return F.gelu(checkpoint(net.inner, x.clone().requires_grad_(), use_reentrant=reentrant))

    return Net(body, inner=Reused())


def replacing(network: Any, x: Tensor) -> Tensor:
    """Change the activation after every pass."""
    y: Tensor = network.act(network.linear(x))
    network.act = nn.Tanh() if isinstance(network.act, nn.ReLU) else nn.ReLU()
    return y


def threaded(network: Any, x: Tensor) -> Any:
    with ThreadPoolExecutor(1) as pool, torch.no_grad():
        left = pool.submit(network.left, x)
        return left.result().detach() + network.right(x)


def autocast(network: Any, x: Tensor) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return network.inner(x) + network.inner(x)


def frozen(network: Any, x: Tensor) -> Tensor:
    """Parts without gradients, in inference mode, and with a mode of the user's own."""
    with torch.no_grad():
        x = network.inner(x)
    with torch.inference_mode():
        y = torch.tanh(x)
    with Doubling():
        return torch.relu(x + y)


def layer(activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), activation)


class Doubling(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        return 2 * result if function is torch.relu else result


def hooked() -> nn.Module:
    """Hooks of the user's own: before and after, with keywords, that replace what comes in or out."""
    network = Reused()
    network.act.inplace = False

    def halved(_: Any, args: Any) -> Any:
        return (args[0] / 2,)

    def shifted(_: Any, args: Any, kwargs: Any) -> Any:
        return args, {"input": torch.sigmoid(kwargs["input"] if kwargs else args[0])} if kwargs else kwargs

    def activated(_: Any, __: Any, output: Tensor) -> Tensor:
        return torch.tanh(output)

    def counted(module: Any, _: Any, __: Any, output: Tensor | None) -> Tensor | None:
        module.calls = getattr(module, "calls", 0) + 1
        return None if output is None else output + 1  # none after an exception

    network.register_forward_pre_hook(halved)
    network.first.register_forward_pre_hook(shifted, with_kwargs=True)
    network.first.register_forward_hook(activated)
    network.second.register_forward_hook(counted, with_kwargs=True, always_call=True)
    network.act.register_forward_hook(lambda _, __, output: output * 2)
    return network


def doubled(_: Any, given: Any, __: Any) -> Any:
    return tuple(None if gradient is None else 2 * gradient for gradient in given)


def hooked_backward() -> nn.Module:
    network = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    for layer in network:
        layer.register_full_backward_pre_hook(lambda _, gradient: gradient)
        layer.register_full_backward_hook(doubled)
    return network


WAYS = {
    "functional_call": Awkward(
        "torch.func.functional_call, on other weights",
        Tables,
        ["/tanh", "/relu"],
        inputs=(8, 8),
        run=on_other_weights,
        trains=False,
        becomes="seen",
    ),
    "checkpointed": Awkward(
        "torch.utils.checkpoint",
        lambda: checkpointed(reentrant=False),
        ["inner.act", "inner.act#2", "/gelu"],
        becomes="seen once; what the backward pass runs again does not count",
    ),
    "checkpointed, reentrant": Awkward(
        "torch.utils.checkpoint, reentrant",
        lambda: checkpointed(reentrant=True),
        ["inner.act", "inner.act#2", "/gelu"],
        trains=False,
    ),
    "replacing": Awkward(
        "replaces its activation in forward",
        lambda: Net(replacing, linear=nn.Linear(8, 8), act=nn.ReLU()),
        ["act"],
        becomes="seen; the new one goes by the module around it until the watch ends",
    ),
    "threaded": Awkward(
        "a half that runs on another thread",
        lambda: Net(threaded, left=layer(nn.Tanh()), right=layer(nn.ReLU())),
        ["right.1"],
        trains=False,
        becomes="not seen",
    ),
    "autocast": Awkward(
        "torch.autocast in forward",
        lambda: Net(autocast, inner=Reused()),
        ["inner.act", "inner.act#2", "inner.act#3", "inner.act#4"],
    ),
    "frozen": Awkward(
        "no_grad, inference_mode and a mode of one's own",
        lambda: Net(frozen, inner=Reused()),
        ["inner.act", "inner.act#2", "/tanh", "/relu"],
        trains=False,
    ),
    "hooked": Awkward(
        "forward hooks of the user's own",
        hooked,
        ["/tanh", "act", "act#2"],
        becomes="what a hook calls is seen, too",
    ),
    "hooked backward": Awkward(
        "backward hooks of the user's own",
        hooked_backward,
        ["1"],
        inputs=lambda: (torch.randn(6, 8, requires_grad=True),),
    ),
}
