"""The form of an item: what a paper claims, the test of each claim, and the run that gives the evidence.

An item has one `run`, which measures and returns the *evidence* (a table, or a small object of its own), and
some claims. Each claim says how numbers are read from the evidence (`measure`), the rule that decides the
claim from these numbers alone (`holds`), and the sentence that reports them (`says`):

    Item(
        name="affinity-figure-9",
        title="Figure 9: VGG-16 before and after training",
        run=train_and_measure,
        claims={
            "training": Claim(
                words="Training the network enhances the non-linearity.",
                test="The 95 % interval of the mean change of the score, over nine seeds, lies below 0.",
                measure=lambda scores: interval_numbers(scores.after - scores.before),
                holds=lambda n: n["high"] < 0,
                says="mean change {mean:.3f} ({low:.3f} to {high:.3f}) over {seeds:.0f} seeds",
                simulation=interval_simulation("a fall by 0.1", effect=-0.1, spread=0.05),
            ),
        },
    )

A record (`papers.verdict`) holds the numbers, never the words, which are in the code; the page joins both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import pandas as pd

from fathometer.errors import InputError
from fathometer.report import save_figure
from fathometer.results import complete_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

Scale: TypeAlias = Literal["smoke", "small", "paper", "imagenet", "cifar10"]
"""`smoke`: seconds, shows that an item runs and decides nothing. `small`: minutes on two cores, no download.
`paper`: near the published setting, on data that the user names, preferably with a GPU. `imagenet` and
`cifar10`: the two sets of trained networks whose soundings lie in `papers/networks`."""

SCALES: tuple[Scale, ...] = get_args(Scale)
Source: TypeAlias = Literal["cifar10", "resnets"]
"""What a user may name: a folder of CIFAR-10, a folder of published ResNets."""
Paper: TypeAlias = Literal["affinity", "leaky", "joined"]
"""Which paper: on the affinity score, on Leaky ResNets, or a result of both."""
Kind: TypeAlias = Literal["paper", "ours", "numerical"]
"""`paper`: a claim of the paper. `ours`: another reading, a correction, a check of what is printed; it is
decided, but does not count. `numerical`: a theorem or an identity that only a bug could break; it is verified
numerically and listed apart."""

Value: TypeAlias = float | str | Sequence[float]
Numbers: TypeAlias = Mapping[str, Value]
"""What was measured: numbers, lists of numbers, and names (of a network, for instance)."""


class NotDecided(Exception):  # noqa: N818  - it is an answer, not an error
    """Raised by `Claim.measure` if the evidence cannot decide the claim; the message says what is missing."""


@dataclass(frozen=True)
class Simulation:
    """How often a test succeeds by chance, and how often when the effect is there."""

    effect: str  # the effect that the paper shows, in words with numbers
    # the numbers of one simulated experiment: with the effect or without it, with as many seeds or networks
    # as in the measured numbers (third argument)
    draw: Callable[[np.random.Generator, bool, Numbers], Numbers]


@dataclass(frozen=True)
class Claim:
    """A published claim, and how it is decided, stated before anything is measured."""

    words: str  # the claim, as the paper makes it
    test: str  # the rule in words: which number, which limit, over which networks and seeds
    measure: Callable[[Any], Numbers]  # evidence of the item → numbers; raises `NotDecided`
    holds: Callable[[Any], bool]  # the rule: numbers → whether the claim holds
    says: str | Callable[[Any], str]  # what was measured: a format string over the numbers, or a function
    kind: Kind = "paper"
    simulation: Simulation | None = None  # for statistical tests: gives size and power

    def sentence(self, numbers: Numbers) -> str:
        """Say what was measured.

        Example:
            >>> claim = Claim("It rises.", "", lambda _: {}, bool, "p = {p:.2g} in {network}")
            >>> claim.sentence({"p": [0.012, 0.5], "network": "vgg16"})
            'p = 0.012, 0.5 in vgg16'
        """
        if callable(self.says):
            return self.says(numbers)
        return fill(self.says, numbers)


@dataclass
class RunContext:
    """The argument of `Item.run`."""

    scale: Scale
    device: str
    folder: Path  # folder of this item, for tables and figures
    shared: Path  # folder of all items at this scale: trained networks and soundings, made once
    sources: Mapping[Source, Path] = field(default_factory=dict)  # the user's paths, by name
    facts: dict[str, Value] = field(
        default_factory=dict
    )  # recorded beside the numbers; fill the item's notes

    def pick(self, *, smoke: T, small: T, paper: T) -> T:
        """Return the value for this scale; the sets of networks count as `paper`."""
        return {"smoke": smoke, "small": small}.get(self.scale, paper)

    def seeds(self, *, smoke: int, small: int, paper: int) -> range:
        """Return the seeds for this scale, and record them."""
        seeds = range(self.pick(smoke=smoke, small=small, paper=paper))
        self.facts["seeds"] = list(seeds)
        return seeds

    def source(self, name: Source) -> Path:
        """Return a path that the user named."""
        if name not in self.sources:
            raise InputError(f"--{name}: expected a path")
        return self.sources[name]

    def table(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Write a table as `NAME.csv`, without its index, and return it."""
        with complete_file(self.folder / f"{name}.csv") as part:
            table.to_csv(part, index=False)
        return table

    def figure(self, figure: Figure) -> None:
        """Write the figure of the item, `figure.png`."""
        save_figure(figure, self.folder / "figure.png")


@dataclass(frozen=True)
class Item:
    """A figure, table or statement."""

    name: str  # its name for `python -m papers run`; begins with the paper
    title: str  # its number in the paper, and what it shows
    claims: Mapping[str, Claim]
    run: Callable[[RunContext], Any]  # measures, writes tables and the figure, returns the evidence
    # how the run differs from the published setting, by scale, in words
    settings: Mapping[Scale, str]
    # about how long it takes: `smoke` and `small` on two cores, `paper` on an H200, or on two cores if it
    # needs no GPU. What other items have measured already is not counted again.
    seconds: Mapping[Scale, float]
    # what a reader should know besides: format strings over the recorded facts. A note is left out where one
    # of its facts was not recorded.
    notes: Sequence[str] = ()
    sources: tuple[Source, ...] = ()  # what the user must name for the scale `paper`
    device: Literal["cpu", "cuda"] = "cpu"  # what `paper` should run on
    # which claims and tests were changed after numbers had been seen, and why; in sentences
    changes: tuple[str, ...] = ()

    @property
    def paper(self) -> Paper:
        """The paper it is from."""
        return self.name.split("-", 1)[0]  # type: ignore[return-value]

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The scales at which it runs."""
        return ("smoke", *(scale for scale in SCALES if scale in self.settings))

    @property
    def fingerprint(self) -> str:
        """Identify the tests of the item: a verdict of other tests is stale."""
        tests = [(name, claim.kind, claim.test) for name, claim in self.claims.items()]
        return hashlib.sha256(json.dumps(tests, ensure_ascii=False).encode()).hexdigest()[:12]


class _Listed(list[float]):
    """Numbers that are formatted one by one."""

    def __format__(self, spec: str) -> str:
        return ", ".join(format(value, spec) for value in self)


def fill(words: str, numbers: Numbers) -> str:
    """Fill a format string; each number of a list is formatted."""
    return words.format_map(
        {
            name: _Listed(value) if isinstance(value, list | tuple) else value
            for name, value in numbers.items()
        }
    )


def time_in_words(seconds: float) -> str:
    """Write a time in words.

    Example:
        >>> time_in_words(0.2), time_in_words(150), time_in_words(9000)
        ('1 s', '2.5 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
