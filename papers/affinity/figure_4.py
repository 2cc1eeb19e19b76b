"""Figure 4: what goes with accuracy, the signature or depth, size and GFLOPS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fathometer.compare import best_predictors
from fathometer.report import plot_predictors
from papers.affinity.census import Census, network_item
from papers.item import Claim, NotDecided, Numbers, RunContext, Simulation
from papers.ranks import orders

GROUPS = {
    "Pre-residual": ("AlexNet", "VGG", "Inception"),
    "Residual": ("ResNet", "DenseNet"),
    "NAS-based": ("EfficientNet", "MNASNet"),
    "ViTs": ("ViT",),
    "Post-ViT": ("Swin", "ConvNeXt"),
}
BEST = {group: ("median", "min") if "ViT" in group else ("spread",) for group in GROUPS}
STATISTICS = ("min", "max", "mean", "median", "std", "spread", "skewness")
CHARACTERISTICS = ("depth", "parameters", "gflops")
LEAST = 3  # networks of a group, for a line
SIMILAR = 0.1  # of R²
LEVEL = 0.05
EFFECT = 0.9  # R²
_ORDERS = 1000


def draw(context: RunContext, census: Census) -> None:
    """Fit lines through the networks of each group."""
    members = {name: group for group in GROUPS for name in _members(census, group)}
    counts = list(members.values())
    groups = {name: group for name, group in members.items() if counts.count(group) >= LEAST}
    best = context.table("best", best_predictors(census.table, census.facts, groups))
    context.figure(plot_predictors(best, census.table, census.facts, groups))


def _members(census: Census, group: str) -> list[str]:
    known = census.facts["accuracy"].dropna().index
    return [name for name in census.named(GROUPS[group]) if name in known]


def columns(census: Census, group: str) -> Numbers:
    """Return accuracy, statistics and characteristics of a group, each a list over its networks."""
    names = _members(census, group)
    if len(names) < LEAST:
        raise NotDecided(
            f"needs {LEAST} trained networks of known accuracy among {', '.join(GROUPS[group])}; there are "
            f"{len(names)}"
        )
    table = census.table.loc[names, [*STATISTICS, *CHARACTERISTICS, "accuracy"]]
    return {str(column): table[column].to_list() for column in table} | {"networks": ", ".join(names)}


def r2(numbers: Any) -> dict[str, float]:
    """Compute R² of the line from each predictor to accuracy, with the sign of its slope."""
    y = np.array(numbers["accuracy"])
    found = {}
    for name in (*STATISTICS, *CHARACTERISTICS):
        x = np.array(numbers[name])
        r = np.corrcoef(x, y)[0, 1] if np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0
        found[name] = float(r * abs(r))
    return found


def best_of(numbers: Any, names: tuple[str, ...]) -> tuple[str, float]:
    """Return the predictor with the largest R², and R²."""
    found = r2(numbers)
    name = max(names, key=lambda each: abs(found[each]))
    return name, abs(found[name])


def chance(numbers: Any) -> float:
    """Return how often the best of seven statistics fits accuracies in another order as well."""
    x = np.array([numbers[name] for name in STATISTICS])
    y = np.array(numbers["accuracy"])
    x, y = x - x.mean(1, keepdims=True), y - y.mean()
    size = np.sqrt((x**2).sum(1)) * np.sqrt((y**2).sum())
    found = np.abs(y[orders(len(y), _ORDERS)] @ (x.T / np.where(size > 0, size, 1))).max(1)
    return float((found >= found[0] - 1e-12).mean())


def is_better(numbers: Any) -> bool:
    """Say whether the best statistic is better than the best characteristic, and than chance."""
    ours, theirs = best_of(numbers, STATISTICS)[1], best_of(numbers, CHARACTERISTICS)[1]
    return ours > theirs and chance(numbers) < LEVEL


def is_similar(numbers: Any) -> bool:
    """Say whether spread and depth explain alike, and accuracy rises with the spread."""
    found = r2(numbers)
    return found["spread"] > 0 and abs(found["spread"] - abs(found["depth"])) <= SIMILAR


def is_best(numbers: Any, wanted: tuple[str, ...]) -> bool:
    """Say whether one of these is the best statistic; with a rising line if it is the spread."""
    name = best_of(numbers, STATISTICS)[0]
    return name in wanted and (name != "spread" or r2(numbers)["spread"] > 0)


def sentence(numbers: Any) -> str:
    """Say which predictors are best."""
    first, second = best_of(numbers, STATISTICS), best_of(numbers, CHARACTERISTICS)
    found = r2(numbers)
    return (
        f"R² {first[0]} {first[1]:.2f} (accuracies in another order do as well in {chance(numbers):.0%}), "
        f"{second[0]} {second[1]:.2f}; spread {found['spread']:.2f} (negative: a falling line), depth "
        f"{found['depth']:.2f}, parameters {found['parameters']:.2f}; {numbers['networks']}"
    )


def _driven(words: str, present: tuple[str, ...], absent: tuple[str, ...]) -> Simulation:
    """Simulate accuracies that go with the sum of some predictors, as measured, or with one of others."""

    def draw(generator: np.random.Generator, effect: bool, numbers: Any) -> Numbers:
        names = present if effect else (str(generator.choice(absent)),)
        x = np.array([numbers[name] for name in names], dtype=float)
        x = x - x.mean(1, keepdims=True)
        signal = (x / np.maximum(x.std(1, keepdims=True), 1e-12)).sum(0)
        signal /= max(signal.std(), 1e-12)
        noise = generator.normal(size=len(signal))
        return {**numbers, "accuracy": (np.sqrt(EFFECT) * signal + np.sqrt(1 - EFFECT) * noise).tolist()}

    return Simulation(f"{words} R² {EFFECT}; the text has no numbers", draw)


def _claim(group: str, words: str, test: str, holds: Callable[[Any], bool], simulation: Simulation) -> Claim:
    return Claim(words, test, partial(columns, group=group), holds, sentence, simulation=simulation)


def _better(group: str) -> Claim:
    return _claim(
        group,
        f"{group} networks: the signature correlates more with the accuracy than depth, size and GFLOPS do.",
        "The best of seven statistics (min, max, mean, median, std, spread, skewness) has a larger R² than "
        "the best of depth, parameters and GFLOPS, and one that accuracies in another order reach in less "
        f"than {LEVEL:.0%} of cases: the best of seven has an advantage over the best of three.",
        is_better,
        _driven(f"{BEST[group][0]} with", BEST[group][:1], CHARACTERISTICS),
    )


def _shift(group: str) -> Claim:
    wanted = BEST[group]
    others = tuple(name for name in STATISTICS if name not in wanted)
    return _claim(
        group,
        f"{group} networks: "
        + ("after ViT the median or the minimum" if "ViT" in group else "before ViT the spread")
        + " is what models implicitly optimise.",
        f"Of the seven statistics, {' or '.join(wanted)} has the largest R²"
        + ("." if "ViT" in group else ", with a rising line."),
        partial(is_best, wanted=wanted),
        _driven(f"{wanted[0]} with", wanted[:1], others),
    )


CLAIMS: Mapping[str, Claim] = {
    **{f"signature_{group}": _better(group) for group in ("Residual", "ViTs", "Post-ViT")},
    "nas": _claim(
        "NAS-based",
        "For networks from architecture search the number of parameters is the most informative.",
        "Of all ten predictors the number of parameters has the largest R².",
        lambda n: best_of(n, (*STATISTICS, *CHARACTERISTICS))[0] == "parameters",
        _driven("parameters with", ("parameters",), (*STATISTICS, "depth", "gflops")),
    ),
    "early": _claim(
        "Pre-residual",
        "For pre-residual networks the spread explains the accuracy similarly to depth.",
        f"R² of spread and of depth differ by at most {SIMILAR}, and accuracy rises with the spread.",
        is_similar,
        _driven("spread and depth together with", ("spread", "depth"), ("depth",)),
    ),
    **{f"shift_{group}": _shift(group) for group in GROUPS},
}

FIGURE_4 = network_item(
    "affinity-figure-4", "Figure 4: statistics of the signature and accuracy", draw, CLAIMS, also=("nas",)
)
