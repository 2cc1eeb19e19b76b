"""Rules about the values at the sites: dead, saturated, collapsed, exploding, without effect."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from fathometer.checking.evidence import Evidence
from fathometer.checking.limits import LIMITS
from fathometer.checking.network_rules import is_untrained
from fathometer.checking.rule import Hit, Rule
from fathometer.results.severity import Severity

_GATES = frozenset({"sigmoid", "hardsigmoid", "special_expit"})


def signal_sites(evidence: Evidence) -> pd.DataFrame:
    """Return the activations that a signal passes, without gates.

    Squeeze-and-excitation multiplies a signal by a sigmoid of a narrow layer. In trained networks many of
    these are constant, of low rank or saturated, and the signal passes beside them.
    """
    assert evidence.sites is not None
    rows = evidence.sites[evidence.sites["kind"] == "activation"]
    is_sigmoid, width = rows["operator"].isin(_GATES), rows["d"]
    is_gate = is_sigmoid & ~is_sigmoid.shift(1, fill_value=True) & (width > width.shift(1))
    return rows[~is_gate & ~is_gate.shift(-1, fill_value=False)]


def _dead_layers(evidence: Evidence) -> Iterator[Hit]:
    rows = signal_sites(evidence)
    dead = rows[(rows["dead_y"] >= LIMITS.dead_layer) & (rows["n"] >= LIMITS.min_samples)]
    for order, (name, row) in enumerate(dead.iterrows()):
        if order and row["dead_x"] >= LIMITS.dead_layer:
            continue  # its inputs come from the first one
        yield Hit(
            str(name),
            f"{name}: {round(row['dead_y'] * row['d'])} of {int(row['d'])} channels never change over "
            f"{int(row['n'])} samples: the layer passes nothing on",
            {"dead": row["dead_y"]},
            -order,
        )


def _dead_channels(evidence: Evidence) -> Iterator[Hit]:
    for name, row in signal_sites(evidence).iterrows():
        share = row["dead_y"]
        if row["n"] < LIMITS.min_samples or not LIMITS.dead_channels <= share < LIMITS.dead_layer:
            continue
        dead, width, constant = round(share * row["d"]), int(row["d"]), round(row["dead_x"] * row["d"])
        cause = f"; the inputs of {constant} do not change either" if constant else ""
        yield Hit(
            str(name),
            f"{name}: {dead} of {width} channels never change over {int(row['n'])} samples{cause}",
            {"dead": share, "constant_inputs": row["dead_x"]},
            share + row["dead_x"],
            "warning" if share >= LIMITS.many_dead else "note",
        )


def _saturated(evidence: Evidence) -> Iterator[Hit]:
    for name, row in signal_sites(evidence).iterrows():
        if row["saturated"] >= LIMITS.saturated and row["operator"] != "relu6":  # which is off at an end
            yield Hit(
                str(name),
                f"{name}: {row['saturated']:.0%} of the channels of this {row['operator']} are at an end of "
                "its range for most samples",
                {"saturated": row["saturated"]},
                row["saturated"],
            )


def _duplicates(evidence: Evidence) -> Iterator[Hit]:
    for name, row in signal_sites(evidence).iterrows():
        if row["duplicates"] >= LIMITS.duplicates and row["n"] >= LIMITS.min_samples:
            copies = round(row["duplicates"] * row["d"])
            yield Hit(
                str(name),
                f"{name}: {copies} of {int(row['d'])} channels are copies of another one",
                {"duplicates": row["duplicates"]},
                row["duplicates"],
            )


def _collapsed(evidence: Evidence) -> Iterator[Hit]:
    for name, row in signal_sites(evidence).iterrows():
        rank, carried = row["participation_ratio_y"], row.get("carriers_y", 0.0)
        is_wide = min(row["d"], row["n"]) >= LIMITS.min_width and row["dead_y"] < LIMITS.dead_layer
        few_decide = carried >= LIMITS.carriers  # which is another rule
        if is_wide and rank < LIMITS.rank and not few_decide:
            yield Hit(
                str(name),
                f"{name}: the outputs of {int(row['d'])} channels vary along {rank:.2f} directions",
                {"participation_ratio": rank},
                LIMITS.rank - rank,
            )


def _dominant_samples(evidence: Evidence) -> Iterator[Hit]:
    assert evidence.sites is not None
    parts = evidence.sites[evidence.sites["kind"] != "activation"]
    rows = pd.concat([signal_sites(evidence), parts])
    rows = rows[(rows["n"] >= LIMITS.min_samples) & (rows["carriers_y"] >= LIMITS.carriers)]
    for name, row in rows.iterrows():
        unit = "tokens" if evidence.facts.get("pooling") == "tokens" else "samples"
        yield Hit(
            str(name),
            f"{name}: 1 % of the {unit} carry {row['carriers_y']:.0%} of the variance of the outputs",
            {"carriers": row["carriers_y"]},
            row["carriers_y"],
        )


def _scale(evidence: Evidence) -> Iterator[Hit]:
    rows = signal_sites(evidence)
    sizes = {str(name): float(row["scale_x"]) for name, row in rows.iterrows() if row["dead_x"] < 1}
    if not sizes:
        return
    names = list(sizes)
    norms = evidence.norms
    is_new = norms is not None and bool(norms["is_untouched"].any())
    severity: Severity | None = "warning" if is_new else None  # in training mode BatchNorm would scale
    for name, size in sizes.items():
        if size > LIMITS.explodes or size < LIMITS.vanishes:
            what = "explodes" if size > LIMITS.explodes else "vanishes"
            sentence = f"{name}: the signal {what}: the typical size of its inputs is {size:.2g}"
            yield Hit(name, sentence, {"scale": size}, abs(math.log(size or 1e-300)), severity)
            return  # what follows has the same cause
    small, large = min(names, key=lambda name: sizes[name]), max(names, key=lambda name: sizes[name])
    ratio = sizes[large] / sizes[small]
    step = (sizes[names[-1]] / sizes[names[0]]) ** (1 / max(len(names) - 1, 1))
    if ratio > LIMITS.span:
        yield Hit(
            max(small, large, key=names.index),
            f"the signal changes by a factor of {ratio:.2g} between {small} (typical size "
            f"{sizes[small]:.2g}) and {large} ({sizes[large]:.2g})",
            {"factor": ratio, "smallest": sizes[small], "largest": sizes[large]},
            math.log(ratio),
            severity,
        )
    elif is_untrained(evidence) and not 1 / LIMITS.initial_step < step < LIMITS.initial_step:
        yield Hit(
            "",
            f"the weights are random, and from one activation to the next the signal "
            f"{'grows' if step > 1 else 'shrinks'} by a factor of {max(step, 1 / step):.2g}",
            {"factor": step},
            abs(math.log(step)),
            severity,
        )
    elif is_untrained(evidence) and evidence.weights is not None:
        gain = float(evidence.weights["gain"].median())
        if gain > LIMITS.initial_gain:
            sentence = (
                "the weights are random and large: a typical layer multiplies the size of its inputs by "
            )
            yield Hit("", f"{sentence}{gain:.2g}", {"gain": gain}, math.log(gain), "warning")


def _unusual(evidence: Evidence) -> Iterator[Hit]:
    rows = signal_sites(evidence)
    for name, row in rows[rows["percentile"].isin([0.0, 100.0])].iterrows():
        than = "smaller than" if row["percentile"] == 0 else "larger than"
        yield Hit(
            str(name),
            f"{name}: an affinity score of {row['affinity']:.3f} is {than} that of every {row['operator']} "
            "in the same role in the reference networks",
            {"affinity": row["affinity"], "percentile": row["percentile"]},
        )


def _linear(evidence: Evidence) -> Iterator[Hit]:
    for name, row in signal_sites(evidence).iterrows():
        if row["affinity"] >= LIMITS.linear and row["dead_y"] < LIMITS.dead_layer:
            yield Hit(
                str(name),
                f"{name}: this {row['operator']} does nothing on these data (affinity {row['affinity']:.4f})",
                {"affinity": row["affinity"]},
                row["affinity"],
            )


DEAD_LAYER = Rule(
    "dead-layer",
    "error",
    ("sites.dead_y",),
    _dead_layers,
    "What comes after it sees the same values for every input, and no gradient flows back.",
    "Look at the layer before it: weights that are zero or not loaded, a bias that is far too negative, a "
    "learning rate that was too large. Initialise it again, or train with a smaller one.",
)
SCALE = Rule(
    "scale",
    "error",
    ("sites.scale_x", "sites.dead_x"),
    _scale,
    "Signals that grow or shrink from layer to layer overflow or disappear, and so do their gradients.",
    "Check the initialisation (kaiming_normal_ before a ReLU, xavier_uniform_ before a Tanh), whether a "
    "normalisation layer is missing, and the scale of the inputs.",
)
SATURATED = Rule(
    "saturated",
    "warning",
    ("sites.saturated",),
    _saturated,
    "A saturated activation has hardly any gradient, and the layers before it stop learning.",
    "Use smaller initial weights or a smaller learning rate before it, or normalise its inputs.",
)
DEAD_CHANNELS = Rule(
    "dead-channels",
    "warning",
    ("sites.dead_y",),
    _dead_channels,
    "They cost time and memory, and do nothing on these data.",
    "If data are few or of one kind, check on more. Otherwise the channels can be pruned; in training, a "
    "smaller learning rate or a LeakyReLU keeps them alive.",
)
DUPLICATES = Rule(
    "duplicates",
    "warning",
    ("sites.duplicates",),
    _duplicates,
    "Copies start and stay the same: the layer has fewer channels than it seems.",
    "Look for weights that were initialised to the same values, copied when a network was widened, or tied.",
)
RANK = Rule(
    "rank",
    "warning",
    ("sites.participation_ratio_y", "sites.dead_y"),
    _collapsed,
    "Almost all that the layer says about its inputs is one number.",
    "Check that the data are not all alike, and the learning rate and weight decay of this layer; a "
    "normalisation layer before it helps.",
)
DOMINANT_SAMPLES = Rule(
    "dominant-samples",
    "note",
    ("sites.carriers_y",),
    _dominant_samples,
    "Means, ranks and R² there describe these few samples and not the others.",
    "Use the gauges carriers and r2_trimmed, and leave out the first token of each text; for quantisation, "
    "keep these channels in higher precision.",
)
REFERENCE = Rule(
    "reference",
    "note",
    ("sites.percentile",),
    _unusual,
    "Trained networks differ less than that: it may be another kind of network or data, or a fault.",
    "Look at the other findings first, and compare the network with a similar one: `fathometer compare`.",
)
LINEAR = Rule(
    "linear",
    "note",
    ("sites.affinity", "sites.dead_y"),
    _linear,
    "The layers before and after it act as one linear layer on these data.",
    "It is a candidate for removal: try the network without it. If that is a surprise, look at the bias "
    "before it.",
)
