"""Figure 6: nine activation functions on sliding Gaussian inputs (appendix D)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
import torch

from fathometer.activations import AtlasSettings, activation, activation_atlas
from fathometer.gauges import affinity_scores
from fathometer.progress import progress_bar
from fathometer.report import plot_activation_atlas
from papers.intervals import by_name, seeds_simulation
from papers.item import Claim, Item, Numbers, RunContext

NEAR_ZERO = 0.1
CURVED = 0.9  # a median below is non-linear
WIDER = 2.0  # times ReLU's width
MUCH = 2.0  # times lower
ALIKE = 0.9
RELUS = ("ReLU", "ReLU6", "LeakyReLU")
MODERN = ("SiLU", "Hardswish")
FALLING = ("SiLU", "Hardswish", "GELU")  # left of their minimum
KEYS = ["seed", "activation", "mean", "std"]

BySeed = Mapping[str, Sequence[float]]


def run(context: RunContext) -> pd.DataFrame:
    """Measure the atlas over several seeds; `either` is the score of f, or that of −f if it is higher."""
    samples, features = context.pick(smoke=(60, 10), small=(1000, 300), paper=(1000, 300))
    tables, turned = [], []
    for seed in context.seeds(smoke=2, small=2, paper=5):
        settings = AtlasSettings(samples=samples, features=features, seed=seed)
        with progress_bar(f"activations, seed {seed}") as show:
            atlas = activation_atlas(settings=settings, device=context.device, progress=show)
        if seed == 0:
            context.figure(plot_activation_atlas(atlas))
        tables.append(atlas.table.assign(seed=seed))
        turned.append(turned_scores(settings, context.device).assign(seed=seed))
    scores = either_way(pd.concat(tables, ignore_index=True), pd.concat(turned, ignore_index=True))
    context.table("scores", scores)
    left = [
        medians(scores, column).query("mean < -2").mean()[list(FALLING)] for column in ("score", "either")
    ]
    context.facts |= {"left": left[0].to_list(), "turned": left[1].to_list()}
    return scores


def turned_scores(settings: AtlasSettings, device: str = "cpu") -> pd.DataFrame:
    """Score −f for functions that decrease somewhere, on the inputs of the atlas with means below 0."""
    generator = torch.Generator().manual_seed(settings.seed)
    rows = []
    for mean in np.linspace(*settings.interval, settings.means).tolist():
        for std in settings.stds:
            shape = (settings.samples, settings.features)
            x = (mean + std * torch.randn(shape, generator=generator, dtype=torch.float64)).to(device)
            if mean < 0:
                scores = affinity_scores([(x, -activation(name)(x)) for name in FALLING]).value
                rows += [
                    {"activation": name, "mean": mean, "std": std, "turned": score}
                    for name, score in zip(FALLING, scores, strict=True)
                ]
    return pd.DataFrame(rows)


def either_way(scores: pd.DataFrame, turned: pd.DataFrame) -> pd.DataFrame:
    """Add `either`, the higher of `score` and `turned`: a falling straight line then counts as straight."""
    both = scores.merge(turned, on=KEYS, how="left")
    return both.assign(either=both[["score", "turned"]].max(axis=1))


def medians(scores: pd.DataFrame, column: str = "score") -> pd.DataFrame:
    """Compute the median over stds: a row for each seed and mean, a column for each activation."""
    return scores.pivot_table(column, ["seed", "mean"], "activation", "median", sort=False)


def widths(scores: pd.DataFrame, column: str = "score") -> pd.DataFrame:
    """Measure by seed and activation the range of means with a median score below the limit."""
    found = medians(scores, column)
    means = found.index.unique("mean")
    return (found < CURVED).groupby("seed").sum() * (means.max() - means.min()) / (len(means) - 1)


def over_seeds(how: Literal["min", "mean"], *names: str) -> Callable[[pd.DataFrame], Numbers]:
    """Return a measure: the least or mean score of some activations, for each seed."""
    return lambda scores: scores.pivot_table("score", "seed", "activation", how)[list(names)].to_dict("list")  # type: ignore[return-value]


def wide(scores: pd.DataFrame) -> Numbers:
    """Measure the width of the range in which each is non-linear."""
    return widths(scores)[["Sigmoid", "GELU", "ReLU"]].to_dict("list")  # type: ignore[return-value]


def modern(scores: pd.DataFrame, column: str) -> Numbers:
    """Measure mean scores and widths."""
    names = [*MODERN, "GELU", "ReLU"]
    means = scores.pivot_table(column, "seed", "activation", "mean")[names]
    return {**means.to_dict("list"), **widths(scores, column)[names].add_suffix(" width").to_dict("list")}  # type: ignore[dict-item]


def lower_and_wider(n: BySeed) -> bool:
    """Whether both modern activations have a lower mean than ReLU, and are non-linear in a wider range."""
    lower = all(own < relu for name in MODERN for own, relu in zip(n[name], n["ReLU"], strict=True))
    return lower and all(wider(n[f"{name} width"], n["ReLU width"]) for name in MODERN)


def wider(of: Sequence[float], relu: Sequence[float]) -> bool:
    """Whether a range is wider than ReLU's in every seed."""
    return all(own >= WIDER * other for own, other in zip(of, relu, strict=True))


def alike(scores: pd.DataFrame) -> Numbers:
    """Correlate the medians of ReLU and its variants, for each seed."""
    groups = [of for _, of in medians(scores).groupby("seed")]
    return {f"{a} and {b}": [float(of[a].corr(of[b])) for of in groups] for a, b in combinations(RELUS, 2)}


_WIDTHS = {"SiLU width": 20.0, "Hardswish width": 8.0, "GELU width": 10.0, "ReLU width": 2.0}
_MODERN = seeds_simulation(
    "assumed: mean scores 0.1 below ReLU's, widths 20 and 8 against 2",
    {"SiLU": 0.8, "Hardswish": 0.8, "GELU": 0.8, "ReLU": 0.9, **_WIDTHS},
    dict.fromkeys((*MODERN, "GELU", "ReLU"), 0.9) | dict.fromkeys(_WIDTHS, 2.0),
)
_MODERN_TEST = (
    "For either, in every seed: the mean score over all means and stds is below ReLU's, and the range of "
    f"means with a median score below {CURVED} is at least twice as wide as ReLU's."
)
FIGURE_6 = Item(
    name="affinity-figure-6",
    title="Figure 6: affinity scores of nine activation functions on sliding Gaussian inputs",
    run=run,
    claims={
        "zero": Claim(
            words="Both GELU and ReLU may attain affinity scores that are close to 0, which is not the case "
            "for Sigmoid.",
            test="Over all means and stds, in every seed: the lowest scores of GELU and ReLU are below "
            f"{NEAR_ZERO}, that of Sigmoid is not.",
            measure=over_seeds("min", "GELU", "ReLU", "Sigmoid"),
            holds=lambda n: max(*n["GELU"], *n["ReLU"]) < NEAR_ZERO <= min(n["Sigmoid"]),
            says=lambda n: f"lowest scores: {by_name(n)}",
            simulation=seeds_simulation(
                "assumed: lowest scores of 0.02, 0.02 and 0.2",
                {"GELU": 0.02, "ReLU": 0.02, "Sigmoid": 0.2},
                dict.fromkeys(("GELU", "ReLU", "Sigmoid"), 0.02),
            ),
        ),
        "wide": Claim(
            words="The non-linearity of Sigmoid and GELU is maintained in a wide range, while for ReLU it is "
            "rather narrow.",
            test=f"The range of means with a median score (over stds) below {CURVED} is at least twice as "
            "wide for either as for ReLU, in every seed.",
            measure=wide,
            holds=lambda n: wider(n["Sigmoid"], n["ReLU"]) and wider(n["GELU"], n["ReLU"]),
            says=lambda n: f"width of the range of means with a median below {CURVED}, of 40: {by_name(n)}",
            simulation=seeds_simulation(
                "assumed: widths of 20, 10 and 2",
                {"Sigmoid": 20.0, "GELU": 10.0, "ReLU": 2.0},
                dict.fromkeys(("Sigmoid", "GELU", "ReLU"), 2.0),
            ),
        ),
        "modern": Claim(
            words="SiLU and HardSwish have a stronger non-linearity pattern in large subdomains.",
            test=_MODERN_TEST,
            measure=partial(modern, column="score"),
            holds=lower_and_wider,
            says=lambda n: f"mean scores, and widths of the range of means below {CURVED}: {by_name(n)}",
            simulation=_MODERN,
        ),
        "bent": Claim(
            words="The same, read as: they are bent there. (A falling straight line scores low too, since "
            "only increasing affine maps are optimal transport maps.)",
            test=f"{_MODERN_TEST} With the score of −f in place of that of f wherever it is higher.",
            measure=partial(modern, column="either"),
            holds=lower_and_wider,
            says=lambda n: f"mean scores, and widths of the range of means below {CURVED}: {by_name(n)}",
            kind="ours",
            simulation=_MODERN,
        ),
        "tanh": Claim(
            words="Despite having a shape similar to Sigmoid, Tanh may allow for much lower affinity scores.",
            test="The lowest score of Tanh is at most half that of Sigmoid, in every seed.",
            measure=over_seeds("min", "Tanh", "Sigmoid"),
            holds=lambda n: all(MUCH * t <= s for t, s in zip(n["Tanh"], n["Sigmoid"], strict=True)),
            says=lambda n: f"lowest scores: {by_name(n)}",
            simulation=seeds_simulation(
                "assumed: lowest scores of 0.02 and 0.2",
                {"Tanh": 0.02, "Sigmoid": 0.2},
                {"Tanh": 0.2, "Sigmoid": 0.2},
            ),
        ),
        "alike": Claim(
            words="The variations of ReLU have a very similar shape.",
            test=f"The medians by mean of ReLU, ReLU6 and LeakyReLU have correlations of {ALIKE} or more, "
            "each pair, in every seed.",
            measure=alike,
            holds=lambda n: min(min(of) for of in n.values()) >= ALIKE,
            says=lambda n: f"correlations of the medians: {by_name(n)}",
            simulation=seeds_simulation(
                "assumed: correlations of 0.97",
                {f"{a} and {b}": 0.97 for a, b in combinations(RELUS, 2)},
                {f"{a} and {b}": 0.8 for a, b in combinations(RELUS, 2)},
            ),
        ),
        "leaky": Claim(
            words="LeakyReLU is on average more linear than ReLU and ReLU6.",
            test="Its mean score over all means and stds is higher than both of theirs, in every seed.",
            measure=over_seeds("mean", *RELUS),
            holds=lambda n: all(
                leaky > max(*rest) for leaky, *rest in zip(n["LeakyReLU"], n["ReLU"], n["ReLU6"], strict=True)
            ),
            says=lambda n: f"mean over all means and stds: {by_name(n)}",
            simulation=seeds_simulation(
                "assumed: higher by 0.03",
                {"ReLU": 0.9, "ReLU6": 0.9, "LeakyReLU": 0.93},
                dict.fromkeys(RELUS, 0.9),
            ),
        ),
    },
    settings={
        "small": "the published setting with two seeds",
        "paper": "the published setting with five seeds, on a CPU",
    },
    seconds={"smoke": 3, "small": 105, "paper": 250},
    notes=(
        f"Left of −2 the median scores of {', '.join(FALLING)} are {{left:.2f}}; with −f where that is "
        "higher, {turned:.2f}. What is gained is no bend: the function falls there.",
        "GELU left of −8.3 is 0 in float64 as torch computes it (1 + erf loses all digits), and a constant "
        "scores 1: how far its low stretch goes is a matter of precision.",
    ),
    changes=(
        "The tests of SiLU and HardSwish (modern, bent) were changed after a smoke run, in which the first "
        "version had nothing to compare with.",
        "The test of Tanh asked at first for a difference of 0.2, which nothing can have where the lowest "
        "score of Sigmoid is below 0.2 itself.",
    ),
)
