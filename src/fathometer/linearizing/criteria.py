"""Criteria: what it is expected to cost to replace a call, the smaller the better."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fathometer.capture import Site
from fathometer.errors import InputError, did_you_mean
from fathometer.gauges.registry import GAUGES
from fathometer.linearizing.outputs import rows_of
from fathometer.linearizing.slots import Slot, replacer_of
from fathometer.linearizing.trial import Trial, listening
from fathometer.measuring.batches import input_count, labels_of
from fathometer.measuring.measure import measure
from fathometer.measuring.scores import Scorer
from fathometer.results.sounding import column_of

Criterion: TypeAlias = Literal["greedy-kl", "kl", "quick-kl", "taylor", "random", "depth"]
"""How sites are chosen. Besides these, the name of a gauge, or a function of a `Site` that returns its cost.

`kl` measures every site in a pass of its own; `quick-kl` does so on few inputs, those that the original
network is least certain of; `greedy-kl` measures again after each step. `taylor` is
the first-order change of the loss, by one forward and one backward pass; `depth` takes the last sites first.
Of a gauge (`affinity`, `r2_heldout`), sites with the largest values come first; with a minus in front
(`-entropy_change`), those with the smallest.
"""
CriterionLike: TypeAlias = "Criterion | str | Callable[[Site], float]"

MEASURED = ("greedy-kl", "kl", "quick-kl")
"""Criteria that measure the divergence of the outputs."""

_MAX_SAMPLES = 512  # of a batch for a gauge


def check_criterion(criterion: CriterionLike, parameter: str = "criterion") -> None:
    """Refuse a criterion that is neither known nor a gauge."""
    if not callable(criterion) and criterion not in get_args(Criterion):
        names = [name for gauge in GAUGES.values() for name in (gauge.name, *gauge.ranges)]
        if str(criterion).removeprefix("-") not in names:
            known = [*get_args(Criterion), *names]
            raise InputError(
                f"expected {', '.join(get_args(Criterion))}, a gauge such as affinity, or a function, "
                f"got {criterion!r}; {did_you_mean(str(criterion), known)}".removesuffix("; "),
                parameter=parameter,
            )


def smallest_first(criterion: CriterionLike) -> bool:
    """Tell whether sites with small values are replaced first: costs, but not the values of a gauge."""
    return callable(criterion) or criterion in get_args(Criterion) or criterion.startswith("-")


def taylor_costs(trial: Trial, maps: Mapping[Slot, nn.Module]) -> dict[Slot, float]:
    """Estimate how each map changes the loss, by one forward and one backward pass over the data.

    A map changes the output of its site by δ. To first order, this changes the loss of an input by
    s = ⟨gradient, δ⟩; the cost is the mean of |s|. Without labels, the loss is that of the network's own
    predictions; where outputs are not logits, the sum of their squares.
    """
    sums = dict.fromkeys(maps, 0.0)
    scorer = Scorer(trial.model, trial.data)

    inputs = 0  # of the batch; a site may see them in pieces, such as tokens or windows

    def note(slot: Slot, x: Tensor, wanted: Tensor, output: Tensor) -> None:
        with torch.no_grad():
            delta = maps[slot](x) - wanted
        rows = inputs if len(delta) % inputs == 0 else len(delta)

        def add(gradient: Tensor) -> None:
            sums[slot] += float((gradient * delta).reshape(rows, -1).sum(1).double().abs().sum())

        if not output.requires_grad:
            raise InputError(
                f"{slot.site}: no gradient reaches it, so taylor does not know its cost; use kl",
                parameter="criterion",
            )
        output.register_hook(add)

    def loss(rows: Tensor, value: Any) -> Tensor:
        if not trial.are_logits:
            return rows.square().sum()
        targets = scorer.targets(rows, labels_of(value))
        if targets is None or not bool(((targets >= 0) & (targets < rows.shape[-1])).all()):
            targets = rows.argmax(-1)
        return cross_entropy(rows, targets, reduction="sum")

    parameters = list(trial.network.parameters())
    learning = [parameter.requires_grad for parameter in parameters]
    count = 0
    try:
        for parameter in parameters:
            parameter.requires_grad_(parameter.is_floating_point())
        for value in trial.batches:
            inputs = input_count(value)
            with torch.enable_grad(), listening(maps, note):
                for output, _ in trial.outputs([value]):
                    rows, _ = rows_of(output, value)
                    count += len(rows)
                    loss(rows, value).backward(inputs=[each for each in parameters if each.requires_grad])
    finally:
        for parameter, learns in zip(parameters, learning, strict=True):
            parameter.requires_grad_(learns)
            parameter.grad = None
    return {slot: total / count for slot, total in sums.items()}


def gauge_costs(
    gauge: str, maps: Mapping[Slot, nn.Module], trial: Trial, activations: Sequence[Any]
) -> dict[Slot, float]:
    """Measure a gauge at each site, and return its values with a sign so that small ones come first."""
    name, sign = gauge.removeprefix("-"), 1.0 if smallest_first(gauge) else -1.0
    known = next((each.name for each in GAUGES.values() if name in (each.name, *each.ranges)), name)
    replacer = replacer_of(trial.network)
    slots = [] if replacer is None else replacer.slots
    replaced = [slot for slot in slots if slot.replacement is not None and slot.site.kind != "module"]
    with listening(replaced, lambda *_: None):  # these calls are made, too, so that `measure` counts them
        sounding = measure(
            trial.network,
            trial.batches,
            gauges=known,
            activations=activations,
            sites=[
                f"module:{slot.site.module}" if slot.site.kind == "module" else slot.site.name
                for slot in maps
            ],
            samples=min(sum(map(input_count, trial.batches)), _MAX_SAMPLES),
            batches=1,
        )
    values = sounding.mean(column_of(name, sounding.gauges))
    return {slot: sign * float(values.get(slot.site.name, math.nan)) for slot in maps}
