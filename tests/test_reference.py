"""The reference networks: what the file holds, and where a network is among them."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from fathometer import InputError, Sounding, reference
from fathometer.compare import known_facts
from tests.compare.soundings import sounding

RNG = np.random.default_rng(0)


def some() -> dict[str, Sounding]:
    return {name: sounding(name, RNG.random((5, 3)), cka=RNG.random((5, 3))) for name in ("a", "b")}


def test_means_and_stds_survive_packing() -> None:
    given = some()
    content = reference.pack(given)
    assert content == reference.pack(given)
    found = reference.unpack(content)
    assert list(found.soundings) == ["a", "b"]
    for name, each in found.soundings.items():
        assert each.provenance == given[name].provenance
        assert each.sites == given[name].sites
        for gauge in ("affinity", "cka"):
            assert np.allclose(each.mean(gauge), given[name].mean(gauge), rtol=5e-4)
            assert np.allclose(found.stds[name][gauge], given[name].std(gauge), rtol=0.05)


@pytest.mark.parametrize("content", [b"", b"text", reference.pack(some())[:-40]])
def test_a_broken_file_is_named(content: bytes) -> None:
    with pytest.raises(InputError, match=r"mine\.xz: broken"):
        reference.unpack(content, "mine.xz")


def test_the_file_is_small_and_every_network_is_known() -> None:
    assert len(resources.files("fathometer.reference").joinpath("networks.json.xz").read_bytes()) <= 2**20
    known = reference.load()
    assert len(known) >= 20
    facts = known_facts(known)
    assert facts[["family", "year", "parameters"]].notna().all(axis=None)
    assert {name.partition("/")[0] for name in known} == {"imagenet", "cifar10"}
    for each in known.values():
        assert each.provenance.versions["commit"]
        assert each.signature.between(0, 1).all()


def test_the_table_has_a_row_for_each_site() -> None:
    table = reference.table()
    assert len(table) == sum(len(each.sites) for each in reference.load().values())
    resnet = table[table["network"] == "cifar10/resnet20"]
    assert (resnet["depth"].iloc[0], resnet["depth"].iloc[-1]) == (0, 1)
    assert (
        resnet.groupby("after_sum")["affinity"].mean().diff().iloc[-1] > 0.2
    )  # the paper's two kinds of sites


def test_a_reference_network_is_nearest_to_itself() -> None:
    mine = reference.load("imagenet")["imagenet/resnet18"]
    found = reference.place({"mine": mine}, count=3)
    assert found.nearest["nearest"].iloc[0] == "imagenet/resnet18"
    assert found.nearest["distance"].is_monotonic_increasing
    assert len(found.nearest) == 3
    row = found.percentiles.set_index("statistic").loc["median"]
    assert row["low"] <= row["value"] <= row["high"]
    assert 0 <= row["percentile"] <= 100
    only = reference.place({"mine": mine}, data="cifar10")
    assert set(only.nearest["data"]) == {"cifar10"}
