"""The second front door: a network and data in, what is wrong with them out, in one pass over the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import nn

from fathometer.capture import unwrapped
from fathometer.capture.axes import tensors_in
from fathometer.checking.evidence import Evidence, evidence_of
from fathometer.checking.first_pass import recording_first_pass
from fathometer.checking.rules import check_evidence
from fathometer.checking.weights import norm_table, weight_table
from fathometer.errors import FathometerError, ForwardError
from fathometer.measuring.batches import with_labels
from fathometer.measuring.identity import describe_network
from fathometer.measuring.input_trials import trial_table
from fathometer.measuring.loop import Progress, evaluating, placed
from fathometer.measuring.measure import measure_by_label
from fathometer.measuring.options import MeasureOptions, with_changes
from fathometer.models import LoadedModel
from fathometer.models.language import is_of_language
from fathometer.results.checkup import Checkup
from fathometer.results.provenance import Provenance, now, versions
from fathometer.results.sounding import Sounding

USUAL: dict[str, Any] = {"gauges": "check", "batches": 1, "leftover": "keep"}
"""Options of `check` that differ from those of `measure`."""
USUAL_FOR_LANGUAGE: dict[str, Any] = {
    **USUAL,
    "samples": 2048,
    "reduction": "tokens",
    "sites": ("activations", "block"),
    "residual": "with",
}


def check(
    model: nn.Module | LoadedModel,
    data: Any,
    *,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> Checkup:
    """Check a network: say what is wrong with it, in sentences, from one pass over the data.

    The rules look at the sites that `measure` sees, at the weights and the statistics of BatchNorm, at the
    outputs of every module in the first forward pass, and at the accuracy where the data have labels. A few
    images are also tried in other forms (BGR, 0 to 255, without mean and deviation). The network is left
    as it was.

    Args:
        model: any `nn.Module`, or the result of `fathometer.models.load_model`.
        data: as for `measure`; with labels, `(inputs, labels)`, more rules apply.
        tokenizer: as for `measure`.
        length: as for `measure`.
        batch_size: the largest number of inputs in a forward pass; as the data come if left out.
        device: where to run; where the network is if left out.
        name: name of the network in the result.
        progress: as for `measure`.
        changes: options of `measure` by name. The default is one batch of 512 samples, or of as many as there
            are, and for language models one of 2048 tokens, with their blocks.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        >>> _ = nn.init.constant_(net[0].bias, -100.0)
        >>> checkup = check(net, torch.randn(256, 8))
        >>> checkup.severity, checkup.findings[0].rule, checkup.findings[0].place
        ('error', 'dead-layer', '1')
    """
    network = unwrapped(model.module if isinstance(model, LoadedModel) else model)
    options = usual_options(network, changes)
    evidence, sounding = gather_evidence(
        model,
        data,
        options,
        tokenizer=tokenizer,
        length=length,
        batch_size=batch_size,
        device=device,
        name=name,
        progress=progress,
    )
    if sounding is None:
        facts = Provenance(describe_network(model, name)[1], {}, options.describe(), versions(), date=now())
    else:
        facts = sounding.provenance
    return check_evidence(evidence, facts)


def usual_options(network: nn.Module, changes: Mapping[str, Any]) -> MeasureOptions:
    """Return the options of a check: those that are usual for the network, with some changed by name."""
    usual = USUAL_FOR_LANGUAGE if is_of_language(network) else USUAL
    return with_changes(None, {**usual, **changes}, caller="check")


def gather_evidence(
    model: nn.Module | LoadedModel, data: Any, options: MeasureOptions, **how: Any
) -> tuple[Evidence, Sounding | None]:
    """Measure, and look at the weights, at the first pass, and at other ways to prepare the inputs."""
    network = unwrapped(model.module if isinstance(model, LoadedModel) else model)
    data = with_labels(data)
    facts: dict[str, Any] = {"training": network.training, "finite_outputs": True}
    norms, weights = norm_table(network), weight_table(network)
    first: list[Any] = []

    def on_pass(value: Any, output: Any) -> None:
        if not first:
            first.extend((value, output))
        found = next(tensors_in(output), None)
        if found is not None and facts["finite_outputs"]:
            facts["finite_outputs"] = bool(torch.isfinite(found).all())

    sounding = None
    with recording_first_pass(network) as rows:
        try:
            sounding = measure_by_label(model, data, options, on_pass=on_pass, **how)[""]
        except ForwardError:
            raise
        except FathometerError:
            is_finite = all(row["finite"] for row in rows) and facts["finite_outputs"]
            if is_finite and bool(weights["finite"].all()):
                raise
    evidence = Evidence() if sounding is None else evidence_of(sounding)
    trials = None
    if first and sounding is not None:
        with placed(network, how.get("device")) as where, evaluating(network):
            trials = trial_table(model, network, data, first[0], first[1], where, options.call)
    return (
        replace(
            evidence,
            modules=pd.DataFrame(rows) if rows else None,
            weights=weights,
            norms=norms,
            trials=trials,
            facts={**evidence.facts, **facts},
        ),
        sounding,
    )
