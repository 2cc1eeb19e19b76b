"""The front door: kinds of maps, criteria, budgets, resuming, and what is refused."""

from __future__ import annotations

import copy
import math
import re
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score
from torch import Tensor, nn
from torch.nn.functional import relu
from torch.utils.data import TensorDataset

import fathometer
from benchmarks.linearize_criteria import fisher_costs
from fathometer import FathometerError, ForwardError, InputError, Linearized, linearize
from fathometer.linearizing import ChannelMap, site_costs
from fathometer.linearizing.choose import Choice, divergence_with, exceeds
from fathometer.linearizing.linearize import prepared
from fathometer.linearizing.trial import Trial
from fathometer.models import ensure_torchvision_operators
from fathometer.progress import show_nothing


class Small(nn.Module):
    """A residual network with a function, a method, a module that is reused, and BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.last = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = relu(self.norm(self.first(x)))
        x = x + self.act(self.second(x))
        x = self.act(x - 0.2)
        return self.last(x.mean((2, 3)))


SITES = ["/relu", "act", "act#2"]


def made() -> tuple[Any, Tensor, Tensor]:
    torch.manual_seed(0)
    network: Any = Small()
    x = torch.randn(64, 3, 6, 6)
    network.train()
    for _ in range(20):
        network(x)  # so that running means are those of the data
    network.eval()
    with torch.no_grad():
        outputs = network(x)
        network.last.bias -= outputs.mean(0)  # so that all four classes are predicted
        network.last.weight.mul_(20)
        network.last.bias.mul_(20)
    return network, x, network(x).argmax(1)


def result_of(network: Any) -> Linearized:
    found: Any = network.linearized
    assert isinstance(found, Linearized)
    return found


def by_hand(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Least squares of each channel over all positions, by NumPy."""
    rows = [side.movedim(1, 0).flatten(1).double().numpy() for side in (x, y)]
    fits = [np.polyfit(a, b, 1) for a, b in zip(*rows, strict=True)]
    return torch.tensor([fit[0] for fit in fits]), torch.tensor([fit[1] for fit in fits])


def test_lines_are_the_least_squares_fit_of_each_channel_and_the_network_is_that_written_by_hand() -> None:
    network, x, _ = made()
    before = copy.deepcopy(network.state_dict())
    found: Any = linearize(network, x, sites="/relu", batch_size=20)
    found.norm.load_state_dict(network.norm.state_dict())  # which was recalibrated
    with torch.no_grad():
        inner = network.norm(network.first(x))
        slope, intercept = by_hand(inner, relu(inner))
        line = found.linear_maps["relu_1"]
        torch.testing.assert_close(line.slope.double(), slope, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(line.intercept.double(), intercept, rtol=1e-4, atol=1e-5)
        hidden = line.slope.view(-1, 1, 1) * inner + line.intercept.view(-1, 1, 1)
        hidden = hidden + relu(network.second(hidden))
        expected = network.last(relu(hidden - 0.2).mean((2, 3)))
        torch.testing.assert_close(found(x), expected)
    assert all(torch.equal(a, b) for a, b in zip(before.values(), network.state_dict().values(), strict=True))
    assert not network._forward_pre_hooks
    assert result_of(found).replaced == ("/relu",)
    assert type(found) is Small


def test_a_later_line_is_fitted_from_what_it_gets_now_to_what_the_original_call_gave() -> None:
    network, x, _ = made()
    with prepared(network, x.split(20), sites=["/relu", "act"]) as (device, copied, replacer):
        trial, slots = Trial(copied, x, x.split(20), device), replacer.slots
        choice = Choice(slots, trial, trial, "channel")
        choice.fit()
        for slot in slots:
            slot.replacement = choice.maps[slot]
        choice._fit_in_order(0, show_nothing)
        first, later = (cast("ChannelMap", slot.replacement) for slot in slots)
    with torch.no_grad():
        inner = network.norm(network.first(x))
        straight = first.slope.view(-1, 1, 1) * inner + first.intercept.view(-1, 1, 1)
        slope, intercept = by_hand(network.second(straight), relu(network.second(relu(inner))))
    torch.testing.assert_close(later.slope.double(), slope, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(later.intercept.double(), intercept, rtol=1e-4, atol=1e-5)


def test_a_linearized_network_trains_saves_its_state_and_can_be_exported() -> None:
    network, x, y = made()
    found = linearize(network, x, budget=2)
    found.train()
    nn.functional.cross_entropy(found(x), y).backward()
    lines = [weight for name, weight in found.named_parameters() if "linear_maps" in name]
    assert len(lines) == 4
    assert all(line.grad is not None for line in lines)
    found.eval()
    again = linearize(network, x[:8], sites=list(result_of(found).replaced))
    again.load_state_dict(found.state_dict())
    with torch.no_grad():
        assert torch.equal(again(x), found(x))
        exported = torch.export.export(found, (x[:4],)).module()
        torch.testing.assert_close(exported(x[:4]), found(x[:4]))
        assert torch.equal(copy.deepcopy(found)(x), found(x))


@pytest.mark.parametrize(("first", "second"), [*permutations(SITES, 2)])
def test_what_is_left_of_a_linearized_network_can_be_replaced(first: str, second: str) -> None:
    network, x, _ = made()
    at_once = linearize(network, x, sites=[first, second], replacement="identity")
    once = linearize(network, x, sites=first, replacement="identity")
    twice = linearize(once, x, sites=second, replacement="identity")
    assert torch.equal(twice(x), at_once(x))
    assert twice.state_dict().keys() == at_once.state_dict().keys()
    assert result_of(twice).replaced == (second,)
    assert len(result_of(linearize(twice, x)).sites) == 1
    assert torch.equal(once(x), linearize(network, x, sites=first, replacement="identity")(x))


def test_modules_are_replaced_one_call_after_the_other() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)))
    x = torch.randn(80, 8)
    once: Any = linearize(network, x, sites="module:0", replacement="affine")
    fathometer.recover(once, network, x, epochs=1)
    twice: Any = linearize(once, x, sites="module:[012]", replacement="affine", budget=1)
    assert list(twice[0].state_dict()) == list(once[0].state_dict())
    with torch.no_grad():
        assert torch.equal(twice[0](x), once[0](x))
    assert [site.name for site in result_of(twice).sites] == ["1", "2"]
    chosen = {f"module:{site}" for site in ("0", *result_of(twice).replaced)}
    at_once = linearize(network, x, sites=chosen, replacement="affine")
    assert at_once.state_dict().keys() == twice.state_dict().keys()
    inner = linearize(network, x, sites="1.1")
    with pytest.raises(InputError, match=r"1\.1 cannot be replaced: it is inside 1, which"):
        linearize(inner, x, sites="module:1", replacement="affine")


def test_gauges_are_those_of_the_sites_that_are_left() -> None:
    network, x, _ = made()
    network.norm = nn.Identity()  # there is nothing to recalibrate
    every = site_costs(network, x, "affinity", replacement="identity")
    once = linearize(network, x, sites="act", replacement="identity")
    left = site_costs(once, x, "affinity", replacement="identity")
    assert list(left.index) == ["/relu", "act#2"]
    assert left["affinity"]["/relu"] == every["affinity"]["/relu"]
    by_hand: Any = copy.deepcopy(network)
    by_hand.act = ActsTheSecondTime()
    expected = site_costs(by_hand, x, "affinity", activations=[ActsTheSecondTime], replacement="identity")
    assert left["affinity"]["act#2"] == pytest.approx(expected["affinity"].iloc[-1], rel=1e-5)


class ActsTheSecondTime(nn.Module):
    """The identity when it is called first, in each pass, then a ReLU."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return relu(x) if self.calls % 2 == 0 else x * 1


def test_own_activations_need_not_be_named_again() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 4), Squares(), nn.Linear(4, 4), Squares())
    x = torch.randn(50, 4)
    once = linearize(network, x, sites="1", activations=[Squares])
    twice = linearize(once, x)
    assert result_of(twice).replaced == ("3",)
    assert set(once.state_dict()) < set(twice.state_dict())


class Squares(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x.abs()


def test_an_activation_inside_another_one_is_not_moved() -> None:
    network = Swishes()
    x = torch.randn(60, 6)
    once = linearize(network, x, sites="/sigmoid#2")
    with pytest.raises(InputError, match="/sigmoid#2, which was replaced before, is inside one of these"):
        linearize(once, x, activations=[swish], sites="/swish")


def swish(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


class Swishes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(swish(torch.sigmoid(self.first(x))))


def test_a_network_with_a_linearized_part_is_refused() -> None:
    part = linearize(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.ReLU()), torch.randn(50, 4), budget=1)
    with pytest.raises(InputError, match="model: its part 0 was linearized before"):
        linearize(nn.Sequential(part, nn.Tanh()), torch.randn(50, 4))


def test_layers_with_attention_are_replaced_one_after_the_other() -> None:
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)]
    network = nn.Sequential(*layers, nn.Linear(8, 3)).eval()
    x = torch.randn(40, 5, 8)
    once = linearize(network, x, budget=1, replacement="identity")
    assert len(fathometer.measure(once, x, samples=40).sites) == 1
    twice = linearize(once, x, replacement="identity")
    assert torch.equal(twice(x), linearize(network, x, replacement="identity")(x))
    assert torch._C._is_torch_function_enabled()  # nothing hides functions from later measurements


def test_a_teacher_with_other_outputs_is_refused() -> None:
    network, x, _ = made()
    with pytest.raises(
        InputError, match=r"teacher: expected the network that was linearized, with outputs \[64, 4\], got"
    ):
        fathometer.recover(linearize(network, x), nn.Sequential(nn.Flatten(), nn.Linear(108, 7)), [x])


def test_names_of_calls_stand_for_these_alone_even_if_some_are_replaced() -> None:
    network, x, _ = made()
    once = linearize(network, x, sites="act")
    assert result_of(linearize(once, x, sites=["act", "/relu"])).replaced == ("/relu",)


@pytest.mark.parametrize("kind", ["channel", "slope", "identity", "affine"])
def test_kinds_of_maps(kind: Any) -> None:
    network, x, _ = made()
    found: Any = linearize(network, x, sites="act", replacement=kind)
    found.norm.load_state_dict(network.norm.state_dict())  # which was recalibrated
    with torch.no_grad():
        inner = network.second(h := relu(network.norm(network.first(x))))
        rows = inner.movedim(1, -1).flatten(0, -2).double()
        wanted = relu(rows)
        if kind == "identity":
            middle = rows
        elif kind == "slope":
            middle = rows * (rows * wanted).sum() / rows.square().sum()
        elif kind == "affine":
            ones = torch.cat([rows, torch.ones(len(rows), 1)], 1)
            middle = ones @ torch.linalg.lstsq(ones, wanted).solution
        else:
            slope, intercept = by_hand(inner, relu(inner))
            middle = rows * slope + intercept
        hidden = middle.unflatten(0, (64, 6, 6)).movedim(-1, 1).float()
        expected = network.last(relu(h + hidden - 0.2).mean((2, 3)))
        tolerance = 2e-3 if kind == "affine" else 1e-5  # a ridge shrinks the map a little
        torch.testing.assert_close(found(x), expected, rtol=tolerance, atol=tolerance)
        r2 = r2_score(wanted, middle, multioutput="variance_weighted")
        assert found.linearized.table["r2"]["act"] == pytest.approx(r2, abs=1e-4)


def test_a_site_without_a_gradient_has_no_cost_by_gradients() -> None:
    net = nn.Sequential(nn.ReLU(), nn.Linear(8, 3))  # nothing before the ReLU has weights
    with pytest.raises(InputError, match=re.escape("no gradient reaches it, so taylor does not know")):
        linearize(net, torch.randn(64, 8), budget=1, criterion="taylor")


def test_a_whole_module_becomes_an_affine_map_without_its_weights() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 5)),
        nn.Linear(5, 3),
    )
    x = torch.randn(300, 8)
    found = linearize(net, x, sites="module:0", replacement="affine")
    assert sum(p.numel() for p in found.parameters()) == 8 * 5 + 5 + 5 * 3 + 3
    assert result_of(found).curve["flops"].to_list() == [2 * (8 * 32 + 32 * 5 + 15), 2 * (8 * 5 + 15)]
    assert result_of(found).table["r2"].item() > 0.7
    with pytest.raises(InputError, match="its width changes from 8 to 5; only replacement='affine'"):
        linearize(net, x, sites="module:0")
    with pytest.raises(InputError, match=r"expected more than 8 positions .* got 8; give more data"):
        linearize(net, x[:8], sites="module:0", replacement="affine")


def test_an_affine_map_does_not_depend_on_the_scale_of_its_inputs() -> None:
    torch.manual_seed(0)
    block = nn.Linear(16, 16)
    with torch.no_grad():
        block.weight[:, 0] /= 1e4
    net = nn.Sequential(nn.Sequential(block), nn.Linear(16, 3))
    x = torch.randn(300, 16)
    x[:, 0] *= 1e4
    found = result_of(linearize(net, x, sites="module:0", replacement="affine"))
    assert found.table["r2"].item() > 0.999


class Children(nn.Module):
    """Runs whatever modules it has, in a function of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def run_all(self, x: Any) -> Any:
        for child in self.children():
            x = torch.relu(child(x))
        return x

    def forward(self, x: Any) -> Any:
        return self.run_all(x)


def test_a_network_that_cannot_run_with_its_maps_is_refused() -> None:
    with pytest.raises(InputError, match="with its maps in place, the network failed"):
        linearize(nn.Sequential(Children(), nn.Linear(4, 2)), torch.randn(32, 4))


def test_the_cost_by_gradients_is_that_of_inputs_whatever_the_shape_of_the_site() -> None:
    torch.manual_seed(0)
    first, last = nn.Linear(6, 6), nn.Linear(6, 3)

    class Tokens(nn.Module):
        def __init__(self, *, flat: bool) -> None:
            super().__init__()
            self.first, self.last, self.flat = first, last, flat

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            x = torch.relu(x.flatten(0, 1)).view(x.shape) if self.flat else torch.relu(x)
            return self.last(x).mean(1)

    x = torch.randn(40, 5, 6)
    costs = [site_costs(Tokens(flat=flat), x, "kl, taylor")["taylor"].item() for flat in (False, True)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-5)


@pytest.mark.parametrize(
    "criterion",
    [
        *("greedy-kl", "kl", "quick-kl", "taylor", "random", "depth"),
        *("affinity", "r2_heldout", "-sparsity_change", lambda site: site.order),
    ],
)
def test_criteria_choose_a_site(criterion: Any) -> None:
    network, x, y = made()
    found = result_of(linearize(network, [(x, y)], budget=2, criterion=criterion))
    assert len(found.replaced) == 2
    costs = found.table["cost"]
    assert found.replaced[0] == costs.idxmin()
    if criterion == "depth":
        assert found.replaced == ("act#2", "act")
    if callable(criterion):
        assert found.replaced == ("/relu", "act")


def test_kl_is_the_measured_divergence() -> None:
    network, x, _ = made()
    table = site_costs(network, x, ["kl"], batch_size=64)
    for site in SITES:
        with torch.no_grad():
            changed: Any = linearize(network, x, sites=site)
            changed.norm.load_state_dict(network.norm.state_dict())  # which was recalibrated
            p, q = network(x).log_softmax(-1), changed(x).log_softmax(-1)
        assert table.loc[site, "kl"] == pytest.approx(float((p.exp() * (p - q)).sum(1).mean()), rel=1e-3)


def test_quick_kl_is_measured_where_the_original_network_is_least_certain() -> None:
    torch.manual_seed(0)
    layers = [layer for _ in range(12) for layer in (nn.Linear(5, 5), nn.Tanh())]
    network, x = nn.Sequential(*layers, nn.Linear(5, 3)).eval(), torch.randn(200, 5)
    for weight in list(network.parameters())[:-2:2]:
        nn.init.orthogonal_(weight, gain=1.5)
    table = site_costs(network, x, ["quick-kl"], batch_size=70)
    with torch.no_grad():
        p = network(x).log_softmax(-1)
        few = (-p.exp() * p).sum(1).topk(3 * 200 // 12).indices
        for site in ("1", "13", "23"):
            q = linearize(network, x, sites=site)(x).log_softmax(-1)
            wanted = float((p.exp() * (p - q))[few].sum(1).mean())
            assert table.loc[site, "quick-kl"] == pytest.approx(wanted, rel=1e-3)


def test_fisher_of_the_benchmark_is_twice_the_divergence_of_a_small_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.linearize_criteria.TEMPERATURE", 1.0)
    torch.manual_seed(0)
    network, x = nn.Sequential(nn.Linear(4, 6), nn.Identity(), nn.Linear(6, 3)), torch.randn(2000, 4)
    small = ChannelMap(torch.linspace(0.99, 1.01, 6), torch.zeros(6), -1)
    with prepared(network, [x], sites="module:1") as (device, copied, replacer):
        trial, (slot,) = Trial(copied, x, [x], device), replacer.slots
        costs = [fisher_costs(trial, {slot: small}, seed)[slot] for seed in range(8)]
        slot.replacement = small
        divergence = trial.score().divergence
    assert np.mean(costs) == pytest.approx(2 * divergence, rel=0.05)


@pytest.mark.parametrize(("budget", "replaced"), [(1, 1), ("2 sites", 2), ("67%", 2), ("100%", 3)])
def test_budgets_of_sites(budget: Any, replaced: int) -> None:
    network, x, _ = made()
    found = result_of(linearize(network, x, budget=budget, criterion="depth"))
    assert len(found.replaced) == replaced == found.curve["replaced"].iloc[-1]


@pytest.mark.parametrize("criterion", ["kl", "greedy-kl", "taylor"])
def test_with_a_budget_of_elements_costs_are_those_of_each_element(criterion: str) -> None:
    torch.manual_seed(0)
    layers = nn.Linear(4, 400), nn.ReLU(), nn.Linear(400, 4), nn.Tanh(), nn.Linear(4, 3)
    network, x = nn.Sequential(*layers).eval(), torch.randn(300, 4)
    costs = site_costs(network, x, [criterion])[criterion]
    assert costs["3"] < costs["1"] < 100 * costs["3"]
    for budget, first in ((1, "3"), ("100 elements", "1")):
        assert result_of(linearize(network, x, budget=budget, criterion=criterion)).replaced == (first,)


def test_budgets_of_elements_and_points() -> None:
    network, x, y = made()
    found = result_of(linearize(network, x, budget="0.3k elements", criterion="depth"))
    assert found.curve["elements"].to_list() == [648, 432, 216]
    free = result_of(linearize(network, [(x, y)], budget="100 points"))
    assert len(free.replaced) == 3
    assert free.curve["accuracy"].iloc[0] == 1
    worst = 100 * (1 - free.curve["accuracy"].iloc[-1])
    assert worst > 0
    strict = linearize(network, [(x, y)], budget=f"{worst - 0.1:.2f} points")
    kept = result_of(strict)
    assert 0 < len(kept.replaced) < 3
    with torch.no_grad():  # the step that was too much is undone, also in BatchNorm
        accuracy = float((strict(x).argmax(1) == y).float().mean())
    assert accuracy == pytest.approx(kept.curve["accuracy"].iloc[-1])
    with pytest.warns(UserWarning, match="nothing is replaced: .* costs more than the budget"):
        assert not result_of(linearize(network, [(x, y)], budget="0 points", criterion="-affinity")).replaced
    unlabelled = result_of(linearize(network, x, budget="100 points"))
    assert unlabelled.curve["agreement"].iloc[0] == 1


@pytest.mark.parametrize("stop_at", [1, 2])
def test_an_interrupted_run_resumes_to_the_same_network(stop_at: int, tmp_path: Path) -> None:
    network, x, _ = made()
    whole = linearize(network, x, budget=3)
    journal = tmp_path / "steps"

    def stop(replaced: int, _: int | None) -> None:
        if replaced == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        linearize(network, x, budget=3, journal=journal, progress=stop)
    assert len(journal.read_text("utf-8").splitlines()) == 2 + stop_at  # identity, original network, steps
    resumed = linearize(network, x, budget=3, journal=journal)
    columns = ["replaced", "site", "divergence", "elements"]
    assert result_of(resumed).curve[columns].equals(result_of(whole).curve[columns])
    assert result_of(resumed).table.equals(result_of(whole).table)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], value, rtol=0, atol=0)
    with pytest.raises(InputError, match=r"other budget"):
        linearize(network, x, budget=2, journal=journal)


def test_a_result_is_saved_loaded_plotted_and_reported(tmp_path: Path) -> None:
    network, x, y = made()
    found = result_of(linearize(network, [(x, y)], budget=2, test=[(x[:32], y[:32])]))
    found.save(tmp_path / "net.json")
    again = fathometer.load(tmp_path / "net.json")
    assert isinstance(again, Linearized)
    assert again.curve.equals(found.curve)
    assert again.table.equals(found.table)
    assert again.outcome == found.outcome
    assert found.plot().axes[0].get_ylabel() == "accuracy"
    page = fathometer.write_report(found, tmp_path / "net.html").read_text("utf-8")
    assert "2 of 3 sites replaced" in page
    text = (tmp_path / "net.json").read_text("utf-8").replace('"site": "act#2"', '"site": "other"')
    (tmp_path / "bad.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match="broken"):
        fathometer.load(tmp_path / "bad.json")


def test_a_result_without_costs_or_agreement_is_saved_and_loaded(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    found = result_of(linearize(net, torch.randn(64, 4)))  # one output, no budget: both are NaN
    again = fathometer.load(found.save(tmp_path / "net.json"))
    assert isinstance(again, Linearized)
    assert again.curve.equals(found.curve)
    assert again.table.equals(found.table)


def test_the_measure_of_divergence_is_that_of_the_test_data() -> None:
    network, x, y = made()
    test = TensorDataset(x, y.float())
    with pytest.warns(UserWarning, match="labels must be whole numbers"):
        found = result_of(linearize(network, TensorDataset(x, y), sites="act", test=test))
    assert found.divergence_name == "squared error / variance"


def test_mistakes_are_named_by_the_argument_that_has_them() -> None:
    network, x, y = made()
    with pytest.raises(InputError, match=r"^test: expected at least 2 inputs"):
        linearize(network, x, test=x[:0])
    with pytest.raises(ForwardError, match=r"the network failed on its input"):
        site_costs(network, x[:, :1])
    assert {"r2", "r2 (gauge)"} <= set(site_costs(network, [(x, y)], "kl,r2"))


def test_points_are_not_counted_with_labels_that_do_not_fit() -> None:
    network, x, y = made()
    for labels, why in ((y + 5, "the labels go from 5 to"), (y.float(), "labels must be whole numbers")):
        with pytest.raises(InputError, match=f"points of accuracy cannot be counted: {why}"):
            linearize(network, TensorDataset(x, labels), budget="1 points")


class Broken(nn.Module):
    """Finite with a ReLU, and not without one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return (relu(self.linear(x)) + 1e-9).sqrt()


class Tuples(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sites": "layer9.*"}, "no call matches 'layer9.*'"),
        ({"budget": 9}, "expected at most 3, the number of sites, got 9"),
        ({"budget": "1m elements"}, "expected fewer elements than the 648"),
        ({"budget": "some"}, "expected a number of sites"),
        ({"budget": 0.25}, "a share is written '25%'"),
        ({"criterion": 3}, "a gauge such as affinity, or a function, got 3"),
        ({"criterion": "afinity"}, "did you mean affinity"),
        ({"replacement": "curve"}, "expected one of channel"),
    ],
)
def test_bad_options_are_refused(options: Any, words: str) -> None:
    network, x, _ = made()
    with pytest.raises(InputError, match=re.escape(words)):
        linearize(network, x, **options)


def test_nan_is_named_where_it_is() -> None:
    network: Any = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    x = torch.randn(40, 4)
    straight = linearize(network, x)
    bad = x.clone()
    bad[3, 1] = math.nan
    for call, parameter in (
        (lambda: linearize(network, bad), "data"),
        (lambda: linearize(network, x, test=bad), "test"),
        (lambda: fathometer.recover(straight, network, bad, epochs=1), "data"),
        (lambda: fathometer.fold(straight, bad), "example"),
    ):
        with pytest.raises(InputError, match=f"{parameter}: some inputs are NaN"):
            call()
    with torch.no_grad():
        network[0].weight[0, 0] = math.nan
    with pytest.raises(InputError, match="although its inputs are; look at its weights"):
        linearize(network, x)


def test_labels_that_do_not_fit_are_not_used_and_a_warning_says_so() -> None:
    network, x, y = made()
    with pytest.warns(UserWarning, match="the labels are not used: the labels go from 100"):
        found = linearize(network, TensorDataset(x, y + 100))
    assert "accuracy" not in result_of(found).curve


def test_a_constant_output_is_explained_by_its_line() -> None:
    network: Any = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    for layer in (network[0], network[2]):
        nn.init.zeros_(layer.weight)
        nn.init.constant_(layer.bias, 0.37)
    assert fathometer.site_costs(network, torch.randn(90, 4), batch_size=40)["r2"].to_list() == [1, 1]


def test_bad_networks_are_refused() -> None:
    x = torch.randn(40, 4)
    with pytest.raises(InputError, match="activations: no activation is called that can be seen"):
        linearize(nn.Linear(4, 3), x)
    with pytest.raises(InputError, match="a tensor with a row for each input"):
        linearize(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), Total()), x)
    with pytest.raises(InputError, match="the outputs are not finite numbers after it was replaced"):
        linearize(Broken(), x, replacement="identity")
    with pytest.raises(InputError, match="it returns a tuple"):
        linearize(nn.Sequential(nn.Sequential(Tuples()), Take(), nn.ReLU()), x, sites="module:0")
    once = linearize(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), x)
    with pytest.raises(InputError, match="1: already replaced"):
        linearize(once, x)


class Total(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class Take(nn.Module):
    def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        return pair[0]


def test_a_width_that_depends_on_the_input_is_refused() -> None:
    class Wide(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return relu(x).sum(1, keepdim=True) * torch.ones(1, 2)

    with pytest.raises(InputError, match="its width changes from batch to batch"):
        linearize(Wide(), [torch.randn(4, 5), torch.randn(4, 6)])


def test_a_dead_channel_gets_a_constant_line_and_a_warning() -> None:
    network: Any = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad():
        network[0].weight[1] = 0
        network[0].bias[1] = 0.5
    with pytest.warns(UserWarning, match=re.escape("slope 0: 1 (1 of 3)")):
        found: Any = linearize(network, torch.randn(50, 4))
    line = found[1].linear_maps["relu_1"]
    assert (line.slope[1].item(), line.intercept[1].item()) == (0, 0.5)


def test_the_mlps_of_a_language_model_are_replaced_by_affine_maps_of_the_tokens_that_count() -> None:
    ensure_torchvision_operators()
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 3}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=2, num_key_value_heads=2)
    network = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(60, (24, 10))
    mask = torch.ones_like(ids)
    mask[:12, 6:] = 0
    padded = {"input_ids": ids.where(mask.bool(), 0), "attention_mask": mask}
    found = linearize(network, padded, sites="mlp", replacement="affine", budget=2, batch_size=12)
    assert [*result_of(found).table.index] == [f"model.layers.{layer}.mlp" for layer in range(3)]
    assert "perplexity" in result_of(found).curve
    assert found.generate(ids[:1], max_new_tokens=2, do_sample=False).shape == (1, 12)  # type: ignore[operator]
    other = {**padded, "input_ids": ids.where(mask.bool(), 7)}  # what is padded has no influence
    again = linearize(network, other, sites="mlp", replacement="affine", budget=2, batch_size=12)
    assert result_of(again).replaced == result_of(found).replaced
    assert result_of(again).curve["divergence"].to_numpy() == pytest.approx(
        result_of(found).curve["divergence"].to_numpy(), rel=1e-4
    )


def test_with_a_budget_of_elements_what_a_step_adds_is_divided() -> None:
    torch.manual_seed(0)
    widths = (4, 30, 60, 20, 90, 3)
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.Tanh())]
    network, x = nn.Sequential(*layers[:-1]).eval(), 2 * torch.randn(300, 4)
    found = result_of(linearize(network, x, budget="50 elements"))
    order = [site for site in found.curve["site"].iloc[1:] if "put back" not in site]
    assert len(order) >= 3
    left = int(found.curve["elements"].iloc[-1])
    assert left <= 50
    assert all(left + count > 50 for count in found.table["elements"][found.table["step"] > 0])
    assert left == found.table["elements"][found.table["step"] == 0].sum()
    for step in range(1, len(order)):
        with prepared(network, [x]) as (device, copied, replacer):
            trial = Trial(copied, x, [x], device)
            choice = Choice(replacer.slots, trial, trial, "channel")
            choice.fit()
            for name in order[:step]:
                choice.replace([slot for slot in replacer.slots if slot.site.name == name])
            choice.fit()
            base = trial.score().divergence
            added = {
                slot.site.name: (divergence_with(trial, slot, choice.maps[slot]) - base) / slot.elements
                for slot in replacer.slots
                if slot.replacement is None
            }
        assert min(added, key=lambda name: added[name]) == order[step]


def test_a_module_that_overwrites_its_input_is_fitted_to_what_it_was_given() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 8))
    network, x = nn.Sequential(nn.Linear(6, 8), block, nn.Linear(8, 3)).eval(), torch.randn(500, 6)
    found = site_costs(network, x, ["kl"], sites="module:1", replacement="affine")
    with torch.no_grad():
        given = network[0](x)
        y = block(given.clone())
    design = torch.cat([given, torch.ones(500, 1)], 1)
    left = y - design @ torch.linalg.lstsq(design, y).solution
    expected = 1 - float(left.square().sum() / (y - y.mean(0)).square().sum())
    assert found["r2"].item() == pytest.approx(expected, abs=1e-3)
    assert expected < 0.95


def test_batch_norm_that_does_not_run_in_eval_mode_stays() -> None:
    class Auxiliary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
            self.extra = nn.BatchNorm1d(8)

        def forward(self, x: Tensor) -> Tensor:
            x = relu(self.norm(self.first(x)))
            return self.last(self.extra(x) if self.training else x)

    network = Auxiliary().eval()
    network.extra.running_mean.fill_(0.4)  # type: ignore[union-attr]
    x = torch.randn(64, 4)
    for size in (16, 1):
        found: Any = linearize(network, x, batch_size=size)
        assert (found.extra.running_mean == 0.4).all()


@pytest.mark.parametrize("criterion", [lambda _: float("nan"), "affinity"])
@pytest.mark.filterwarnings("ignore:2 is not measured")
def test_a_cost_that_is_no_number_is_refused(criterion: Any) -> None:
    """The score of a module that changes the width does not exist."""
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5)).eval()
    sites = ["module:1", "module:2"] if criterion == "affinity" else "module:2"
    with pytest.raises(InputError, match=r"2: .* gives no number for it"):
        linearize(
            network, torch.randn(64, 4), sites=sites, replacement="affine", budget=1, criterion=criterion
        )


def test_about_as_many_positions_are_compared_however_uneven_the_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fathometer.linearizing.trial._MAX_ROWS", 100)
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 5, 1)).eval()
    batches = [torch.randn(count, 3, 10, 10) for count in (1, 30, 2, 7)]

    class Segmenting(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"logits": network(x)}

    with prepared(Segmenting(), batches) as (device, copied, _):
        trial = Trial(copied, batches, batches, device)
        assert sum(map(len, trial._original)) == 100
        assert trial.score().divergence == 0


def test_a_site_inside_another_one_is_refused() -> None:
    network = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2))
    with pytest.raises(InputError, match="it is inside 1, which is replaced as a whole"):
        linearize(network, torch.randn(64, 4), sites=["module:1", "relu"], replacement="affine")


def test_maps_keep_the_precision_of_the_weights_under_autocast() -> None:
    network, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(64, 4)
    with torch.autocast("cpu", torch.bfloat16):
        found = linearize(network, x)
    assert {weight.dtype for weight in found.parameters()} == {torch.float32}


@pytest.mark.parametrize("change", ["criterion", "test"])
def test_a_journal_of_another_criterion_or_of_other_test_data_is_refused(tmp_path: Path, change: str) -> None:
    network, x, _ = made()
    options: dict[str, Any] = {"criterion": lambda site: site.order, "test": x[:32], "budget": 2}
    linearize(network, x, journal=tmp_path / "journal", **options)
    options[change] = {"criterion": lambda site: -site.order, "test": x[32:]}[change]
    with pytest.raises(FathometerError, match="journal"):
        linearize(network, x, journal=tmp_path / "journal", **options)


class RemembersItsBatch(nn.Sequential):
    """Keeps its last inputs in a buffer, whose size follows the batch."""

    last: Tensor

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.register_buffer("last", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.last = x.detach()
        for layer in self:
            x = layer(x)
        return x


def test_a_buffer_may_follow_the_size_of_the_batch() -> None:
    network = RemembersItsBatch(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    straight = linearize(network, torch.randn(50, 4), budget=1, batch_size=32)
    assert len(result_of(straight).replaced) == 1


def test_the_bar_shows_the_sites_that_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, _ = made()
    notes: list[str] = []
    monkeypatch.setattr("fathometer.progress.ProgressBar.__call__", lambda *values: notes.append(values[-1]))
    linearize(network, x, budget=1, progress=True)
    assert "measured 3 of 3 sites" in notes


def test_costs_by_a_function_are_refused() -> None:
    network, x, _ = made()
    with pytest.raises(InputError, match="expected names of criteria"):
        site_costs(network, x, [lambda site: site.order])  # type: ignore[list-item]


def test_outputs_of_a_regression_are_compared_by_their_squared_error() -> None:
    network, x, _ = made()
    straight = linearize(network, TensorDataset(x, torch.randn(64, 4)))
    found = result_of(straight)
    assert found.divergence_name == "squared error / variance"
    with torch.no_grad():
        y, changed = network(x), straight(x)
    share = float((changed - y).square().sum() / (y - y.mean(0)).square().sum())
    assert found.curve["divergence"].iloc[-1] == pytest.approx(share, rel=1e-4)


def test_the_activation_of_a_fused_encoder_layer_is_replaced_without_gradients_too() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0, nn.GELU(), batch_first=True)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.last = layer, nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(relu(self.layer(x)).mean(1))

    x = torch.randn(40, 5, 8)
    for sites in (["layer.activation"], ["layer.activation", "/relu"]):
        straight = linearize(Encoder().eval(), x, sites=sites)
        with torch.no_grad():
            fast = straight(x)
        torch.testing.assert_close(fast, straight(x))
        assert result_of(straight).curve["divergence"].iloc[-1] > 0


class RunsItsChildren(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = relu(layer(x))
        return x


class RunsItsLayers(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = relu(layer(x))
        return x


@pytest.mark.parametrize("first", [nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh())])
@pytest.mark.parametrize("inner", [RunsItsChildren(), RunsItsLayers(nn.Linear(4, 4), nn.Linear(4, 4))])
def test_maps_have_a_home_in_networks_that_run_their_children(first: nn.Module, inner: nn.Module) -> None:
    x = torch.randn(60, 4)
    network = nn.Sequential(first, inner)
    straight = linearize(network, x, sites=["module:0", "1/relu"], replacement="affine")
    assert straight(x).shape == (60, 4)
    assert sum("linear_maps" in name for name in straight.state_dict()) == 4  # two weights, two biases


def test_activations_of_ones_own_with_any_name_are_chosen_by_a_gauge() -> None:
    def half(x: Tensor) -> Tensor:
        return torch.where(x > 0, x, x / 2)

    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return half(x).flip(1)

    globals()["half"] = half
    straight = linearize(Net(), torch.randn(60, 4), activations=[half], budget=1, criterion="affinity")
    assert result_of(straight).replaced == ("/half",)


def test_gradients_reach_activations_of_one_dimension() -> None:
    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.last = nn.Linear(4, 1), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(x * torch.sigmoid(self.gate(x).squeeze(-1))[:, None])

    assert site_costs(Gate(), torch.randn(60, 4), "taylor")["taylor"].item() > 0


def test_a_loss_of_exactly_the_points_of_the_budget_is_allowed() -> None:
    rows = [{"accuracy": 0.917, "divergence": 0.0}, {"accuracy": 0.912, "divergence": 0.1}]
    assert not exceeds(rows, 0.5)
    assert exceeds(rows, 0.49)
    assert exceeds([rows[0], {"accuracy": 0.917, "divergence": math.inf}], 0.5)


class Embedder(nn.Module):
    """Returns an embedding of each token, as encoders of text do."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(9, 4), nn.Linear(4, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        del attention_mask
        return self.last(relu(self.table(input_ids))) + torch.tensor([0.0, 50.0, 100.0])


def test_embeddings_of_tokens_are_compared_by_their_squared_error() -> None:
    torch.manual_seed(0)
    network, ids = Embedder().eval(), torch.randint(9, (20, 6))
    mask = torch.ones_like(ids)
    mask[:10, 4:] = 0
    straight = linearize(network, {"input_ids": ids, "attention_mask": mask})
    with torch.no_grad():
        y, changed = (net(ids)[mask.bool()] for net in (network, straight))
    share = float((changed - y).square().sum() / (y - y.mean(0)).square().sum())
    assert result_of(straight).curve["divergence"].iloc[-1] == pytest.approx(share, rel=1e-3)
    lengths = [{"input_ids": ids[:, :4]}, {"input_ids": ids}]
    assert result_of(linearize(network, lengths)).curve["divergence"].iloc[-1] > 0
