"""Figure 2: what makes an activation non-linear, in one dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from fathometer.activations import activation, polynomial_scores, range_scores
from fathometer.gauges import affinity_score
from fathometer.report import plot_polynomials, plot_ranges
from papers.intervals import by_name
from papers.item import Claim, Item, RunContext

RANGES = ((0.0, 2.0), (-0.5, 2.0), (-1.0, 2.0), (-2.0, 2.0))  # more and more of the bend
COMMON, OTHERS = (-2.0, 2.0), ((-1.0, 1.0), (-4.0, 4.0), (-8.0, 8.0))
DEGREES = (1, 3, 5, 11, 21, 41)
SAME = 0.01  # scores that differ by less are the same

Function = Callable[[Tensor], Tensor]


def falls(numbers: Mapping[str, float]) -> bool:
    """Whether each number is less than the one before it."""
    return all(after < before for before, after in pairwise(numbers.values()))


class Ranges(NamedTuple):
    """Scores of ReLU: by range of its inputs, and by their distribution on the widest range."""

    ranges: dict[str, float]
    laws: dict[str, float]


def run_a(context: RunContext) -> Ranges:
    """Measure ReLU by the range of its inputs."""
    scores, relu = context.table("ranges", range_scores(["ReLU"], ranges=RANGES)), activation("ReLU")
    context.figure(plot_ranges(scores))
    return Ranges(
        {f"[{low:g}, {high:g}]": score for (low, high), score in zip(RANGES, scores["score"], strict=True)},
        law_scores(relu),
    )


def law_scores(function: Function) -> dict[str, float]:
    """Compute scores on [−2, 2] for three distributions of the inputs, at their quantiles."""
    u = (torch.arange(1000, dtype=torch.float64)[:, None] + 0.5) / 1000
    laws = {
        "uniform": 4 * u - 2,
        "triangular": 2 * (2 * u - 1).sign() * (1 - (1 - (2 * u - 1).abs()).sqrt()),
        "arcsine": -2 * torch.cos(torch.pi * u),
    }
    return {name: float(affinity_score(x, function(x), covariance="sample")) for name, x in laws.items()}


def run_b(context: RunContext) -> pd.DataFrame:
    """Measure ReLU, Tanh and Sigmoid on the same inputs: a row for each range, a column for each function."""
    scores = context.table("activations", range_scores(ranges=[COMMON, *OTHERS]))
    context.figure(plot_ranges(scores))
    return scores.pivot_table(index=["low", "high"], columns="activation", values="score", sort=False)


def lowest(numbers: Mapping[str, list[float]]) -> bool:
    """Whether ReLU has the lowest score, everywhere."""
    return all(relu < min(rest) for relu, *rest in zip(*(numbers[n] for n in FUNCTIONS), strict=True))


FUNCTIONS = ("ReLU", "Tanh", "Sigmoid")


def run_c(context: RunContext) -> dict[str, float]:
    """Measure polynomials, by degree."""
    scores = context.table("polynomials", polynomial_scores(DEGREES))
    context.figure(plot_polynomials(scores))
    exact = [1 - (1 - (2 * k + 1) ** 0.5 * 3**0.5 / (k + 2)) ** 0.5 for k in DEGREES]
    context.facts["worst"] = max(abs(a - b) for a, b in zip(scores["score"], exact, strict=True))
    every = sorted({*DEGREES, *range(1, 12)})
    return {f"k = {k}": s for k, s in zip(every, polynomial_scores(every)["score"], strict=True)}


_item = partial(
    Item,
    settings={"small": "the published setting: 1000 even points, no data"},
    seconds={"smoke": 1, "small": 1},
)
FIGURE_2A = _item(
    name="affinity-figure-2a",
    title="Figure 2 (A): the non-linearity of ReLU depends on the range of its inputs",
    run=run_a,
    claims={
        "range": Claim(
            words="ReLU's degree of non-linearity depends on the range of input values.",
            test="On [0, 2] the score is 1, and it falls strictly over [−.5, 2], [−1, 2], [−2, 2].",
            measure=lambda found: found.ranges,
            holds=lambda n: n["[0, 2]"] == 1 and falls(n),
            says=by_name,
        ),
        "only": Claim(
            words="This degree depends only on the range of the input values.",
            test=f"On [−2, 2] three laws score the same to {SAME}: uniform, triangular with its top at 0, "
            "and the arcsine law with most of its mass at both ends, 1000 quantiles of each.",
            measure=lambda found: found.laws,
            holds=lambda n: max(n.values()) - min(n.values()) < SAME,
            says=by_name,
        ),
    },
    changes=(
        "That only the range counts was first tested by ranges of the same shape, which cannot fail; three "
        "laws on one range took their place.",
    ),
)
FIGURE_2B = _item(
    name="affinity-figure-2b",
    title="Figure 2 (B): ReLU, Tanh and Sigmoid on the same inputs",
    run=run_b,
    claims={
        "order": Claim(
            words="For a fixed input, piece-wise linear ReLU is more non-linear than Sigmoid or Tanh.",
            test="On [−2, 2] ReLU scores below both.",
            measure=lambda table: {name: [table.loc[COMMON, name]] for name in FUNCTIONS},
            holds=lowest,
            says="ReLU {ReLU:.3f}, Tanh {Tanh:.3f}, Sigmoid {Sigmoid:.3f}",
        ),
        "everywhere": Claim(
            words="The same, read as a statement about any symmetric input.",
            test="The same order on [−1, 1], [−4, 4] and [−8, 8].",
            measure=lambda table: {name: table.loc[list(OTHERS), name].to_list() for name in FUNCTIONS},
            holds=lowest,
            says="ReLU {ReLU:.3f}; Tanh {Tanh:.3f}; Sigmoid {Sigmoid:.3f}, by range",
            kind="ours",
        ),
    },
)
FIGURE_2C = _item(
    name="affinity-figure-2c",
    title="Figure 2 (C): polynomials of growing degree",
    run=run_c,
    claims={
        "degree": Claim(
            words="The affinity score captures the increasing non-linearity of polynomials of different "
            "degrees.",
            test="Scores of xᵏ on [−1, 1] fall strictly over k = 1, 3, 5, 11, 21, 41.",
            measure=lambda scores: {f"k = {k}": scores[f"k = {k}"] for k in DEGREES},
            holds=falls,
            says=by_name,
        ),
        "every": Claim(
            words="The same, read as a statement about all degrees, even ones too.",
            test="Scores fall strictly over k = 1, 2, …, 11.",
            measure=lambda scores: {f"k = {k}": scores[f"k = {k}"] for k in range(1, 12)},
            holds=falls,
            says=by_name,
            kind="ours",
        ),
    },
    notes=(
        "Closed form for odd k: 1 − √(1 − corr(x, xᵏ)) with corr = √3 √(2k + 1)/(k + 2), x uniform on [−1, "
        "1]; 1000 even points agree to {worst:.0e}.",
    ),
)
