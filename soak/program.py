"""A program of the soak: what it tries, at two efforts, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Effort: TypeAlias = Literal["smoke", "full"]
"""`smoke`: seconds, in every run of the tests; `full`: what `make soak` does."""

Row: TypeAlias = "dict[str, str | int | float]"


@dataclass(frozen=True)
class Outcome:
    """What a program found: one row for each kind of trial, and every failure in words."""

    rows: list[Row]
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """One kind of trial.

    Args:
        name: by which it is called, `python -m soak NAME`.
        title: the heading of its section.
        asks: what is tried, and what counts as a failure, in a sentence or two.
        run: carries it out.
        gpu: whether it needs a CUDA device; where there is none, its record stays as it is.
    """

    name: str
    title: str
    asks: str
    run: Callable[[Effort], Outcome]
    gpu: bool = False
