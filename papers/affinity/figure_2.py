"""Figure 2: what makes an activation non-linear, in one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pandas as pd
import torch
from torch import Tensor

from fathometer.activations import activation, polynomial_scores, range_scores
from fathometer.gauges import affinity_score
from fathometer.report import plot_polynomials, plot_ranges
from papers.intervals import pm
from papers.item import Answer, Answers, Claim, Item, RunContext, Seconds

RANGES = ((0.0, 2.0), (-0.5, 2.0), (-1.0, 2.0), (-2.0, 2.0))  # more and more of the bend
PAPER_DEGREES = (1, 3, 5, 11, 21, 41)
SAME = 0.01  # scores that differ by less are the same
COMMON = (-2.0, 2.0)
SMALL = "the published setting; it needs no data"
_SECONDS = Seconds(1, 1, 1)


def drawn_scores(
    context: RunContext, name: str, function: Callable[[Tensor], Tensor], low: float, high: float
) -> list[float]:
    """Compute scores on uniform random inputs, one for each seed: the error bar of a score."""
    scores = []
    for seed in range(context.pick(smoke=3, small=20, paper=20)):
        generator = torch.Generator().manual_seed(seed)
        samples = context.pick(smoke=100, small=1000, paper=1000)
        x = low + (high - low) * torch.rand(samples, 1, generator=generator, dtype=torch.float64)
        scores.append(float(affinity_score(x, function(x), covariance="sample")))
    keep = pd.DataFrame({"function": name, "low": low, "high": high, "score": scores})
    context.table(f"draws-{name}-{low:g}-{high:g}", keep)
    return scores


def run_a(context: RunContext) -> Answers:
    """Measure ReLU by the range of its inputs."""
    scores = context.table("ranges", range_scores(["ReLU"], ranges=RANGES))
    context.figure(plot_ranges(scores))
    relu = activation("ReLU")
    draws = [drawn_scores(context, "ReLU", relu, *limits) for limits in RANGES]
    values = scores["score"].to_list()
    laws = law_scores(relu)
    words = ", ".join(
        f"{pm(of)} on [{low:g}, {high:g}]" for of, (low, high) in zip(draws, RANGES, strict=True)
    )
    return {
        "range": Answer(
            abs(values[0] - 1) < 1e-9 and _falls(values) and all(_falls(seed) for seed in _by_seed(draws)),
            f"{words} (uniform draws, mean ± std over seeds); evenly spread: "
            + ", ".join(f"{value:.4f}" for value in values),
            {f"score_{low:g}_{high:g}": value for value, (low, high) in zip(values, RANGES, strict=True)},
        ),
        "only": Answer(
            max(laws.values()) - min(laws.values()) < SAME,
            ", ".join(f"{name} {score:.3f}" for name, score in laws.items()),
            laws,
        ),
    }


def law_scores(function: Callable[[Tensor], Tensor]) -> dict[str, float]:
    """Compute scores on [−2, 2] for three distributions of the inputs, at their quantiles."""
    u = (torch.arange(1000, dtype=torch.float64)[:, None] + 0.5) / 1000
    laws = {
        "uniform": 4 * u - 2,
        "triangular": 2 * (2 * u - 1).sign() * (1 - (1 - (2 * u - 1).abs()).sqrt()),
        "arcsine": -2 * torch.cos(torch.pi * u),
    }
    return {name: float(affinity_score(x, function(x), covariance="sample")) for name, x in laws.items()}


def run_b(context: RunContext) -> Answers:
    """Measure ReLU, Tanh and Sigmoid on the same inputs."""
    ranges = [COMMON, (-1.0, 1.0), (-4.0, 4.0), (-8.0, 8.0)]
    scores = context.table("activations", range_scores(ranges=ranges))
    context.figure(plot_ranges(scores))
    table = scores.pivot_table(index=["low", "high"], columns="activation", values="score", sort=False)
    draws = {name: drawn_scores(context, name, activation(name), *COMMON) for name in table.columns}
    lowest = table["ReLU"] < table[["Tanh", "Sigmoid"]].min(axis=1)
    seeds = all(
        relu < min(rest) for relu, *rest in _by_seed([draws["ReLU"], draws["Tanh"], draws["Sigmoid"]])
    )
    cells = table.to_dict("index")
    elsewhere = "; ".join(
        f"[{low:g}, {high:g}]: " + ", ".join(f"{name} {cells[low, high][name]:.3f}" for name in draws)
        for low, high in ranges[1:]
    )
    return {
        "order": Answer(
            bool(lowest.loc[COMMON]) and seeds,
            "on [−2, 2]: " + ", ".join(f"{name} {pm(of)}" for name, of in draws.items()),
            {name.lower(): float(cells[COMMON][name]) for name in draws},
        ),
        "everywhere": Answer(bool(lowest.all()), elsewhere, {"ranges_where_lowest": float(lowest.sum())}),
    }


def run_c(context: RunContext) -> Answers:
    """Measure odd polynomials."""
    scores = context.table("polynomials", polynomial_scores())
    context.figure(plot_polynomials(scores))
    values = scores["score"].to_list()
    exact = [1 - (1 - (2 * k + 1) ** 0.5 * 3**0.5 / (k + 2)) ** 0.5 for k in PAPER_DEGREES]
    worst = max(abs(a - b) for a, b in zip(values, exact, strict=True))
    context.note(
        "Closed form for odd k: 1 − √(1 − corr(x, xᵏ)) with corr = √3 √(2k + 1)/(k + 2), x uniform on "
        f"[−1, 1]; 1000 even points agree to {worst:.0e}."
    )
    every = context.table("all-degrees", polynomial_scores(range(1, 12)))["score"].to_list()
    draws = [drawn_scores(context, f"x^{k}", lambda x, k=k: x**k, -1.0, 1.0) for k in PAPER_DEGREES]  # type: ignore[misc]
    words = ", ".join(f"{pm(of)} (k = {k})" for of, k in zip(draws, PAPER_DEGREES, strict=True))
    return {
        "degree": Answer(
            _falls(values) and all(_falls(seed) for seed in _by_seed(draws)),
            words,
            {f"degree_{k}": value for k, value in zip(PAPER_DEGREES, values, strict=True)},
        ),
        "every": Answer(
            _falls(every),
            ", ".join(f"{value:.3f} (k = {k})" for k, value in enumerate(every, 1)),
            {f"degree_{k}": value for k, value in enumerate(every, 1)},
        ),
    }


def _falls(values: Sequence[float]) -> bool:
    return all(after < before for before, after in pairwise(values))


def _by_seed(draws: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    return list(zip(*draws, strict=True))


FIGURE_2A = Item(
    name="affinity-figure-2a",
    title="Figure 2 (A): the non-linearity of ReLU depends on the range of its inputs",
    claims={
        "range": Claim(
            "ReLU's degree of non-linearity depends on the range of input values.",
            "On [0, 2] the score is 1 (to 1e-9), and it falls strictly over [−.5, 2], [−1, 2], [−2, 2]: on "
            "1000 even points, and for each of 20 seeds of uniform draws.",
        ),
        "only": Claim(
            "This degree depends only on the range of the input values.",
            f"On [−2, 2] three laws score the same to {SAME}: uniform, triangular with its top at 0, and the "
            "arcsine law with most of its mass at both ends, 1000 quantiles of each.",
        ),
    },
    run=run_a,
    changes=(
        "That only the range counts was first tested by ranges of the same shape, which cannot fail; "
        "three laws on one range took their place.",
    ),
    seconds=_SECONDS,
    small=SMALL,
)
FIGURE_2B = Item(
    name="affinity-figure-2b",
    title="Figure 2 (B): ReLU, Tanh and Sigmoid on the same inputs",
    claims={
        "order": Claim(
            "For a fixed input, piece-wise linear ReLU is more non-linear than Sigmoid or Tanh.",
            "On [−2, 2] ReLU scores below both: on 1000 even points, and for each of 20 seeds of uniform "
            "draws.",
        ),
        "everywhere": Claim(
            "The same, read as a statement about any symmetric input.",
            "The same order on [−1, 1], [−4, 4] and [−8, 8], even points.",
            ours=True,
        ),
    },
    run=run_b,
    seconds=_SECONDS,
    small=SMALL,
)
FIGURE_2C = Item(
    name="affinity-figure-2c",
    title="Figure 2 (C): polynomials of growing degree",
    claims={
        "degree": Claim(
            "The affinity score captures the increasing non-linearity of polynomials of different degrees.",
            "Scores of xᵏ on [−1, 1] fall strictly over k = 1, 3, 5, 11, 21, 41: on even points, and for "
            "each of 20 seeds of uniform draws.",
        ),
        "every": Claim(
            "The same, read as a statement about all degrees, even ones too.",
            "Scores fall strictly over k = 1, 2, …, 11, on even points.",
            ours=True,
        ),
    },
    run=run_c,
    seconds=_SECONDS,
    small=SMALL,
)
