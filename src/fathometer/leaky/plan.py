"""What to train and how: designs of networks, recipes of training, presets of both."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from fathometer.errors import InputError, check_choice, check_positive, check_whole
from fathometer.leaky.model import LeakyResNet, Maps, check_shape
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.steps import custom_steps, irregular
from fathometer.leaky.teacher import Teacher

Scheme: TypeAlias = Literal["equidistant", "irregular", "adaptive", "given"]
Method: TypeAlias = Literal["adam", "sgd", "lbfgs"]
Precision: TypeAlias = Literal["float32", "float64"]


@dataclass(frozen=True)
class Design:
    """One network and its task.

    Attributes:
        effective_depth: L̃; 0 is a plain ResNet.
        layers: L.
        width: dimension of the representation.
        decay: λ₀. The loss is the mean squared error + λ/(2L̃) Σ ρ_l ‖W_l‖² with λ = λ₀/L̃ (appendix B), and
            with λ₀/2 Σ ρ_l ‖W_l‖² where L̃ = 0.
        scheme: how the steps ρ are chosen.
        irregularity: a of irregular steps, in [0, 1).
        steps: the steps ρ, if the scheme is `given`.
        sigma: the nonlinearity, by name; see `nonlinearity`.
        maps: whether the input and output maps are learned.
        seed: seed of the weights.
        teacher: what makes the task; None for your own data.
        samples: number of training samples.
        test_samples: number of held-out samples.
    """

    effective_depth: float = 7.0
    layers: int = 20
    width: int = 100
    decay: float = 0.1
    scheme: Scheme = "equidistant"
    irregularity: float = 0.5
    steps: tuple[float, ...] | None = None
    sigma: str = "relu"
    maps: Maps = "learned"
    seed: int = 0
    teacher: Teacher | None = field(default_factory=Teacher)
    samples: int = 1000
    test_samples: int = 1000

    def __post_init__(self) -> None:
        for name, minimum in (("layers", 1), ("width", 1), ("seed", 0), ("samples", 2), ("test_samples", 0)):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), minimum))
        depth = check_positive("effective_depth", self.effective_depth, or_zero=True)
        object.__setattr__(self, "effective_depth", depth)
        object.__setattr__(self, "decay", check_positive("decay", self.decay))
        check_choice("scheme", self.scheme, Scheme)
        nonlinearity(self.sigma)
        irregular(self.layers, self.irregularity)  # refuses a bad one
        object.__setattr__(self, "irregularity", float(self.irregularity))
        if self.teacher is None:
            self.check_fits(1, 1)
        elif isinstance(self.teacher, Teacher):
            self.check_fits(self.teacher.dimensions[0], self.teacher.dimensions[-1])
            self.teacher.check_samples(self.samples, self.test_samples)
        else:
            raise InputError(
                f"expected a Teacher, or None for your own data, got {self.teacher!r}", parameter="teacher"
            )
        if (self.scheme == "given") != (self.steps is not None):
            raise InputError("expected steps if the scheme is `given`, and only then", parameter="steps")
        if self.steps is not None:
            custom_steps(self.steps)  # refuses bad ones; those that are good are kept as they are
            object.__setattr__(self, "steps", tuple(float(step) for step in self.steps))
            if len(self.steps) != self.layers:
                raise InputError(
                    f"expected {self.layers}, one for each layer, got {len(self.steps)}", parameter="steps"
                )
        if self.scheme == "equidistant" and self.layers < self.effective_depth:
            raise InputError(
                f"equidistant steps need L ≥ L̃ = {self.effective_depth:g}, got L = {self.layers}: the factor "
                "1 − L̃/L would be negative; use more layers, a smaller depth, or adaptive steps",
                parameter="layers",
            )

    def check_fits(self, task_inputs: int, task_outputs: int) -> None:
        """Refuse data of dimensions that the network cannot take: identity maps need the width."""
        check_shape(task_inputs, task_outputs, self.width, self.effective_depth, self.maps)

    @property
    def regularisation(self) -> float:
        """λ = λ₀/L̃, and λ₀ where L̃ = 0."""
        return self.decay / (self.effective_depth or 1.0)

    @property
    def weight_decay(self) -> float:
        """μ = λ/L̃: the loss has μ/2 Σ ρ_l ‖W_l‖²."""
        return self.regularisation / (self.effective_depth or 1.0)

    def network(self, inputs: int, outputs: int) -> LeakyResNet:
        """Make the network as it is before training, float64; adaptive steps begin as equidistant ones."""
        steps = irregular(self.layers, self.irregularity) if self.scheme == "irregular" else self.steps
        return LeakyResNet(
            inputs,
            outputs,
            width=self.width,
            effective_depth=self.effective_depth,
            steps=self.layers if steps is None else steps,
            sigma=self.sigma,
            maps=self.maps,
            seed=self.seed,
            dtype=torch.float64,
            warn=False,  # the sweep warns once for all networks
        )


@dataclass(frozen=True)
class Phase:
    """One phase of training.

    Attributes:
        method: `adam`, `sgd` (both full-batch), or `lbfgs`, second order and in float64.
        epochs: passes over the data; for `lbfgs`, evaluations of the loss.
        learning_rate: learning rate of `adam` and `sgd`.
        by_depth: whether it is multiplied by L̃, the size of the weights.
        decreasing: whether it decreases along a cosine after 30 % of the epochs.
    """

    method: Method = "adam"
    epochs: int = 4000
    learning_rate: float = 2e-3
    by_depth: bool = True
    decreasing: bool = True

    def __post_init__(self) -> None:
        check_choice("method", self.method, Method)
        object.__setattr__(self, "epochs", check_whole("epochs", self.epochs, 1))
        object.__setattr__(self, "learning_rate", check_positive("learning_rate", self.learning_rate))

    def rate(self, design: Design) -> float:
        """Compute the learning rate of a network."""
        return self.learning_rate * (design.effective_depth or 1.0 if self.by_depth else 1.0)


@dataclass(frozen=True)
class Recipe:
    """Phases in their order, and when to stop before their end.

    Attributes:
        phases: what to do.
        tolerance: stop as soon as `crit` is below; 0 for never.
        precision: of the numbers in training; L-BFGS and all measures use float64.
    """

    phases: tuple[Phase, ...] = (Phase(),)
    tolerance: float = 0.0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        phases = tuple(self.phases) if isinstance(self.phases, Sequence) else ()
        if not phases or not all(isinstance(phase, Phase) for phase in phases):
            raise InputError(f"expected at least one Phase, got {self.phases!r}", parameter="phases")
        object.__setattr__(self, "phases", phases)
        object.__setattr__(self, "tolerance", check_positive("tolerance", self.tolerance, or_zero=True))
        check_choice("precision", self.precision, Precision)

    @property
    def epochs(self) -> int:
        """Epochs of all phases together."""
        return sum(phase.epochs for phase in self.phases)


@dataclass(frozen=True)
class Preset:
    """A design and a recipe that go together."""

    design: Design
    recipe: Recipe


PRESETS = {
    "quick": Preset(
        Design(8.0, 12, 50, 0.1, samples=300, test_samples=300), Recipe((Phase("adam", 1500, 3e-3),))
    ),
    "paper": Preset(Design(7.0, 20, 100, 0.1), Recipe((Phase("adam", 4000, 2e-3),))),
    "softplus": Preset(
        Design(4.0, 12, 50, 0.1, sigma="softplus", samples=300, test_samples=300),
        Recipe((Phase("adam", 1500, 3e-3), Phase("lbfgs", 1000))),
    ),
    "literal": Preset(
        Design(7.0, 20, 100, 0.001),
        Recipe(
            (
                Phase("adam", 5000, 1e-3, by_depth=False, decreasing=False),
                Phase("sgd", 1000, 1e-4, by_depth=False, decreasing=False),
            )
        ),
    ),
}
"""`quick`: seconds on a laptop. `paper`: the paper's size, with training that converges. `softplus`: as
quick, with a smooth σ, and to a critical point (crit 1e-6). `literal`: the paper's own recipe."""


def preset(name: str) -> Preset:
    """Look up a preset by name."""
    check_choice("preset", name, PRESETS)
    return PRESETS[name]


def grid(design: Design, *, seeds: int | Sequence[int] = (0,), **choices: Iterable[Any]) -> list[Design]:
    """Combine values of some attributes of a design, and seeds, which decide weights and teacher alike.

    Args:
        design: what is the same in all.
        seeds: the number of seeds, or a list of them.
        choices: values of attributes of `Design`, and of `rank`, the inner dimension of a teacher with a
            single one.

    Example:
        >>> found = grid(PRESETS["quick"].design, effective_depth=[2.0, 4.0], seeds=3)
        >>> len(found), found[-1].effective_depth, found[-1].teacher.seed
        (6, 4.0, 2)
    """
    known = {each.name for each in fields(Design)} - {"seed"} | {"rank"}
    if unknown := sorted(set(choices) - known):
        raise InputError(f"grid: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    numbers = range(check_whole("seeds", seeds, 1)) if isinstance(seeds, int | np.integer) else seeds
    for name, values in (*choices.items(), ("seeds", numbers)):
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"expected several values, as [{values!r}], got {values!r}", parameter=name)
    found = []
    for values in itertools.product(*choices.values(), numbers):
        changes = dict(zip((*choices, "seed"), values, strict=True))
        teacher = changes.pop("teacher", design.teacher)
        if "rank" in changes:
            teacher = _with_rank(teacher, changes.pop("rank"))
        if teacher is not None:
            teacher = replace(teacher, seed=changes["seed"])
        found.append(replace(design, **changes, teacher=teacher))
    return found


def _with_rank(teacher: Teacher | None, rank: int) -> Teacher:
    if teacher is None:
        raise InputError("expected a teacher, got your own data", parameter="rank")
    if len(teacher.dimensions) > 3:
        raise InputError(
            f"expected a teacher with one inner dimension, got {teacher.dimensions}; "
            "give teacher=[Teacher(…), …] instead of rank",
            parameter="rank",
        )
    return replace(teacher, dimensions=(teacher.dimensions[0], rank, teacher.dimensions[-1]))
