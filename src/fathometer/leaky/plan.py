"""What to train and how: designs of networks, recipes of training, presets of both."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.model import LeakyResNet, Maps, check_shape
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.randomness import stream
from fathometer.leaky.steps import check_irregularity, check_whole, equidistant, given, irregular, is_positive
from fathometer.leaky.teacher import Teacher, check_samples

Scheme: TypeAlias = Literal["equidistant", "irregular", "adaptive", "given"]
Method: TypeAlias = Literal["adam", "sgd", "lbfgs"]
Precision: TypeAlias = Literal["float32", "float64"]


@dataclass(frozen=True)
class Design:
    """One network and its task.

    Attributes:
        effective_depth: L̃; 0 is a plain ResNet.
        layers: L.
        width: of the representation.
        decay: λ₀. The loss is the mean squared error + λ/(2L̃) Σ ρ_l ‖W_l‖² with λ = λ₀/L̃ (appendix B), and
            with λ₀/2 Σ ρ_l ‖W_l‖² where L̃ = 0.
        scheme: of the steps ρ.
        irregularity: a, of irregular steps, in [0, 1).
        steps: ρ themselves, where the scheme is `given`.
        sigma: the nonlinearity.
        maps: whether the input and output maps are learned.
        seed: of the weights.
        teacher: what makes the task; None for data of one's own.
        samples: to train with.
        test_samples: held out.
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
        if not is_positive(self.decay):
            raise InputError(f"decay: expected a finite λ₀ > 0, got {self.decay!r}")
        if self.scheme not in get_args(Scheme):
            raise InputError(f"scheme: expected {', '.join(get_args(Scheme))}, got {self.scheme!r}")
        nonlinearity(self.sigma)
        stream(self.seed, "weights")  # complains of a bad seed
        check_whole("layers", self.layers)
        check_irregularity(self.irregularity)
        if self.teacher is None:
            self.check_fits(1, 1)
            check_samples(self.samples, self.test_samples)
        elif isinstance(self.teacher, Teacher):
            self.check_fits(self.teacher.dimensions[0], self.teacher.dimensions[-1])
            self.teacher.check_samples(self.samples, self.test_samples)
        else:
            raise InputError(
                f"teacher: expected a Teacher, or None for data of one's own, got {self.teacher!r}"
            )
        if (self.scheme == "given") != (self.steps is not None):
            raise InputError("steps: expected them with the scheme `given`, and with no other")
        if self.steps is not None:
            given(self.steps)  # complains of bad ones; they are kept as they are
            object.__setattr__(self, "steps", tuple(float(step) for step in self.steps))
            if len(self.steps) != self.layers:
                raise InputError(f"steps: expected {self.layers}, one for each layer, got {len(self.steps)}")
        if self.scheme == "equidistant" and self.layers < self.effective_depth:
            raise InputError(
                f"layers: equidistant steps need L ≥ L̃ = {self.effective_depth:g}, got L = {self.layers}: "
                "the factor 1 − L̃/L would be negative; take more layers, a lesser depth, or adaptive steps"
            )

    def check_fits(self, task_inputs: int, task_outputs: int) -> None:
        """Complain where the network cannot take data of these dimensions: identity maps need the width."""
        check_shape(task_inputs, task_outputs, self.width, self.effective_depth, self.maps)

    @property
    def regularisation(self) -> float:
        """λ = λ₀/L̃, and λ₀ where L̃ = 0."""
        return self.decay / (self.effective_depth or 1.0)

    @property
    def weight_decay(self) -> float:
        """μ = λ/L̃: the loss has μ/2 Σ ρ_l ‖W_l‖²."""
        return self.regularisation / (self.effective_depth or 1.0)

    def initial_steps(self) -> Tensor:
        """ρ before training: adaptive steps begin as equidistant ones."""
        if self.steps is not None:
            return given(self.steps)
        if self.scheme == "irregular":
            return irregular(self.layers, self.irregularity)
        return equidistant(self.layers)

    def network(self, inputs: int, outputs: int) -> LeakyResNet:
        """As it is before training, float64."""
        return LeakyResNet(
            inputs,
            outputs,
            width=self.width,
            effective_depth=self.effective_depth,
            steps=self.initial_steps(),
            sigma=self.sigma,
            maps=self.maps,
            seed=self.seed,
            dtype=torch.float64,
            warn=False,  # the sweep does, once for all
        )


@dataclass(frozen=True)
class Phase:
    """A stretch of training.

    Attributes:
        method: `adam`, `sgd` (both full-batch), or `lbfgs`, second order and in float64.
        epochs: passes over the data; for `lbfgs`, evaluations of the loss.
        learning_rate: of the first two.
        by_depth: whether it is multiplied by L̃, the size of the weights.
        decreasing: whether it falls along a cosine after 30 % of the epochs.
    """

    method: Method = "adam"
    epochs: int = 4000
    learning_rate: float = 2e-3
    by_depth: bool = True
    decreasing: bool = True

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(f"method: expected {', '.join(get_args(Method))}, got {self.method!r}")
        whole = isinstance(self.epochs, int) and not isinstance(self.epochs, bool)
        if not whole or self.epochs < 1 or not is_positive(self.learning_rate):
            raise InputError(
                "a phase: expected a whole number of epochs ≥ 1 and a finite learning rate > 0, "
                f"got {self.epochs!r} and {self.learning_rate!r}"
            )
        for name, value in (("by_depth", self.by_depth), ("decreasing", self.decreasing)):
            if not isinstance(value, bool):
                raise InputError(f"{name}: expected True or False, got {value!r}")

    def rate(self, design: Design) -> float:
        """The learning rate of a network."""
        return self.learning_rate * (design.effective_depth or 1.0 if self.by_depth else 1.0)


@dataclass(frozen=True)
class Recipe:
    """Phases in their order, and when to stop before their end.

    Attributes:
        phases: what to do.
        tolerance: stop once `crit` is below; 0 for never.
        precision: of the numbers in training; L-BFGS is float64 whatever this is, and so are all measures.
    """

    phases: tuple[Phase, ...] = (Phase(),)
    tolerance: float = 0.0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        phases = self.phases if isinstance(self.phases, Sequence) else ()
        if not phases or not all(isinstance(phase, Phase) for phase in phases) or not self.tolerance >= 0:
            raise InputError(f"a recipe: expected phases and a tolerance from 0, got {self}")
        object.__setattr__(self, "phases", tuple(phases))
        if self.precision not in get_args(Precision):
            raise InputError(
                f"precision: expected {' or '.join(get_args(Precision))}, got {self.precision!r}"
            )

    @property
    def epochs(self) -> int:
        """Of all phases."""
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
"""`quick`, minutes on a laptop; `paper`, its size with training that converges; `literal`, its words."""


def preset(name: str) -> Preset:
    """A preset by name."""
    if name not in PRESETS:
        raise InputError(f"preset: expected one of {', '.join(PRESETS)}, got {name!r}")
    return PRESETS[name]


def grid(design: Design, *, seeds: int | Sequence[int] = (0,), **choices: Iterable[Any]) -> list[Design]:
    """All combinations of some attributes of a design, and of seeds, which draw weights and teacher alike.

    Args:
        design: everything that is the same in all.
        seeds: their number, or themselves.
        choices: values of attributes of `Design`, and of `rank`, the inner dimension of a teacher that has
            one.

    Example:
        >>> found = grid(PRESETS["quick"].design, effective_depth=[2.0, 4.0], seeds=3)
        >>> len(found), found[-1].effective_depth, found[-1].teacher.seed
        (6, 4.0, 2)
    """
    known = {each.name for each in fields(Design)} - {"seed"} | {"rank"}
    unknown = sorted(set(choices) - known)
    if unknown:
        raise InputError(f"grid: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    for name, values in (*choices.items(), *([] if isinstance(seeds, int) else [("seeds", seeds)])):
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"{name}: expected several values, as [{values!r}], got {values!r}")
    if isinstance(seeds, int):
        check_whole("seeds", seeds)
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    found = []
    for values in itertools.product(*choices.values(), numbers):
        changes = dict(zip((*choices, "seed"), values, strict=True))
        teacher = changes.get("teacher", design.teacher)
        if "rank" in changes:
            rank = changes.pop("rank")
            if teacher is None:
                raise InputError("rank: expected a teacher, got data of one's own")
            if len(teacher.dimensions) > 3:
                raise InputError(
                    f"rank: expected a teacher of one inner dimension, got {teacher.dimensions}; "
                    "give teacher=[Teacher(…), …] in place of rank"
                )
            teacher = replace(teacher, dimensions=(teacher.dimensions[0], rank, teacher.dimensions[-1]))
        if teacher is not None:
            teacher = replace(teacher, seed=changes["seed"])
        found.append(replace(design, **{**changes, "teacher": teacher}))
    return found
