"""A finding of our own: where the affinity score approaches 1, and what predicts it.

Each claim is decided from the table of layers, `joined_layers`. There are two stable ranks, that of
Proposition 1, ‖A‖*²/‖A‖², and the common one, ‖A‖²/‖A‖²_op; to be better is to be better than both. Beside
them stand the ridge rank, the cost of identity without ReLU, and the negative part itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fathometer.leaky import BOTTLENECK
from papers.intervals import intervals, simulated_intervals
from papers.item import Claim, NotDecided, Numbers, RunContext
from papers.joined.figures import plot_finding
from papers.joined.networks import NOTES, RIDGES, joined_item, joined_layers
from papers.joined.prediction import (
    NETWORK,
    across_networks,
    along_path,
    inner,
    jackknife,
    left_out,
    same_place,
    seed_means,
)
from papers.ranks import auc, spearman

COST = "cost_of_identity"
RIVALS = ("stable_rank", "stable_rank_op")
NAMES = {
    COST: "cost of identity",
    "stable_rank": "stable rank ‖A‖*²/‖A‖²",
    "stable_rank_op": "stable rank ‖A‖²/‖A‖²_op",
    "ridge_rank": "ridge rank",
    "negative": "‖A₋‖/‖A‖",
}
COMPARED = tuple(NAMES)
TOGETHER = 0.8  # rank correlations along a path
STRAIGHT = 0.9  # correlation of the logarithms
NON_NEGATIVE, LOW = 0.02, 0.95
AFFINE, NEGATIVE = 0.98, 0.1
DEEP, TELLING = 10.0, 0.9
MANY, HIGH = 0.25, 0.9  # layers with many negative entries that score high nevertheless


def run(context: RunContext) -> pd.DataFrame:
    """Measure all layers once."""
    layers = context.table("layers", joined_layers(context))
    errors = context.table("held-out", left_out(layers, COMPARED))
    context.table("along", along_path(layers, COMPARED))
    shown = {name: intervals({"error": seed_means(errors, name)[name]}) for name in COMPARED}
    context.figure(plot_finding(layers, _along_by_depth(layers), shown, errors["none"].mean()))
    table = context.table("ridges", ridges(layers))
    context.facts |= {str(name): table[name].to_list() for name in table}
    off = layers[(layers["negative"] > MANY) & (layers["affinity"] > HIGH)]
    means = off[["affinity", "gap_alone"]].mean().fillna(0)
    context.facts |= {"off": len(off), "off_inside": float(off["inside"].sum())}
    context.facts |= {"off_score": means["affinity"], "off_alone": 1 - means["gap_alone"]}
    return layers


def ridges(layers: pd.DataFrame) -> pd.DataFrame:
    """Compute by γ₀ the rank correlation of the cost of identity with the gap, and its held-out error."""
    names = dict(
        sorted(({1e-3: COST} | {gamma: f"{COST}_{gamma:g}" for gamma in RIDGES}).items(), reverse=True)
    )
    chosen = list(names.values())
    return pd.DataFrame(
        {
            "gamma": list(names),
            "inner": along_path(inner(layers), chosen)[chosen].mean().to_list(),
            "error": left_out(layers, chosen)[chosen].mean().to_list(),
            "over_seeds": same_place(layers, chosen)[chosen].mean().to_list(),
        }
    )


def _along_by_depth(layers: pd.DataFrame) -> dict[str, dict[float, Mapping[str, float]]]:
    """Compute the rank correlation over the inner layers, with its interval, by predictor and L̃."""
    table = along_path(inner(layers), COMPARED)
    by_depth = {float(depth): seed_means(of, *COMPARED) for depth, of in table.groupby("effective_depth")}  # type: ignore[arg-type]
    return {
        name: {depth: intervals({"value": of[name]}, "correlation") for depth, of in by_depth.items()}
        for name in COMPARED
    }


def where(layers: pd.DataFrame) -> Numbers:
    """Compare the gap and the negative part along each path."""
    tables = {"all": along_path(layers, ["negative"]), "inner": along_path(inner(layers), ["negative"])}
    values = {name: seed_means(table, "negative")["negative"] for name, table in tables.items()}
    return intervals(values, "correlation") | {
        "lowest": min(table["negative"].min() for table in tables.values())
    }


def limits(layers: pd.DataFrame) -> Numbers:
    """Compare the gap and the negative part at the narrowest layer, over L̃."""
    least = layers.loc[layers.groupby(NETWORK)[COST].idxmin()]
    rows = []
    for (_, seed), of in least.groupby(["rank", "seed"]):
        gap, negative = (np.log(of[name].clip(lower=1e-12)) for name in ("gap", "negative"))
        trends = {f"{name}_trend": spearman(of["effective_depth"], of[name]) for name in ("gap", "negative")}
        together = float(np.corrcoef(gap, negative)[0, 1])
        rows.append(
            {"seed": seed, **trends, "together": together, "power": float(np.polyfit(negative, gap, 1)[0])}
        )
    means, table = least.groupby("effective_depth")[["gap", "negative"]].mean(), pd.DataFrame(rows)
    return {
        **intervals(seed_means(table, "gap_trend", "negative_trend", "together"), "correlation"),
        **intervals(seed_means(table, "power")),
        "depths": means.index.to_list(),
        "gaps": means["gap"].to_list(),
        "negatives": means["negative"].to_list(),
    }


def exactly(layers: pd.DataFrame) -> Numbers:
    """Count layers that are one and not the other."""
    clean, affine = layers["negative"] < NON_NEGATIVE, layers["affinity"] > AFFINE
    return {
        "layers": len(layers),
        "clean": float(clean.sum()),
        "low": float((clean & (layers["affinity"] < LOW)).sum()),
        "affine": float(affine.sum()),
        "dark": float((affine & (layers["negative"] > NEGATIVE)).sum()),
    }


def theory(layers: pd.DataFrame) -> Numbers:
    """Compare the score inside and outside the bottleneck of deep networks."""
    deep = layers[layers["effective_depth"] >= DEEP]
    inside = deep[deep["inside"]]
    means = deep.groupby([*NETWORK, "inside"])["affinity"].mean().unstack()
    below = (means[True] > means[False]) | means[False].isna() if False in means else pd.Series([True])
    curves = areas(deep).dropna()
    if len(curves) < 2:
        raise NotDecided(f"no network of L̃ ≥ {DEEP:g} has scores on both sides of {LOW}")
    return intervals({str(name): curves[name] for name in curves}, "share") | {
        "inside": len(inside),
        "least": inside["affinity"].min(),
        "networks": len(below),
        "above": float(below.sum()),
    }


def areas(layers: pd.DataFrame) -> pd.DataFrame:
    """Measure by seed how well a low value of each measure separates layers with a score ≥ 0.95."""
    for name in RIVALS:
        least = layers.groupby(NETWORK)[name].transform("min")
        layers = layers.assign(**{f"extra_{name}": layers[name] - least})
    names = ["extra", *(f"extra_{name}" for name in RIVALS), "speed"]
    rows = {
        seed: {name: auc(-of[name], of["affinity"] >= LOW) for name in names}
        for seed, of in layers.groupby("seed")
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def compared(table: pd.DataFrame, sign: int = 1, prefix: str = "") -> dict[str, float]:
    """Return the mean of each predictor, and by how much the cost of identity is better than either rival."""
    gains = {f"{prefix}gain_{name}": sign * (table[COST] - table[name]) for name in RIVALS}
    means = {f"{prefix}{name}": float(table.groupby("seed")[name].mean().mean()) for name in COMPARED}
    return means | intervals({name: gain.groupby(table["seed"]).mean() for name, gain in gains.items()})


def absolute(table: pd.DataFrame) -> pd.DataFrame:
    """Take absolute values: a measure with the opposite sign predicts too."""
    return table.assign(**{name: table[name].abs() for name in COMPARED})


def along(layers: pd.DataFrame) -> Numbers:
    """Compare rank correlations over the layers of a network, all of them and the inner ones."""
    inside = compared(absolute(along_path(inner(layers), COMPARED)), prefix="inner_")
    return inside | compared(absolute(along_path(layers, COMPARED)), prefix="all_")


def held_out(layers: pd.DataFrame) -> Numbers:
    """Compare errors in networks of a seed that was left out."""
    table = left_out(layers, COMPARED)
    return compared(table, -1) | {"none": table["none"].mean()}


def beyond(layers: pd.DataFrame) -> Numbers:
    """Compare rank correlations over seeds at the same place of the same design."""

    def correlations(part: pd.DataFrame) -> pd.Series:
        means = same_place(part, COMPARED)[list(COMPARED)].mean()
        return pd.concat([means, means[COST] - means[list(RIVALS)].add_prefix("gain_")])

    return jackknife(layers, correlations)


def better(
    words: str, test: str, measure: Any, effect: float, prefixes: tuple[str, ...] = ("",), more: str = ""
) -> Claim:
    """Claim that the cost of identity is better than both stable ranks."""
    gains = [f"{prefix}gain_{name}" for prefix in prefixes for name in RIVALS]

    def part(prefix: str) -> str:
        rivals = ", ".join(
            f"{NAMES[name]} {{{prefix}{name}:.3g}}, difference {{{prefix}gain_{name}:.3g}} "
            f"({{{prefix}gain_{name}_low:.3g}} to {{{prefix}gain_{name}_high:.3g}})"
            for name in RIVALS
        )
        beside = ", ".join(f"{NAMES[name]} {{{prefix}{name}:.3g}}" for name in ("ridge_rank", "negative"))
        label = f"{prefix.rstrip('_')} layers: " if prefix else ""
        return f"{label}{NAMES[COST]} {{{prefix}{COST}:.3g}}, {rivals} (beside them: {beside})"

    return Claim(
        words=words,
        test=f"{test}: the 95 % interval over seeds lies above 0.",
        measure=measure,
        holds=lambda n: min(n[f"{gain}_low"] for gain in gains) > 0,
        says="; ".join(map(part, prefixes)) + more,
        simulation=simulated_intervals(f"a difference of {effect:g}", dict.fromkeys(gains, effect)),
    )


_LEFT = "1 − affinity"
CLAIMS = {
    "where": Claim(
        words="Along the path, ReLU's affinity score approaches 1 where the representation becomes "
        "non-negative.",
        test=f"The rank correlation of {_LEFT} and ‖A₋‖/‖A‖ over the layers of a network, mean over "
        f"networks: the 95 % interval over seeds (Fisher's z) lies above {TOGETHER}, for all layers and for "
        "the inner ones (0.1 ≤ p ≤ 0.9).",
        measure=where,
        holds=lambda n: min(n["all_low"], n["inner_low"]) > TOGETHER,
        says="all layers {all:.3f} ({all_low:.3f} to {all_high:.3f}), inner ones {inner:.3f} "
        "({inner_low:.3f} to {inner_high:.3f}); lowest network {lowest:.2f}",
        simulation=simulated_intervals("0.95", {"all": 0.95, "inner": 0.95}, TOGETHER, "correlation"),
    ),
    "limits": Claim(
        words="With growing depth both limits are reached together.",
        test="At the layer of least cost of identity, for each rank and seed over L̃: the rank correlations "
        f"of L̃ with {_LEFT} and with ‖A₋‖/‖A‖ have 95 % intervals of the mean over seeds (Fisher's z) below "
        f"−{TOGETHER}, and the correlation of their logarithms has one above {STRAIGHT}.",
        measure=limits,
        holds=lambda n: (
            max(n["gap_trend_high"], n["negative_trend_high"]) < -TOGETHER and n["together_low"] > STRAIGHT
        ),
        says=f"{_LEFT} {{gaps:.3f}} and ‖A₋‖/‖A‖ {{negatives:.3f}} at L̃ = {{depths:g}}; rank correlations "
        "with L̃ "
        "{gap_trend:.3f} ({gap_trend_low:.3f} to {gap_trend_high:.3f}) and {negative_trend:.3f} "
        "({negative_trend_low:.3f} to {negative_trend_high:.3f}); correlation of the logarithms "
        "{together:.3f} ({together_low:.3f} to "
        f"{{together_high:.3f}}); {_LEFT} goes as ‖A₋‖/‖A‖ to the power {{power:.2f}} ({{power_low:.2f}} to "
        f"{{power_high:.2f}})",
        simulation=simulated_intervals(
            "−0.98, −0.98 and 0.98",
            {"gap_trend": -0.98, "negative_trend": -0.98, "together": 0.98},
            {"gap_trend": -TOGETHER, "negative_trend": -TOGETHER, "together": STRAIGHT},
            "correlation",
        ),
    ),
    "exactly": Claim(
        words="Exactly there, and nowhere else.",
        test=f"No layer of any network has ‖A₋‖/‖A‖ < {NON_NEGATIVE} and a score < {LOW}, and none a score > "
        f"{AFFINE} and ‖A₋‖/‖A‖ > {NEGATIVE}.",
        measure=exactly,
        holds=lambda n: n["low"] == n["dark"] == 0,
        says=f"of {{clean:.0f}} layers with ‖A₋‖/‖A‖ < {NON_NEGATIVE}, {{low:.0f}} score below {LOW}; of "
        f"{{affine:.0f}} with a score > {AFFINE}, {{dark:.0f}} have ‖A₋‖/‖A‖ > {NEGATIVE}; {{layers:.0f}} "
        "layers in total",
    ),
    "theory": Claim(
        words="It happens where the theory says: in the layers whose cost of identity is near its least.",
        test=f"At L̃ ≥ {DEEP:g}: every layer within {BOTTLENECK:g} of the least cost of identity scores {LOW} "
        "or more; in every network the mean inside is above that outside; and the cost of identity above "
        f"its least tells layers with a score ≥ {LOW} from the others with an area under the curve whose 95 "
        f"% interval over seeds (logit) lies above {TELLING}.",
        measure=theory,
        holds=lambda n: n["least"] >= LOW and n["above"] == n["networks"] and n["extra_low"] > TELLING,
        says="{inside:.0f} layers inside score {least:.3f} or more; inside above outside in {above:.0f} of "
        "{networks:.0f} networks; area under the curve {extra:.3f} ({extra_low:.3f} to {extra_high:.3f}) by "
        "the cost of identity above its least, {extra_stable_rank:.3f} by ‖A‖*²/‖A‖², "
        "{extra_stable_rank_op:.3f} by ‖A‖²/‖A‖²_op, {speed:.3f} by the speed ‖∂A‖/‖A‖",
        simulation=simulated_intervals("an area of 0.98", {"extra": 0.98}, TELLING, "share"),
    ),
    "along": better(
        "Along a path, the cost of identity predicts the score better than the stable rank.",
        f"The absolute rank correlation with {_LEFT} over the layers of a network, minus that of either "
        "stable rank (‖A‖*²/‖A‖² and ‖A‖²/‖A‖²_op), mean over networks, for all layers and for the inner "
        "ones (0.1 ≤ p ≤ 0.9), since all of them are large at both ends",
        along,
        0.1,
        ("inner_", "all_"),
    ),
    "held_out": better(
        "So it does in networks that it has not seen.",
        f"{_LEFT} in every layer, predicted by a monotone curve (isotonic regression) through the layers of "
        "all other seeds, dimensions in units of k: the mean absolute error with either stable rank minus "
        "that with the cost of identity, mean over networks",
        held_out,
        0.01,
        more="; without any predictor {none:.3g}",
    ),
    "across": better(
        "So it does between networks, at one place.",
        f"At p = ½, the absolute rank correlation with {_LEFT} over the networks of a seed (all ranks and L̃, "
        "dimensions in units of k), minus that of either stable rank",
        lambda layers: compared(absolute(across_networks(layers, COMPARED))),
        0.1,
    ),
    "beyond": better(
        "So it does where depth, rank and place are the same, and only the seed differs.",
        f"The rank correlation with {_LEFT} over seeds, at the same layer of networks of the same rank and "
        "L̃, mean over all layers, ranks and L̃, minus that of either stable rank, by a jackknife over seeds",
        beyond,
        0.5,
    ),
}

FINDING = joined_item(
    name="joined-finding",
    title="Does the affinity score approach 1 exactly where A becomes non-negative, and what predicts it?",
    run=run,
    claims=CLAIMS,
    seconds={"smoke": 3, "small": 10, "paper": 60},
    notes=(
        *NOTES,
        "The cost of identity knows σ(A), a stable rank does not. Two others are measured beside them: the "
        "ridge rank Tr A(AᵀA + γI)⁻¹Aᵀ, the cost of identity with A in place of σ(A), which says what the "
        "ridge does without the sight of signs; and ‖A₋‖/‖A‖ itself, what ReLU cuts off, which predicts as "
        "well or better.",
        f"{{off:.0f}} layers with ‖A₋‖/‖A‖ > {MANY} score above {HIGH}, {{off_score:.3f}} in the mean, "
        f"{{off_inside:.0f}} of them "
        "inside the bottleneck; with a map of each neuron alone they would score {off_alone:.3f}. A "
        "non-negative representation is enough for a score of 1, but not needed: the affine map may mix "
        "neurons.",
        "The ridge of the cost of identity is γ₀ = 0.001 in all tests. For γ₀ = {gamma:g}: rank correlation "
        "along inner layers {inner:.2f}, held-out error {error:.3f}, rank correlation over seeds "
        "{over_seeds:.2f}.",
    ),
)
