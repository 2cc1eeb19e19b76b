"""Options: one place for what decides the values, and a fingerprint that changes with each of them."""

from __future__ import annotations

import functools
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fathometer import InputError, MeasureOptions, Reduction, measure
from fathometer.capture import Pooling, Residual, Site
from fathometer.measuring.identity import code_hash, structure_hash
from fathometer.measuring.options import Leftover, plain_options, with_changes


def gap(x: Tensor, y: Tensor) -> float:
    return float((x - y).abs().max())


def last(site: Site) -> bool:
    return site.order == 1


class Swish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x.sigmoid()


OTHERS: list[dict[str, Any]] = [
    {"samples": 64},
    {"batches": 2},
    {"gauges": "affinity"},
    {"gauges": ["standard", gap]},
    {"sites": "relu"},
    {"sites": last},
    {"activations": [Swish]},
    {"reduction": "tokens"},
    {"reduction": Reduction(pool_first=True)},
    {"sites": "mlp"},
    {"sites": "mlp", "residual": "both"},
    {"leftover": "keep"},
    {"seed": 1},
    {"map": "cka"},
    {"call": lambda model, item: model(item)},
    {"call": lambda model, item: model(2 * item)},
]


def test_every_option_changes_the_fingerprint() -> None:
    prints = [MeasureOptions(**others).fingerprint() for others in [{}, *OTHERS]]
    assert len(set(prints)) == len(prints)
    assert prints[0] == MeasureOptions(samples=int(np.int64(512)), gauges=["standard"]).fingerprint()


def test_choices_are_those_of_the_types() -> None:
    assert plain_options()["reduction"].choices == get_args(Pooling)
    assert plain_options()["residual"].choices == get_args(Residual)
    assert plain_options()["leftover"].choices == get_args(Leftover)


def test_text_and_numbers_make_options() -> None:
    options = MeasureOptions.from_plain(
        {"gauges": ("standard", f"{__name__}:gap"), "sites": (), "channel_axis": 1, "seed": 3}
    )
    assert list(options.chosen_gauges)[-1] == "gap"
    assert options.sites is None
    assert options.reduction == Reduction(channel_axis=1, seed=3)
    with pytest.raises(TypeError, match="'samplse'; did you mean samples"):
        MeasureOptions.from_plain({"samplse": 64})


def test_unknown_options_are_refused_with_a_suggestion() -> None:
    with pytest.raises(TypeError, match="'samplse'; did you mean samples"):
        measure(nn.ReLU(), torch.randn(8, 2), samplse=8)
    with pytest.raises(InputError, match="options: expected MeasureOptions, got 128; give"):
        measure(nn.ReLU(), torch.randn(8, 2), 128)  # type: ignore[call-overload]
    with pytest.raises(InputError, match=r"activations: expected package.module:name, got 'mine.act'"):
        MeasureOptions.from_plain({"activations": ["mine.act"]})
    with pytest.raises(InputError, match="channel_axis: expected a whole number from -8, got 'x'"):
        plain_options()["channel_axis"].check("x")


def test_a_preset_stands_for_options_that_are_not_given() -> None:
    preset = with_changes(None, {"preset": "language", "samples": 512})
    assert (preset.samples, preset.batches, preset.reduction.pooling) == (512, 2, "tokens")
    assert with_changes(None, {"preset": "none"}) == with_changes(None, {"preset": None}) == MeasureOptions()
    plain = MeasureOptions.from_plain({"preset": "language", "samples": 512})
    assert plain.fingerprint() == preset.fingerprint()
    with pytest.raises(
        InputError, match="preset: expected one of language, none, got 'langage'; did you mean"
    ):
        with_changes(None, {"preset": "langage"})
    with pytest.raises(InputError, match="preset: cannot be combined with `options`; give single"):
        measure(nn.ReLU(), torch.randn(8, 2), MeasureOptions(), preset="language")


def test_the_language_set_reads_each_gauge_where_it_says_something() -> None:
    for gauges, expected in {"language": False, "language,affinity": True, "affinity": True}.items():
        options = MeasureOptions(gauges=gauges)
        assert ("affinity" in options.gauges_at("mlp")) == expected
        assert "affinity" in options.gauges_at("activation")
        assert "r2_heldout" not in options.gauges_at("activation")
    single = ",".join(MeasureOptions(gauges="language").chosen_gauges)
    prints = {MeasureOptions(gauges=each, sites="mlp").fingerprint() for each in ("language", single)}
    assert len(prints) == 2


def test_a_new_seed_is_also_that_of_the_random_positions() -> None:
    options = with_changes(None, {"reduction": "position"})
    assert with_changes(options, {"seed": 5}) == with_changes(None, {"reduction": "position", "seed": 5})
    own = Reduction("position", seed=7)
    assert with_changes(MeasureOptions(reduction=own), {"seed": 5}).reduction == own


def scale(factor: float) -> Any:
    return lambda x, _: factor * x.mean()


class Scaled:
    """A gauge with a setting, and with an attribute that does not change the result."""

    def __init__(self, factor: float) -> None:
        self.factor, self.log = factor, object()

    def __call__(self, x: Tensor, _: Tensor) -> float:
        return self.factor * float(x.mean())


@pytest.mark.parametrize("make", [scale, Scaled, lambda factor: Scaled(factor).__call__])
def test_closures_and_settings_of_callable_objects_count(make: Any) -> None:
    assert code_hash(make(2)) == code_hash(make(2)) != code_hash(make(3))


def test_code_is_known_by_what_it_computes() -> None:
    source = (
        "CONFIG = {{'factor': {}}}\ndef helper(x): return {} * x\n"
        "def gauge(x, y{}): return CONFIG['factor'] * helper(x).mean(){}\n"
    )
    variants = [
        ("1", "2", "", ""),
        ("2", "2", "", ""),
        ("1", "3", "", ""),
        ("1", "2", ", power=2", ""),
        ("1", "2", "", " + 1"),
        ("1", "2", "", "  # a comment"),
    ]
    hashes = []
    for variant in variants:
        module: dict[str, Any] = {"__name__": "mine"}
        exec(source.format(*variant), module)
        hashes.append(code_hash(module["gauge"]))
    assert hashes[-1] == hashes[0]
    assert len(set(hashes)) == len(hashes) - 1
    assert code_hash(functools.partial(gap, y=torch.ones(1))) != code_hash(
        functools.partial(gap, y=torch.zeros(1))
    )
    assert code_hash(torch.relu) != code_hash(torch.tanh)
    assert code_hash(nn.Sequential(nn.ReLU())) != code_hash(nn.Sequential(nn.Tanh()))


def test_a_networks_structure_is_known_by_its_modules_and_forward() -> None:
    def build(forward: Any, activation: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Linear(2, 2), activation, type("Own", (nn.Module,), {"forward": forward})())

    def double(_: nn.Module, x: Tensor) -> Tensor:
        return 2 * x

    def triple(_: nn.Module, x: Tensor) -> Tensor:
        return 3 * x

    base = structure_hash(build(double, nn.ReLU()))
    assert base == structure_hash(build(double, nn.ReLU()))
    assert base != structure_hash(build(triple, nn.ReLU()))
    assert base != structure_hash(build(double, nn.Tanh()))


@dataclass
class Settings:
    slope: float


class Own(nn.Module):
    """Has settings in every kind of attribute, and one that refers to itself."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.order: list[Any] = [self.layer, self]
        self.order.append(self.order)
        self.log = object()
        setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(self.layer(x))

    def helper(self, x: Tensor) -> Tensor:
        return x.relu()


class OtherHelper(Own):
    def helper(self, x: Tensor) -> Tensor:
        return x.tanh()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, 50.0),
        (np.ones(2), np.zeros(2)),
        (torch.tanh, torch.relu),
        ({"slope": 1.0}, {"slope": 2.0}),
        ({1, 2}, {1, 3}),
        ([[1], 2], [[1, 2]]),
        (Settings(1.0), Settings(2.0)),
        (torch.float32, torch.float64),
        ([nn.Linear(2, 2)], [nn.Linear(2, 2)]),
    ],
)
def test_attributes_of_the_users_modules_count(one: Any, other: Any) -> None:
    for name in ("value", "_value"):
        assert structure_hash(Own(name, one)) == structure_hash(Own(name, one))
        assert structure_hash(Own(name, one)) != structure_hash(Own(name, other))
    assert structure_hash(Own("value", 1)) != structure_hash(OtherHelper("value", 1))
    network = Own("value", one)
    assert structure_hash(network) == structure_hash(network.eval())


@pytest.mark.parametrize(
    ("one", "other"),
    [(np.ones(2), np.zeros(2)), (np.array([1, "a"], object), np.array([1, "b"], object)), ({1: 2}, {1: 3})],
)
def test_arrays_and_containers_of_the_users_code_count(one: Any, other: Any) -> None:
    def closure(value: Any) -> Any:
        return lambda _x, _y: value

    def global_value(value: Any) -> Any:
        exec("def f(x, y): return VALUE", module := {"VALUE": value, "__name__": "mine"})
        return module["f"]

    def class_constant(value: Any) -> Any:
        return type("Gauge", (), {"VALUE": value, "__call__": lambda self, _x, _y: self.VALUE})()

    for make in (closure, global_value, class_constant):
        assert code_hash(make(one)) == code_hash(make(one)) != code_hash(make(other))


def run(code: str) -> bytes:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout


def test_code_hashes_do_not_depend_on_the_process() -> None:
    code = (
        "from fathometer.measuring.identity import code_hash\n"
        "source = \"def f(x, y): return x.mean() if str(x.dtype) in {'a', 'b', 'c', 'd'} and A else 0\"\n"
        "exec(source, g := {'__name__': 'm'})\n"
        "g['A'] = [{'a', 'b', 'c'}, {lambda: 1, lambda: 2, lambda: 3}]\n"
        "print(code_hash(g['f']))"
    )
    assert run(code) == run(code)
