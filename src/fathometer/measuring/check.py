"""The second front door: a network and data in, what is wrong with them out, in one pass over the data."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from fathometer.capture import unwrapped
from fathometer.capture.axes import tensors_in
from fathometer.checking.evidence import Evidence, evidence_of
from fathometer.checking.first_pass import recording_first_pass
from fathometer.checking.weights import norm_table, weight_table
from fathometer.errors import FathometerError, ForwardError
from fathometer.measuring.input_trials import trial_table
from fathometer.measuring.loop import Progress, evaluating, placed
from fathometer.measuring.measure import measure_by_label
from fathometer.measuring.options import MeasureOptions, with_changes
from fathometer.models import LoadedModel
from fathometer.models.language import is_language_model
from fathometer.results.sounding import Sounding


def gather_evidence(
    model: nn.Module | LoadedModel, data: Any, options: MeasureOptions, **how: Any
) -> tuple[Evidence, Sounding | None]:
    """Measure, and look at the weights, at the first pass, and at other ways to prepare the inputs."""
    network = unwrapped(model.module if isinstance(model, LoadedModel) else model)
    facts: dict[str, Any] = {"training": network.training}
    norms, weights = norm_table(network), weight_table(network)
    first: list[Any] = []

    def on_pass(value: Any, output: Any) -> None:
        if not first:
            first.append(value)
        found = next(tensors_in(output), None)
        if found is not None and "logits_finite" not in facts or facts.get("logits_finite"):
            facts["logits_finite"] = bool(torch.isfinite(found).all())

    sounding = None
    with recording_first_pass(network) as rows:
        try:
            sounding = measure_by_label(model, data, options, on_pass=on_pass, **how)[""]
        except ForwardError:
            raise
        except FathometerError:
            is_finite = all(row["finite"] for row in rows) and facts.get("logits_finite", True)
            if is_finite and bool(weights["finite"].all()):
                raise
    evidence = Evidence() if sounding is None else evidence_of(sounding)
    trials = None
    if first and sounding is not None:
        with placed(network, how.get("device")) as where, evaluating(network):
            trials = trial_table(model, network, data, first[0], where, options.call)
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
