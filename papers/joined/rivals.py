"""Does the cost of identity predict the affinity score better than the stable rank?

Each answer is a pure function of the table of layers, `joined_layers`. There are two stable ranks, that of
Proposition 1, ‖A‖*²/‖A‖², and the common one, ‖A‖²/‖A‖²_op; to be better is to be better than both. Beside
them stand the ridge rank, the cost of identity without ReLU (what does the ridge do, and what the sight of
signs?), and the negative part itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.intervals import Interval
from papers.item import Answer, Claim
from papers.joined.prediction import (
    across_networks,
    along_path,
    inner,
    jackknife,
    left_out,
    over_seeds,
    same_place,
)

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

CLAIMS = {
    "along": Claim(
        "Along a path, the cost of identity foretells the score better than the stable rank.",
        "The absolute rank correlation with 1 − affinity over the layers of a network, less that of either "
        "stable rank (‖A‖*²/‖A‖² and ‖A‖²/‖A‖²_op), mean over networks: the 95 % interval (over seeds) "
        "lies above 0, for all layers and for the inner ones (.1 ≤ p ≤ .9), since all of them are large at "
        "both ends.",
    ),
    "held_out": Claim(
        "So it does in networks that it has not seen.",
        "1 − affinity in every layer, foretold by a monotone curve (isotonic regression) through the "
        "layers of all other seeds, dimensions in units of k: the mean absolute error with either stable "
        "rank less that with the cost of identity, mean over networks: the 95 % interval (over seeds) lies "
        "above 0.",
    ),
    "across": Claim(
        "So it does between networks, at one place.",
        "At p = ½, the absolute rank correlation with 1 − affinity over the networks of a seed (all ranks "
        "and L̃, dimensions in units of k), less that of either stable rank: the 95 % interval (over "
        "seeds) lies above 0.",
    ),
    "beyond": Claim(
        "So it does where depth, rank and place are the same, and only the seed differs.",
        "The rank correlation with 1 − affinity over seeds, at the same layer of networks of the same rank "
        "and L̃, mean over all layers, ranks and L̃, less that of either stable rank: the 95 % interval "
        "(jackknife over seeds) lies above 0.",
    ),
}


def answer_along(layers: pd.DataFrame) -> Answer:
    """Compare rank correlations over the layers of a network."""
    parts, holds = [], True
    numbers: dict[str, float] = {}
    for label, part in (("inner layers", inner(layers)), ("all layers", layers)):
        means, gains = _against(_absolute(along_path(part, COMPARED)))
        holds &= _ahead(gains)
        parts.append(f"{label}: {_words(means, gains)}")
        numbers |= _numbers(means, gains, label.split()[0])
    return Answer(holds, "; ".join(parts), numbers)


def answer_held_out(layers: pd.DataFrame) -> Answer:
    """Compare errors in networks of a seed that was left out."""
    table = left_out(layers, COMPARED)
    means, gains = _against(table, -1)
    none = table["none"].mean()
    return Answer(
        _ahead(gains),
        f"mean absolute error: {_words(means, gains)}; without any predictor {none:.3g}",
        _numbers(means, gains, "error") | {"error_none": none},
    )


def answer_across(layers: pd.DataFrame) -> Answer:
    """Compare rank correlations over networks at p = ½."""
    means, gains = _against(_absolute(across_networks(layers, COMPARED)))
    return Answer(_ahead(gains), _words(means, gains), _numbers(means, gains, "half"))


def answer_beyond(layers: pd.DataFrame) -> Answer:
    """Compare rank correlations over seeds at the same place of the same design."""

    def correlations(part: pd.DataFrame) -> pd.Series:
        means = same_place(part, COMPARED)[list(COMPARED)].mean()
        return pd.concat([means, means[COST] - means[list(RIVALS)].add_prefix("gain_")])

    found = jackknife(layers, correlations)
    means = {name: found[name] for name in COMPARED}
    gains = {name: found[f"gain_{name}"] for name in RIVALS}
    return Answer(_ahead(gains), _words(means, gains), _numbers(means, gains, "seeds"))


def along_by_depth(layers: pd.DataFrame) -> dict[str, dict[float, Interval]]:
    """Compute the rank correlation over the inner layers, with its interval, by predictor and L̃."""
    table = along_path(inner(layers), COMPARED)
    depths = {
        float(depth): table[table["effective_depth"] == depth] for depth in table["effective_depth"].unique()
    }
    return {name: {depth: over_seeds(of, of[name]) for depth, of in depths.items()} for name in COMPARED}


def _against(table: pd.DataFrame, sign: int = 1) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Write the mean of each predictor, and by how much the cost of identity is better than the others."""
    means = {name: over_seeds(table, table[name]) for name in COMPARED}
    return means, {name: over_seeds(table, sign * (table[COST] - table[name])) for name in RIVALS}


def _absolute(table: pd.DataFrame) -> pd.DataFrame:
    """Take absolute values: a measure with the opposite sign predicts too."""
    return table.assign(**{name: table[name].abs() for name in COMPARED})


def _ahead(gains: Mapping[str, Interval]) -> bool:
    return all(gain.low > 0 for gain in gains.values())


def _words(means: Mapping[str, Interval], gains: Mapping[str, Interval]) -> str:
    first = f"{NAMES[COST]} {means[COST]}"
    rest = [f"{NAMES[name]} {means[name]}, difference {gain}" for name, gain in gains.items()]
    beside = ", ".join(f"{NAMES[name]} {means[name]}" for name in ("ridge_rank", "negative"))
    return ", ".join([first, *rest]) + f" (beside them: {beside})"


def _numbers(means: Mapping[str, Interval], gains: Mapping[str, Interval], label: str) -> dict[str, float]:
    found = {f"{label}_{name}": one.mean for name, one in means.items()}
    for name, gain in gains.items():
        found |= {f"{label}_gain_over_{name}": gain.mean, f"{label}_gain_over_{name}_low": gain.low}
        found[f"{label}_gain_over_{name}_high"] = gain.high
    return found
