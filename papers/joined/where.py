"""Does the affinity score approach 1 exactly where the representation becomes non-negative?

Each answer is a pure function of the table of layers, `joined_layers`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fathometer.leaky import BOTTLENECK
from papers.intervals import mean_interval
from papers.item import Answer, Claim
from papers.joined.prediction import NETWORK, along_path, inner, over_seeds
from papers.ranks import auc, spearman

TOGETHER = 0.8  # rank correlations along a path
STRAIGHT = 0.9  # correlation of the logarithms
NON_NEGATIVE, LOW = 0.02, 0.95
AFFINE, NEGATIVE = 0.98, 0.1
DEEP, TELLING = 10.0, 0.9

CLAIMS = {
    "where": Claim(
        "Along the path, ReLU's affinity score approaches 1 where the representation becomes non-negative.",
        "The rank correlation of 1 − affinity and ‖A₋‖/‖A‖ over the layers of a network, mean over "
        f"networks: the 95 % interval (over seeds) lies above {TOGETHER}, for all layers and for the inner "
        "ones (.1 ≤ p ≤ .9).",
    ),
    "limits": Claim(
        "With growing depth both limits are reached together.",
        "At the layer of least cost of identity, for each rank and seed over L̃: the rank correlations of "
        "L̃ with 1 − affinity and with ‖A₋‖/‖A‖ have 95 % intervals of the mean (over seeds) below "
        f"−{TOGETHER}, and the correlation of their logarithms has one above {STRAIGHT}.",
    ),
    "exactly": Claim(
        "Exactly there, and nowhere else.",
        f"No layer of any network has ‖A₋‖/‖A‖ < {NON_NEGATIVE} and a score < {LOW}, and none a score > "
        f"{AFFINE} and ‖A₋‖/‖A‖ > {NEGATIVE}.",
    ),
    "theory": Claim(
        "It happens where the theory says: in the layers whose cost of identity is near its least.",
        f"At L̃ ≥ {DEEP:g}: every layer within {BOTTLENECK:g} of the least cost of identity scores {LOW} "
        "or more; in every network the mean inside is above that outside; and the cost of identity above "
        f"its least tells layers with a score ≥ {LOW} from the others with an area under the curve whose "
        f"95 % interval (over seeds) lies above {TELLING}.",
    ),
}


def answer_where(layers: pd.DataFrame) -> Answer:
    """Compare the gap and the negative part along each path."""
    parts = {"all layers": layers, "inner layers": inner(layers)}
    tables = {name: along_path(part, ["negative", "mixed"]) for name, part in parts.items()}
    found = {name: over_seeds(table, table["negative"]) for name, table in tables.items()}
    signs = {name: over_seeds(table, table["mixed"]) for name, table in tables.items()}
    words = "; ".join(
        f"{name}: {found[name]}, lowest network {tables[name]['negative'].min():.2f}, with the distance from "
        f"neurons of one sign {signs[name]}"
        for name in parts
    )
    whole, within = found.values()
    return Answer(
        all(one.low >= TOGETHER for one in found.values()),
        words,
        {"all": whole.mean, "all_low": whole.low, "inner": within.mean, "inner_low": within.low},
    )


def answer_limits(layers: pd.DataFrame) -> Answer:
    """Compare the gap and the negative part at the narrowest layer, over L̃."""
    least = narrowest(layers)
    rows = []
    for (_, seed), of in least.groupby(["rank", "seed"]):
        gap, negative = (np.log(of[name].clip(lower=1e-12)) for name in ("gap", "negative"))
        rows.append(
            {
                "seed": seed,
                "gap": spearman(of["effective_depth"], of["gap"]),
                "negative": spearman(of["effective_depth"], of["negative"]),
                "together": float(np.corrcoef(gap, negative)[0, 1]),
                "slope": float(np.polyfit(negative, gap, 1)[0]),
            }
        )
    table = pd.DataFrame(rows)
    found = {name: over_seeds(table, table[name]) for name in ("gap", "negative", "together", "slope")}
    means = least.groupby("effective_depth")[["gap", "negative"]].mean()
    course = ", ".join(
        f"{gap:.3f} and {negative:.3f} (L̃ = {depth:g})"
        for depth, gap, negative in means.itertuples(name=None)
    )
    return Answer(
        found["gap"].high <= -TOGETHER
        and found["negative"].high <= -TOGETHER
        and found["together"].low >= STRAIGHT,
        f"1 − affinity and ‖A₋‖/‖A‖: {course}; rank correlations with L̃ {found['gap']} and "
        f"{found['negative']}; correlation of the logarithms {found['together']}, 1 − affinity goes as "
        f"‖A₋‖/‖A‖ to the power {found['slope']}",
        {
            f"{name}_{part}": getattr(one, part)
            for name, one in found.items()
            for part in ("mean", "low", "high")
        },
    )


def answer_exactly(layers: pd.DataFrame) -> Answer:
    """Count layers that are one and not the other."""
    clean, affine = layers["negative"] < NON_NEGATIVE, layers["affinity"] > AFFINE
    low, dark = clean & (layers["affinity"] < LOW), affine & (layers["negative"] > NEGATIVE)
    forgiven = 1 - (layers["mixed"] / layers["negative"].clip(lower=1e-300)) ** 2
    within, outside = forgiven[layers["inside"]].mean(), forgiven[~layers["inside"]].mean()
    return Answer(
        not (low.any() or dark.any()),
        f"of {clean.sum()} layers with ‖A₋‖/‖A‖ < {NON_NEGATIVE}, {low.sum()} score below {LOW} (least "
        f"{_least(layers.loc[clean, 'affinity'])}); of {affine.sum()} with a score > {AFFINE}, {dark.sum()} "
        f"have ‖A₋‖/‖A‖ > {NEGATIVE} (largest {_least(-layers.loc[affine, 'negative'])}); {len(layers)} "
        "layers in all. Neurons that are always negative do no harm: to allow for them takes "
        f"{abs(within):.1%} off ‖A₋‖² inside the bottleneck, {abs(outside):.1%} outside, in the mean over "
        "layers",
        {"bent": low.sum(), "clean": clean.sum(), "negative": dark.sum(), "affine": affine.sum()}
        | {"forgiven_inside": within, "forgiven_outside": outside},
    )


def answer_theory(layers: pd.DataFrame) -> Answer:
    """Compare the score inside and outside the bottleneck of deep networks."""
    deep = layers[layers["effective_depth"] >= DEEP]
    inside = deep[deep["inside"]]
    means = deep.groupby([*NETWORK, "inside"])["affinity"].mean().unstack()
    below = (means[True] > means[False]) | means[False].isna() if False in means else pd.Series([True])
    curves = areas(deep)
    if curves.isna().all(axis=None):
        return Answer(
            None,
            f"no area under the curve: no network of L̃ ≥ {DEEP:g} has scores on both sides of {LOW}",
        )
    found = {name: mean_interval(curves[name].dropna()) for name in curves}
    failing = int((inside["affinity"] < LOW).sum())
    return Answer(
        failing == 0 and bool(below.all()) and found["extra"].low >= TELLING,
        f"{len(inside)} layers inside score {inside['affinity'].min():.3f} or more, {failing} of them below "
        f"{LOW}; inside above outside in {below.sum()} of {len(below)} networks; area under the curve "
        f"{found['extra']} by the cost of identity above its least, {found['extra_stable_rank']} by the "
        f"stable rank ‖A‖*²/‖A‖² above its least, {found['extra_stable_rank_op']} by ‖A‖²/‖A‖²_op, "
        f"{found['speed']} by the speed ‖∂A‖/‖A‖",
        {"inside_least": inside["affinity"].min(), "inside_failing": failing}
        | {f"auc_{name}": one.mean for name, one in found.items()}
        | {"auc_extra_low": found["extra"].low},
    )


def areas(layers: pd.DataFrame) -> pd.DataFrame:
    """Measure by seed how well a low value of each measure separates layers with a score ≥ 0.95."""
    for name in ("stable_rank", "stable_rank_op"):
        least = layers.groupby(NETWORK)[name].transform("min")
        layers = layers.assign(**{f"extra_{name}": layers[name] - least})
    names = ["extra", "extra_stable_rank", "extra_stable_rank_op", "speed"]
    rows = {
        seed: {name: auc(-of[name], of["affinity"] >= LOW) for name in names}
        for seed, of in layers.groupby("seed")
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def narrowest(layers: pd.DataFrame) -> pd.DataFrame:
    """Select the layer of least cost of identity of each network."""
    return layers.loc[layers.groupby(NETWORK)["cost_of_identity"].idxmin()]


def _least(values: pd.Series) -> str:
    return f"{abs(values.min()):.3f}" if len(values) else "none"
