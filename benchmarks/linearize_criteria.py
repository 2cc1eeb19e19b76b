"""Criteria of the field that `linearize` does not have, to compare with: Fisher, SNIP, EASIER, ShortGPT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.linearizing.outputs import rows_of
from fathometer.linearizing.slots import Slot
from fathometer.linearizing.trial import Trial, listening

TEMPERATURE = 4.0  # of the probabilities in `fisher`: those of a trained network are nearly 0 and 1


def fisher_costs(trial: Trial, maps: Mapping[Slot, nn.Module], seed: int) -> dict[Slot, float]:
    """Estimate the divergence that each map causes by gradients.

    A map changes the output of its site by δ. To first order, this changes a random projection of 2√p, p the
    probabilities at a temperature, by s = ⟨gradient, δ⟩. The expectation of s² is δᵀFδ, F the Fisher
    information: twice the KL divergence to second order.
    """
    sums = dict.fromkeys(maps, 0.0)

    def note(slot: Slot, x: Tensor, y: Tensor, output: Tensor) -> None:
        with torch.no_grad():
            delta = maps[slot](x) - y
        output.register_hook(
            lambda g: sums.__setitem__(
                slot, sums[slot] + float((g * delta).flatten(1).sum(1).double().square().sum())
            )
        )

    count, generator = 0, torch.Generator().manual_seed(seed)
    for weight in trial.network.parameters():
        weight.requires_grad_(True)
    with torch.enable_grad(), listening(maps, note):
        for output, value in trial.outputs():
            rows, _ = rows_of(output, value)
            count += len(rows)
            noise = torch.randn(rows.shape, generator=generator).to(rows)
            (2 * ((rows / TEMPERATURE).softmax(-1).clamp_min(1e-12).sqrt() * noise).sum()).backward()
    trial.network.zero_grad(set_to_none=True)
    return {slot: total / count for slot, total in sums.items()}


def field_criteria(trial: Trial, slots: Sequence[Slot]) -> dict[str, dict[Slot, float]]:
    """Return the criteria of the field: SNIP-like saliency, on/off entropy (EASIER), block influence."""
    entropy, saliency = (dict.fromkeys(slots, 0.0) for _ in range(2))

    def note(slot: Slot, x: Tensor, y: Tensor, output: Tensor) -> None:
        on = (x > 0).double().mean(0).clamp(1e-9, 1 - 1e-9)
        entropy[slot] += float(-(on * on.log2() + (1 - on) * (1 - on).log2()).mean())
        output.register_hook(
            lambda g: saliency.__setitem__(slot, saliency[slot] + float((g * y).abs().sum()))
        )

    for weight in trial.network.parameters():
        weight.requires_grad_(True)
    with torch.enable_grad(), listening(slots, note):
        for output, value in trial.outputs():
            if not trial.are_logits:
                continue
            logits = getattr(output, "logits", output)
            labels = value[1] if isinstance(value, tuple | list) else None
            if labels is None:
                rows, targets = logits[:, :-1].flatten(0, 1), value["input_ids"][:, 1:].flatten()
            else:
                rows, targets = logits, labels
            nn.functional.cross_entropy(rows, targets.to(rows.device, torch.long), reduction="sum").backward()
    trial.network.zero_grad(set_to_none=True)
    if not trial.are_logits:
        return {"on/off entropy": entropy}
    if isinstance(trial.batches[0], Mapping):
        return {"SNIP": saliency, **stream_criteria(trial, slots)}
    return {"SNIP": saliency, "on/off entropy": entropy}


def stream_criteria(trial: Trial, slots: Sequence[Slot]) -> dict[str, dict[Slot, float]]:
    """Return how far each block, and each MLP alone, turns the residual stream, as 1 − cosine.

    Of whole blocks this is the block influence of ShortGPT.
    """
    block, mlp = (dict.fromkeys(slots, 0.0) for _ in range(2))
    streams: dict[Slot, list[Tensor]] = {slot: [] for slot in slots}

    def keep(slot: Slot, _: nn.Module, args: Any, kwargs: Any) -> None:
        streams[slot].append(next(each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)))

    def compare(slot: Slot, _: nn.Module, __: Any, output: Any) -> None:
        (start, middle), end = streams[slot], output[0] if isinstance(output, tuple) else output
        streams[slot].clear()
        for values, first in ((block, start), (mlp, middle)):
            values[slot] += 1 - float(nn.functional.cosine_similarity(first, end, -1).mean())

    handles = []
    for slot in slots:
        layer = trial.network.get_submodule(slot.site.module.removesuffix(".mlp"))
        norm = layer.get_submodule("post_attention_layernorm")
        for module in (layer, norm):  # the stream before the block, and before its MLP
            handles.append(module.register_forward_pre_hook(partial(keep, slot), with_kwargs=True))
        handles.append(layer.register_forward_hook(partial(compare, slot)))
    with torch.no_grad():
        for _ in trial.outputs():
            pass
    for handle in handles:
        handle.remove()
    return {"block influence": block, "cosine of the MLP": mlp}
