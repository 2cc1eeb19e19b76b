from __future__ import annotations

import pytest
import torch

from fathometer.errors import InputError
from fathometer.leaky import Teacher, own_task


@pytest.mark.parametrize("kind", ["fcnn", "resnet"])
@pytest.mark.parametrize("latents", ["relu", "centred"])
@pytest.mark.parametrize("dimensions", [(30, 3, 30), (30, 6, 3, 30)])
def test_a_task_is_normalised_and_has_its_rank(kind: str, latents: str, dimensions: tuple[int, ...]) -> None:
    teacher = Teacher(dimensions, kind, latents)  # type: ignore[arg-type]
    task = teacher.task(300, 200)
    assert task.x.shape == (300, 30)
    assert task.y_test.shape == (200, 30)
    assert task.rank == 3
    for train, test in ((task.x, task.x_test), (task.y, task.y_test)):
        both = torch.cat([train, test])
        assert both.mean(0).abs().max() < 1e-12
        assert (both.std(0) - 1).abs().max() < 1e-12


def test_seeds_decide_everything() -> None:
    first, again, other = (Teacher(seed=seed).task(50) for seed in (1, 1, 2))
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)
    assert not torch.equal(first.y, other.y)


def test_outputs_depend_on_the_inputs_through_the_bottleneck() -> None:
    """They lie on a surface of dimension 2: a plane explains the neighbours of any of them."""
    y = Teacher((10, 2, 10), latents="centred").task(4000).y
    centre = y[:50]
    shares = []
    for point in centre:
        close = (y - point).norm(dim=1).argsort()[1:30]
        values = torch.linalg.svdvals(y[close] - y[close].mean(0)).square()
        shares.append((values[:2].sum() / values.sum()).item())
    assert sorted(shares)[len(shares) // 2] > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimensions": (30, 30)}, "at least three"),
        ({"dimensions": (30, 30, 30)}, "rank: expected inner dimensions below.*30, got 30.*no bottleneck"),
        ({"dimensions": (30, 0, 30)}, "at least three whole numbers from 1"),
        ({"kind": "cnn"}, "kind: expected fcnn or resnet"),
        ({"latents": "free"}, "latents: expected relu or centred"),
    ],
)
def test_bad_teachers(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Teacher(**arguments)  # type: ignore[arg-type]


def test_data_of_ones_own() -> None:
    x, y = torch.randn(10, 3), torch.randn(10, 2)
    task = own_task(x, y, x[:4], y[:4])
    assert task.rank is None
    assert torch.equal(task.x_test, x[:4].double())
    with pytest.raises(InputError, match=r"one row for each sample, got shapes \[10, 3\] and \[9, 2\]"):
        own_task(x, y[:9])
    with pytest.raises(InputError, match="finite numbers, got NaN"):
        own_task(x, y * float("nan"))
    with pytest.raises(InputError, match="x_test: expected 3 features as in training, got 2"):
        own_task(x, y, y[:4], y[:4])
    with pytest.raises(InputError, match="both x_test and y_test"):
        own_task(x, y, x[:4])
    with pytest.raises(InputError, match="expected at least 2"):
        Teacher().task(1)
