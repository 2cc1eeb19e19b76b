"""Appendix A.2, Theorem 4 and Proposition 5."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fathometer.errors import InputError
from fathometer.leaky.path import RepresentationPath, path_through
from fathometer.leaky.theory import (
    hamiltonian_identity,
    hamiltonian_is_conserved,
    proposition_5,
    solved_path,
    theorem_4,
    three_terms,
    weights_from_momenta,
)
from papers.leaky.instances import drawn


def test_the_identity_is_exact_at_a_critical_point_however_few_the_layers() -> None:
    for steps, sigma in ((20, "relu"), (40, "softplus")):
        path = solved_path(drawn(0, 6, 10), drawn(1, 6, 10, scale=0.03), 1.0, steps, sigma)
        for gamma0 in (1e-3, 0.1):
            found = hamiltonian_identity(path, gamma0)
            assert found.holds
            assert found.error < 1e-9
        assert weights_from_momenta(path).details["largest"] < 1e-12


def test_the_hamiltonian_is_conserved_best_as_a_mean(critical: RepresentationPath) -> None:
    found = hamiltonian_is_conserved(critical)
    assert found.holds
    assert found.error < found.details["staggered"] / 3
    assert found.right <= found.details["median"] <= found.left
    assert critical.weights is not None
    growing = torch.linspace(0.5, 1.5, len(critical.weights))[:, None, None]
    assert critical.momenta is not None
    momenta = torch.cat([critical.momenta[:1], growing * critical.momenta[1:]])
    assert not hamiltonian_is_conserved(replace(critical, momenta=momenta)).holds


@pytest.mark.parametrize("gamma", [None, 1e-3, 1.0])
def test_theorem_4_at_critical_points(critical: RepresentationPath, gamma: float | None) -> None:
    found = theorem_4(critical, gamma=gamma)
    assert len(found) == 4
    for statement in found:
        assert statement.holds, statement
        assert statement.details["own_margin"] >= 0


def test_theorem_4_has_the_root_of_the_product(critical: RepresentationPath) -> None:
    below = theorem_4(critical, gamma=0.1)[0]
    c, length = below.details["momentum2_max"], below.details["length"]
    assert below.right == pytest.approx(-((length / 2 + (0.1 * c) ** 0.5) ** 2))
    assert below.paper == pytest.approx(-((length / 2 + 0.1**0.5 * c) ** 2))


def test_theorem_4_fails_with_other_momenta(critical: RepresentationPath) -> None:
    assert critical.momenta is not None
    wrong = replace(critical, momenta=0.1 * critical.momenta)
    assert not all(statement.holds for statement in theorem_4(wrong))


def test_dead_layers_are_left_out_and_counted() -> None:
    path = solved_path(drawn(0, 6, 10), drawn(1, 6, 10, scale=0.1), 2.0, 40)
    assert path.images[-2].max() == 0
    for found in (hamiltonian_identity(path), *theorem_4(path)):
        assert found.holds, found
        assert found.details["layers_dead"] == 1
    assert three_terms(path).holds
    assert hamiltonian_is_conserved(path).holds


def slow(depth: float, negative: float) -> RepresentationPath:
    a = drawn(0, 8, 20).abs()
    a[0] = -negative * a[0]
    return path_through(torch.stack([a * (1 + 0.1 * p / 4) for p in range(5)]), depth)


@pytest.mark.parametrize(
    ("shares", "holds"),
    [
        ((0.3, 0.1, 0.01), True),
        ((-1.0, -1.0, -1.0), True),  # nowhere negative
        ((0.02, 0.02, 0.02), False),
        ((0.01, 0.1, 0.3), False),
        ((0.9, 0.8, 0.7), False),
        ((0.02, 0.01, 0.03), False),
    ],
)
def test_proposition_5_needs_a_trend_that_ends_near_zero(shares: tuple[float, ...], holds: bool) -> None:
    found = proposition_5([slow(d, n) for d, n in zip((16.0, 8.0, 4.0), reversed(shares), strict=True)])
    assert found.holds is holds
    assert (found.margin > 0) is holds
    if shares == (0.3, 0.1, 0.01):
        assert found.details["rank_correlation"] == pytest.approx(-1)
        assert found.details["at_half_4"] > found.details["at_half_8"] > found.details["at_half_16"]


def test_proposition_5_is_not_lost_in_rounding() -> None:
    """The rank correlation of four depths is −0.8 up to rounding, which is the limit."""
    shares = (0.3, 0.1, 0.02, 0.03)
    found = proposition_5([slow(d, n) for d, n in zip((2.0, 4.0, 8.0, 16.0), shares, strict=True)])
    assert found.details["rank_correlation"] == pytest.approx(-0.8, abs=1e-12)
    assert found.holds


def test_proposition_5_needs_several_depths() -> None:
    with pytest.raises(InputError, match="three effective depths"):
        proposition_5([slow(4.0, 0.1), slow(4.0, 0.1), slow(8.0, 0.1)])
