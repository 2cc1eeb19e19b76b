from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fathometer.errors import InputError
from fathometer.leaky import LeakyResNet, Teacher, own_task


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
    assert torch.equal(teacher.task(300, 200).y, task.y)
    assert not torch.equal(replace(teacher, seed=1).task(300, 200).y, task.y)


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
        ({"dimensions": (200, 101, 200)}, "inner dimensions up to 100.*got 101"),
        ({"seed": 1.5}, "seed: expected a whole number from 0.*got 1.5"),
        ({"kind": "cnn"}, "kind: expected one of fcnn, resnet"),
    ],
)
def test_invalid_teachers_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Teacher(**arguments)
    assert hash(Teacher([30, 3, 30])) == hash(Teacher((30, 3, 30)))  # type: ignore[arg-type]


def test_your_own_data_are_checked() -> None:
    x, y = torch.randn(10, 3), torch.randn(10, 2)
    task = own_task(x, y, x[:4], y[:4])
    assert task.rank is None
    assert torch.equal(task.x_test, x[:4].double())
    for data, message in (
        ((x, y[:9]), r"one row for each sample, got shapes \[10, 3\] and \[9, 2\]"),
        ((x, y * float("nan")), "finite numbers, got NaN"),
        ((x, y, y[:4], y[:4]), "x_test: expected 3 features as in training, got 2"),
        ((x, y, x[:4]), "both x_test and y_test"),
    ):
        with pytest.raises(InputError, match=message):
            own_task(*data)


@pytest.mark.parametrize(
    ("dimensions", "samples", "message"),
    [
        ((30, 5, 3, 30), (20.5,), "samples: expected a whole number from 2, got 20.5"),
        ((30, 5, 3, 30), (3, 2), r"samples: expected more than 5.*got 3 \+ 2"),
        # half of the latents between are 0
        ((30, 1, 20, 30), (21,), "expected 20 independent latents, got fewer from 21 samples"),
    ],
)
def test_too_few_samples_are_refused(
    dimensions: tuple[int, ...], samples: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Teacher(dimensions).task(*samples)
    assert Teacher((30, 5, 30)).task(6).y.isfinite().all()


def test_weights_are_not_drawn_as_the_data_are() -> None:
    task = Teacher((8, 2, 8), seed=3).task(200)
    net = LeakyResNet(8, 8, width=40, effective_depth=0.0, steps=4, seed=3, dtype=torch.float64)
    noise = net.weights[:, :, :-1].detach().flatten()[:1600]
    together = torch.stack([noise, task.x.flatten()[:1600]])
    assert abs(torch.corrcoef(together)[0, 1].item()) < 0.1
