"""Every rule finds a fault that is planted in a trained network, and no error in the network itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import fathometer
from fathometer import Checkup, check
from fathometer.checking import rules
from fathometer.checking.evidence import Evidence
from fathometer.checking.rule import Hit, Rule, apply_rules
from fathometer.checking.weights import randomness
from tests.checking.digits import digits, network, trained


def rules_of(checkup: Checkup) -> list[str]:
    return [finding.rule for finding in checkup.findings]


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_a_healthy_network_has_no_error(activation: type[nn.Module]) -> None:
    found = check(trained(activation), digits())
    assert not found.at_least("error")
    assert not {"untrained", "inputs", "duplicates", "saturated", "rank"} & set(rules_of(found))


def kill_layer(net: Any) -> None:
    net[1].weight.zero_()
    net[1].bias.fill_(-1)


def kill_channels(net: Any) -> None:
    net[4].weight[:12] = 0
    net[4].bias[:12] = -1


def copy_channels(net: Any) -> None:
    for tensor in (net[3].weight, net[3].bias, *net[4].parameters(), net[4].running_mean, net[4].running_var):
        tensor[8:12] = tensor[:4].clone()


def saturate(net: Any) -> None:
    net[8].weight.mul_(100)


def explode(net: Any) -> None:
    net[8].weight.mul_(1e6)


def vanish(net: Any) -> None:
    for layer in (net[4], net[8]):
        layer.weight.mul_(1e-4)
        layer.bias.mul_(1e-8)


def collapse(net: Any) -> None:
    weight = net[8].weight
    weight.copy_(weight[:1] * torch.linspace(0.5, 2, len(weight))[:, None])
    net[8].bias.zero_()


def set_nan(net: Any) -> None:
    net[3].weight[0, 0, 0, 0] = torch.nan


def load_half(net: Any) -> None:
    torch.manual_seed(1)
    for layer in (net[3], net[4]):
        layer.reset_parameters()


def reset_norm(net: Any) -> None:
    net[4].reset_running_stats()


def shift_norm(net: Any) -> None:
    net[4].running_mean += 5 * net[4].running_var.sqrt()


def train_norm(net: Any) -> None:
    net[4].train()


def overflow(net: Any) -> None:
    for tensor in (net[4].weight, net[4].bias):
        tensor *= 1e7
    net[8].weight /= 1e7


def shuffle_classes(net: Any) -> None:
    net[-1].weight.copy_(net[-1].weight.roll(3, 0))
    net[-1].bias.copy_(net[-1].bias.roll(3, 0))


def lift(net: Any) -> None:
    net[8].bias += 20
    net[10].bias -= 20 * net[10].weight.sum(1)


@cache
def healthy_places() -> list[tuple[str, str]]:
    return [(each.rule, each.place) for each in check(trained(), digits()).findings]


FAULTS: list[tuple[Callable[[Any], None], str, str]] = [
    (kill_layer, "dead-layer", "2"),
    (kill_channels, "dead-channels", "5"),
    (copy_channels, "duplicates", "5"),
    (explode, "scale", "9"),
    (vanish, "scale", "5"),
    (collapse, "rank", "9"),
    (set_nan, "nonfinite", "3.weight"),
    (load_half, "partly-loaded", ""),
    (reset_norm, "batchnorm-statistics", "4"),
    (shift_norm, "batchnorm-drift", "4"),
    (train_norm, "training-mode", "4"),
    (overflow, "precision", "4"),
    (shuffle_classes, "chance", ""),
    (lift, "linear", "9"),
]


@pytest.mark.parametrize(("plant", "rule", "place"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_fault_is_found(plant: Callable[[Any], None], rule: str, place: str) -> None:
    net = trained()
    with torch.no_grad():
        plant(net)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = check(net, digits())
    assert (rule, place) in [(each.rule, each.place) for each in found.findings]
    assert (rule, place) not in healthy_places()
    errors = [each.rule for each in found.at_least("error")]
    assert not errors or rule in errors[:2] or rule in ("precision", "rank")
    after = net.state_dict()
    assert all(torch.equal(after[name], value) or value.isnan().any() for name, value in before.items())


def test_a_saturated_tanh_is_found() -> None:
    net = trained(nn.Tanh)
    with torch.no_grad():
        saturate(net)
    (finding,) = [each for each in check(net, digits()).findings if each.rule == "saturated"]
    assert finding.place == "9"
    assert finding.numbers["saturated"] > 0.5


def test_untrained_weights_are_recognised() -> None:
    assert "untrained" in rules_of(check(network(), digits()))
    assert "partly-loaded" not in rules_of(check(network(), digits()))
    for draw in (torch.randn, torch.rand):
        found = randomness(
            draw(200, 300, generator=torch.Generator().manual_seed(0)) - (draw is torch.rand) / 2
        )
        assert abs(found["rows"]) < 4
        assert abs(found["columns"]) < 4
        assert found["tails"] < 4
        assert 0.85 < found["spectrum"] < 1.06


INPUTS: list[tuple[Callable[[Tensor], Tensor], str]] = [
    (lambda x: 255 * x, "divide the images by 255"),
    (lambda x: x.flip(1), "reverse the order of the channels"),
    (lambda x: (x - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / 0.225, "between 0 and 1"),
]


@pytest.mark.parametrize(("change", "advice"), INPUTS, ids=["255", "bgr", "mean"])
def test_images_in_another_form_are_recognised(change: Callable[[Tensor], Tensor], advice: str) -> None:
    first = check(trained(), [(change(x), y) for x, y in digits()]).findings[0]
    assert first.rule == "inputs"
    assert advice in first.advice


def test_without_labels_the_first_batchnorm_shows_the_form_of_images() -> None:
    found = check(trained(), [255 * x for x, _ in digits()])
    assert found.findings[0].rule == "inputs"
    assert "chance" in found.skipped
    assert not check(trained(), [x for x, _ in digits()]).at_least("error")


def test_massive_tokens_are_noted() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    x = torch.randn(256, 8, 16)
    x[0, 0] = 1e3
    found = check(net, x, reduction="tokens", samples=2048)
    (finding,) = [each for each in found.findings if each.rule == "dominant-samples"]
    assert "tokens carry" in finding.sentence
    assert "massive-activations" in rules_of(found)


def test_gates_of_squeeze_and_excitation_are_no_signal_path() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.squeeze, self.excite = nn.Linear(8, 64), nn.Linear(64, 16), nn.Linear(16, 64)
            nn.init.constant_(self.squeeze.bias, -100)

        def forward(self, x: Tensor) -> Tensor:
            x = torch.relu(self.first(x))
            return x * torch.sigmoid(self.excite(torch.relu(self.squeeze(x))))

    torch.manual_seed(0)
    assert "dead-layer" not in rules_of(check(Gated(), torch.randn(256, 8)))


def test_a_rule_that_fails_is_reported_and_stops_nothing() -> None:
    def fail(evidence: Evidence) -> list[Hit]:
        raise ValueError(f"no such column in {type(evidence).__name__}")

    broken = Rule("broken", "error", ("sites",), fail, "", "")
    absent = Rule("absent", "error", ("sites.wombat",), fail, "", "")
    works = Rule("works", "note", (), lambda _: [Hit("a", "b")], "why", "advice")
    findings, skipped = apply_rules((broken, absent, works), Evidence(sites=pd.DataFrame({"d": [1]})))
    assert [finding.rule for finding in findings] == ["works"]
    assert skipped == {
        "broken": "the rule failed (ValueError: no such column in Evidence)",
        "absent": "needs the gauge wombat; the set check has all",
    }


def test_few_samples_give_no_dead_channels() -> None:
    net = trained()
    with torch.no_grad():
        kill_channels(net)
    assert "dead-channels" not in rules_of(check(net, digits(64)))


def test_every_rule_is_explained_and_named_once() -> None:
    names = [rule.name for rule in rules.RULES]
    assert len(set(names)) == len(names)
    assert all(rule.why.endswith(".") for rule in rules.RULES)
    assert all(rule.advice.endswith(".") for rule in rules.RULES if rule.name != "inputs")


def test_a_nan_that_comes_later_is_found() -> None:
    batches = digits()
    batches[-1][0][0, 0, 0, 0] = torch.nan
    found = check(trained(), batches)
    assert found.findings[0].rule == "nonfinite"
    assert "for some inputs" in found.findings[0].sentence
    assert "dead-layer" in found.skipped
    batches[-1][0][0, 0, 0, 0] = 0.0  # the data are shared by tests


def test_errors_about_the_input_stay_errors() -> None:
    with pytest.raises(fathometer.InputError):
        check(nn.Linear(3, 3), torch.randn(64, 3))  # no activation
    with pytest.raises(
        TypeError, match=r"check\(\) got an unexpected keyword argument 'sample'; did you mean"
    ):
        check(trained(), digits(), sample=3)


@pytest.mark.parametrize(("gain", "found"), [(1.4, False), (6.0, True)])
def test_random_weights_that_are_too_large_are_found_behind_layer_norm(gain: float, found: bool) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 64))
    for layer in (net[0], net[3]):
        nn.init.normal_(cast("nn.Linear", layer).weight, 0, gain / 8)
    rules = [each.rule for each in check(net, torch.randn(256, 64)).findings]
    assert ("scale" in rules) is found
