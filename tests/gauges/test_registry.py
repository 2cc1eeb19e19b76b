from __future__ import annotations

import gc
import math
import pickle
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from fathometer import InputError, cka
from fathometer.capture import Pair
from fathometer.gauges import Gauge, reading, samples, scoring, together
from fathometer.gauges.reading import read_gauges, read_one_by_one
from fathometer.gauges.registry import GAUGES, choose_gauges
from fathometer.gauges.samples import Samples
from fathometer.gauges.together import read_together


def pairs(count: int = 3) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(40, width, generator=generator) for width in (5, 8, 5, 60)[:count]]
    return {f"site {i}": (x, x.relu()) for i, x in enumerate(drawn)}


@pytest.mark.parametrize("name", list(GAUGES))
def test_many_pairs_together_give_the_values_of_each_alone(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((40, 6), (40, 9), (10, 24), (40, 6), (30, 1), (12, 12))
    drawn = [torch.randn(n, d, generator=generator, dtype=torch.float64) + 0.5 for n, d in shapes]
    every = {str(i): (x, x.relu()) for i, x in enumerate(drawn)}
    below_one = torch.nextafter(torch.tensor(1.0), torch.tensor(0.0))
    flips = torch.where(drawn[0] > 0, torch.tensor(1.0), below_one)  # constant in float32, not in float64
    every |= {
        "float32": (drawn[0].float(), drawn[0].relu().float()),
        "by columns": (drawn[1].mT, drawn[1].mT.tanh()),
        "flips": (drawn[0].float(), flips),
        "flips in float64": (drawn[0], flips.double()),
    }
    chosen = choose_gauges(name)
    alone = [read_one_by_one(chosen, {site: pair})[0] for site, pair in every.items()]
    assert read_one_by_one(chosen, every) == [pytest.approx(row, rel=0, abs=0, nan_ok=True) for row in alone]
    backwards = dict(reversed(every.items()))
    for found, expected in (
        (read_together(chosen, every), alone),
        (read_together(chosen, backwards), alone[::-1]),
    ):
        assert found == [pytest.approx(row, rel=1e-9, abs=1e-9, nan_ok=True) for row in expected]


def test_threads_that_read_different_pairs_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In Python 3.11, a `cached_property` has one lock for all objects."""
    both = threading.Barrier(2)
    monkeypatch.setattr(samples, "smaller_gram", lambda _: both.wait(timeout=20))
    with ThreadPoolExecutor(2) as pool:
        sides = [Samples(torch.randn(8, 3).double(), 0.0, "x") for _ in range(2)]
        assert sorted(pool.map(lambda side: side.gram, sides)) == [0, 1]


@pytest.mark.parametrize("read", [read_one_by_one, read_together])
def test_what_pairs_share_is_freed_without_the_garbage_collector(read: Callable[..., Any]) -> None:
    """The collector counts objects, not bytes: waiting for it took 450 MB for a ResNet-50 of 512 samples."""
    seen: list[weakref.ref[Any]] = []

    def note(x: Samples, y: Samples) -> torch.Tensor:
        pair = x.pair()
        assert pair is not None
        seen.extend(weakref.ref(each) for each in (pair, x, y.gram, pair.cross))
        return x.norms2.sum(-1)

    gauges = {**GAUGES, "note": Gauge("note", note, batched=True, takes_samples=True)}
    gc.collect()
    gc.disable()
    try:
        read(gauges, pairs(4))
        assert len(seen) >= 8
        assert not any(each() is not None for each in seen)
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("samples", [4, 12])
def test_joining_widths_does_not_change_how_few_coarse_samples_are_fitted(
    dtype: torch.dtype, samples: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(samples, width, generator=generator).to(dtype) for width in range(1, 14)]
    every = {str(x.shape[1]): (x, x.relu()) for x in drawn}
    chosen = choose_gauges("r2,r2_heldout")
    alone = [pytest.approx(row, rel=1e-9) for row in read_one_by_one(chosen, every)]
    assert read_together(chosen, every) == alone


def test_pieces_of_joined_widths_keep_their_number_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(40, width, generator=generator) for width in (8, 9, 20, 24)]
    every = {str(x.shape[1]): (x, x.relu()) for x in drawn}
    chosen = choose_gauges("affinity")
    alone = [pytest.approx(row, rel=1e-9) for row in read_one_by_one(chosen, every)]
    monkeypatch.setattr(scoring, "_CHUNK", {"cpu": 1})
    assert read_together(chosen, every) == alone


def test_one_large_pair_of_unequal_widths_has_the_gauges_that_can_be_read() -> None:
    x = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
    (found,) = read_gauges(choose_gauges("affinity,r2"), {"site": (x, x[:, :8].relu())})
    assert list(found) == ["r2"]


def test_pairs_that_are_read_together_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_MAX_ENTRIES", 100)
    small, large = torch.ones(2, 5), torch.ones(10, 30)
    every = [(small, small)] * 12 + [(large, large[:, :1])] * 2
    found = list(together._within_memory([list(range(12)), [12, 13]], every))
    assert found == [[[0, 1, 2, 3, 4]], [[5, 6, 7, 8, 9]], [[10, 11]], [[12]], [[13]]]
    found = list(together._within_memory([[0, 1], [12], [2], [3]], every))
    assert found == [[[0, 1]], [[12]], [[2], [3]]]


def test_a_gauge_that_gives_too_many_values_does_not_shift_those_of_others() -> None:
    def several(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x - y)[0]

    with pytest.raises(InputError, match="several: expected 1 values, got 5"):
        read_together(choose_gauges([several, "norm"]), pairs())
    joins = Gauge("gap", batched_gap, batched=True, joins_widths=True)
    plain = Gauge("gap", batched_gap, batched=True)
    assert read_together({"gap": joins}, pairs()) == read_together({"gap": plain}, pairs())


def test_labels_and_bounds_of_pairs_that_are_read_together() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [5 * torch.randn(40, width, generator=generator) for width in (6, 6, 9)]
    every = {str(place): Pair(x, x.tanh()) for place, x in enumerate(drawn)}
    every["0"].bounds = every["2"].bounds = (-1.0, 1.0)
    chosen, labels = choose_gauges("saturated,neural_collapse,dead,anisotropy"), torch.arange(40) % 4
    alone = read_one_by_one(chosen, every, labels)
    together = read_together(chosen, every, labels)
    assert together == [pytest.approx(row, rel=1e-9, nan_ok=True) for row in alone]
    assert [math.isnan(row["saturated"]) for row in alone] == [False, True, False]
    assert all(row["neural_collapse_nc1"] > 0 for row in alone)

    changing = {"next": Gauge("next", lambda *_, labels: labels.add_(1).sum(), needs=("labels",))}
    for read in (read_one_by_one, read_together):
        assert [row["next"] for row in read(changing, every, labels)] == [100.0] * 3


def test_a_batch_that_fails_is_computed_one_by_one_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(reading, "_are_on_gpu", lambda _: True)
    monkeypatch.setattr(reading, "read_together", broken)
    chosen = choose_gauges("affinity")
    with pytest.warns(UserWarning, match=r"RuntimeError\('no kernel'\)"):
        found = read_gauges(chosen, pairs())
    assert len(found) == 3
    bad = pairs()
    bad["site 1"][0][0, 0] = torch.nan
    with pytest.raises(InputError, match="site 1: affinity: x: expected finite values"):
        read_gauges(chosen, bad)


def batched_gap(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - y).abs().amax((-2, -1))


def in_place(x: torch.Tensor, y: torch.Tensor) -> float:
    x -= x.mean(0)
    y.zero_()
    return float(x.norm())


@dataclass
class Gap:
    """A gauge that is an object without a hash."""

    power: int = 1

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x - y).abs().pow(self.power).mean()


def test_gauges_of_ones_own_get_copies_and_can_be_sent_to_another_process() -> None:
    both = choose_gauges(
        [in_place, Gap(2), Gauge.from_function(batched_gap, batched=True), "affinity_sample"]
    )
    expected = read_gauges(both, pairs())
    again = pickle.loads(pickle.dumps(both))
    for found in (read_gauges(again, pairs()), read_together(both, pairs())):
        assert found == [pytest.approx(row, rel=1e-6) for row in expected]
    chosen = choose_gauges([in_place, "norm", "sparsity", "nonnegativity"])
    plain = choose_gauges("norm,sparsity,nonnegativity")
    for read in (read_gauges, read_together):
        found = read(chosen, pairs())
        assert [{name: row[name] for name in row if name != "in_place"} for row in found] == read(
            plain, pairs()
        )


def test_gauges_are_chosen_by_name_set_and_function() -> None:
    standard = list(choose_gauges("standard"))
    assert set(GAUGES) - set(standard) == {"affinity_sample", "cka", "r2_trimmed", "scale", "duplicates"}
    assert list(choose_gauges(["standard", in_place])) == [*standard, "in_place"]
    assert list(choose_gauges([in_place, "all"])) == ["in_place", *GAUGES]
    assert list(choose_gauges("standard,affinity_sample")) == [*standard, "affinity_sample"]
    assert next(iter(choose_gauges(["cka", "all"]))) == "cka"
    assert list(choose_gauges([GAUGES["cka"], cka, "cka", pickle.loads(pickle.dumps(GAUGES["cka"]))])) == [
        "cka"
    ]
    with pytest.raises(InputError, match="two are called 'in_place'"):
        choose_gauges([in_place, in_place])
    with pytest.raises(InputError, match=r"gauges: unknown gauge 'standart'; did you mean standard\?"):
        choose_gauges(["standart", in_place])


@pytest.mark.parametrize("make", [lambda function: function, Gauge.from_function])
@pytest.mark.parametrize("name", ["cka", "sparsity", "sparsity_before", "stable_rank_x"])
def test_gauges_of_ones_own_have_names_of_their_own(make: Callable[..., Any], name: str) -> None:
    own = lambda x, y: (x - y).mean()  # noqa: E731
    own.__name__ = name
    message = f"'{name}' is a (gauge|column) of fathometer; give your function another name"
    with pytest.raises(InputError, match=message):
        choose_gauges(make(own))
    for known in (GAUGES["affinity_sample"], pickle.loads(pickle.dumps(GAUGES["affinity_sample"]))):
        assert list(choose_gauges(known)) == ["affinity_sample"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_saturated_output_is_constant_in_the_dtype_that_it_was_computed_in(dtype: torch.dtype) -> None:
    low = {torch.bfloat16: 3.3, torch.float16: 4.3}[dtype]
    x = (torch.rand(256, 8, generator=torch.Generator().manual_seed(0)) * 1.5 + low).to(dtype)
    y = x.tanh()
    eps = torch.finfo(dtype).eps
    captured = {"a": Pair(x.float(), y.float(), (eps, eps)), "b": Pair(x.float(), y.float())}
    gauges = choose_gauges("affinity,cka,r2,r2_heldout,entropy")
    for read in (read_gauges, read_together):
        known, unknown = read(gauges, captured)
        direct = {name: float(gauge(x, y)) for name, gauge in gauges.items() if name != "entropy"}  # type: ignore[arg-type]
        assert {name: known[name] for name in direct} == pytest.approx(direct)
        assert known["affinity"] == 1
        assert known["entropy_after"] == 0
        assert unknown["affinity"] < 0.9
