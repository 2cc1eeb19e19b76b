"""Every awkward network, watched: its sites, its output, its gradients, and what is left behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fathometer import InputError, watch
from tests.robustness.watched import try_network
from tests.zoo import ZOO

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "own-model.md"
VISIBLE = [name for name, entry in ZOO.items() if not entry.refused]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", VISIBLE)
def test_an_awkward_network_shows_its_sites_and_computes_what_it_did(name: str, training: bool) -> None:
    entry = ZOO[name]
    mode = torch.enable_grad if training else torch.no_grad
    trial = try_network(lambda: entry.make(training=training), mode, gradients=training and entry.trains)
    assert trial.faults == []
    assert trial.sites == entry.sites
    assert len(trial.counted) == len(entry.sites) + entry.hidden


@pytest.mark.parametrize("name", VISIBLE)
def test_a_capacity_does_not_change_the_pairs(name: str) -> None:
    kept = []
    for capacity in (None, 1000):
        made = ZOO[name].make()
        torch.manual_seed(1)
        with torch.no_grad(), watch(made.network, capacity=capacity) as record:
            made.run(made.network, *made.given)
        kept.append(record.pairs)
    free, bounded = kept
    assert list(bounded) == list(free)
    for site, pair in free.items():
        torch.testing.assert_close(bounded[site], pair, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", [name for name, entry in ZOO.items() if entry.refused])
def test_what_cannot_be_seen_into_is_refused(name: str) -> None:
    made = ZOO[name].make()
    with pytest.raises(InputError, match=re.escape(ZOO[name].refused)), watch(made.network):
        made.run(made.network, *made.given)


def test_the_guide_describes_each_network() -> None:
    rows = [f"| {entry.what} | {entry.becomes} |" for entry in ZOO.values() if entry.becomes]
    table = "\n".join(("| what is awkward | what happens |", "|---|---|", *rows)) + "\n"
    assert table in GUIDE.read_text("utf-8")
