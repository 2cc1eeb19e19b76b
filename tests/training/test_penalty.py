from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fathometer import FathometerError, InputError, affinity, affinity_score
from fathometer.capture import Pooling, Reduction, Site, Watch, watch
from fathometer.capture.axes import tensors_in
from fathometer.training.penalty import AffinityPenalty
from tests.robustness.watched import Made, same_bits
from tests.zoo import ZOO, Net


def two_layers(kind: type[nn.Module], *, inplace: bool, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    torch.manual_seed(0)
    kinds: Any = kind
    layers = nn.Linear(5, 6), kinds(inplace=inplace), nn.Linear(6, 4), kinds(inplace=inplace), nn.Linear(4, 2)
    return nn.Sequential(*layers).to(dtype)


def pictures(*, inplace: bool) -> nn.Sequential:
    torch.manual_seed(0)
    layers = nn.Conv2d(2, 3, 3), nn.ReLU(inplace), nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), nn.SiLU(inplace)
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(2)).double()


def gradients(model: nn.Module, value: Tensor) -> list[Tensor]:
    given = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
    pairs = zip(model.parameters(), given, strict=True)
    return [torch.zeros_like(p) if gradient is None else gradient for p, gradient in pairs]


@pytest.mark.parametrize(("kind", "target"), [(nn.ReLU, 0.3), (nn.SiLU, 1.0)])
def test_gradient_equals_finite_differences(kind: type[nn.Module], target: float) -> None:
    model = two_layers(kind, inplace=True)
    x = torch.randn(40, 5, dtype=torch.float64)
    penalty = AffinityPenalty(model, target=target, weight=2.0)

    def value() -> Tensor:
        with penalty:
            model(x)
            return penalty()

    found = gradients(model, value())
    step = 1e-6
    for seed in range(3):
        torch.manual_seed(seed)
        directions = [torch.randn_like(p) for p in model.parameters()]
        products = [(d * gradient).sum() for d, gradient in zip(directions, found, strict=True)]
        expected = torch.stack(products).sum().item()
        values = []
        for sign in (1, -2, 1):  # there, to the other side, and back
            with torch.no_grad():
                for p, d in zip(model.parameters(), directions, strict=True):
                    p.add_(d, alpha=sign * step)
            values.append(value().item())
        assert abs(expected) > 1e-4
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "reduction",
    [
        *(Reduction(pooling) for pooling in get_args(Pooling)),
        Reduction(pool_first=True),
    ],
    ids=lambda r: "pool first" if r.pool_first else r.pooling,
)
def test_gradients_are_the_same_in_place_or_not(reduction: Reduction) -> None:
    x = torch.randn(12, 2, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = []
    for inplace in (False, True):
        model = pictures(inplace=inplace)
        model(x)  # the lazy layer
        torch.manual_seed(2)
        nn.init.normal_(next(model[-1].parameters()))
        with AffinityPenalty(model, target=0.5, reduction=reduction) as penalty:
            loss = model(x).square().mean() + penalty()
        found.append((loss.detach(), *gradients(model, loss)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
        assert float(one.abs().max()) > 0


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler
@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if entry.trains and not entry.refused])
def test_a_watch_with_gradients_changes_neither_outputs_nor_gradients(name: str) -> None:
    def run(made: Made, record: Watch | None) -> list[Any]:
        """Its output, and the gradients of all that learns and of the inputs."""
        dense = [t for t in made.given if type(t) is Tensor and t.is_floating_point() and not t.is_sparse]
        leaves = {t: t.clone().requires_grad_() for t in dense}
        torch.manual_seed(1)
        given = [leaves[t] * 1 if t in leaves else t for t in made.given]  # a leaf could not be overwritten
        output = made.run(made.network, *given)
        loss = loss_of(output) if record is None else loss_of(output) + 0 * loss_of(record.pairs.values())
        wanted = [*filter(lambda p: p.requires_grad, made.network.parameters()), *leaves.values()]
        reached = torch.autograd.grad(loss, wanted, allow_unused=True) if wanted else ()
        zeros = zip(wanted, reached, strict=True)  # a gradient of 0 is as good as none
        return [output, [torch.zeros_like(w) if g is None else g for w, g in zeros]]

    plain, watched = (ZOO[name].make(training=True) for _ in range(2))
    expected = run(plain, None)
    with watch(watched.network, gradients=True) as record:
        assert same_bits(run(watched, record), expected)


def loss_of(tensors: Any) -> Tensor:
    squares = [t.abs().square().sum().float() for t in tensors_in(tensors) if t.requires_grad]
    return torch.stack(squares).sum() if squares else torch.zeros((), requires_grad=True)


def test_a_weight_of_zero_leaves_training_as_it_was() -> None:
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    plain, penalised = (two_layers(nn.ReLU, inplace=True, dtype=torch.float32) for _ in range(2))
    penalty = AffinityPenalty(penalised, target=0.2, weight=0)
    for model in (plain, penalised):
        optimiser = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(5):
            optimiser.zero_grad()
            if model is plain:
                loss = F.cross_entropy(model(x), y)
            else:
                with penalty:
                    loss = F.cross_entropy(model(x), y) + penalty()
            loss.backward()
            optimiser.step()
    for p, q in zip(plain.parameters(), penalised.parameters(), strict=True):
        assert torch.equal(p, q)


def test_the_term_is_the_weighted_mean_of_squared_misses() -> None:
    model, x = two_layers(nn.ReLU, inplace=False), torch.randn(30, 5, dtype=torch.float64)
    with watch(model) as record:
        model(x)
    first, second = (float(affinity(*pair)) for pair in record.pairs.values())
    by_pattern: dict[Any, float] = {"3": 0.2, "relu": 0.7}  # both match the second: the first counts
    with AffinityPenalty(model, target=by_pattern, weight=5) as penalty:
        model(x)
        assert penalty().item() == pytest.approx(5 * ((first - 0.7) ** 2 + (second - 0.2) ** 2) / 2)
    assert penalty.scores == pytest.approx({"1": first, "3": second})
    with AffinityPenalty(model, "3", target=1) as penalty:
        model(x)
        score: Any = affinity_score(*list(record.pairs.values())[1])
        assert penalty().item() == pytest.approx((score.w2 / score.bound) ** 2)
    assert list(penalty.scores) == ["3"]


@pytest.mark.parametrize("target", [0.4, 1.0])
def test_training_moves_the_chosen_site_to_its_target(target: float) -> None:
    model = two_layers(nn.ReLU, inplace=True, dtype=torch.float32)
    x = torch.randn(96, 5, generator=torch.Generator().manual_seed(1))
    optimiser = torch.optim.Adam(model.parameters(), 0.02)
    penalty = AffinityPenalty(model, "1", target=target)
    before = {name: p.clone() for name, p in model.named_parameters()}
    scores = []
    for _ in range(150):
        expected = model(x).detach()
        optimiser.zero_grad()
        with penalty:
            assert torch.equal(model(x), expected)
            penalty().backward()
        optimiser.step()
        scores.append(penalty.scores["1"])
    assert 0.5 < scores[0] < 0.75
    assert scores[-1] == pytest.approx(target, abs=0.03)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"0.weight", "0.bias"}  # nothing behind the site has a part in its score


def test_a_dead_site_scores_one_and_has_no_gradient() -> None:
    model = two_layers(nn.ReLU, inplace=False)
    with torch.no_grad():
        model.get_parameter("2.bias").sub_(100)
    with AffinityPenalty(model, "3", target=0.5) as penalty:
        model(torch.randn(20, 5, dtype=torch.float64))
        value = penalty()
    assert value.item() == pytest.approx(0.25)
    assert penalty.scores == {"3": 1}
    assert all(not gradient.any() for gradient in gradients(model, value))


def test_passes_add_up_until_the_call_and_up_to_the_capacity() -> None:
    model, x = two_layers(nn.SiLU, inplace=True), torch.randn(30, 5, dtype=torch.float64)

    def value(*parts: Tensor, capacity: int | None = None) -> Tensor:
        with AffinityPenalty(model, target=0.1, capacity=capacity) as penalty:
            for part in parts:
                model(part)
            return penalty()

    for one, other in (
        (value(x), value(x[:10], x[10:])),
        (value(x[:12]), value(x, capacity=12)),
        (value(x[:12]), value(x[:10], x[10:], x, capacity=12)),
    ):
        torch.testing.assert_close(one, other)
        for a, b in zip(gradients(model, one), gradients(model, other), strict=True):
            torch.testing.assert_close(a, b)
    with AffinityPenalty(model, target=0.1) as penalty:  # one block for several steps
        model(x[10:])
        penalty.clear()
        model(x)
        torch.testing.assert_close(penalty(), value(x))


def test_positions_are_drawn_again_in_every_step() -> None:
    model, x = pictures(inplace=True), torch.randn(12, 2, 6, 6, dtype=torch.float64)
    penalty = AffinityPenalty(model, "1", target=0.5, reduction="position")
    scores = []
    for _ in range(2):
        with penalty:
            model(x)
            penalty()
        scores.append(penalty.scores["1"])
    assert scores[0] != scores[1]


def test_nothing_is_kept_after_a_step() -> None:
    model, alive = two_layers(nn.SiLU, inplace=False), []
    handle = model[0].register_forward_hook(lambda *args: alive.append(weakref.ref(args[-1])))
    penalty = AffinityPenalty(model, target=0.5)
    with penalty:
        loss = model(torch.randn(9, 5, dtype=torch.float64)).sum() + penalty()
        assert alive[0]() is not None
        loss.backward()
        del loss
        assert alive[0]() is None
        model(torch.randn(9, 5, dtype=torch.float64))
        assert alive[1]() is not None
    assert alive[1]() is None
    handle.remove()
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_it_works_under_autocast() -> None:
    model = two_layers(nn.ReLU, inplace=True, dtype=torch.float32)
    x = torch.randn(50, 5)
    penalty = AffinityPenalty(model, target=0.9)

    def value() -> Tensor:
        with penalty:
            model(x)
            return penalty()

    exact = value()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = value()
    assert rounded.dtype == torch.float32
    assert rounded.item() == pytest.approx(exact.item(), rel=0.02)
    for a, b in zip(gradients(model, rounded), gradients(model, exact), strict=True):
        assert float((a - b).norm()) <= 0.1 * float(b.norm())


def test_whole_modules_and_the_users_functions_have_scores() -> None:
    def leaky(x: Tensor) -> Tensor:
        return x + x.relu()

    block = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5))
    model = Net(lambda net, x: leaky(net.block(x)), block=block).double()
    sites: list[str | Callable[[Site], bool]] = ["block", lambda site: site.operator == "leaky"]
    with AffinityPenalty(model, sites, target=1, activations=[leaky]) as penalty:
        model(torch.randn(20, 5, dtype=torch.float64))
        found = gradients(model, penalty())
    assert list(penalty.scores) == ["block", "/leaky"]
    assert all(gradient.any() for gradient in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": float("nan")}, "target: expected a number from 0 to 1, got nan"),
        ({"target": {"relu": -1}}, "target of 'relu': expected a number"),
        ({"target": {}}, "at least one"),
        ({"target": {"relu": 0.5}, "sites": "relu"}, "whose keys are the sites"),
        ({"target": 0.5, "weight": -1}, "weight: expected a finite number from 0, got -1"),
        ({"target": 0.5, "capacity": 1}, "capacity: expected a whole number from 2"),
        ({"target": 0.5, "sites": "module:Conv9d"}, "no module"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AffinityPenalty(two_layers(nn.ReLU, inplace=True), **options)


def test_a_step_without_a_penalty_is_an_error() -> None:
    model, x = two_layers(nn.ReLU, inplace=True), torch.randn(20, 5, dtype=torch.float64)
    penalty = AffinityPenalty(model, target=0.5)
    with pytest.raises(InputError, match="inside its `with` block"):
        penalty()
    with penalty:
        with pytest.raises(InputError, match="expected a forward pass"):
            penalty()
        model(x[:1])
        with pytest.raises(InputError, match="two samples or more"):
            penalty()
        with torch.no_grad():
            model(x)
            assert not penalty().requires_grad
            model(x)
        with pytest.raises(InputError, match="ran without gradients"):
            penalty()
        model(x / 0)
        with pytest.raises(FathometerError, match="1: x: expected finite values"):
            penalty()
        model(x)
        assert penalty().requires_grad  # errors have left nothing behind


@pytest.mark.parametrize(
    ("part", "options", "message"),
    [
        (5, {"target": {"relu": 0.5, "layer9.*": 0.5}}, r"'layer9\.\*' in the forward pass, got 1, 3"),
        (1, {"target": 0.5}, "expected an activation call in the forward pass, got none"),
        (
            5,
            {"target": 0.5, "sites": nn.Linear},
            r"number of features, got 0: its width changes \(\[20, 5\] in, \[20, 6\] out",
        ),
    ],
)
def test_a_pass_without_the_chosen_sites_is_an_error(
    part: int, options: dict[str, Any], message: str
) -> None:
    model = two_layers(nn.ReLU, inplace=True)[:part]
    with AffinityPenalty(model, **options) as penalty:
        model(torch.randn(20, 5, dtype=torch.float64))
        with pytest.raises(InputError, match=message):
            penalty()


@pytest.mark.parametrize("first", [True, False])
def test_passes_with_and_without_gradients_are_not_scored_together(first: bool) -> None:
    model, x = two_layers(nn.ReLU, inplace=True), torch.randn(30, 5, dtype=torch.float64)
    with AffinityPenalty(model, target=0.5) as penalty:
        for gradients, part in ((first, x[:20]), (not first, x[20:])):
            with torch.set_grad_enabled(gradients):
                model(part)
        with pytest.raises(InputError, match=r"^1.*: expected passes with gradients, got one under no_grad"):
            penalty()


def test_sites_behind_frozen_layers_are_named_once() -> None:
    model, x = two_layers(nn.ReLU, inplace=False), torch.randn(30, 5, dtype=torch.float64)
    model[0].requires_grad_(requires_grad=False)
    penalty = AffinityPenalty(model, target=0.5)
    with penalty:
        model(x)
        with pytest.warns(UserWarning, match="no gradient leads from 1 to a weight"):
            value = penalty()
    assert list(penalty.scores) == ["1", "3"]
    misses = [(score - 0.5) ** 2 for score in penalty.scores.values()]
    assert value.item() == pytest.approx(sum(misses) / 2)
    with penalty:
        model(x)
        assert penalty().requires_grad  # and says nothing
    model.requires_grad_(requires_grad=False)
    with penalty:
        model(x)
        with pytest.raises(InputError, match="the scores of 1, 3 to a weight: nothing before"):
            penalty()


def test_gradients_accumulate_over_parts() -> None:
    model, x = two_layers(nn.SiLU, inplace=False), torch.randn(40, 5, dtype=torch.float64)
    with AffinityPenalty(model, target=0.5) as penalty:
        for part in x.split(20):
            (model(part).sum() + penalty()).backward()
        accumulated = [p.grad for p in model.parameters()]
        total = torch.stack([model(part).sum() + penalty() for part in x.split(20)]).sum()
    torch.testing.assert_close(accumulated, gradients(model, total))


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = importlib.import_module("examples.affinity_penalty")
    few = {name: case for name, case in example.CASES.items() if name in ("none", "1, weight 30", "linear")}
    monkeypatch.setattr(example, "CASES", few)
    monkeypatch.setattr(example, "SIZES", (512,))
    example.main(["--out", str(tmp_path / "new"), "--seeds", "1", "--steps", "12"])
    trials = pd.read_csv(tmp_path / "new" / "affinity-penalty.csv").set_index(["task", "case"])
    for task in example.TASKS:
        plain, linearised = trials.loc[task, "none"], trials.loc[task, "1, weight 30"]
        assert plain["before"] == linearised["before"]
        assert linearised["affinity"] > plain["affinity"] + 0.05
    assert (tmp_path / "new" / "affinity-penalty.png").stat().st_size > 10_000
