"""Every awkward network, watched: its sites, its output, its gradients, and what is left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fathometer import watch
from tests.robustness.watched import MODES, Trial, faults_of, unless_refused
from tests.zoo import ZOO

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "own-model.md"


@pytest.mark.parametrize("mode", ["no_grad", "training"])
@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if not entry.refused])
def test_an_awkward_network_shows_its_sites_and_computes_what_it_did(name: str, mode: str) -> None:
    trial, faults = faults_of(ZOO[name], MODES[mode])
    assert faults == []
    assert trial.sites == ZOO[name].sites
    assert trial.interrupted


@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if not entry.refused])
def test_a_capacity_does_not_change_the_pairs(name: str) -> None:
    kept = []
    for capacity in (None, 1000):
        made = ZOO[name].make()
        torch.manual_seed(1)
        with torch.no_grad(), watch(made.network, capacity=capacity) as seen:
            made.run(made.network, *made.given)
        kept.append(seen.pairs)
    free, bounded = kept
    assert list(bounded) == list(free)
    for site, pair in free.items():
        torch.testing.assert_close(bounded[site], pair, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if entry.refused])
def test_what_cannot_be_seen_into_is_refused(name: str) -> None:
    assert unless_refused(name, ZOO[name]) == []


def test_the_checks_find_wrong_entries() -> None:
    entry = ZOO["differentiated"]
    wrong = replace(entry, sites=["/relu"])
    assert faults_of(wrong, MODES["no_grad"])[1] == [
        "sites ['/tanh', '/tanh#2'] for ['/relu']",
        "2 calls counted",
    ]
    assert unless_refused("seen", replace(entry, refused="by no word")) == ["seen: was not refused"]
    assert Trial([], [], [], [], interrupted=False).faults == ["the exception in the middle did not come"]


def test_the_guide_describes_each_network() -> None:
    assert len(ZOO) >= 40
    rows = [f"| {entry.what} | {entry.becomes} |" for entry in ZOO.values() if entry.becomes]
    table = "\n".join(("| what is awkward | what happens |", "|---|---|", *rows)) + "\n"
    assert table in GUIDE.read_text("utf-8")
