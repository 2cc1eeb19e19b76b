"""Tasks whose bottleneck rank is known: random networks composed through narrow inner dimensions.

Data are `[samples, features]`, float64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import InputError, check_choice, check_whole
from fathometer.leaky.model import random_generator

TeacherKind: TypeAlias = Literal["fcnn", "resnet"]
Latents: TypeAlias = Literal["relu", "centred"]

HIDDEN = 100  # width of a teacher's hidden layers
BLOCKS = 4  # of a residual teacher
_SINGULAR = 1e-12  # smallest share of a latent's variance that the other latents must leave unexplained


@dataclass(frozen=True, eq=False)
class Task:
    """Pairs to learn, and held-out ones.

    Attributes:
        x: inputs, `[samples, inputs]`.
        y: outputs, `[samples, outputs]`.
        x_test: held-out inputs, `[0, inputs]` if there are none.
        y_test: held-out outputs.
        rank: the bottleneck rank, if it is known.
        description: where the data come from, as plain values.
    """

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    rank: int | None = None
    description: dict[str, Any] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The four tensors by name."""
        return {"x": self.x, "y": self.y, "x_test": self.x_test, "y_test": self.y_test}

    def same_data(self, other: Task) -> bool:
        """Say whether both hold the same numbers."""
        return all(torch.equal(one, other.tensors[name]) for name, one in self.tensors.items())


@dataclass(frozen=True)
class Teacher:
    """f* = g_n ∘ … ∘ g_1, a composition of random networks (Figures 1 and 2, appendix B).

    Attributes:
        dimensions: those of inputs, of the latents between networks, and of outputs: (30, 3, 30) or
            (30, 6, 3, 30).
        kind: `fcnn`, two layers each, or `resnet`.
        latents: what comes out between two networks: `relu`, non-negative, or `centred`. A network that
            learns from centred latents needs one more, constant, direction to represent them with ReLUs.
        seed: seed of the networks and of the data.
    """

    dimensions: tuple[int, ...] = (30, 3, 30)
    kind: TeacherKind = "fcnn"
    latents: Latents = "relu"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.dimensions, Sequence) or len(self.dimensions) < 3:
            raise InputError(
                f"expected at least three whole numbers, as (30, 3, 30), got {self.dimensions!r}",
                parameter="dimensions",
            )
        dimensions = tuple(check_whole("dimensions", size, 1) for size in self.dimensions)
        object.__setattr__(self, "dimensions", dimensions)
        object.__setattr__(self, "seed", check_whole("seed", self.seed))
        ends, inner = (dimensions[0], dimensions[-1]), dimensions[1:-1]
        if min(inner) >= min(ends):
            raise InputError(
                f"expected inner dimensions below those of inputs and outputs, {min(ends)}, got "
                f"{min(inner)}: there would be no bottleneck",
                parameter="rank",
            )
        if max(inner) > HIDDEN:
            raise InputError(
                f"expected inner dimensions up to {HIDDEN}, the width of a teacher's hidden layers, "
                f"got {max(inner)}; use a narrower teacher, or your own data",
                parameter="dimensions",
            )
        check_choice("kind", self.kind, TeacherKind)
        check_choice("latents", self.latents, Latents)

    @property
    def rank(self) -> int:
        """k*, the smallest inner dimension."""
        return min(self.dimensions[1:-1])

    def check_samples(self, samples: int, test_samples: int = 0) -> None:
        """Refuse too few samples: n of them, centred, span n − 1 dimensions."""
        check_whole("samples", samples, 2)
        check_whole("test_samples", test_samples)
        widest = max(self.dimensions[1:-1])
        if samples + test_samples <= widest:
            raise InputError(
                f"expected more than {widest}, the largest inner dimension of the teacher, together with the "
                f"test samples, got {samples} + {test_samples}; use more samples, or a narrower teacher",
                parameter="samples",
            )

    def task(self, samples: int, test_samples: int = 0) -> Task:
        """Draw standard normal inputs and compute the teacher's outputs; both are centred and normalised.

        Example:
            >>> task = Teacher((5, 2, 5)).task(100, 20)
            >>> task.x.shape, task.y_test.shape, task.rank
            (torch.Size([100, 5]), torch.Size([20, 5]), 2)
        """
        self.check_samples(samples, test_samples)
        x = _normal(random_generator(self.seed, "inputs"), samples + test_samples, self.dimensions[0])
        generator = random_generator(self.seed, "teacher")
        latent = x
        for number, (inputs, outputs) in enumerate(itertools.pairwise(self.dimensions)):
            latent = _random_network(generator, inputs, outputs, self.kind)(latent)
            if number < len(self.dimensions) - 2:
                latent = _whitened(latent)
                latent = latent.relu() if self.latents == "relu" else latent
        x, y = _normalised(x), _normalised(latent)
        return Task(
            x[:samples],
            y[:samples],
            x[samples:],
            y[samples:],
            self.rank,
            {"teacher": asdict(self), "samples": samples, "test_samples": test_samples},
        )


def own_task(x: Tensor, y: Tensor, x_test: Tensor | None = None, y_test: Tensor | None = None) -> Task:
    """Make a task from your own data, `[samples, features]` each; they are not normalised.

    Example:
        >>> own_task(torch.zeros(4, 2), torch.ones(4, 3)).y_test.shape
        torch.Size([0, 3])
    """
    if (x_test is None) != (y_test is None):
        raise InputError("test data: expected both x_test and y_test, or neither")
    x, y = _matrices("x and y", x, y)
    held_x, held_y = x[:0], y[:0]
    if x_test is not None and y_test is not None:
        held_x, held_y = _matrices("x_test and y_test", x_test, y_test)
    if len(x) < 2:
        raise InputError(f"x and y: expected at least 2 samples, got {len(x)}")
    for name, test, train in (("x_test", held_x, x), ("y_test", held_y, y)):
        if test.shape[1] != train.shape[1]:
            raise InputError(
                f"expected {train.shape[1]} features as in training, got {test.shape[1]}", parameter=name
            )
    return Task(
        x, y, held_x, held_y, None, {"name": "own data", "samples": len(x), "test_samples": len(held_x)}
    )


def _matrices(names: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    a, b = (torch.as_tensor(side).to(torch.float64) for side in (a, b))
    if a.ndim != 2 or b.ndim != 2 or len(a) != len(b):
        raise InputError(
            f"{names}: expected two matrices with one row for each sample, "
            f"got shapes {list(a.shape)} and {list(b.shape)}"
        )
    if not bool(a.isfinite().all() and b.isfinite().all()):
        raise InputError(f"{names}: expected finite numbers, got NaN or inf")
    return a, b


def _random_network(
    generator: torch.Generator, inputs: int, outputs: int, kind: TeacherKind
) -> Callable[[Tensor], Tensor]:
    def layer(rows: int, columns: int) -> Tensor:
        return _normal(generator, columns, rows) / math.sqrt(columns)

    first, bias, last = layer(HIDDEN, inputs), 0.1 * _normal(generator, HIDDEN), layer(outputs, HIDDEN)
    if kind == "fcnn":
        return lambda x: (x @ first + bias).relu() @ last
    blocks: Sequence[Tensor] = [layer(HIDDEN, HIDDEN) for _ in range(BLOCKS)]

    def residual(x: Tensor) -> Tensor:
        a = x @ first + bias
        for block in blocks:
            a = a + a.relu() @ block / math.sqrt(BLOCKS)
        return a @ last

    return residual


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _whitened(values: Tensor) -> Tensor:
    """Give mean 0 and the identity as covariance: every dimension matters, so that none can be left out."""
    centred = values - values.mean(0)
    covariance = centred.mT @ centred / (len(values) - 1)
    lower, failed = torch.linalg.cholesky_ex(covariance)
    if failed or bool((lower.diagonal().square() <= _SINGULAR * covariance.diagonal()).any()):
        raise InputError(
            f"teacher: expected {values.shape[1]} independent latents, got fewer from {len(values)} samples; "
            "use more samples, or a narrower teacher"
        )
    return torch.linalg.solve_triangular(lower, centred.mT, upper=False).mT


def _normalised(values: Tensor) -> Tensor:
    """Give each feature mean 0 and variance 1."""
    centred = values - values.mean(0)
    return centred / centred.std(0).clamp(min=1e-12)
