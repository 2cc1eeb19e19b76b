from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fathometer import InputError, Sounding, load, measure, residual_path
from fathometer.capture import OPERATORS, Reduction
from fathometer.errors import ForwardError
from fathometer.gauges import affinity_score, cost_of_identity
from fathometer.residual import bottleneck
from tests.residual.networks import LANGUAGE, Activated, Block, Gated, dense_stable_rank, network


@pytest.fixture(scope="module")
def model() -> nn.Sequential:
    return network(8, 8, 12, 12)


@pytest.fixture(scope="module")
def data() -> Tensor:
    return torch.randn(64, 5, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def path(model: nn.Sequential, data: Tensor) -> Sounding:
    return residual_path(model, data, samples=64, batch_size=10, gamma=1e-2, name="three blocks")


def test_values_match_the_formulas(path: Sounding, model: nn.Sequential, data: Tensor) -> None:
    stream = [model[0](data)]
    for block in list(model)[1:4]:
        stream.append(block(stream[-1]))
    stream = [a.detach() for a in stream]
    assert [site.name for site in path.sites] == ["1", "2", "3"]
    assert path.records["d"].to_list() == [8, 12, 12]
    for row, before, after in zip(path.records.to_dict("records"), stream, stream[1:], strict=False):
        image, energy = F.leaky_relu(after, 0.3), after.square().sum(1)
        expected = {
            "stable_rank": dense_stable_rank(after),
            "stable_rank_in": dense_stable_rank(before),
            "stable_rank_centred": dense_stable_rank(after - after.mean(0)),
            "cost_of_identity": float(cost_of_identity(after, image, gamma=1e-2)),
            "speed": math.nan,
            "affinity": float(affinity_score(after, image)),
            "nonnegativity_entries": float((after >= 0).double().mean()),
            "nonnegativity_energy": float(after.relu().norm() ** 2 / after.norm() ** 2),
            "rms": float(after.square().mean().sqrt()),
            "participation": float(energy.sum() ** 2 / (64 * energy.square().sum())),
        }
        if before.shape == after.shape:
            expected["speed"] = float((after - before).norm() / before.norm())
        assert list(row)[6:] == list(expected)
        for gauge, value in expected.items():
            assert row[gauge] == pytest.approx(value, rel=1e-5, nan_ok=True), gauge
    assert path.mean("speed").isna().to_list() == [False, True, False]


def test_it_is_a_sounding(path: Sounding, tmp_path: Path) -> None:
    assert path.provenance.settings["path"] == {"blocks": "found", "sigma": "leaky_relu", "gamma": 0.01}
    loaded = load(path.save(tmp_path / "path.json"))
    assert loaded.provenance == path.provenance
    np.testing.assert_array_equal(loaded.records["speed"], path.records["speed"])
    assert loaded.gauges[0] == "stable_rank"


def test_the_network_is_unchanged(model: nn.Sequential, data: Tensor) -> None:
    dropping = nn.Sequential(model, nn.BatchNorm1d(3), nn.Dropout(0.5)).train()
    torch.manual_seed(3)
    expected = dropping(data)
    torch.manual_seed(3)
    before = {key: value.clone() for key, value in dropping.state_dict().items()}
    residual_path(dropping, data, samples=64)
    assert all(torch.equal(value, before[key]) for key, value in dropping.state_dict().items())
    assert torch.equal(dropping(data), expected)
    assert all(module.training and not module._forward_hooks for module in dropping.modules())


def test_order_of_the_data_matches_measure(model: nn.Sequential, data: Tensor) -> None:
    def rank(_: Tensor, y: Tensor) -> float:
        return dense_stable_rank(y)

    whole = torch.utils.data.TensorDataset(data)
    expected = measure(model, whole, samples=20, sites="module:Block", gauges=rank, seed=5)
    for given in (whole, iter([data[:7], data[7:]])):
        found = residual_path(model, given, samples=20, seed=5)
        assert len(found.records) == 9
        if given is whole:
            assert found.mean("stable_rank").to_numpy() == pytest.approx(expected.mean("rank"))


def test_the_search_draws_no_random_numbers() -> None:
    model, x = nn.Sequential(Gated(), Gated()), torch.randn(20, 8)
    torch.manual_seed(4)
    path = residual_path(model, x, samples=20, batch_size=20)
    torch.manual_seed(4)
    again = measure(model, x, sites="module:Gated", gauges="stable_rank", samples=20, batch_size=20)
    assert path.mean("stable_rank").to_numpy() == pytest.approx(again.mean("stable_rank_y").to_numpy())


def test_an_in_place_activation_does_not_change_the_stream(data: Tensor) -> None:
    class InPlace(Block):
        def forward(self, x: Tensor) -> Tensor:
            return x + F.relu(self.inner(x), inplace=True) - 1

    model = nn.Sequential(InPlace(5, 5), InPlace(5, 5))
    path = residual_path(model, data, samples=64)
    with torch.no_grad():
        stream = model[0](data)
    negative = 1 - float(stream.relu().norm() ** 2 / stream.norm() ** 2)
    assert negative > 0.1
    assert 1 - path.mean("nonnegativity_energy").iloc[0] == pytest.approx(negative, rel=1e-4)


def test_sigma_and_gamma_can_be_chosen(model: nn.Sequential, data: Tensor) -> None:
    relu = residual_path(model, data, samples=64, sigma="relu")
    own = residual_path(model, data, samples=64, sigma=nn.ReLU())
    assert own.provenance.settings["path"]["sigma"] == "ReLU"
    assert relu.provenance.settings["path"]["sigma"] == "relu"
    np.testing.assert_array_equal(relu.records["cost_of_identity"], own.records["cost_of_identity"])
    same = residual_path(model, data, samples=64, sigma=lambda a: a)
    assert same.mean("affinity").to_numpy() == pytest.approx(1, abs=1e-9)
    with pytest.raises(InputError, match=r"sigma: expected a function or the name.*give e.g. 'relu'"):
        residual_path(model, data, samples=64, sigma=nn.ReLU)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="gamma: expected a finite number > 0, got 0"):
        residual_path(model, data, gamma=0)
    with pytest.raises(InputError, match="gauges: has no effect here"):
        residual_path(model, data, gauges="norm")


def sigma_values(model: nn.Module, data: Tensor, own: list[Callable[[Tensor], Tensor]]) -> list[list[float]]:
    """Cost of identity and affinity along a chain of blocks, each with its σ."""
    found = []
    with torch.no_grad():
        for block, sigma in zip(model.children(), own, strict=True):
            data = block(data)
            image = sigma(data)
            found.append([float(cost_of_identity(data, image)), float(affinity_score(data, image))])
    return found


def test_every_block_is_measured_with_its_own_activation() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        Activated(6, nn.ReLU()),
        Activated(6, nn.Sigmoid(), nn.Tanh(), nn.Sigmoid()),  # gates aside
        Activated(6),  # none: that of most
        Activated(6, nn.Sigmoid()),  # a gate alone: that of most
        Activated(6, nn.ReLU(inplace=True)),
    )
    data = torch.randn(48, 6)
    path = residual_path(model, data, samples=48)
    assert path.provenance.settings["path"]["sigma"] == {
        "0": "relu", "1": "tanh", "2": "relu", "3": "relu", "4": "relu"
    }  # fmt: skip
    expected = sigma_values(model, data, [torch.relu, torch.tanh, torch.relu, torch.relu, torch.relu])
    found = path.table[["cost_of_identity", "affinity"]].xs("mean", axis=1, level=1)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-5)


def test_every_block_has_its_own_slopes() -> None:
    torch.manual_seed(0)
    sloped = [nn.PReLU(6), nn.PReLU(6), nn.LeakyReLU(0.5), nn.LeakyReLU(0.1)]
    with torch.no_grad():
        for number, module in enumerate(sloped[:2]):
            module.weight.copy_(torch.linspace(0, 0.2 + 0.7 * number, 6))  # type: ignore[operator]
    wide = Activated(9, nn.PReLU(9))  # those of the others cannot be applied here
    widen, narrow = nn.Linear(6, 9), nn.Linear(9, 6)
    model = nn.Sequential(*(Activated(6, module) for module in sloped), widen, wide, narrow)
    data = torch.randn(48, 6)
    path = residual_path(model, data, samples=24)
    every = [*sloped, nn.Identity(), wide.activations[0], nn.Identity()]
    for batch, part in enumerate(data.split(24)):
        expected = sigma_values(model, part, list(every))
        rows = path.records[path.records["batch"] == batch]
        np.testing.assert_allclose(
            rows[["cost_of_identity", "affinity"]], [expected[i] for i in (0, 1, 2, 3, 5)], rtol=1e-5
        )
    assert not path.records.drop(columns=["speed", "layer"]).isna().any(axis=None)
    assert path.provenance.settings["path"]["sigma"]["2"] == "leaky_relu"
    alike = nn.Sequential(*(Activated(6, module) for module in sloped[2:]))
    assert residual_path(alike, data, samples=24).provenance.settings["path"]["sigma"] == "leaky_relu"


def test_without_an_activation_there_is_no_cost() -> None:
    class Linear(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return x + super().forward(x)

    path = residual_path(nn.Sequential(Linear(4, 4), Linear(4, 4)), torch.randn(20, 4), samples=20)
    assert path.gauges[:4] == ["stable_rank", "stable_rank_in", "stable_rank_centred", "speed"]
    assert path.provenance.settings["path"]["sigma"] is None


def test_the_bottleneck_has_the_smallest_rank(data: Tensor) -> None:
    class Project(nn.Module):
        """x − (I − P) x, with P of a given rank."""

        def __init__(self, rank: int) -> None:
            super().__init__()
            self.rank = rank

        def forward(self, x: Tensor) -> Tensor:
            keep = torch.diag(torch.arange(5) >= self.rank).float()
            return x - torch.relu(x) @ keep + torch.relu(-x) @ keep

    class Mix(Project):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.randn(len(x), 5, generator=torch.Generator().manual_seed(0)) @ torch.eye(5)

    model = nn.Sequential(Project(4), Project(2), Project(2), Mix(0), Mix(0))
    least = bottleneck(residual_path(model, data, samples=64))
    assert (least.number, least.blocks, least.max_rank) == (2, 5, 5)
    assert least.stable_rank == pytest.approx(2, abs=0.1)
    assert str(least) == "1 (stable rank 2.0 of 5)"
    last = bottleneck(residual_path(nn.Sequential(Project(4), Project(2)), data, samples=64))
    assert str(last) == "1 (stable rank 2.0 of 5, the last block)"
    rising = nn.Sequential(nn.Linear(5, 1), nn.Linear(1, 5), nn.Identity())
    narrow = bottleneck(residual_path(rising, data, samples=64, blocks=["1", "2"], sigma="relu"))
    assert "but the path begins with 1.0" in str(narrow)


def test_a_block_that_is_called_again_is_a_site_of_its_own() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = Activated(6, nn.Tanh()), Activated(6, nn.Softplus())

        def forward(self, x: Tensor) -> Tensor:
            return self.one(self.two(self.one(x)))

    path = residual_path(Shared(), torch.randn(20, 6), samples=20)
    assert path.provenance.settings["path"]["sigma"] == {"one": "tanh", "two": "softplus", "one#2": "tanh"}


def test_failures_are_reported(model: nn.Sequential) -> None:
    with pytest.raises(ForwardError, match="failed on its input"):
        residual_path(model, torch.randn(20, 4), samples=10)
    with pytest.raises(InputError, match="expected samples to measure, got none"):
        residual_path(model, [], samples=10)
    with pytest.raises(InputError, match="the network itself was not called"):
        residual_path(model, torch.randn(20, 5), samples=10, call=lambda _, x: model[0](x))


def test_only_the_blocks_own_activation_is_applied_to_it() -> None:
    """That of block 1 fails on the output of block 0, which has the same width."""

    class Picky(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.abs().max() > 100:
                raise ValueError("too large")
            return x.relu()

    class Gain(Activated):
        def __init__(self, gain: float, activation: nn.Module) -> None:
            super().__init__(6, activation)
            self.inner.weight.data *= 1e-7
            self.gain = gain

        def forward(self, x: Tensor) -> Tensor:
            return self.gain * (x + self.activations[0](self.inner(x / self.gain)))

    Picky.__module__ = "transformers.activations"  # whose classes are activations as a whole
    first, last = Gain(1e3, nn.Tanh()), Gain(1.0, nn.Tanh())
    path = residual_path(nn.Sequential(first, Gain(1e-3, Picky()), last), torch.rand(48, 6), samples=48)
    assert path.provenance.settings["path"]["sigma"] == {"0": "tanh", "1": "picky", "2": "tanh"}
    assert path.mean("affinity").between(0, 1).all()
    with pytest.raises(InputError, match=r"1: cost_of_identity: .* picky cannot be applied.*give another"):
        residual_path(nn.Sequential(first, Gain(1.0, Picky()), last), torch.rand(48, 6), samples=48)


def test_an_activation_that_overflows_is_applied_in_float64() -> None:
    model = nn.Sequential(Activated(6, nn.Hardswish()), Activated(6, nn.Hardswish()))
    for block in model:
        block.inner.weight.data.zero_()  # type: ignore[operator, union-attr]
    data = 2e38 * torch.rand(48, 6)
    assert not F.hardswish(data).isfinite().all()
    assert residual_path(model, data, samples=48).mean("affinity").between(0, 1).all()


def test_channels_last_and_stages() -> None:
    from fathometer.models import load_model

    module = load_model("torchvision:swin_t", "none").module
    path = residual_path(module, torch.randn(4, 3, 64, 64), samples=4)
    assert path.records["d"].to_list() == [96] * 2 + [192] * 2 + [384] * 6 + [768] * 2
    assert not path.records["speed"].isna().any()  # the width changes between blocks


@pytest.mark.parametrize(
    ("kind", "activation"), [("gpt2", "newgelu"), ("llama", "silu"), ("bert", "gelu"), ("gemma2", "gelutanh")]
)
def test_language_models_match_their_hidden_states(kind: str, activation: str) -> None:
    from fathometer.models import ensure_torchvision_operators

    ensure_torchvision_operators()
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(kind, vocab_size=50, **LANGUAGE[kind][0])
        model = transformers.AutoModel.from_config(config).eval()
    tokens = {"input_ids": torch.randint(3, 50, (6, 7)), "attention_mask": torch.ones(6, 7, dtype=torch.long)}
    tokens["attention_mask"][1, 4:] = 0
    path = residual_path(model, [tokens], samples=39, reduction=Reduction("tokens"))
    assert [site.name for site in path.sites] == [f"{LANGUAGE[kind][1]}.{i}" for i in range(3)]
    assert path.provenance.settings["path"]["sigma"] == activation
    assert path.records["n"].to_list() == [39] * 3
    with torch.no_grad():
        states = model(**tokens, output_hidden_states=True).hidden_states
    keep = tokens["attention_mask"].bool()
    first, second = states[0][keep], states[1][keep]  # later ones may be normalised
    assert path.mean("stable_rank_in").iloc[0] == pytest.approx(dense_stable_rank(first), rel=1e-5)
    assert path.mean("speed").iloc[0] == pytest.approx(
        float((second - first).norm() / first.norm()), rel=1e-4
    )


def test_a_picture_has_three_panels(path: Sounding, model: nn.Sequential, data: Tensor) -> None:
    from fathometer.report import plot_path

    figure = plot_path([path])
    assert [axes.get_ylabel() for axes in figure.axes] == ["stable rank", "cost of identity", "speed"]
    lines = figure.axes[0].get_lines()
    ranks = path.mean("stable_rank")
    shown = lines[0].get_ydata()
    assert shown == pytest.approx([path.mean("stable_rank_in").iloc[0], *ranks])
    assert lines[-1].get_ydata() == pytest.approx([ranks.min()])  # the ring at the bottleneck
    shorter = residual_path(network(8, 8, 8), data, samples=64)
    assert plot_path([path, shorter], ["a", "b"]).axes[2].get_xlabel() == "relative depth"
    with pytest.raises(InputError, match="expected what residual_path returns"):
        plot_path([measure(model, data, samples=64, gauges="affinity")])


@pytest.mark.parametrize("sigma", sorted(OPERATORS - {"prelu", "threshold"}))
def test_sigma_is_any_activation_of_one_argument(sigma: str, model: nn.Sequential, data: Tensor) -> None:
    path = residual_path(model, data, samples=64, sigma=sigma)
    assert path.provenance.settings["path"]["sigma"] == sigma


@pytest.mark.parametrize(
    ("net", "data", "message"),
    [
        (nn.ReLU(), iter(torch.randn(64, 16)), "got a vector"),
        (nn.Conv2d(3, 3, 3), list(torch.randn(9, 3, 8, 8)), r"got one sample of shape \[3, 8, 8\]"),
        (nn.ReLU(), [torch.ones(0, 16)], "expected samples to measure, got none"),
    ],
)
def test_other_data_are_refused_with_advice(net: nn.Module, data: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^data: .*{message}"):
        residual_path(net, data, samples=8)
    with pytest.raises(TypeError, match=r"^residual_path\(\) got .*'sample'; did you mean samples"):
        residual_path(net, data, sample=8)


def test_empty_batches_are_skipped(model: nn.Sequential, data: Tensor) -> None:
    found = residual_path(model, iter([data[:0], data[:32], data[32:]]), samples=32)
    pd.testing.assert_frame_equal(found.records, residual_path(model, data, samples=32).records)
