"""Faults to plant in a network or in its data: each a record with the rules that should name it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Generator, Tensor, nn

from benchmarks.healthy import Labelled, Subject, hidden_layers, train
from papers.networks.network import IMAGENET_MEAN, IMAGENET_STD

Planted: TypeAlias = "tuple[Subject, str] | None"
"""The network with the fault, and its place; None if the network has no place for it."""

_BatchNorm = nn.modules.batchnorm._BatchNorm
_Layers = (nn.Linear, nn.modules.conv._ConvNd)


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        name: in words.
        strengths: from weak to strong.
        rules: any of them names the fault.
        plant: changes a copy of the network, or its data.
    """

    name: str
    strengths: tuple[Any, ...]
    rules: tuple[str, ...]
    plant: Callable[[Subject, Any, Generator], Planted]


def loss_of(facts: Mapping[str, Any]) -> float | None:
    """Return the loss, as somebody sees it who looks at nothing else."""
    return float(facts["loss"]) if "loss" in facts else None


def _pick(items: list[Any], generator: Generator) -> Any:
    return items[int(torch.randint(len(items), (), generator=generator))]


def _channels(count: int, share: float, generator: Generator) -> Tensor:
    return torch.randperm(count, generator=generator)[: max(1, round(share * count))]


@torch.no_grad()
def _kill(layer: nn.Module, norm: nn.Module | None, which: Tensor | slice, generator: Generator) -> None:
    """Let channels be off for every input: by weights of zero, or by a bias that is far too negative."""
    target: Any = norm if norm is not None else layer
    if norm is not None or target.bias is None or _pick([True, False], generator):
        target.weight[which] = 0
        if target.bias is not None:
            target.bias[which] = -1 if norm is not None else 0
    else:
        target.bias[which] = -1e3


def dead_layer(subject: Subject, depth: float, generator: Generator) -> Planted:
    """Switch off a whole layer at some depth."""
    layers = list(hidden_layers(subject))
    name, layer, norm = layers[min(int(depth * len(layers)), len(layers) - 1)]
    _kill(layer, norm, slice(None), generator)
    return subject, name


def dead_channels(subject: Subject, share: float, generator: Generator) -> Planted:
    """Switch off a share of the channels of a layer."""
    name, layer, norm = _pick(list(hidden_layers(subject)), generator)
    _kill(layer, norm, _channels(len(layer.weight), share, generator), generator)
    return subject, name


@torch.no_grad()
def duplicated(subject: Subject, share: float, generator: Generator) -> Planted:
    """Make channels of a layer copies of others."""
    name, layer, norm = _pick(list(hidden_layers(subject)), generator)
    order = torch.randperm(len(layer.weight), generator=generator)
    count = max(1, round(share * len(order)))
    copies, originals = order[:count], order[count : 2 * count]
    tensors = [*layer.parameters(), *([] if norm is None else (*norm.parameters(), *norm.buffers()))]
    for tensor in tensors:
        if tensor.ndim:
            tensor[copies] = tensor[originals].clone()
    return subject, name


@torch.no_grad()
def saturation(subject: Subject, factor: float, generator: Generator) -> Planted:
    """Make the weights before a Tanh far too large."""
    layers = list(hidden_layers(subject))
    if sum(isinstance(module, nn.Tanh) for module in subject.module.modules()) < len(layers):
        return None  # a single Tanh, as in a pooler, does not follow the layers that are changed
    name, layer, _ = _pick(layers, generator)
    layer.weight *= factor
    return subject, name


@torch.no_grad()
def initialisation(subject: Subject, gain: float, generator: Generator) -> Planted:
    """Draw all weights again, as He et al. do, times a gain; biases are 0 and norms as at the start.

    Small weights do no harm where a residual stream carries the signal, or where LayerNorm scales it again:
    they are no fault there. That was decided after the first checks had not found them.
    """
    harmless = any(word in subject.name for word in ("resnet", "ViT", "LayerNorm"))
    if gain < 1 and (harmless or subject.kind == "text"):
        return None
    for module in subject.module.modules():
        if isinstance(module, _Layers):
            fan = module.weight[0].numel()
            module.weight.normal_(0, gain * (2 / fan) ** 0.5, generator=generator)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, _BatchNorm | nn.LayerNorm):
            module.reset_parameters()
    return subject, ""


def without_norms(subject: Subject, share: float, generator: Generator) -> Planted:
    """Leave out normalisation layers."""
    modules = dict(subject.module.named_modules())
    kinds = (_BatchNorm, nn.LayerNorm)
    names = [n for n, m in modules.items() if isinstance(m, kinds) or "RMSNorm" in type(m).__name__]
    if not names:
        return None
    for index in _channels(len(names), share, generator).tolist():
        parent, _, own = names[index].rpartition(".")
        setattr(modules[parent], own, nn.Identity())
    return subject, ""


def _images(subject: Subject, change: Callable[[Tensor], Tensor]) -> Planted:
    first = subject.data[0]
    if not isinstance(first, tuple | list) or first[0].ndim != 4:
        return None
    batches = [(change(batch[0]), *batch[1:]) for batch in subject.data]
    data: Any = batches
    if isinstance(subject.data, Labelled):
        data = Labelled(batches, subject.data.labels_are_outputs, subject.data)
    return replace(subject, data=data), ""


def _raw(images: Tensor) -> Tensor:
    """Return images between 0 and 1, whether they were normalised or not."""
    if images.min() >= 0:
        return images
    std, mean = (images.new_tensor(values).reshape(3, 1, 1) for values in (IMAGENET_STD, IMAGENET_MEAN))
    return images * std + mean


def bgr(subject: Subject, _: Any, generator: Generator) -> Planted:
    """Give blue, green, red."""
    return _images(_some(subject, generator), lambda x: x.flip(1)) if _has_images(subject) else None


def up_to_255(subject: Subject, _: Any, generator: Generator) -> Planted:
    """Give images from 0 to 255, and not normalised."""
    return _images(_some(subject, generator), lambda x: 255 * _raw(x)) if _has_images(subject) else None


def wrong_mean(subject: Subject, _: Any, generator: Generator) -> Planted:
    """Leave out mean and deviation, or use those of ImageNet where the network expects 0 to 1."""
    if not _has_images(subject):
        return None
    std, mean = (torch.tensor(values).reshape(3, 1, 1) for values in (IMAGENET_STD, IMAGENET_MEAN))
    is_raw = bool(subject.data[0][0].min() >= 0)
    return _images(_some(subject, generator), (lambda x: (x - mean) / std) if is_raw else _raw)


def _has_images(subject: Subject) -> bool:
    return isinstance(subject.data[0], tuple | list) and subject.data[0][0].ndim == 4


def _some(subject: Subject, generator: Generator) -> Subject:
    """Return the batches in another order, so that seeds see other images first."""
    order = torch.randperm(len(subject.data), generator=generator).tolist()
    batches = [subject.data[index] for index in order]
    if isinstance(subject.data, Labelled):
        batches = Labelled(batches, subject.data.labels_are_outputs, subject.data)
    return replace(subject, data=batches)


def partly_loaded(subject: Subject, share: float, generator: Generator) -> Planted:
    """Draw the weights of a share of the layers again, as when their names were not found."""
    kinds = (*_Layers, _BatchNorm, nn.LayerNorm)
    layers = [module for module in subject.module.modules() if isinstance(module, kinds)]
    torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
    for index in _channels(len(layers), share, generator).tolist():
        layers[index].reset_parameters()
    return subject, ""


def norms_reset(subject: Subject, share: float, generator: Generator) -> Planted:
    """Reset the running statistics of BatchNorm layers."""
    norms = [(n, m) for n, m in subject.module.named_modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return None
    chosen = [norms[index] for index in _channels(len(norms), share, generator).tolist()]
    for _, norm in chosen:
        norm.reset_running_stats()
    return subject, chosen[0][0]


def too_fast(subject: Subject, rate: float, generator: Generator) -> Planted:
    """Train on with a learning rate that is far too large, for a few steps."""
    if subject.kind == "text":
        return None
    if subject.kind == "small":
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        train(subject.module, subject.places, rate, steps=60)
        return replace(subject, model=subject.module.eval()), ""
    optimiser = torch.optim.AdamW(subject.module.parameters(), rate)
    subject.module.train()
    for _ in range(4):
        images, labels = _pick(list(subject.data), generator)
        optimiser.zero_grad()
        F.cross_entropy(subject.module(images), labels.long()).backward()
        optimiser.step()
    subject.module.eval()
    return subject, ""


@torch.no_grad()
def nan_weight(subject: Subject, value: str, generator: Generator) -> Planted:
    """Make one weight of one layer NaN or inf."""
    layers = [(n, m) for n, m in subject.module.named_modules() if isinstance(m, _Layers)]
    name, layer = _pick(layers, generator)
    layer.weight.view(-1)[_pick(list(range(layer.weight.numel())), generator)] = float(value)
    return subject, name


@torch.no_grad()
def overflow(subject: Subject, factor: float, generator: Generator) -> Planted:
    """Let a layer give values beyond float16, which the next one undoes: the outputs stay what they were."""
    layers = list(hidden_layers(subject))
    homogeneous = (nn.ReLU, nn.LeakyReLU)
    has_relu = any(isinstance(module, homogeneous) for module in subject.module.modules())
    if subject.kind == "cifar10":
        has_relu = True  # its ReLU is a function
    if not has_relu or subject.kind == "text":
        return None
    modules = list(subject.module.modules())
    _, layer, norm = _pick(layers, generator)
    after = next(m for m in modules[modules.index(layer) + 1 :] if isinstance(m, _Layers))
    target: Any = norm if norm is not None else layer
    target.weight *= factor
    if target.bias is not None:
        target.bias *= factor
    after.weight /= factor
    return subject, ""


def wrong_tokenizer(subject: Subject, way: str, generator: Generator) -> Planted:
    """Give ids of another tokenizer: the vocabulary in another order, other offsets, or bytes."""
    if not subject.name.endswith("SmolLM2"):
        return None  # the other one predicts nothing
    size = int(subject.module.config.vocab_size)  # type: ignore[union-attr, arg-type]
    order = torch.randperm(size, generator=generator)
    changes: dict[str, Callable[[Tensor], Tensor]] = {
        "offset": lambda ids: (ids + 3) % size,
        "bytes": lambda ids: ids % 256,
        "order": lambda ids: order[ids],
    }
    batches = [{**batch, "input_ids": changes[way](batch["input_ids"])} for batch in subject.data]
    return replace(subject, data=batches), ""


def _faults() -> Iterator[Fault]:
    yield Fault("dead layer", (0.0, 0.5, 0.99), ("dead-layer",), dead_layer)
    yield Fault("dead channels", (0.05, 0.1, 0.25), ("dead-channels",), dead_channels)
    yield Fault("saturation", (10.0, 30.0, 100.0), ("saturated",), saturation)
    yield Fault("initialisation too large", (4.0, 10.0, 30.0), ("scale", "nonfinite"), initialisation)
    yield Fault("initialisation too small", (1 / 4, 1 / 10, 1 / 30), ("scale", "dead-layer"), initialisation)
    broken = ("scale", "chance", "batchnorm-drift", "dead-layer", "perplexity")
    yield Fault("normalisation left out", (0.34, 0.67, 1.0), broken, without_norms)
    yield Fault("BGR instead of RGB", ("all",), ("inputs",), bgr)
    yield Fault("0-255 instead of 0-1", ("all",), ("inputs",), up_to_255)
    yield Fault("mean and deviation missing", ("all",), ("inputs",), wrong_mean)
    yield Fault("state dict partly loaded", (0.25, 0.5, 0.75), ("partly-loaded", "untrained"), partly_loaded)
    yield Fault("BatchNorm statistics reset", (0.01, 0.5, 1.0), ("batchnorm-statistics",), norms_reset)
    diverged = ("nonfinite", "scale", "dead-layer", "chance", "dead-channels", "saturated", "rank")
    yield Fault("learning rate too large", (0.1, 0.3, 1.0), (*diverged, "batchnorm-drift"), too_fast)
    yield Fault("duplicated channels", (0.05, 0.1, 0.25), ("duplicates",), duplicated)
    yield Fault("one weight is NaN or inf", ("nan", "inf", "-inf"), ("nonfinite",), nan_weight)
    yield Fault("overflow in float16", (1e6, 1e7, 1e8), ("precision", "scale"), overflow)
    yield Fault("wrong tokenizer", ("offset", "bytes", "order"), ("perplexity",), wrong_tokenizer)


FAULTS: tuple[Fault, ...] = tuple(_faults())
