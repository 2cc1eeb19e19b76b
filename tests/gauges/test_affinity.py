from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fathometer import AffinityScores, Ridge, affinity, affinity_score, affinity_scores
from fathometer.errors import InputError, NumericalError
from fathometer.gauges import scoring
from fathometer.transport.moments import DEFAULT_RIDGE, CovarianceKind
from tests.data import Matrix, correlated, relu
from tests.reference import dense_score

FUNCTIONS: dict[str, Callable[[Matrix], Matrix]] = {"relu": relu, "tanh": np.tanh, "square": np.square}


class TestClosedForms:
    @pytest.mark.parametrize("function", [np.exp, np.tanh, np.cbrt, lambda x: x + np.floor(x)])
    def test_increasing_functions_of_one_variable(self, function: Callable[[Matrix], Matrix]) -> None:
        x = correlated(200, 1)
        y = function(x)
        corr = np.corrcoef(x[:, 0], y[:, 0])[0, 1]
        score = affinity_score(x, y, covariance="sample")
        assert float(score) == pytest.approx(1 - np.sqrt(1 - corr), abs=1e-10)
        assert score.coupling == "identity"

    def test_independent_samples_do_not_score_zero(self) -> None:
        """The paper says they do; W₂ compares laws, and two draws from one law are near."""
        rng = np.random.default_rng(0)
        assert float(affinity_score(rng.normal(size=(400, 2)), rng.normal(size=(400, 2)))) > 0.8

    def test_a_reflection_is_affine_but_not_a_transport(self) -> None:
        """Only positive semi-definite maps score 1 whatever the law; −x does for symmetric laws."""
        symmetric = np.linspace(-1, 1, 101)[:, None]
        skewed = np.linspace(0, 1, 101)[:, None] ** 4
        assert float(affinity_score(symmetric, -symmetric, covariance="sample")) == pytest.approx(1, abs=1e-6)
        assert float(affinity_score(skewed, -skewed, covariance="sample")) < 0.7


AUTHORS = Ridge(1e-6, relative=False)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("covariance", "ridge", "shapes"),
    [
        (
            "ledoit-wolf",
            DEFAULT_RIDGE,
            [(40, 1), (200, 10), (64, 64), (50, 70), (20, 40), (20, 41), (16, 150)],
        ),
        ("ledoit-wolf", AUTHORS, [(100, 20)]),
        ("sample", DEFAULT_RIDGE, [(40, 1), (200, 10), (100, 60)]),
        ("sample", Ridge(1e-4), [(64, 64), (50, 70), (16, 150)]),  # only the ridge makes these regular
    ],
)
def test_the_score_is_that_of_the_dense_reference(
    covariance: CovarianceKind, ridge: Ridge, shapes: list[tuple[int, int]], name: str
) -> None:
    for n, d in shapes:
        x = correlated(n, d) * (1 if ridge.relative else 1e-3)
        y = FUNCTIONS[name](x)
        ours = affinity_score(x, y, covariance=covariance, ridge=ridge)
        assert float(ours) == pytest.approx(dense_score(x, y, covariance, ridge), abs=1e-8)
        if (n, d, name) == (200, 10, "square"):
            assert ours.coupling == "assignment"


samples = st.tuples(st.integers(2, 12), st.integers(1, 30)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.floats(-10, 10, width=32))
)


def varies(x: Matrix) -> bool:
    return bool(np.ptp(x, axis=0).max() > 1e-2)


class TestInvariances:
    @pytest.mark.parametrize("covariance", ["sample", "ledoit-wolf"])
    @settings(max_examples=100, deadline=None)
    @given(x=samples, seed=st.integers(0, 100), scale=st.floats(1e-6, 1e6), shift=st.floats(-100, 100))
    def test_scores_are_in_range_and_one_for_scaling_and_shift(
        self, covariance: CovarianceKind, x: Matrix, seed: int, scale: float, shift: float
    ) -> None:
        if not varies(x):
            return
        noise = np.random.default_rng(seed).normal(size=x.shape)
        for y in (relu(x), x**2, relu(x) + noise):
            score = affinity_score(x, y, covariance=covariance)
            assert 0 <= float(score) <= 1
            if covariance == "sample":  # by Proposition 3.5; shrinkage may exceed the bound
                assert score.w2 <= score.bound * (1 + 1e-9)
        affine = affinity_score(x, scale * (x + shift), covariance=covariance)
        assert float(affine) == pytest.approx(1, abs=1e-5)

    @pytest.mark.parametrize("covariance", ["sample", "ledoit-wolf"])
    def test_a_shuffled_copy_scores_one(self, covariance: CovarianceKind) -> None:
        x = correlated(60, 5)
        score = affinity_score(x, np.random.default_rng(0).permutation(x), covariance=covariance)
        assert float(score) == pytest.approx(1, abs=1e-7)
        assert score.coupling == "assignment"

    @settings(max_examples=50, deadline=None)
    @given(seed=st.integers(0, 10_000), n=st.integers(5, 60), d=st.integers(1, 12), rank=st.integers(1, 12))
    def test_positive_semi_definite_maps_are_affine(self, seed: int, n: int, d: int, rank: int) -> None:
        x = correlated(n, d, seed)
        b = np.random.default_rng(seed).normal(size=(d, rank))
        score = affinity_score(x, x @ (b @ b.T) + 1, covariance="sample")
        assert float(score) == pytest.approx(1, abs=1e-5)


class TestGradients:
    @pytest.mark.parametrize("covariance", ["ledoit-wolf", "sample"])
    @pytest.mark.parametrize(
        "shape", [(12, 3), (2, 9, 4), (5, 6), (4, 8), (4, 9), (4, 11), (2, 3, 8), (2, 3), (2, 4), (12, 1)]
    )
    def test_against_finite_differences(self, shape: tuple[int, ...], covariance: str) -> None:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        y = torch.relu(x) + 0.2 * torch.randn(shape, generator=generator, dtype=torch.float64)

        def score(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return affinity(a, b, covariance=covariance, ridge=1e-3)  # type: ignore[arg-type]

        assert torch.autograd.gradcheck(score, (x.requires_grad_(), y.requires_grad_()))

    def test_through_an_assignment_and_with_repeated_samples_and_dead_features(self) -> None:
        x = torch.from_numpy(correlated(15, 3)).requires_grad_()
        y = x.detach().square().requires_grad_()
        assert affinity_score(x, y).coupling == "assignment"
        assert torch.autograd.gradcheck(lambda a, b: affinity(a, b), (x, y))
        x = torch.from_numpy(correlated(10, 4))
        x[5:], x[:, 3] = x[:5].clone(), -1.0
        y = x.tanh().requires_grad_()
        assert torch.autograd.gradcheck(lambda a, b: affinity(a, b), (x.requires_grad_(), y))

    def test_only_first_derivatives_can_be_had(self) -> None:
        x = torch.from_numpy(correlated(12, 3)).requires_grad_()
        (plain,) = torch.autograd.grad(affinity(x, x.tanh()), x)
        (first,) = torch.autograd.grad(affinity(x, x.tanh()), x, create_graph=True)
        assert torch.equal(first, plain)
        with pytest.raises(NumericalError, match=r"first derivatives .* only, got a second"):
            first.square().sum().backward()

    @pytest.mark.parametrize("y", [lambda x: 2 * x, lambda x: torch.ones_like(x)])
    def test_are_zero_at_a_score_of_one(self, y: Callable[[torch.Tensor], torch.Tensor]) -> None:
        x = torch.from_numpy(correlated(9, 4)).requires_grad_()
        image = y(x).detach().requires_grad_()
        value = affinity(x, image, covariance="sample")
        value.backward()
        assert value.item() == 1
        for side in (x, image):
            assert side.grad is not None
            assert bool((side.grad == 0).all())


class TestInputs:
    def test_numpy_and_torch_agree_and_the_result_says_how_it_came_about(self) -> None:
        x = correlated(40, 6)
        x.flags.writeable = False  # torch would warn of it
        tensor = torch.tensor(x)
        score = affinity_score(x, relu(x), ridge=1e-9)
        assert affinity_score(tensor, relu(x), ridge=1e-9) == score
        assert affinity_score(tensor, tensor.relu(), ridge=1e-9) == score
        backwards = affinity_score(x[::-1], relu(x)[::-1], ridge=1e-9)  # negative strides
        assert float(backwards) == pytest.approx(float(score), abs=1e-12)
        assert (score.n, score.d, score.covariance, score.ridge) == (40, 6, "ledoit-wolf", Ridge(1e-9))
        assert score.value == pytest.approx(1 - score.w2 / score.bound)
        assert min(score.shrinkage_x, score.shrinkage_y) > 0
        assert affinity_score(x, relu(x), covariance="sample").shrinkage_x == 0

    @pytest.mark.parametrize(
        ("x", "y", "message"),
        [
            (correlated(5, 2), correlated(5, 3), "pair 1: expected x and y of one shape"),
            (correlated(5, 2), np.full((5, 2), np.nan), "pair 1: y: expected finite values"),
            (np.ones((5, 2)), correlated(5, 2), "pair 1: x is constant"),
            (correlated(3, 5), relu(correlated(3, 5)), "pair 1: expected a covariance that can be inverted"),
            (correlated(5, 2)[None], correlated(5, 2)[None], r"pair 1: expected \[samples, features\]"),
        ],
    )
    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
    def test_a_bad_pair_among_many_is_named(
        self, x: Matrix, y: Matrix, message: str, dtype: torch.dtype
    ) -> None:
        good = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
        with pytest.raises((InputError, NumericalError), match=message):
            affinity_scores([(good, good), (x, y)], covariance="sample", ridge=0)
        with pytest.raises(InputError, match=r"pair 1: expected \(x, y\)"):
            affinity_scores([(good, good), (x, y, 3)])  # type: ignore[list-item]

    @pytest.mark.parametrize(("n", "d"), [(30, 5), (10, 50)])
    def test_a_batch_is_its_items(self, n: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
        x = np.stack([correlated(n, d, seed) for seed in range(4)])
        y = np.stack([relu(x[0]), np.tanh(x[1]), np.zeros((n, d)), x[3] ** 2])
        together = affinity_score(x, y)
        assert isinstance(together, AffinityScores)
        assert together.value.shape == (4,)
        assert [item.coupling for item in together][2] == "constant"
        for i, item in enumerate(together):
            alone = affinity_score(x[i], y[i])
            assert item.coupling == alone.coupling
            assert float(item) == pytest.approx(float(alone), abs=1e-12)
            assert item.shrinkage_y == pytest.approx(alone.shrinkage_y, abs=1e-12)
        torch.testing.assert_close(affinity(x, y), torch.as_tensor(together.value))
        assert together == affinity_score(x, y)
        with monkeypatch.context() as small_memory:
            small_memory.setattr(scoring, "_CHUNK", {"cpu": 1})
            np.testing.assert_allclose(affinity_score(x, y).value, together.value, atol=1e-14)
        with pytest.raises(InputError, match="a batch of 4"):
            float(together)
        x[1] = 1.0
        with pytest.raises(InputError, match="item 1: x is constant but y varies"):
            affinity_score(x, y)

    def test_many_pairs_of_any_shape_are_the_same_one_by_one(self) -> None:
        shapes = [(30, 5), (30, 80), (30, 5), (20, 7), (30, 60), (30, 61)]
        pairs = [(correlated(n, d, seed), relu(correlated(n, d, seed))) for seed, (n, d) in enumerate(shapes)]
        pairs.append((pairs[0][0], np.zeros((30, 5))))
        pairs.append((pairs[0][0].astype(np.float32), pairs[0][1].astype(np.float32)))
        together = affinity_scores(pairs)
        assert [(score.n, score.d) for score in together[:6]] == shapes
        assert together[6].coupling == "constant"
        for (x, y), score in zip(pairs, together, strict=True):
            alone = affinity_score(x, y)
            assert float(score) == pytest.approx(float(alone), abs=1e-12)
            assert score.coupling == alone.coupling
        assert len(affinity_scores([])) == 0

    def test_an_output_that_varies_by_rounding_at_most_is_constant_and_affine(self) -> None:
        for still in (np.zeros((20, 4)), np.full((20, 4), 0.1)):
            for x in (correlated(20, 4), np.ones((20, 4))):
                score = affinity_score(x, still)
                assert (float(score), score.coupling, score.w2, score.bound) == (1.0, "constant", 0.0, 0.0)
        near = 17.9 + 0.01 * torch.from_numpy(np.random.default_rng(0).normal(size=(300, 60)))
        saturated = torch.tanh(near)
        assert len(saturated.unique()) > 1
        assert affinity_score(near, saturated).coupling == "constant"
        below_one = torch.nextafter(torch.tensor(1.0), torch.tensor(0.0))
        flips = torch.where(near > 17.9, torch.tensor(1.0), below_one)
        assert affinity_score(near, flips).coupling == "constant"
        assert affinity_score(near, flips.double()).coupling != "constant"

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_one_huge_constant_feature_does_not_make_the_rest_constant(self, dtype: torch.dtype) -> None:
        x = torch.from_numpy(correlated(100, 16)).to(dtype)
        x[:, 0] = 2000.0
        score = affinity_score(x, x.relu())
        expected = affinity_score(x[:, 1:], x[:, 1:].relu())
        assert score.coupling == "identity"
        assert float(score) == pytest.approx(float(expected), abs=0.02)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((4, 2)), np.zeros((4, 3)), r"one shape, got \[4, 2\] and \[4, 3\]"),
        (np.zeros((1, 2)), np.zeros((1, 2)), "at least two samples"),
        (np.zeros((4, 0)), np.zeros((4, 0)), "at least one feature"),
        (np.zeros((0, 4, 2)), np.zeros((0, 4, 2)), "non-empty batch"),
        (np.zeros(4), np.zeros(4), r"got shape \[4\]; for a single feature pass x\[:, None\]"),
        (np.array([[1.0], [np.nan]]), np.zeros((2, 1)), "x: expected finite values, got 1 NaN or inf"),
        (np.zeros((3, 2), int), np.zeros((3, 2)), "floating-point values, got ndarray of int64"),
        (torch.zeros(3, 2, dtype=torch.complex64), np.zeros((3, 2)), "got torch.complex64"),
        ("nonsense", np.zeros((3, 2)), "NumPy array or a torch tensor"),
        ([[1.0, 2.0], [3.0]], np.zeros((2, 2)), "not an array"),
        (torch.eye(3).to_sparse(), np.zeros((3, 3)), "a dense tensor with values, got a torch.sparse"),
        (np.ma.masked_array(np.eye(3), np.eye(3, dtype=bool)), np.zeros((3, 3)), "without mask"),
        (np.zeros((2, 1)), np.array([[-1.7e308], [1.7e308]]), "y: expected a spread"),
        (1e200 * correlated(9, 2), correlated(9, 2), "x: expected a spread between 1e-60 and 1e"),
        (correlated(9, 2), 1e-200 * correlated(9, 2), "y: expected a spread"),
        (np.ones((3, 2)), np.arange(6.0).reshape(3, 2), "x is constant but y varies"),
    ],
)
def test_samples_without_a_score_are_refused(x: Matrix, y: Matrix, message: str) -> None:
    with pytest.raises(InputError, match=message):
        affinity_score(x, y)


def test_options_without_a_score_are_refused() -> None:
    x = correlated(5, 2)
    with pytest.raises(InputError, match="expected one of ledoit-wolf, sample, got 'oas'"):
        affinity_score(x, x, covariance="oas")  # type: ignore[arg-type]
    for ridge in (float("nan"), -1.0, "a", None):
        with pytest.raises(InputError, match="ridge"):
            affinity_score(x, x, ridge=ridge)  # type: ignore[arg-type]
    for seed in range(10):  # rounding hides a singular covariance from some decompositions
        x = correlated(20, 20, seed)
        with pytest.raises(NumericalError, match="ridge above 0"):
            affinity_score(x, relu(x), covariance="sample", ridge=0.0)
