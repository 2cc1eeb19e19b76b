"""What an item is made of: claims and answers, the context that it runs in, and the scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import pandas as pd

from fathometer.errors import InputError
from fathometer.report import save_figure
from fathometer.results import complete_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

Scale: TypeAlias = Literal["smoke", "small", "paper"]
"""`smoke`: seconds, does it run; it decides nothing. `small`: minutes on two cores, no download. `paper`: the
published setting, on data that the user names, preferably with a GPU."""

SCALES: tuple[Scale, ...] = get_args(Scale)
Source: TypeAlias = Literal["cifar10", "imagenet", "plan", "resnets"]
"""What a user may name: CIFAR-10, ImageNet's validation images, a plan of networks instead of the paper's,
a folder of published ResNets."""
Paper: TypeAlias = Literal["affinity", "leaky", "joined"]
"""Which paper: on the affinity score, on Leaky ResNets, or a result of both."""


@dataclass(frozen=True)
class Claim:
    """A published claim, and how it is decided, stated before anything is measured."""

    words: str  # the claim, as the paper makes it
    test: str  # the rule: which number, which limit, over which networks and seeds
    # whether the claim is ours and not the paper's: a wider or another reading, a correction, a check of what
    # is printed. It is decided and shown, but does not count towards the outcome of the item.
    ours: bool = False


@dataclass(frozen=True)
class Answer:
    """What the test of a claim found."""

    holds: bool | None  # its result; None if it could not be applied, and `measured` says why
    measured: str  # what was measured, in words with numbers
    # the same for programs; NaN and infinity, which JSON does not have, are left out
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        finite = {name: float(value) for name, value in self.numbers.items() if math.isfinite(value)}
        object.__setattr__(self, "numbers", finite)
        object.__setattr__(self, "holds", None if self.holds is None else bool(self.holds))


Answers: TypeAlias = Mapping[str, Answer]
"""By the names of the claims."""


@dataclass(frozen=True)
class RunContext:
    """The argument of `Item.run`."""

    scale: Scale
    device: str
    folder: Path  # folder of this item, for tables and figures
    shared: Path  # folder of all items at this scale: trained networks and soundings, made once
    sources: dict[Source, Path] = field(default_factory=dict)  # the user's paths, by name
    # what a reader should know besides the answers; items add to it
    notes: list[str] = field(default_factory=list)

    def pick(self, *, smoke: T, small: T, paper: T) -> T:
        """Return the value for this scale."""
        return {"smoke": smoke, "small": small, "paper": paper}[self.scale]

    def note(self, words: str) -> None:
        """Add a note, once."""
        if words not in self.notes:
            self.notes.append(words)

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


class Seconds(NamedTuple):
    """About how long an item takes at each scale."""

    smoke: float
    small: float
    paper: float


@dataclass(frozen=True)
class Item:
    """A figure, table or statement."""

    name: str  # its name for `python -m papers run`; begins with the paper
    title: str  # its number in the paper, and what it shows
    claims: Mapping[str, Claim]
    # measures, writes tables and figures to the context, and answers every claim
    run: Callable[[RunContext], Answers]
    # about how long it takes: `smoke` and `small` on two cores, `paper` on an H200, or on two cores if it
    # needs no GPU. What other items have measured already is not counted again.
    seconds: Seconds
    small: str  # what the scale `small` uses instead of the published setting, in words
    published: str = "the published setting"  # what the scale `paper` uses, in words
    sources: tuple[Source, ...] = ()  # what the user must name for the scale `paper`
    optional: tuple[Source, ...] = ()  # further sources that it can use
    device: Literal["cpu", "cuda"] = "cpu"  # what `paper` should run on
    # which claims and tests were changed after numbers had been seen, and why; in sentences
    changes: tuple[str, ...] = ()

    @property
    def paper(self) -> Paper:
        """The paper it is from."""
        return self.name.split("-", 1)[0]  # type: ignore[return-value]


def time_in_words(seconds: float) -> str:
    """Write a time in words.

    Example:
        >>> time_in_words(0.2), time_in_words(150), time_in_words(9000)
        ('1 s', '2.5 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
