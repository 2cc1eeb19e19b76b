"""Distillation of a linearized network from the original one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax
from torch.nn.utils import clip_grad_norm_

from fathometer.capture import unwrapped
from fathometer.errors import InputError, check_positive, check_whole
from fathometer.linearizing.outputs import check_finite, forward, rows_of
from fathometer.measuring.batches import (
    as_tensors,
    batches_of,
    input_count,
    labels_of,
    unfit_labels,
    with_labels,
)
from fathometer.measuring.loop import Progress, evaluating, placed
from fathometer.measuring.scores import Scorer
from fathometer.models import LoadedModel
from fathometer.progress import shown

_TEMPERATURE = 4.0  # Hinton et al. (2015), Distilling the knowledge in a neural network
_MOMENTUM, _WEIGHT_DECAY, _MAX_NORM = 0.9, 5e-4, 1.0


def recover(
    model: nn.Module,
    teacher: nn.Module | LoadedModel,
    data: Any,
    *,
    epochs: int = 5,
    learning_rate: float = 0.01,
    batch_size: int = 128,
    device: str | torch.device | None = None,
    seed: int = 0,
    progress: bool | Progress = False,
) -> list[float]:
    """Train a network to give the outputs of its teacher, and the labels, if any.

    The loss is the mean of 16 times the KL divergence at temperature 4 (Hinton et al., 2015) and, with
    labels, the cross-entropy; for outputs that are not logits, the squared error as a share of their
    variance. Training is by SGD with Nesterov momentum, gradients clipped to norm 1, and a
    learning rate that falls to 0 as a cosine. This is a plain recipe; a loop of your own works as well. Under
    `torch.autocast` it trains in that precision.

    Args:
        model: the network to train, in place; usually the result of `linearize`.
        teacher: the original network, or the result of `fathometer.models.load_model`; it is not changed.
        data: a `Dataset` (shuffled in each epoch), a `DataLoader`, or other data that `fathometer.measure`
            accepts and that can be read several times.
        epochs: how often to go over the data.
        learning_rate: the initial learning rate.
        batch_size: number of inputs in a step, unless the data come in batches.
        device: where to train; where the network is if left out.
        seed: seed for the order of the data.
        progress: True for a bar, or a function of (batches done, total or None).

    Returns:
        The mean loss of each epoch.
    """
    epochs, rate = check_whole("epochs", epochs, 1), check_positive("learning_rate", learning_rate)
    if hasattr(teacher, "linearized") and not hasattr(model, "linearized"):
        raise InputError(
            "expected the original network as the teacher, got the linearized one; call "
            "recover(linearized, original, data)",
            parameter="teacher",
        )
    scorer = Scorer(teacher, data := with_labels(data))
    teacher = unwrapped(teacher.module if isinstance(teacher, LoadedModel) else teacher)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(weights, rate, _MOMENTUM, weight_decay=_WEIGHT_DECAY, nesterov=True)
    has_norms = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    losses: list[float] = []
    steps: int | None = None
    variance: Tensor | None = None  # of the outputs
    modes = {module: module.training for module in model.modules()}
    with (
        placed(model, device) as where,
        placed(teacher, where),
        evaluating(teacher),
        shown(progress, "training") as show,
    ):
        try:
            model.train()
            for epoch in range(epochs):
                total, count, step = 0.0, 0, 0
                batches = batches_of(data, batch_size, seed + epoch)
                steps = _length(batches, data) or steps
                for item in batches:
                    value = as_tensors(item)
                    if input_count(value) < 1 + has_norms:  # BatchNorm needs two inputs
                        continue
                    if not (losses or step) and (reason := unfit_labels(value)):
                        warnings.warn(f"the labels are not used: {reason}", stacklevel=2)
                    share = (epoch + step / steps) / epochs if steps else epoch / epochs
                    for group in optimizer.param_groups:
                        group["lr"] = 0.5 * rate * (1 + math.cos(math.pi * min(share, 1.0)))
                    with torch.no_grad():
                        wanted, are_logits = rows_of(forward(teacher, value, where), value)
                    found, _ = rows_of(forward(model, value, where), value)
                    if found.shape != wanted.shape:
                        raise InputError(
                            f"expected the network that was linearized, with outputs {[*found.shape]}, got "
                            f"one with outputs {[*wanted.shape]}",
                            parameter="teacher",
                        )
                    labels = labels_of(value)
                    targets = scorer.targets(found, labels) if are_logits else None
                    _check_targets(targets, labels, found.shape[-1])
                    if variance is None:
                        variance = wanted.var(0, correction=0).mean()
                    if are_logits:
                        loss = _loss(found, wanted, targets)
                    else:
                        loss = (found - wanted).square().mean() / variance.clamp_min(1e-12)
                    if not torch.isfinite(loss):
                        check_finite(value)
                        raise InputError(
                            f"the loss is NaN or infinite in epoch {epoch + 1}; give a learning rate below "
                            f"{rate:g}",
                            parameter="learning_rate",
                        )
                    optimizer.zero_grad()
                    loss.backward()
                    clip_grad_norm_(weights, _MAX_NORM)
                    optimizer.step()
                    torch.clear_autocast_cache()  # else a surrounding autocast keeps the old weights
                    total += loss.item() * input_count(value)
                    count, step = count + input_count(value), step + 1
                    show(epoch * (steps or 0) + step, epochs * steps if steps else None)
                if not count:
                    raise InputError(
                        f"expected data that can be read {epochs} times, got none in epoch {epoch + 1}; "
                        "give a Dataset or a DataLoader",
                        parameter="data",
                    )
                steps = step
                losses.append(total / count)
        finally:
            optimizer.zero_grad()
            for module, mode in modes.items():
                module.training = mode
    return losses


def _loss(found: Tensor, wanted: Tensor, targets: Tensor | None) -> Tensor:
    soft, target = (log_softmax(rows / _TEMPERATURE, -1) for rows in (found, wanted))
    loss = kl_div(soft, target, reduction="batchmean", log_target=True) * _TEMPERATURE**2
    if targets is None or bool((targets < 0).all()):
        return loss
    return (loss + cross_entropy(found, targets, ignore_index=-1)) / 2


def _check_targets(targets: Tensor | None, labels: Tensor | None, outputs: int) -> None:
    if targets is None or labels is None:
        return
    if int(labels.min()) < 0 or not bool(((targets >= -1) & (targets < outputs)).all()):
        raise InputError(
            f"the labels go from {int(labels.min())} to {int(labels.max())}, but the outputs from 0 to "
            f"{outputs - 1}; give inputs alone to train by the outputs of the teacher",
            parameter="data",
        )


def _length(batches: Any, data: Any) -> int | None:
    """Return the number of batches, if it is known before they are read."""
    for each in (batches, data):
        try:
            return len(each)
        except TypeError:  # an iterator, or a loader of one
            pass
    return None
