"""The similarity of every two sites: against ckatorch, closed forms, and with bounded memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from ckatorch import cka_batch
from torch import Tensor

from fathometer import InputError
from fathometer.gauges import cka_debiased, similarity
from fathometer.gauges.similarity import MINIBATCH, cka_from_sums, hsic_sums


def sides(n: int, seed: int = 0) -> dict[str, Tensor]:
    """Narrow, wide, shifted, independent and tiny samples."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 30, generator=draw) @ torch.randn(30, 30, generator=draw)
    wide = torch.tanh(x @ torch.randn(30, 600, generator=draw))
    other = torch.randn(n, 30, generator=draw)
    return {"x": x, "wide": wide, "shifted": x[:, :7] + 10, "other": other, "tiny": 1e-12 * (x + other)}


@pytest.mark.parametrize("n", [4, 31, MINIBATCH, 2 * MINIBATCH, 3 * MINIBATCH])
def test_it_is_the_minibatch_cka_of_ckatorch(n: int) -> None:
    given = {name: values.double() for name, values in sides(n).items()}
    found = cka_from_sums(hsic_sums(given))
    batches = max(1, n // MINIBATCH)
    cut = [values.reshape(batches, n // batches, -1) for values in given.values()]
    expected = [[float(cka_batch(one, other)) for other in cut] for one in cut]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_it_is_the_gauge_of_one_pair() -> None:
    x, other = (side.double() for side in (sides(100)["x"], sides(100)["other"]))
    pair = hsic_sums({"x": x, "y": x.tanh() + other})
    assert cka_from_sums(pair)[0, 1] == pytest.approx(float(cka_debiased(x, x.tanh() + other)), abs=1e-12)


def test_rotation_scale_and_shift_change_nothing() -> None:
    x = sides(200)["wide"].double()
    turned = torch.linalg.qr(torch.randn(600, 600, dtype=torch.float64, generator=torch.Generator()))[0]
    found = cka_from_sums(hsic_sums({"x": x, "turned": x @ turned, "scaled": -3 * x + 5}))
    np.testing.assert_allclose(found, 1, atol=1e-12)
    assert (np.diagonal(found) == 1).all()


def test_independent_samples_are_around_zero_and_below_it_too() -> None:
    values = np.array([cka_from_sums(hsic_sums(sides(32, seed)))[0, 3] for seed in range(200)])
    assert abs(values.mean()) < 4 * values.std() / len(values) ** 0.5  # biased, it would be 0.4
    assert (values < 0).mean() > 0.25


def test_sums_of_several_batches_add_up() -> None:
    """Minibatches of one size, in one call or in several: the same numbers."""
    parts = [sides(MINIBATCH, seed) for seed in range(3)]
    whole = hsic_sums({name: torch.cat([part[name] for part in parts]) for name in parts[0]})
    np.testing.assert_allclose(whole, np.sum([hsic_sums(part) for part in parts], axis=0), rtol=1e-12)


def test_minibatches_estimate_what_all_samples_do() -> None:
    given = sides(16 * MINIBATCH)
    minibatches = cka_from_sums(hsic_sums(given))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "MINIBATCH", 16 * MINIBATCH)
        everything = cka_from_sums(hsic_sums(given))
    np.testing.assert_allclose(minibatches, everything, atol=0.01)


def test_what_does_not_vary_has_no_similarity() -> None:
    one = torch.zeros(40, 3)
    one[7, 1] = 1.0  # HSIC₁ of a single sample that differs from the rest is 0, apart from rounding
    saturated = 1 - torch.finfo(torch.float32).eps * torch.randint(0, 2, (40, 3)) / 2
    given = {"x": torch.randn(40, 3), "constant": torch.ones(40, 3), "one": one, "saturated": saturated}
    found = cka_from_sums(hsic_sums(given))
    assert np.isnan(found).sum() == 16 - 1
    assert found[0, 0] == 1


def test_groups_of_one_width_give_the_same_as_single_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {str(i): torch.randn(50, 3 + i % 2, generator=torch.Generator().manual_seed(i)) for i in range(9)}
    together = hsic_sums(given)
    monkeypatch.setattr(similarity, "_STACKED", 1)
    np.testing.assert_allclose(together, hsic_sums(given), rtol=1e-12)


MEMORY = """
import resource, torch
from fathometer.gauges.similarity import hsic_sums
given = {str(site): torch.randn(2048, 64) for site in range(150)}
hsic_sums({name: values[:64] for name, values in given.items()})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
hsic_sums(given)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes only there")
def test_memory_is_that_of_one_minibatch() -> None:
    """150 sites take 39 MB and stacks of 16 MiB; Gram matrices of all 2048 samples would take 2.5 GB."""
    found = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 120_000


def test_fewer_than_four_and_different_samples_are_refused() -> None:
    with pytest.raises(InputError, match="at least 4, got 3"):
        hsic_sums({"x": torch.randn(3, 2)})
    with pytest.raises(InputError, match="the same samples for every site, at least 4, got 8, 9"):
        hsic_sums({"x": torch.randn(8, 2), "y": torch.randn(9, 2)})
    broken = torch.randn(8, 2)
    broken[3, 1] = torch.inf
    with pytest.raises(InputError, match="y: expected finite values, got 1 NaN or inf"):
        hsic_sums({"x": torch.randn(8, 2), "y": broken})
