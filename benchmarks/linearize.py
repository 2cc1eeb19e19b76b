"""Which criterion says best what an activation is worth? Each is replaced by lines, and the loss measured.

    python -m benchmarks.linearize costs resnet20 --weights FOLDER… --data FOLDER --record
    python -m benchmarks.linearize together resnet20 --weights FOLDER… --data FOLDER --record
    python -m benchmarks.linearize greedy resnet56 --weights FOLDER… --data FOLDER --device cuda --record
    python -m benchmarks.linearize greedy smollm2 --text code --calibration 128 --test 96 --counts 3 6 9 …

Lines are fitted, and criteria computed, on training images. `fisher` was chosen among nine criteria by
gradients on training images of ResNet-20; the other networks had no part in it. `quick-kl` was made after
`fisher` had failed on VGG-16: that it uses the least certain inputs was decided on training images of
ResNet-20, -32, -56 and VGG-16. The first 1000 test images of CIFAR-10 were used to develop `linearize`: how
lines are fitted again after a step was changed because of the accuracy on them, and chosen among eleven ways
on ResNet-20 and ResNet-56. They are not used here.
`python -m benchmarks.linearize_page` writes it.

Targets, stated before the first run on test images (those of trained networks are in `benchmarks.recovery`):

1. `fisher` (one forward and one backward pass) has a median rank correlation of at least 0.90 with the
   measured divergence over the networks. The same for `quick-kl`, which takes as long: stated before its
   first run on test images, as was that its lowest value is above that of `fisher`. (On a GPU it takes
   longer, as was found later.)
2. ResNet-56 without training: at least 85 % with 27 of 55 ReLUs replaced, chosen by `greedy-kl`.
3. SmolLM2-135M: the divergence that the linear replacement of each MLP causes is predicted with a rank
   correlation of at least 0.9; with 3, 6 and 9 of 30 replaced, the perplexity on three texts is lower than
   by block influence, the cosine of the MLP or R² alone. A first run with 2048 tokens for 576 features missed
   both; the texts were too short for more, and one of them was replaced.
4. A folded ResNet-56 is equal to 1e-5 and takes less time.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from benchmarks.linearize_criteria import field_criteria, fisher_costs, stream_criteria
from benchmarks.networks import (
    BLOCKS,
    DEVELOPMENT_IMAGES,
    EMBEDDINGS,
    IMAGENET,
    LANGUAGE_MODELS,
    NAMES,
    TEXTS,
    add_source_options,
    blocks,
    cifar,
    loaded,
)
from benchmarks.records import FOLDER, add_record_option, write_record
from fathometer.data import open_data
from fathometer.linearizing.budget import Budget
from fathometer.linearizing.choose import Choice
from fathometer.linearizing.fold import fold, full_precision
from fathometer.linearizing.journal import Journal
from fathometer.linearizing.linearize import linearize, prepared
from fathometer.linearizing.maps import Kind
from fathometer.linearizing.slots import Slot, replaced_by
from fathometer.linearizing.trial import Score, Trial
from fathometer.measuring.batches import input_count
from fathometer.results.provenance import Provenance

RECORDS = FOLDER / "linearize"
SHARES = (0.10, 0.25, 0.50)
GAUGES = ("affinity", "r2_heldout", "nonnegativity_energy")
SHOWN = ("kl", "quick-kl", "fisher", "taylor", "affinity", "r2_heldout", "on/off entropy")
"""Criteria by which several activations are replaced at once."""
RANDOM_SEEDS = 3
IMAGES = 128  # of a pass that is timed


class Bench(NamedTuple):
    """A network on calibration data and on test data."""

    network: nn.Module
    slots: Sequence[Slot]
    trial: Trial
    test: Trial
    choice: Choice
    kind: Kind


@contextmanager
def bench(options: argparse.Namespace, name: str) -> Iterator[Bench]:
    """Load a network, and its data."""
    has_mlps = name == "smollm2"
    kind: Kind = "affine" if has_mlps else "channel"
    sites = "module:*.mlp" if has_mlps else None
    model = loaded(options, name)
    calibration, test = options.calibration, options.test
    if name in LANGUAGE_MODELS:
        found = blocks(options, model, options.text, calibration + test)
        batches, tested = found[: calibration // BLOCKS], found[calibration // BLOCKS :]
    elif name in IMAGENET:  # all at hand are training images of one set: others than those of the fit
        source = list(islice(open_data(options.images, model.inputs, batch_size=50), 20))
        first, last = options.set * calibration // 50, len(source) - test // 50
        batches, tested = source[:last][first : first + calibration // 50], source[last:]
    else:
        batches = cifar(options, name, "train", calibration, start=options.set * calibration)
        tested = cifar(options, name, "test", test, start=DEVELOPMENT_IMAGES)
    if len(batches) * input_count(batches[0]) < calibration or len(tested) * input_count(tested[0]) < test:
        raise SystemExit(f"{name}: there are fewer than {calibration} and {test} inputs")
    if name in EMBEDDINGS and name in IMAGENET:  # a matrix would count as logits
        batches, tested = (with_own_outputs(model.module, part) for part in (batches, tested))
    with prepared(model, batches, replacement=kind, sites=sites) as (device, network, replacer):
        trial = Trial(network, batches, batches, device)
        held_out = Trial(network, tested, tested, device)
        choice = Choice(replacer.slots, trial, held_out, kind)
        choice.fit()
        yield Bench(network, replacer.slots, trial, held_out, choice, kind)


@torch.no_grad()
def with_own_outputs(network: nn.Module, batches: Sequence[Any]) -> list[Any]:
    """Return inputs with what the network gives for them instead of labels: numbers that are no logits."""
    device = next(network.parameters()).device
    return [(x, network(x.to(device))) for x, _ in batches]


def costs(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Replace each site alone, and compare what that costs with the criteria."""
    with bench(options, name) as b:
        started, durations = time.perf_counter(), {}
        criteria: dict[str, dict[Slot, float]] = {}
        for each in ("kl", "quick-kl", "fisher", "taylor"):
            if each == "fisher" and not b.trial.are_logits:
                continue
            before = time.perf_counter()
            if each == "fisher":
                criteria[each] = fisher_costs(b.trial, b.choice.maps, options.set)
            else:
                criteria[each] = b.choice.costs_by(each, options.set)
            durations[each] = round(time.perf_counter() - before, 2)
        criteria |= {
            "r2 of the lines": {slot: -b.choice.fits[slot].r2 for slot in b.slots},
            **field_criteria(b.trial, b.slots),
        }
        if b.kind == "channel":
            criteria |= {gauge: b.choice.costs_by(gauge) for gauge in GAUGES}
        base = b.test.score()
        measured = {slot: score_with(b, [slot]) for slot in b.slots}
        divergence = [measured[slot].divergence for slot in b.slots]
        lost = [quality_of(base) - quality_of(measured[slot]) for slot in b.slots if base.outcome]
        found: dict[str, Any] = {
            "sites": [slot.site.name for slot in b.slots],
            "divergence": [round(value, 6) for value in divergence],
            "lost": [round(value, 5) for value in lost],
            "original": rounded(base),
            "seconds of criteria": durations,
            "correlation with divergence": {
                name: correlation(values, b.slots, divergence) for name, values in criteria.items()
            },
            "correlation with what is lost": {
                name: correlation(values, b.slots, lost) for name, values in criteria.items() if lost
            },
        }
        criteria |= {f"random {seed}": b.choice.costs_by("random", seed) for seed in range(RANDOM_SEEDS)}
        found["criteria"] = {name: [values[slot] for slot in b.slots] for name, values in criteria.items()}
        found["seconds"] = round(time.perf_counter() - started, 1)
    return found


def together(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Replace several sites at once, in the order of each criterion that `costs` has recorded.

    For language models, whose texts change with this repository, the criteria are computed again.
    """
    with bench(options, name) as b:
        by_name = {slot.site.name: slot for slot in b.slots}
        if b.kind == "affine":
            costs = {slot: -b.choice.fits[slot].r2 for slot in b.slots}
            criteria = {"r2 of the lines": costs, **stream_criteria(b.trial, b.slots)}
            orders = {each: sorted(b.slots, key=lambda s: values[s]) for each, values in criteria.items()}
            chosen = recorded_order(f"{name}-{options.text}", "greedy-kl")
            orders["greedy-kl"] = [by_name[site] for site in chosen]
        else:
            names = (*SHOWN, *(f"random {seed}" for seed in range(RANDOM_SEEDS)))
            orders = {each: [by_name[site] for site in recorded_order(name, each)] for each in names}
        found = {"original": rounded(b.test.score())}
        return found | {each: scores_of(b, order, options.counts) for each, order in orders.items()}


def scores_of(b: Bench, order: Sequence[Slot], counts: Sequence[int] | None) -> dict[str, Any]:
    """Replace the first sites of an order at once, and score the network before and after it is adapted.

    `recalibrated` has new running means of BatchNorm; for `after`, maps were fitted again, too.
    """
    found = {}
    for count in counts or [round(share * len(b.slots)) for share in SHARES]:
        chosen, state = order[:count], b.choice.snapshot()
        scores = found[str(count)] = {"before": rounded(score_with(b, chosen))}
        if b.trial.has_running_means:
            with replaced_by({slot: b.choice.maps[slot] for slot in chosen}):
                b.trial.recalibrate()
                scores["recalibrated"] = rounded(b.test.score())
            b.choice.restore(state)
        b.choice.replace(chosen)
        scores["after"] = rounded(b.test.score())
        b.choice.restore(state)
    return found


def score_with(b: Bench, slots: Sequence[Slot]) -> Score:
    """Return the score on the test data if these sites are replaced, with nothing else adapted."""
    with replaced_by({slot: b.choice.maps[slot] for slot in slots}):
        return b.test.score()


def recorded_order(name: str, criterion: str) -> list[str]:
    """Return the sites of a network in the order in which a criterion replaces them."""
    if criterion.startswith("greedy"):
        record = json.loads((RECORDS / f"greedy-{name}.json").read_text("utf-8"))
        return list(record["found"][criterion]["order"])
    found = json.loads((RECORDS / f"costs-{name}.json").read_text("utf-8"))["found"]
    costs = dict(zip(found["sites"], found["criteria"][criterion], strict=True))
    return sorted(costs, key=lambda site: costs[site])


def correlation(values: Mapping[Slot, float], slots: Sequence[Slot], measured: Sequence[float]) -> float:
    """Return the rank correlation of a criterion with what was measured."""
    return round(float(spearmanr([values[slot] for slot in slots], measured)[0]), 3)


def greedy(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Replace site after site, measured again after each step; score on test data on the way."""
    criterion = "greedy-kl"
    with bench(options, name) as b:
        wanted = options.counts or [round(share * len(b.slots)) for share in SHARES]
        scores: dict[str, Any] = {"0": rounded(b.test.score())}

        def show(done: int, *_: object) -> None:
            if done in wanted and str(done) not in scores:
                scores[str(done)] = rounded(b.test.score())
                print(criterion, done, scores[str(done)], flush=True)

        choice = Choice(b.slots, b.trial, b.trial, b.kind)
        started = time.perf_counter()
        choice.run(criterion, Budget("sites", wanted[-1]), 0, Journal(None, Provenance()), show)
        order = [row["site"] for row in choice.curve[1:]]
    found = {"scores": scores, "order": order, "seconds": round(time.perf_counter() - started, 1)}
    return {criterion: found}


def folding(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Compare a network whose inner ReLUs are lines with the same network folded."""
    from torch.fx.experimental.optimization import fuse  # warns that it uses torch.jit, which tests refuse

    model, batches = loaded(options, name).module, cifar(options, name, "train", options.calibration)
    network: Any = linearize(model, batches, sites=lambda site: site.call == 1 and "layer" in site.name)
    folded = fold(network, batches[0])
    x = batches[0][0][:IMAGES]
    sides = {"original": model, "original, fused": fuse(model), "linearized": network, "folded": folded}
    times: dict[str, list[float]] = {label: [] for label in sides}
    with torch.no_grad():
        with full_precision():
            error = float((folded(x) - network(x)).abs().max() / network(x).abs().max())
        for _ in range(options.rounds):
            for label, each in sides.items():
                times[label].append(seconds(each, x))
    ratios = {
        label: statistics.median(a / b for a, b in zip(times["folded"], times[label], strict=True))
        for label in sides
        if label != "folded"
    }
    return {
        "replaced": len(network.linearized.replaced),
        "error": error,
        "images": IMAGES,
        "seconds": {label: round(statistics.median(each), 5) for label, each in times.items()},
        "folded / other, median of ratios": {label: round(value, 3) for label, value in ratios.items()},
    }


def seconds(network: nn.Module, x: Tensor) -> float:
    """Time one pass, on a GPU ten without a break."""
    passes = 10 if x.is_cuda else 1
    network(x)
    synchronize(x.device)
    started = time.perf_counter()
    for _ in range(passes):
        network(x)
    synchronize(x.device)
    return (time.perf_counter() - started) / passes


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def quality_of(score: Any) -> float:
    """Return what is better if it is larger: the accuracy, or minus the loss of a language model."""
    return float(score.outcome["accuracy"] if "accuracy" in score.outcome else -score.outcome["loss"])


def rounded(score: Any) -> dict[str, float]:
    """Return a score as the record keeps it."""
    numbers = {"divergence": score.divergence, **score.outcome, "agreement": score.agreement}
    return {name: round(float(value), 5) for name, value in numbers.items() if not math.isnan(value)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("networks", nargs="+", choices=NAMES, metavar="NETWORK")
    add_source_options(parser)
    parser.add_argument("--images", help="folder of ImageNet images with labels.csv")
    parser.add_argument("--calibration", type=int, default=500, help="training images, or blocks of text")
    parser.add_argument("--test", type=int, default=9000, help="test images, or blocks of text")
    parser.add_argument("--counts", type=int, nargs="*", help="how many sites; default 10, 25 and 50 %%")
    parser.add_argument("--set", type=int, default=0, help="part of the training images, and seed")
    parser.add_argument("--text", default="documentation", choices=TEXTS)
    parser.add_argument("--rounds", type=int, default=15)
    add_record_option(parser)
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")  # on a GPU; convolutions use TF32 by default
    for name in options.networks:
        found = PARTS[options.part](options, name)
        found["calibration"] = options.calibration
        if options.part != "folding":
            found["test"] = options.test
        print(name, found.get("correlation with divergence", found), flush=True)
        if options.record:
            suffix = f"-{options.text}" if name == "smollm2" else ""
            suffix += f"-set{options.set}" if options.set else ""
            suffix += "-cuda" if options.part == "folding" and options.device == "cuda" else ""
            path = RECORDS / f"{options.part}-{name}{suffix}.json"
            write_record(path, {"benchmark": f"linearize {options.part}", "found": found}, options.device)


PARTS: dict[str, Callable[[argparse.Namespace, str], dict[str, Any]]] = {
    "costs": costs,
    "greedy": greedy,
    "together": together,
    "folding": folding,
}


if __name__ == "__main__":
    main()
