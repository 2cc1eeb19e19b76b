"""Every awkward network, watched: its sites, its output, its gradients, and what is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from soak.networks.own import MODES, try_awkward

from fathometer import InputError
from fathometer.capture import watch
from tests.zoo import ZOO
from tests.zoo.page import table

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "own-model.md"


@pytest.mark.parametrize("mode", ["no_grad", "training"])
@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if not entry.refused])
def test_an_awkward_network_shows_its_sites_and_computes_what_it_did(name: str, mode: str) -> None:
    trial = try_awkward(ZOO[name], MODES[mode])
    assert trial.sites == ZOO[name].sites
    assert len(trial.counted) == len(ZOO[name].sites) + ZOO[name].hidden
    assert trial.faults == []


@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if entry.refused])
def test_what_cannot_be_seen_into_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=ZOO[name].refused), watch(ZOO[name].make().network):
        pass


def test_the_guide_says_what_becomes_of_each() -> None:
    assert len(ZOO) >= 40
    assert table(ZOO) in GUIDE.read_text("utf-8")
