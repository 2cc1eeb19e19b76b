from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import fathometer
from fathometer import (
    FathometerError,
    ForwardError,
    InputError,
    MeasureOptions,
    Reduction,
    Sounding,
    affinity_score,
    measure,
    watch,
)
from tests import zoo

GAUGE_COLUMNS = [
    *["affinity", "affinity_sample", "cka", "cka_debiased", "r2", "r2_heldout"],
    *["r2_trimmed", "carriers_x", "carriers_y"],
    *["sparsity_before", "sparsity_after", "sparsity_change"],
    *["entropy_before", "entropy_after", "entropy_change", "norm", "stable_rank_x", "stable_rank_y"],
    *["cost_of_identity", "nonnegativity_entries", "nonnegativity_energy"],
    *["effective_rank_x", "effective_rank_y", "participation_ratio_x", "participation_ratio_y"],
    *["rankme_x", "rankme_y", "alpha_x", "alpha_y", "intrinsic_dimension_twonn_x"],
    *["intrinsic_dimension_twonn_y", "intrinsic_dimension_mle_x", "intrinsic_dimension_mle_y"],
    *["anisotropy_x", "anisotropy_y", "dead_x", "dead_y", "saturated"],
    *["scale_x", "scale_y", "duplicates"],
]


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(), nn.BatchNorm2d(6), nn.Conv2d(6, 10, 3), nn.SiLU(inplace=True)
    )


def images(count: int = 200) -> Tensor:
    return torch.randn(count, 3, 9, 9, generator=torch.Generator().manual_seed(3))


def test_every_gauge_at_every_site_on_every_batch() -> None:
    model, x = network(), images()
    sounding = measure(model, x, samples=64, gauges="all")
    assert [site.name for site in sounding.sites] == ["1", "4"]
    assert sounding.gauges == GAUGE_COLUMNS
    assert len(sounding.records) == 2 * 3
    assert sounding.provenance.data["samples_left_over"] == 200 - 3 * 64
    with torch.no_grad(), watch(model.eval()) as record:
        model(x[64:128])
    for site, pair in record.pairs.items():
        row = sounding.batches.xs((site.name, 1)).to_dict()
        assert row["affinity"] == pytest.approx(float(affinity_score(*pair)), abs=1e-6)
        assert row["r2"] == pytest.approx(float(fathometer.r2(*pair)), abs=1e-6)
        assert row["norm"] == pytest.approx(float((pair.x - pair.y).norm()), rel=1e-5)


def test_signature_table_and_summary() -> None:
    sounding = measure(network(), images(), samples=64, gauges="affinity")
    scores = sounding.records.pivot(index="site", columns="batch", values="affinity")
    assert sounding.signature.to_list() == pytest.approx(scores.mean(axis=1).to_list())
    assert sounding.table["affinity", "std"].to_list() == pytest.approx(scores.std(axis=1).to_list())
    assert sounding.table["affinity", "count"].to_list() == [3, 3]
    summary = sounding.summary()
    assert summary["spread"] == pytest.approx(summary["max"] - summary["min"])
    assert list(summary.index) == ["min", "median", "max", "spread"]
    with pytest.raises(InputError, match="'cka' was not measured; choose from affinity"):
        sounding.mean("cka")


@pytest.mark.parametrize("size", [1, 7, 64, 200])
def test_the_compute_batch_does_not_matter(size: int) -> None:
    x = images()
    expected = measure(network(), [x], samples=64)
    for sounding in (
        measure(network(), DataLoader(TensorDataset(x), batch_size=size), samples=64),
        measure(network(), x, samples=64, batch_size=size),
    ):
        pd.testing.assert_frame_equal(sounding.records, expected.records, rtol=1e-5, atol=1e-6)


def test_forms_of_data() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor, scale: float = 1.0) -> tuple[Tensor, float]:
            return torch.relu(x * scale), scale

    x = images().flatten(1)
    expected = measure(Net(), x, samples=50).records
    halves = [x[:90], x[90:]]
    named = namedtuple("named", ["values", "label"])
    forms: list[Any] = [
        halves,
        [named(half, torch.zeros(len(half))) for half in halves],
        [(half, torch.zeros(len(half))) for half in halves],
        [{"x": half, "label": torch.zeros(len(half)), "names": ["a"] * len(half)} for half in halves],
        (half.numpy() for half in halves),
        x.numpy(),
        DataLoader(TensorDataset(x, torch.zeros(200)), batch_size=33),
    ]
    for form in forms:
        pd.testing.assert_frame_equal(measure(Net(), form, samples=50).records, expected)
    called = measure(Net(), halves, samples=50, call=lambda model, item: model(item, 1.0))
    pd.testing.assert_frame_equal(called.records, expected)


def test_a_dataset_is_shuffled_by_the_seed() -> None:
    data = TensorDataset(images())
    first, same, other = (measure(network(), data, samples=64, gauges="affinity", seed=s) for s in (0, 0, 1))
    pd.testing.assert_frame_equal(first.records, same.records)
    assert not first.records.equals(other.records)


def test_whole_sequences_make_a_batch_of_tokens() -> None:
    class Masked(nn.Sequential):
        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
            del attention_mask
            return torch.tanh(self[1](self[0](input_ids)))

    torch.manual_seed(0)
    model = Masked(nn.Embedding(20, 6), nn.Linear(6, 8))
    ids = torch.randint(0, 20, (30, 10))
    mask = (torch.arange(10) < torch.randint(4, 11, (30, 1))).long()
    expected = measure(model, [{"input_ids": ids, "attention_mask": mask}], samples=64, reduction="tokens")
    assert set(expected.records["n"]) == {64}
    assert len(expected.records) == int(mask.sum()) // 67
    single = [{"input_ids": ids[i : i + 1], "attention_mask": mask[i : i + 1]} for i in range(30)]
    again = measure(model, single, samples=64, reduction="tokens")
    pd.testing.assert_frame_equal(again.records, expected.records, rtol=1e-5, atol=1e-6)
    unmasked = measure(model, ids, samples=100, reduction="tokens")
    assert unmasked.records["n"].to_list() == [100] * 3


def test_leftover_samples_are_dropped_or_kept() -> None:
    kept = measure(network(), images(100), samples=64, leftover="keep", gauges="affinity")
    assert kept.records["n"].to_list() == [64, 64, 36, 36]
    assert kept.provenance.data["samples_left_over"] == 0
    with pytest.raises(InputError, match="at least 64 samples to fill a batch, got 50"):
        measure(network(), images(50), samples=64)
    one = measure(network(), images(65), samples=64, leftover="keep", gauges="affinity")
    assert one.provenance.data["samples_left_over"] == 1
    with pytest.raises(InputError, match="got 0"):
        measure(network(), [], samples=64)


def test_batches_stop_the_data() -> None:
    taken: list[int] = []

    def endless() -> Iterator[Tensor]:
        while True:
            taken.append(1)
            yield images(20)

    sounding = measure(network(), endless(), samples=30, batches=2, gauges="affinity")
    assert sounding.table["affinity", "count"].to_list() == [2, 2]
    assert len(taken) == 3


def test_the_network_is_left_as_it_was_also_when_it_fails() -> None:
    model = network()
    model[0].eval()  # type: ignore[index]
    flags = [module.training for module in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    measure(model, images(), samples=64, gauges="affinity")
    with pytest.raises(ForwardError, match=r"the network failed on its input \(RuntimeError: .*channels"):
        measure(model, torch.randn(64, 5, 9, 9), samples=64)
    assert [module.training for module in model.modules()] == flags
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())


def n(x: Tensor, y: Tensor) -> float:
    return float((x - y).sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": None}, "samples: expected a whole number from 2, got None"),
        ({"batches": 0}, "batches: expected a whole number from 1"),
        ({"batch_size": 0}, "batch_size"),
        ({"leftover": "eat"}, "leftover: expected one of drop, keep, got 'eat'"),
        ({"gauges": "affinty"}, "gauges: unknown gauge 'affinty'; did you mean affinity"),
        ({"gauges": [n]}, "gauges: 'n' is a column of every table"),
        ({"reduction": "tokens"}, r"'tokens': expected token ids .* got shape \[32, 3, 9, 9\]"),
        ({"reduction": Reduction(sample_axis=1)}, "sample_axis: data are cut along the first axis"),
        ({"reduction": "median"}, "reduction: expected one of mean"),
        ({"device": "gpu"}, "device: gpu is not usable here"),
        ({"sites": lambda site: site.nothing}, "sites: the predicate failed on 1"),
        ({"sites": "gelu"}, r"no site to measure; the activation calls seen are: 1, 4\."),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FathometerError, match=message):
        measure(network(), images(), **{"samples": 64, **options})


def test_modules_whose_width_changes_are_warned_of() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 5), nn.ReLU())
    with pytest.warns(UserWarning, match=r"1 is not measured: its width changes \(\[32, 4\] in"):
        sounding = measure(
            model, torch.randn(64, 4), samples=64, sites=[nn.Linear, "relu"], gauges="affinity"
        )
    assert [site.name for site in sounding.sites] == ["0", "2"]


def test_branches_that_depend_on_data_have_batches_of_their_own() -> None:
    x = torch.cat((torch.rand(40, 3), -torch.rand(20, 3)))
    sounding = measure(zoo.Conditional(), x.split(10), samples=30, gauges="affinity")
    assert sounding.records[["site", "batch", "n"]].to_numpy().tolist() == [
        ["/relu", 0, 30],
        ["/relu", 1, 10],
        ["/tanh", 1, 20],
    ]


def test_an_interrupted_measurement_is_resumed(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    reduction = Reduction("position")
    expected = measure(network(), images(), samples=40, reduction=reduction)

    passes = 0

    class Counting(list[Tensor]):
        description = {"name": "images"}  # noqa: RUF012

        def __iter__(self) -> Iterator[Tensor]:
            nonlocal passes
            for item in images().split(16):
                passes += 1
                yield item

    class Failing(Counting):
        def __iter__(self) -> Iterator[Tensor]:
            yield from images().split(16)[:8]
            raise KeyboardInterrupt

    def run(data: Any) -> Sounding:
        return measure(network(), data, samples=40, reduction=reduction, journal=journal)

    with pytest.raises(KeyboardInterrupt):
        run(Failing())
    lines = journal.read_text().splitlines()
    assert len(lines) == 1 + 3
    journal.write_text("\n".join(lines)[:-50])  # the last line is cut
    sounding = run(Counting())
    pd.testing.assert_frame_equal(sounding.records, expected.records, rtol=1e-5, atol=1e-6)
    assert sounding.sites == expected.sites
    assert passes == 13
    again = run(Counting())  # all is known
    pd.testing.assert_frame_equal(again.records, sounding.records)
    first = measure(network(), Counting(), samples=40, reduction=reduction, journal=journal, batches=2)
    assert set(first.records["batch"]) == {0, 1}
    assert first.provenance.data["samples_measured"] == 80


def test_resuming_keeps_the_order_of_sites(tmp_path: Path) -> None:
    x = torch.cat((torch.rand(40, 3), -torch.rand(20, 3)))
    expected = measure(zoo.Conditional(), x.split(10), samples=20, gauges="affinity")
    journal = tmp_path / "run.journal"
    measure(zoo.Conditional(), x.split(10), samples=20, gauges="affinity", journal=journal, batches=1)
    resumed = measure(zoo.Conditional(), x.split(10), samples=20, gauges="affinity", journal=journal)
    assert resumed.sites == expected.sites
    pd.testing.assert_frame_equal(resumed.records, expected.records)


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"

    def call(model: nn.Module, x: Tensor) -> None:
        model(x)

    def interrupt(done: int, _: int | None) -> None:
        if done > 64:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(
            network(), images(), samples=40, gauges="norm", journal=journal, call=call, progress=interrupt
        )
    others: list[tuple[nn.Module, Any, dict[str, Any], str]] = [
        (network(1), images(), {}, "model"),
        (network(), images(), {"samples": 41}, "samples"),
        (network(), 2 * images(), {}, "data"),
        (network(), images(), {"gauges": "affinity"}, "gauges"),
        (network(), images(), {"reduction": "sum"}, "reduction"),
        (network(), images(), {"call": lambda model, x: model(x)}, "call, code"),
        (network(), images(), {"call": None}, "call, code"),
    ]
    for model, data, options, what in others:
        with pytest.raises(InputError, match=f"another measurement .other {what}.;"):
            measure(
                model, data, **{"samples": 40, "gauges": "norm", "call": call, **options}, journal=journal
            )
    assert len(measure(network(), images(), samples=40, gauges="norm", call=call, journal=journal).sites) == 2
    for text in ("nonsense", '{"schema": "fathometer.measuring.journal/2", "identity": -1}\n'):
        journal.write_text(text)
        with pytest.raises(InputError, match="not the journal of a measurement"):
            measure(network(), images(), samples=40, journal=journal)


def test_provenance_records_model_settings_and_versions() -> None:
    facts = measure(network(), images(), samples=64, gauges="affinity", name="small").provenance
    again = measure(network(), images(), samples=64, gauges="affinity").provenance
    other = measure(network(1), images(), samples=64, gauges="affinity").provenance
    assert facts.model["name"] == "small"
    assert facts.model["checksum"] == again.model["checksum"] != other.model["checksum"]
    assert facts.model["parameters"] == sum(p.numel() for p in network().parameters())
    assert facts.settings["samples"] == 64
    assert facts.versions["torch"] == version("torch")
    assert facts.device.startswith("cpu")
    assert json.loads(json.dumps(facts.as_dict()))["data"]["samples_measured"] == 192
    assert np.isfinite(facts.seconds)


def test_the_compute_batch_does_not_matter_where_tokens_are_routed() -> None:
    class Routing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.gate = nn.Embedding(30, 6), nn.Linear(6, 2)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.SiLU()) for _ in range(2))

        def forward(self, input_ids: Tensor) -> Tensor:
            tokens = self.embed(input_ids).view(-1, 6)
            chosen = self.gate(tokens).argmax(-1)
            output = torch.zeros(len(tokens), 8)
            for number, expert in enumerate(self.experts):
                rows = (chosen == number).nonzero().flatten()
                output.index_copy_(0, rows, expert(tokens[rows]))
            return torch.tanh(output).view(*input_ids.shape, 8)

    torch.manual_seed(0)
    model, ids = Routing().eval(), torch.randint(0, 30, (40, 8))
    expected = measure(model, ids, samples=80, reduction="tokens", batch_size=40)
    assert [site.name for site in expected.sites] == ["experts.0.1", "experts.1.1", "/tanh"]
    sums = expected.records.groupby("batch")["n"].sum()
    assert sums.to_list() == [160] * 4  # each token once, and in /tanh
    for size in (1, 3, 7):
        again = measure(model, ids, samples=80, reduction="tokens", batch_size=size)
        pd.testing.assert_frame_equal(again.records, expected.records, rtol=1e-5, atol=1e-6)


def test_a_site_with_nan_is_named() -> None:
    net, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(100, 8)
    labels = torch.full((100,), torch.nan)
    measure(net, [(x, labels)], samples=50, gauges="norm")  # labels are not measured
    x[37, 3] = torch.nan
    with pytest.raises(InputError, match="1: affinity: x: expected finite values"):
        measure(net, x, samples=50, batch_size=10)
    narrow = torch.zeros(60, 8, dtype=torch.float8_e4m3fn)
    assert len(measure(zoo.Net(lambda _, x: x.float().relu()), narrow, samples=50, gauges="norm").sites) == 1


def test_the_tokens_of_one_text_can_be_kept() -> None:
    ids, model = torch.arange(30).reshape(1, 30) % 9, nn.Sequential(nn.Embedding(9, 4), nn.ReLU())
    found = measure(model, ids, samples=512, reduction="tokens", leftover="keep", gauges="norm")
    assert found.records["n"].to_list() == [30]
    with pytest.raises(InputError, match="expected at least 512 tokens to fill a batch, got 30 in 1 inputs"):
        measure(model, ids, samples=512, reduction="tokens")
    with pytest.raises(InputError, match=r"data: expected at least 2 tokens, got 1 in 1 inputs$"):
        measure(model, ids[:, :1], samples=512, reduction="tokens", leftover="keep")
    with pytest.raises(InputError, match=r"data: expected at least 2 samples, got 1$"):
        measure(nn.ReLU(), torch.randn(1, 3), samples=8, leftover="keep")


def test_threads_that_measure_one_network_do_not_disturb_each_other() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.9), nn.Linear(8, 8), nn.Tanh())
    x = torch.randn(3200, 4)
    expected = measure(net, x, samples=32, gauges="norm")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda data: measure(net, data, samples=32, gauges="norm"), (x[:320], x)))
    pd.testing.assert_frame_equal(found[1].records, expected.records)
    assert all(module.training for module in net.modules())


def test_a_few_samples_that_decide_r2_are_reported() -> None:
    class Massive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x[:, :1] > 5, 100 * x, x.square())

    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Identity(), Massive()), torch.randn(2000, 6)
    x[:20] += 10
    with pytest.warns(UserWarning, match="a few samples decide R² at 1: r2_heldout and r2_trimmed differ"):
        sounding = measure(net, x, samples=2000, sites="module:1", gauges="r2_heldout,r2_trimmed,carriers")
    row = sounding.records.iloc[0]
    assert row["r2_heldout"] > row["r2_trimmed"] + 0.1
    assert row["carriers_y"] > 0.9
    with pytest.warns(UserWarning, match="1 % of them carry more than half.*add the gauge r2_trimmed"):
        measure(net, x, samples=2000, sites="module:1", gauges="r2_heldout,carriers")


def test_language_gauges_are_those_of_the_kind_of_site() -> None:
    options = MeasureOptions(gauges="language,norm")
    dimensions = ["stable_rank", "intrinsic_dimension"]
    assert list(options.gauges_at("activation")) == ["affinity", "carriers", *dimensions, "norm"]
    assert list(options.gauges_at("mlp")) == ["r2_heldout", "r2_trimmed", "carriers", "norm"]
    assert list(options.gauges_at("block")) == ["r2_heldout", "r2_trimmed", "carriers", *dimensions, "norm"]
    assert "affinity" in MeasureOptions(gauges="language,affinity").gauges_at("block")
    assert list(MeasureOptions(gauges="affinity,r2").gauges_at("mlp")) == ["affinity", "r2"]
