"""One figure, table or statement of a paper that can be reproduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from papers.claim import Answer, Claim
from papers.workshop import Source, Workshop

Paper: TypeAlias = Literal["affinity", "leaky", "joined"]
"""Which paper: on the affinity score, on Leaky ResNets, or a result that takes both."""


class Seconds(NamedTuple):
    """About how long an item takes at each scale."""

    smoke: float
    small: float
    paper: float


@dataclass(frozen=True)
class Item:
    """A figure, table or statement.

    Attributes:
        name: as `python -m papers run` takes it; begins with the paper.
        title: as the paper numbers it, and what it shows.
        claims: by a short name.
        run: measures, leaves tables and figures with the workshop, and answers every claim.
        seconds: how long it takes, about: `smoke` and `small` on two cores, `paper` on an H200, or on two
            cores where it needs no GPU. What other items have measured already is not counted again.
        small: what the scale `small` takes in place of the published setting, in words.
        published: what the scale `paper` takes, in words.
        sources: what the user must name for the scale `paper`.
        optional: what else it makes use of.
        device: what `paper` should run on.
        changes: what of claims and tests was changed after numbers had been seen, and why; in sentences.
    """

    name: str
    title: str
    claims: Mapping[str, Claim]
    run: Callable[[Workshop], Mapping[str, Answer]]
    seconds: Seconds
    small: str
    published: str = "the published setting"
    sources: tuple[Source, ...] = ()
    optional: tuple[Source, ...] = ()
    device: Literal["cpu", "cuda"] = "cpu"
    changes: tuple[str, ...] = ()

    @property
    def paper(self) -> Paper:
        """Which paper it is from."""
        return self.name.split("-", 1)[0]  # type: ignore[return-value]
