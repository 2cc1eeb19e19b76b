"""One figure, table or statement of a paper that can be reproduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from papers.claim import Answer, Claim
from papers.context import RunContext, Source

Paper: TypeAlias = Literal["affinity", "leaky", "joined"]
"""Which paper: on the affinity score, on Leaky ResNets, or a result of both."""


class Seconds(NamedTuple):
    """About how long an item takes at each scale."""

    smoke: float
    small: float
    paper: float


@dataclass(frozen=True)
class Item:
    """A figure, table or statement.

    Attributes:
        name: its name for `python -m papers run`; begins with the paper.
        title: its number in the paper, and what it shows.
        claims: the claims, by a short name.
        run: measures, writes tables and figures to the context, and answers every claim.
        seconds: about how long it takes: `smoke` and `small` on two cores, `paper` on an H200, or on two
            cores if it needs no GPU. What other items have measured already is not counted again.
        small: what the scale `small` uses instead of the published setting, in words.
        published: what the scale `paper` uses, in words.
        sources: what the user must name for the scale `paper`.
        optional: further sources that it can use.
        device: what `paper` should run on.
        changes: which claims and tests were changed after numbers had been seen, and why; in sentences.
    """

    name: str
    title: str
    claims: Mapping[str, Claim]
    run: Callable[[RunContext], Mapping[str, Answer]]
    seconds: Seconds
    small: str
    published: str = "the published setting"
    sources: tuple[Source, ...] = ()
    optional: tuple[Source, ...] = ()
    device: Literal["cpu", "cuda"] = "cpu"
    changes: tuple[str, ...] = ()

    @property
    def paper(self) -> Paper:
        """The paper it is from."""
        return self.name.split("-", 1)[0]  # type: ignore[return-value]
