from __future__ import annotations

import pytest
import torch

from fathometer import InputError
from fathometer.gauges import registry
from fathometer.gauges.registry import GAUGES, choose_gauges, read_gauges


def pairs(count: int = 3) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(40, width, generator=generator) for width in (5, 8, 5, 60)[:count]]
    return {f"site {i}": (x, x.relu()) for i, x in enumerate(drawn)}


def test_together_is_one_by_one() -> None:
    chosen = choose_gauges("all")
    alone = read_gauges(chosen, pairs(4))
    together = registry._together(chosen, list(pairs(4).values()))
    assert [list(row) for row in together] == [list(row) for row in alone]
    for a, b in zip(alone, together, strict=True):
        assert list(a.values()) == pytest.approx(list(b.values()), rel=1e-9, abs=1e-9)


def test_a_batch_that_fails_is_told_and_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(registry, "_are_on_gpu", lambda _: True)
    monkeypatch.setattr(registry, "_together", broken)
    chosen = choose_gauges("affinity")
    with pytest.warns(UserWarning, match=r"RuntimeError\('no kernel'\)"):
        found = read_gauges(chosen, pairs())
    assert len(found) == 3
    bad = pairs()
    bad["site 1"][0][0, 0] = torch.nan
    with pytest.raises(InputError, match="site 1: affinity: x: expected finite values"):
        read_gauges(chosen, bad)


def test_standard_is_all_but_one() -> None:
    assert set(GAUGES) - set(choose_gauges()) == {"affinity_sample"}
    assert list(choose_gauges("all")) == list(GAUGES)
