"""Rules about weights, BatchNorm, the first pass, the inputs, and how well the network does."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from fathometer.checking.evidence import Evidence
from fathometer.checking.limits import LIMITS
from fathometer.checking.rule import Hit, Rule
from fathometer.errors import join_names

_MAX_NAMED = 3


def _table(table: pd.DataFrame | None) -> pd.DataFrame:
    assert table is not None  # the needs of the rule
    return table


def _nonfinite(evidence: Evidence) -> Iterator[Hit]:
    weights = _table(evidence.weights)
    broken = list(weights.loc[~weights["finite"].astype(bool), "name"])
    modules = evidence.modules
    bad = pd.DataFrame() if modules is None else modules[~modules["finite"].astype(bool)]
    first = "" if bad.empty else str(bad["module"].iloc[0] or "the network")
    if broken:
        seen = f"; the first output with NaN or inf is that of {first}" if first else ""
        yield Hit(
            str(broken[0]),
            f"{join_names(broken, _MAX_NAMED)}: {'has' if len(broken) == 1 else 'have'} NaN or inf{seen}",
            {"tensors": len(broken)},
            2,
        )
    elif first:
        yield Hit(
            first,
            f"{first}: its output has NaN or inf, the first of {len(bad)} modules",
            {"modules": len(bad)},
            1,
        )
    elif not evidence.facts.get("finite_outputs", True):
        yield Hit("", "the output of the network has NaN or inf for some inputs")


def looks_random(weights: pd.DataFrame) -> pd.Series[bool]:
    """Tell which weight matrices look like independent draws."""
    noise = LIMITS.random_weights
    is_even = (weights["rows"].abs() < noise) & (weights["columns"].abs() < noise)
    return is_even & (weights["tails"] < noise) & weights["spectrum"].between(*LIMITS.spectrum)


def _partly_loaded(evidence: Evidence) -> Iterator[Hit]:
    weights = _table(evidence.weights).dropna(subset=["spectrum"])
    random = weights[looks_random(weights)]
    untouched = _untouched_norms(evidence)
    count = len(random) + len(untouched)
    total = len(weights) + len(_table(evidence.norms))
    if len(random) == len(weights) or count < max(1, LIMITS.random_share * total):
        return
    names = [*random["name"], *untouched]
    yield Hit(
        "",
        f"{count} of {total} layers look as if they had not been trained, the others do not: "
        f"{join_names(names, _MAX_NAMED)}",
        {"layers": count, "share": count / total},
        count / total,
    )


def _untouched_norms(evidence: Evidence) -> list[str]:
    norms = _table(evidence.norms)
    return [str(name) for name in norms.loc[norms["is_untouched"].astype(bool), "module"]]


def is_untrained(evidence: Evidence) -> bool:
    """Tell whether all weights look like random draws."""
    if evidence.weights is None:
        return False
    weights = evidence.weights.dropna(subset=["spectrum"])
    return bool(len(weights)) and bool(looks_random(weights).all())


def _untrained(evidence: Evidence) -> Iterator[Hit]:
    weights = _table(evidence.weights).dropna(subset=["spectrum"])
    if is_untrained(evidence):
        layers = "layer that is" if len(weights) == 1 else "layers that are"
        yield Hit(
            "",
            f"the network is not trained: the weights of all {len(weights)} {layers} large enough to tell "
            "look like random draws",
            {"layers": len(weights)},
        )


def _default_statistics(evidence: Evidence) -> Iterator[Hit]:
    norms = _table(evidence.norms)
    is_reset = norms["is_default"].astype(bool) & ~norms["is_identity"].astype(bool)
    is_reset &= ~norms["is_untouched"].astype(bool)
    names = list(norms.loc[is_reset, "module"])
    if names:
        yield Hit(
            str(names[0]),
            f"{len(names)} of {len(norms)} BatchNorm layers have trained weights, but a running mean of 0 "
            f"and a running variance of 1: {join_names(names, _MAX_NAMED)}",
            {"layers": len(names)},
            len(names) / len(norms),
        )


def _stale_statistics(evidence: Evidence) -> Iterator[Hit]:
    modules, norms = _table(evidence.modules), _table(evidence.norms)
    is_identity = set(norms.loc[norms["is_default"].astype(bool), "module"])
    known = modules.dropna(subset=["mean_drift"]) if "mean_drift" in modules else modules.iloc[:0]
    for _, row in known[~known["module"].isin(is_identity)].iterrows():
        shift, change = row["mean_drift"], row["variance_drift"]
        if shift > LIMITS.mean_drift or change > LIMITS.variance_drift:
            yield Hit(
                str(row["module"]),
                f"{row['module']}: its inputs are shifted by {shift:.2g} running deviations, and their "
                "variance "
                f"differs from the running variance by a factor of {math.exp(change):.2g}",
                {"mean_drift": shift, "variance_drift": change},
                max(shift / LIMITS.mean_drift, change / LIMITS.variance_drift),
            )
            return  # those behind it follow from it


def _training_mode(evidence: Evidence) -> Iterator[Hit]:
    norms = _table(evidence.norms)
    active = list(norms.loc[norms["training"].astype(bool), "module"])
    if active and not evidence.facts["training"]:
        yield Hit(
            str(active[0]),
            f"{len(active)} of {len(norms)} BatchNorm layers are in training mode, and the network is not: "
            f"{join_names(active, _MAX_NAMED)}",
            {"layers": len(active)},
        )
    elif active:
        yield Hit(
            "",
            "the network was given in training mode; it was checked in eval mode",
            severity="note",
            advice="Call model.eval() before you use it.",
        )


def _inputs(evidence: Evidence) -> Iterator[Hit]:
    trials = _table(evidence.trials)
    given, others = trials.iloc[0], trials.iloc[1:]
    if others.empty or is_untrained(evidence):
        return
    if "loss" in trials and trials["loss"].notna().all():
        best = others.iloc[int(others["loss"].to_numpy().argmin())]
        gain = given["loss"] - best["loss"]
        knows = math.log(float(evidence.facts.get("classes", 2)))  # the loss of guessing
        is_better = gain > LIMITS.trial_loss and best["accuracy"] >= given["accuracy"]
        if is_better and best["loss"] < knows:
            yield Hit(
                "",
                f"the images look as if they were {best['name']}: prepared in the other way, the accuracy on "
                f"{int(given['samples'])} of them is {best['accuracy']:.0%} instead of "
                f"{given['accuracy']:.0%}, and the loss {best['loss']:.2f} instead of {given['loss']:.2f}",
                {"accuracy": given["accuracy"], "other_accuracy": best["accuracy"], "gain": gain},
                gain,
                advice=f"To prepare them as the network expects, {best['advice']}.",
            )
    elif "variance_drift" in trials:
        drifts = (trials["mean_drift"] + trials["variance_drift"]).to_numpy(float)
        place = 1 + int(drifts[1:].argmin())
        before, after, best = drifts[0], drifts[place], trials.iloc[place]
        if after < LIMITS.trial_drift * before and before > LIMITS.mean_drift:
            yield Hit(
                "",
                f"the images look as if they were {best['name']}: prepared in the other way, the first "
                f"BatchNorm sees what it was trained on (drift {after:.2g} instead of {before:.2g})",
                {"drift": before, "other_drift": after},
                advice=f"To prepare them as the network expects, {best['advice']}.",
            )


def _precision(evidence: Evidence) -> Iterator[Hit]:
    modules = _table(evidence.modules)
    large = modules[modules["finite"].astype(bool) & (modules["largest"] > LIMITS.half_precision)]
    if not large.empty:
        top = large.iloc[int(large["largest"].to_numpy().argmax())]
        yield Hit(
            str(top["module"]),
            f"{top['module']}: values up to {top['largest']:.2g}, beyond the largest number of float16 "
            "(65504)",
            {"largest": top["largest"]},
        )


def _massive_activations(evidence: Evidence) -> Iterator[Hit]:
    modules = _table(evidence.modules)
    known = modules[modules["has_tokens"].astype(bool) & (modules["median"] > 0)]
    known = known.assign(ratio=known["largest"] / known["median"])
    known = known[(known["largest"] > LIMITS.massive_size) & (known["ratio"] > LIMITS.massive_ratio)]
    if not known.empty:
        top = known.iloc[int(known["ratio"].to_numpy().argmax())]
        yield Hit(
            str(top["module"]),
            f"{top['module']}: values up to {top['largest']:.3g}, {top['ratio']:.2g} times their median, the "
            f"largest of {len(known)} such modules",
            {"largest": top["largest"], "ratio": top["ratio"]},
        )


def _chance(evidence: Evidence) -> Iterator[Hit]:
    accuracy, classes, n = (float(evidence.facts[name]) for name in ("accuracy", "classes", "samples"))
    chance = 1 / classes
    noise = 3 * math.sqrt(chance * (1 - chance) / max(n, 1))
    if noise < LIMITS.above_chance * (1 - chance) and accuracy < chance + LIMITS.above_chance * (1 - chance):
        yield Hit(
            "",
            f"the accuracy is {accuracy:.1%} on {n:.0f} samples, and guessing one of {classes:.0f} classes "
            f"gives {chance:.1%}",
            {"accuracy": accuracy, "chance": chance},
            severity="note" if is_untrained(evidence) else None,
        )


def _perplexity(evidence: Evidence) -> Iterator[Hit]:
    perplexity = float(evidence.facts["perplexity"])
    if perplexity > LIMITS.perplexity:
        yield Hit(
            "",
            f"the perplexity on this text is {perplexity:.3g}: the model does not know the next token",
            {"perplexity": perplexity},
        )


NONFINITE = Rule(
    "nonfinite",
    "error",
    ("weights",),
    _nonfinite,
    "Every number that is computed from them is NaN, too.",
    "Load the last checkpoint before it, and train on with a smaller learning rate, clipped gradients, or in "
    "bfloat16 instead of float16.",
)
PARTLY_LOADED = Rule(
    "partly-loaded",
    "error",
    ("weights", "norms"),
    _partly_loaded,
    "Random layers between trained ones destroy what these compute.",
    "Look at what load_state_dict(strict=False) returned: names of weights with another prefix (module., "
    "model.) are skipped without an error. Layers that you have replaced must be trained.",
)
UNTRAINED = Rule(
    "untrained",
    "warning",
    ("weights",),
    _untrained,
    "Its numbers say something about the architecture, and nothing about what was learnt.",
    "Load weights, unless you mean to check the initialisation.",
)
BATCHNORM_RESET = Rule(
    "batchnorm-statistics",
    "error",
    ("norms",),
    _default_statistics,
    "In eval mode BatchNorm uses its running statistics: with wrong ones, all that follows is wrong.",
    "Load the buffers running_mean and running_var with the weights, or estimate them again: run the network "
    "in training mode over some batches without an optimiser.",
)
BATCHNORM_STALE = Rule(
    "batchnorm-drift",
    "error",
    ("modules", "norms"),
    _stale_statistics,
    "The network was trained on inputs of another scale: BatchNorm shifts and scales by what it saw then.",
    "Check the preprocessing (mean, std, 0 to 1 or 0 to 255) and the data. If the data are meant to be "
    "others, estimate the running statistics again in training mode.",
)
TRAINING_MODE = Rule(
    "training-mode",
    "warning",
    ("norms", "facts.training"),
    _training_mode,
    "In training mode outputs depend on the other samples of the batch, and every pass changes the "
    "statistics.",
    "Call model.eval() after loading, and look for code that calls train() on single layers.",
)
INPUTS = Rule(
    "inputs",
    "error",
    ("trials",),
    _inputs,
    "A network that is given images in another form than in training gives plausible wrong numbers.",
    "",
)
PRECISION = Rule(
    "precision",
    "warning",
    ("modules",),
    _precision,
    "In float16 these values become inf. bfloat16 has the range of float32.",
    "Run the network in bfloat16 or float32, or scale the weights of this layer down and those after it up.",
)
MASSIVE_ACTIVATIONS = Rule(
    "massive-activations",
    "note",
    ("modules",),
    _massive_activations,
    "A few huge values decide norms, quantisation ranges and the means of the residual stream.",
    "This is usual in large transformers (Sun et al., 2024). Quantise by channel, and do not average over "
    "all tokens.",
)
CHANCE = Rule(
    "chance",
    "error",
    ("facts.accuracy", "facts.classes"),
    _chance,
    "The network does not know these classes.",
    "Compare the order of the classes with that of the labels, check the preprocessing, and that the weights "
    "are those of this task.",
)
PERPLEXITY = Rule(
    "perplexity",
    "error",
    ("facts.perplexity",),
    _perplexity,
    "A trained model reaches 5 to 50 on prose of its language.",
    "Check that the tokenizer belongs to the model, the language of the text, and that all weights were "
    "loaded.",
)
