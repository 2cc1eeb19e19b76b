"""Folded networks compute the same with fewer operations, and recovered ones more than before."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn.functional import relu
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import TensorDataset

from fathometer import InputError, linearize, recover
from fathometer.linearizing import ChannelMap, FullMap, SlopeMap, fold


class Residual(nn.Module):
    """Lines after a normalisation, after a sum, and before a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.second, self.act = nn.Conv2d(6, 6, 3, padding=1), nn.ReLU(inplace=True)
        self.third = nn.Conv2d(6, 6, 1)
        self.last = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = relu(self.norm(self.first(x)))
        x = x + self.act(self.third(self.act(self.second(x))))
        return self.last(relu(x.mean((2, 3)) - x.mean((1, 2, 3))[:, None]))


def mixer() -> nn.Module:
    return nn.Sequential(
        nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8), nn.Tanh(), nn.Linear(8, 3)
    )


def norm_last() -> nn.Module:
    """BatchNorm after the activation."""
    convolutions = nn.Conv2d(3, 6, 3), nn.ReLU(), nn.BatchNorm2d(6), nn.Conv2d(6, 6, 3)
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(24, 4))


def dropped() -> nn.Module:
    """Layers with dropout between them, after BatchNorm of a matrix."""
    hidden = nn.Linear(8, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 8), nn.Identity()
    return nn.Sequential(nn.BatchNorm1d(8), nn.Tanh(), *hidden, nn.Linear(8, 3)).eval()


def lines_in(network: fx.GraphModule) -> int:
    calls = [node.target for node in network.graph.nodes if node.op == "call_module"]
    return sum(isinstance(network.get_submodule(call), ChannelMap | SlopeMap | FullMap) for call in calls)


@pytest.mark.parametrize(
    ("make", "shape", "kind", "layers"),
    [
        (Residual, (9, 3, 6, 6), "channel", 3),  # the second convolution and that of 1 × 1 become one
        (Residual, (9, 3, 6, 6), "slope", 3),
        (Residual, (9, 3, 6, 6), "identity", 3),
        (mixer, (200, 8), "channel", 2),  # three linear layers become one
        (mixer, (200, 5, 8), "channel", 2),
        (mixer, (300, 8), "affine", 2),
        (norm_last, (9, 3, 6, 6), "channel", 3),
        (dropped, (200, 8), "channel", 2),
    ],
)
def test_a_folded_network_is_the_same_with_fewer_layers(
    make: Any, shape: tuple[int, ...], kind: Any, layers: int
) -> None:
    torch.manual_seed(0)
    network, x = make(), torch.randn(*shape)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.normal_(module.bias)
    straight = linearize(network, x, replacement=kind).eval()
    before = copy.deepcopy(straight.state_dict())
    folded = fold(straight, x[:4])
    with torch.no_grad():
        torch.testing.assert_close(folded(x), straight(x), rtol=1e-5, atol=1e-5)
    assert lines_in(folded) == 0
    weighted = [m for m in folded.modules() if isinstance(getattr(m, "weight", None), Tensor)]
    assert len(weighted) == layers
    assert sum(p.numel() for p in folded.parameters()) < sum(p.numel() for p in straight.parameters())
    assert all(
        torch.equal(a, b) for a, b in zip(before.values(), straight.state_dict().values(), strict=True)
    )


def test_weights_that_are_shared_are_not_scaled() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(8, 8)
    network, x = nn.Sequential(layer, nn.ReLU(), layer, nn.Tanh(), nn.Linear(8, 2)), torch.randn(100, 8)
    straight = linearize(network, x)
    folded = fold(straight, x)
    with torch.no_grad():
        torch.testing.assert_close(folded(x), straight(x))


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return relu(x) if x.sum() > 0 else relu(x) + 1


class Method(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu()


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (Branching(), "torch.fx cannot trace this network (TraceError"),
        (Method(), "torch.fx sees 0 of the 1 lines"),
    ],
)
def test_what_torch_fx_cannot_follow_is_refused_with_the_reason(network: nn.Module, words: str) -> None:
    x = torch.randn(20, 3)
    straight = linearize(network, x)
    with pytest.raises(InputError, match=re.escape(words)):
        fold(straight, x)
    with torch.no_grad():
        straight(x)  # a failed trace leaves nothing behind
    assert not torch._C._len_torch_function_stack()


def test_a_network_that_was_not_linearized_cannot_be_folded() -> None:
    with pytest.raises(InputError, match="expected a network that `linearize` returned"):
        fold(fx.symbolic_trace(mixer()), torch.randn(2, 8))


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("labels", [True, False])
def test_recovery_brings_the_outputs_back(labels: bool, autocast: bool) -> None:
    torch.manual_seed(0)
    layers = nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)
    teacher: Any = nn.Sequential(*layers).eval()
    with torch.no_grad():
        teacher[4].weight *= 8
    x = 2 * torch.randn(512, 6)
    with torch.no_grad():
        y = teacher(x).argmax(1)
    data = torch.utils.data.TensorDataset(x, y) if labels else x
    straight = linearize(teacher, x, sites="relu", replacement="identity")
    before = copy.deepcopy(teacher.state_dict())
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        losses = recover(straight, teacher, data, epochs=8, learning_rate=0.05, batch_size=64)
    assert len(losses) == 8
    assert losses[-1] < 0.7 * losses[0]
    assert all(torch.equal(a, b) for a, b in zip(before.values(), teacher.state_dict().values(), strict=True))
    assert not teacher.training
    with pytest.raises(InputError, match="expected data that can be read 3 times"):
        recover(straight, teacher, iter([x]), epochs=3)


def test_the_learning_rate_of_recovery_falls_in_every_step() -> None:
    network, x = mixer().eval(), torch.randn(256, 8)
    straight = linearize(network, x)
    rates: list[float] = []

    def note(optimizer: Any, *_: Any) -> None:
        rates.append(optimizer.param_groups[0]["lr"])

    handle = register_optimizer_step_pre_hook(note)
    recover(straight, network, x, epochs=1, batch_size=32, learning_rate=0.1)
    handle.remove()
    assert len(rates) == 8
    assert rates == sorted(set(rates), reverse=True)
    assert rates[0] == 0.1
    assert rates[-1] < 0.01


def test_a_line_that_is_not_along_the_features_of_a_linear_layer_stays() -> None:
    class Across(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.last = nn.Conv2d(3, 5, 1), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.conv(x)
            return self.last(relu(y)).mean((1, 2)) + y.mean()

    network, x = Across().eval(), torch.randn(9, 3, 6, 8)
    straight: Any = linearize(network, x)
    folded = fold(straight, x)
    assert lines_in(folded) == 1
    torch.testing.assert_close(folded(x), straight(x))


def test_a_linearized_teacher_of_a_network_that_is_not_is_refused() -> None:
    network, x = mixer().eval(), torch.randn(64, 8)
    with pytest.raises(InputError, match="recover\\(linearized, original, data\\)"):
        recover(network, linearize(network, x), x)


def test_a_regression_with_outputs_far_from_zero_is_recovered() -> None:
    torch.manual_seed(0)
    teacher: Any = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))
    with torch.no_grad():
        teacher[0].weight *= 4
        teacher[-1].bias += torch.tensor([0.0, 100.0, 200.0])
    x = torch.randn(513, 6)  # the last batch has one input
    y = teacher(x).detach()
    straight = linearize(teacher, TensorDataset(x, y), sites="1")
    before = (straight(x) - y).square().mean()
    recover(straight, teacher, TensorDataset(x, y), epochs=20)
    assert (straight(x) - y).square().mean() < 0.5 * before
    assert all(weight.grad is None for weight in straight.parameters())


def test_layers_that_are_called_by_keyword_are_folded() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm, self.drop = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout()
            self.last = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            return self.last(torch.relu(self.drop(input=self.norm(input=self.first(x)))))

    x = torch.randn(64, 8)
    straight = linearize(Named().eval(), x)
    assert lines_in(fold(straight, x)) == 0


def test_what_recovery_cannot_use_is_named() -> None:
    network, x = mixer().eval(), torch.randn(64, 8)
    straight = linearize(network, x)
    with pytest.raises(InputError, match="got none in epoch 1"):
        recover(straight, network, x[:0])
    with pytest.raises(InputError, match="labels go from -1 to 1"):
        recover(straight, network, TensorDataset(x, torch.arange(64) % 3 - 1))
    with pytest.warns(UserWarning, match="labels are not used: labels must be whole numbers"):
        recover(straight, network, TensorDataset(x, torch.rand(64)), epochs=1)


def test_labels_that_are_no_outputs_are_refused_in_recovery() -> None:
    network = mixer()
    straight = linearize(network, torch.randn(64, 8))
    with pytest.raises(InputError, match="labels go from 3 to 3, but the outputs from 0 to 2"):
        recover(straight, network, (torch.randn(64, 8), torch.full((64,), 3)), epochs=1)


def test_a_network_in_half_precision_is_not_folded() -> None:
    straight = linearize(mixer(), torch.randn(64, 8)).bfloat16()
    with pytest.raises(InputError, match="float32"):
        fold(straight, torch.randn(8, 8))


def test_recovery_takes_inputs_one_by_one_where_there_is_no_batch_norm() -> None:
    network, x = mixer().eval(), torch.randn(20, 8)
    assert len(recover(linearize(network, x), network, x, epochs=2, batch_size=1)) == 2
