"""The front door, and the results it gives."""

from __future__ import annotations

import pytest

from fathometer.errors import InputError
from fathometer.leaky import Design, Phase, Recipe, Teacher, sweep
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import RepresentationPath, path_of, path_through
from fathometer.leaky.theory import check_all, solved_path
from fathometer.leaky.theory.statement import at_least, equal
from papers.leaky.instances import drawn


def test_everything_holds_of_a_trained_network(trained: RepresentationPath) -> None:
    found = check_all(trained)
    names = [statement.name for statement in found]
    assert len(set(names)) == len(names) >= 18
    for part in ("1", "1 with γ", "2 with γ", "3, constant cost", "9", "9, biases"):
        assert f"Proposition {part}" in names
    assert [str(statement) for statement in found if not statement.holds] == []
    by_name = {statement.name: statement.details for statement in found}
    assert by_name["Proposition 9"]["factor"] == pytest.approx(2, abs=0.05)
    assert by_name["Section 1.3, three terms"]["paper_relative_gap"] > 0.1  # L̃ times the cross term


def test_what_needs_training_fails_without(untrained: RepresentationPath) -> None:
    found = {statement.name: statement for statement in check_all(untrained)}
    failing = {f"Proposition 9{part}" for part in ("", ", biases", ", norms")}
    failing |= {"Appendix A.2", "Section 1.5, weights"}
    assert failing <= {name for name, statement in found.items() if not statement.holds}
    assert found["Proposition 9, biases"].details["off_for_any_weights"] < 1e-10
    assert found["Proposition 1"].holds
    assert all(statement.holds for name, statement in found.items() if name.startswith("Section 1.2"))


@pytest.mark.parametrize("sigma", ["relu", "identity", "softplus"])
def test_only_statements_that_apply_are_checked(sigma: str) -> None:
    """At L̃ = 0 there is no Hamiltonian; representations, symmetries and W = Bσᵀ are left."""
    start, momentum = drawn(0, 5, 8), drawn(1, 5, 8, scale=0.05)
    leaky = check_all(solved_path(start, momentum, 1.0, 20, sigma))
    may_fail = ("Section 1.5, H is conserved", "Theorem 4")  # with few layers
    assert all(s.holds for s in leaky if not s.name.startswith(may_fail))
    assert any(s.name == "Proposition 9" for s in leaky) == (sigma != "softplus")
    net = LeakyResNet(4, 4, width=13, effective_depth=0.0, steps=6, sigma=sigma).double()
    x = drawn(0, 20, 4)
    found = check_all(path_of(net, x, x.flip(1), 0.1))
    verdicts = {statement.name: statement.holds for statement in found}
    expected = {f"Section 1.2, integration range, {part}" for part in ("flow", "norm")}
    expected |= {"Section 1.5, weights"}
    if sigma != "softplus":
        expected |= {f"Section 1.2, output scaling, {part}" for part in ("network", "flow")}
    if sigma == "identity":
        expected |= {"Footnote 1"}
    if sigma == "relu":
        expected |= {"Proposition 1", "Proposition 1 with γ", "Proposition 2 with γ"}
        expected |= {f"Proposition 3, {part}" for part in ("constant cost", "zero rows", "no minimum")}
    assert set(verdicts) == expected
    assert not verdicts.pop("Section 1.5, weights")
    assert all(verdicts.values())


def test_a_trained_plain_resnet_has_the_weights_of_its_momenta() -> None:
    design = Design(0.0, 6, 8, 0.3, teacher=Teacher((4, 2, 4)), samples=20, test_samples=1)
    recipe = Recipe((Phase("adam", 600, 1e-2), Phase("lbfgs", 400)), precision="float64")
    found = sweep(design, recipe, threads=1).runs[0]
    weights = next(s for s in check_all(found.path) if s.name == "Section 1.5, weights")
    assert weights.holds
    assert weights.error < 0.05
    assert weights.error == pytest.approx(found.history["crit"].iloc[-1], abs=0.01)


def test_proposition_5_comes_with_other_paths(trained: RepresentationPath) -> None:
    start, momentum = drawn(0, 6, 10), drawn(1, 6, 10, scale=0.03)
    others = [solved_path(start, momentum, depth, 40) for depth in (1.0, 2.0)]
    assert check_all(trained, others=others)[-1].name == "Proposition 5"
    with pytest.raises(InputError, match="no momenta"):
        check_all(path_through(drawn(0, 3, 4, 5)))


def test_the_momenta_of_path_of_are_those_of_the_solved_path() -> None:
    """The loss with the target Y = A_L + λNd/2 · B_L has exactly this critical point."""
    net = LeakyResNet(6, 6, width=6, effective_depth=2.0, steps=32, maps="identity").double()  # 1/32 is exact
    path = solved_path(drawn(0, 6, 10), drawn(1, 6, 10, scale=0.1), 2.0, 32)
    assert path.weights is not None
    assert path.momenta is not None
    net.weights.data.copy_(path.weights)
    target = path.representations[-1] + 0.3 * 60 / 2 * path.momenta[-1]
    found = path_of(net, path.representations[0].mT, target.mT, 0.3)
    assert found.momenta is not None
    assert (found.momenta - path.momenta).norm() / path.momenta.norm() < 1e-10


def test_infinite_and_unknown_sides_are_decided() -> None:
    assert at_least("a", "b", float("inf"), 1.0).holds
    assert not at_least("a", "b", 1.0, 1.1).holds
    assert not at_least("a", "b", float("nan"), 1.0).holds
    assert not equal("a", "b", 1.0, 1.0, error=float("nan"), tolerance=1.0, measure="c").holds
