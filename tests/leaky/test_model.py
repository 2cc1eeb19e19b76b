from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fathometer import measure
from fathometer.errors import InputError
from fathometer.leaky import LeakyResNet, custom_steps, equidistant, irregular, measure_path, path_through
from fathometer.leaky.steps import places, rebalanced


def test_the_layer_is_the_formula_of_section_3() -> None:
    net = LeakyResNet(4, 3, width=6, effective_depth=2.0, steps=irregular(5, 0.9), seed=3).double()
    x = torch.randn(7, 4, dtype=torch.float64)
    a = (net.input_map @ x.T).detach().numpy()
    for rho, weight in zip(net.steps.numpy(), net.weights.detach().numpy(), strict=True):
        image = np.vstack([np.maximum(a, 0), np.ones((1, 7))])
        a = (1 - rho * 2.0) * a + rho * weight @ image
    assert np.allclose(net(x).detach().numpy(), (net.output_map.detach().numpy() @ a).T, atol=1e-14)
    assert np.allclose(net.representations(x)[-1].detach().numpy(), a, atol=1e-14)


def test_depth_zero_is_a_plain_resnet_and_linear_networks_are_linear() -> None:
    net = LeakyResNet(3, 3, width=3, effective_depth=0.0, steps=4, sigma="identity", maps="identity").double()
    with torch.no_grad():
        net.weights[:, :, -1] = 0
    whole = torch.eye(3, dtype=torch.float64)
    for weight in net.weights.detach():
        whole = (torch.eye(3, dtype=torch.float64) + weight[:, :3] / 4) @ whole
    x = torch.randn(5, 3, dtype=torch.float64)
    assert torch.allclose(net(x), x @ whole.T, atol=1e-14)


def test_it_is_an_ordinary_module() -> None:
    net = LeakyResNet(4, 2, width=8, effective_depth=1.0, steps=3)
    twin = LeakyResNet(4, 2, width=8, effective_depth=1.0, steps=3, seed=9)
    assert not torch.equal(net.weights, twin.weights)
    twin.load_state_dict(net.state_dict())
    x = torch.randn(64, 4)
    assert torch.equal(net(x), twin(x))
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    nn.functional.mse_loss(net(x), torch.ones(64, 2)).backward()
    optimiser.step()
    assert not torch.equal(net.weights, twin.weights)
    assert "effective_depth=1" in repr(net)


def test_measuring_it_as_any_network_gives_the_numbers_of_its_path() -> None:
    net = LeakyResNet(10, 4, width=20, effective_depth=3.0, steps=4).double()
    x = torch.randn(200, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sounding = measure(net, x, samples=200, batch_size=32)
    assert [site.operator for site in sounding.sites] == ["relu"] * 4
    points = measure_path(path_through(net.representations(x))).points.iloc[:4]
    assert sounding.mean("affinity").to_list() == pytest.approx(points["affinity"].to_list(), abs=1e-9)
    assert sounding.mean("stable_rank_x").to_list() == pytest.approx(
        points["stable_rank"].to_list(), rel=1e-9
    )
    costs = points["cost_of_identity"].to_list()
    assert sounding.mean("cost_of_identity").to_list() == pytest.approx(costs, rel=1e-9)


def test_fixed_maps_do_not_learn() -> None:
    for maps, learned in (("learned", True), ("fixed", False), ("identity", False)):
        net = LeakyResNet(4, 2, width=8, effective_depth=1.0, steps=3, maps=maps)  # type: ignore[arg-type]
        assert net.input_map.requires_grad is learned
        assert net.output_map.requires_grad is learned
    assert torch.equal(net.input_map[:4], torch.eye(4))


def test_irregular_steps_sum_to_1_as_those_of_the_paper_do_for_even_layers_alone() -> None:
    for layers, a in ((1, 0.5), (6, 0.8), (7, 0.8)):
        place = np.arange(1, layers + 1) / layers
        steps = 1 / layers + a / layers * (0.25 - np.abs(place - 0.5))
        missing = 0 if layers % 2 == 0 else a / (4 * layers**2)
        assert steps.sum() == pytest.approx(1 - missing, abs=1e-14)
        assert np.allclose(irregular(layers, a).numpy(), steps / steps.sum(), atol=1e-15)
        assert places(irregular(layers, a))[-1].item() == pytest.approx(1, abs=1e-14)


def test_rebalancing_ends_where_all_moves_are_equal() -> None:
    speeds = torch.tensor([1.0, 4.0, 0.5, 2.0], dtype=torch.float64)  # moves are ρ · speed
    steps = equidistant(4)
    for _ in range(200):
        steps = rebalanced(steps, steps * speeds)
    moves = steps * speeds
    assert moves.max().item() == pytest.approx(moves.min().item(), rel=1e-9)
    assert torch.allclose(rebalanced(equidistant(4), equidistant(4) * speeds, 1.0), steps, rtol=1e-9)
    zero = torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    assert bool(rebalanced(equidistant(4), zero).isfinite().all())


def test_a_step_that_is_too_long_warns_with_the_reason() -> None:
    with pytest.warns(UserWarning, match="ρL̃ = 2 ≥ 1.*9 equidistant layers"):
        LeakyResNet(2, 2, width=3, effective_depth=8.0, steps=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 3, "maps": "identity"}, "identity maps need at least 4.*got 3"),
        ({"effective_depth": "deep"}, "effective_depth: expected a finite number from 0, got 'deep'"),
        ({"sigma": "softmax"}, "sigma: expected identity, an elementwise function of torch such as relu"),
        ({"steps": torch.tensor([0.5, -0.5, 3.0])}, r"steps: expected positive.*got \[0.5, -0.5, 3.0\]"),
        ({"steps": [0.5, 0.6]}, "steps: expected the sum 1, got 1.1; divide by it"),
        ({"steps": "three"}, "steps: expected positive numbers, one for each layer, got 'three'"),
    ],
)
def test_invalid_networks_are_refused(arguments: dict[str, object], message: str) -> None:
    usual: dict[str, object] = {"width": 8, "effective_depth": 1.0, "steps": 3}
    with pytest.raises(InputError, match=message):
        LeakyResNet(4, 4, **{**usual, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [list, tuple, torch.tensor])
def test_given_steps_are_kept_as_they_are(kind: Callable[[list[float]], Any]) -> None:
    net = LeakyResNet(4, 4, width=8, effective_depth=1.0, steps=kind([0.5, 0.25, 0.25]))
    assert net.steps.tolist() == [0.5, 0.25, 0.25]
    assert torch.equal(custom_steps(irregular(11, 0.3)), irregular(11, 0.3))
    assert custom_steps([0.5, 0.5 + 1e-7]).sum().item() == pytest.approx(1, abs=1e-15)
