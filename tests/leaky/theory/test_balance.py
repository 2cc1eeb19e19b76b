"""Proposition 9 on exact flows, on networks that are critical to rounding, and on a trained one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fathometer.errors import NumericalError
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import path_of
from fathometer.leaky.steps import irregular
from fathometer.leaky.theory import balancedness, bias_balance, norm_growth, solved_path
from papers.leaky.instances import drawn


@pytest.mark.parametrize("steps", [40, irregular(100, 0.8)])
def test_both_balances_are_exact_at_a_critical_point(steps: int | torch.Tensor) -> None:
    path = solved_path(drawn(0, 6, 10), drawn(1, 6, 10, scale=0.1), 2.0, steps)
    for found in balancedness(path):
        assert found.holds
        assert found.error < 1e-12
    with pytest.raises(NumericalError, match="use smaller steps or momenta"):
        solved_path(drawn(0, 6, 10), drawn(1, 6, 10, scale=10.0), 2.0, 4)


def test_the_factor_is_2_for_the_flow_and_converges_at_first_order() -> None:
    start, momentum = drawn(0, 6, 10), drawn(1, 6, 10, scale=0.1)
    factors = [
        norm_growth(solved_path(start, momentum, 2.0, steps)).details["factor_with_drift"]
        for steps in (100, 200, 400)
    ]
    gaps = [2 - factor for factor in factors]
    assert gaps[2] == pytest.approx(0, abs=0.01)
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(2, rel=0.1)


def test_a_fully_connected_network_has_the_factor_1() -> None:
    """ρL̃ = 1, a linear network that L-BFGS brings to a critical point; its norms grow as the paper has it."""
    with pytest.warns(UserWarning, match="ρL̃ = 1"):
        net = LeakyResNet(3, 3, width=3, effective_depth=4.0, steps=4, sigma="identity", maps="identity")
    net = net.double()
    x = drawn(0, 20, 3)
    y = x @ drawn(1, 3, 3) + 1

    def closure() -> torch.Tensor:
        newton.zero_grad()
        loss = (net(x) - y).square().mean() + 0.05 / 8 * net.weights.square().sum() / 4
        loss.backward()
        return loss

    newton = torch.optim.LBFGS(
        [net.weights], max_iter=2000, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
    )
    newton.step(closure)
    found = norm_growth(path_of(net, x, y, 0.05))
    assert found.details["factor"] == pytest.approx(2, abs=1e-4)
    assert found.details["factor_with_drift"] == pytest.approx(1, abs=1e-4)


def test_without_biases_both_sides_are_0() -> None:
    """Data that are symmetric about 0 leave a linear network without biases at a critical point."""
    half, push = drawn(0, 5, 4), drawn(1, 5, 4, scale=0.05)
    path = solved_path(torch.cat([half, -half], 1), torch.cat([push, -push], 1), 1.0, 20, "identity")
    assert path.weights is not None
    assert path.weights[..., -1].abs().max() < 1e-15
    exactly = path.weights.clone()
    exactly[..., -1] = 0
    for bare in (path, replace(path, weights=exactly)):
        for found in (bias_balance(bare), norm_growth(bare)):
            assert found.holds, found
            assert found.error < 1e-12
            assert "zero" in found.note
        assert norm_growth(bare).left == pytest.approx(0, abs=1e-12)
        assert "factor" not in norm_growth(bare).details


def test_without_biases_weights_can_still_be_off() -> None:
    net = LeakyResNet(6, 6, width=12, effective_depth=4.0, steps=12).double()
    with torch.no_grad():
        net.weights.mul_(torch.linspace(0.5, 1.5, 12)[:, None, None])
    x = drawn(0, 40, 6)
    found = balancedness(path_of(net, x, x.flip(1), 0.075))
    assert [statement.holds for statement in found] == [True, False, False]
