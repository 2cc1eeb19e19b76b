"""Try other ways to prepare images on a few samples: is there one that fits the network better?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from fathometer.checking.first_pass import drift
from fathometer.measuring.batches import input_count, run, slice_inputs
from fathometer.measuring.options import Call
from fathometer.measuring.scores import Scorer
from fathometer.models import LoadedModel
from fathometer.models.inputs import IMAGENET_MEAN, IMAGENET_STD

MIN_SAMPLES, MAX_SAMPLES = 32, 128
_PIXELS = 2**20  # in all samples of a trial, beyond the smallest number of samples
_Norm = nn.modules.batchnorm._BatchNorm


class Trial(NamedTuple):
    """Another way to prepare images: what the images given look like then, and what to do."""

    name: str
    advice: str
    change: Callable[[Tensor], Tensor]


class _Stop(Exception):  # noqa: N818
    """The first BatchNorm has been reached, and nothing else is asked for."""


def trials_for(images: Tensor) -> Iterator[Trial]:
    """Yield what may have gone wrong with images `[n, c, h, w]`, judging by their range."""
    low, high = (float(value) for value in torch.aminmax(images))
    if images.shape[1] == 3:
        yield Trial("BGR instead of RGB", "reverse the order of the channels", lambda x: x.flip(1))
    if low >= 0 and high > 16:
        yield Trial("0 to 255 instead of 0 to 1", "divide the images by 255", lambda x: x / 255)
        if images.shape[1] == 3:
            yield Trial(
                "0 to 255 without mean and deviation",
                "divide the images by 255, then subtract the mean and divide by the deviation of the "
                "training data (of ImageNet: mean 0.485, 0.456, 0.406, std 0.229, 0.224, 0.225)",
                lambda x: _normalised(x / 255),
            )
        yield Trial("0 to 255 instead of -1 to 1", "divide by 127.5 and subtract 1", lambda x: x / 127.5 - 1)
    elif low >= 0:
        if images.shape[1] == 3:
            yield Trial(
                "without mean and deviation",
                "subtract the mean and divide by the deviation of the training data (of ImageNet: mean "
                "0.485, 0.456, 0.406, std 0.229, 0.224, 0.225)",
                _normalised,
            )
        yield Trial("0 to 1 instead of -1 to 1", "multiply by 2 and subtract 1", lambda x: 2 * x - 1)
        yield Trial("0 to 1 instead of 0 to 255", "multiply the images by 255", lambda x: 255 * x)
    elif images.shape[1] == 3 and max(-low, high) < 8:
        yield Trial(
            "with mean and deviation, where the network expects 0 to 1",
            "leave the images between 0 and 1",
            lambda x: x * _column(IMAGENET_STD, x) + _column(IMAGENET_MEAN, x),
        )


@torch.no_grad()
def trial_table(
    model: nn.Module | LoadedModel,
    network: nn.Module,
    data: Any,
    value: Any,
    output: Any,
    device: torch.device,
    call: Call | None,
) -> pd.DataFrame | None:
    """Run the network on a few images that are prepared in other ways; None if that says nothing.

    `output` is that of the images as they are, which the first row is about. With labels, the rows have
    accuracy and loss; otherwise the drift at the first BatchNorm.
    """
    images = value[0] if isinstance(value, tuple | list) and value else value
    if not isinstance(images, Tensor) or images.ndim != 4 or images.shape[1] not in (1, 3):
        return None
    if not images.is_floating_point() or not bool(images.isfinite().all()):
        return None
    count = min(max(_PIXELS // images[0, 0].numel(), MIN_SAMPLES), MAX_SAMPLES)
    value = slice_inputs(value, 0, count, input_count(value))
    images = images[:count]
    rows: list[dict[str, Any]] = []
    for trial in (Trial("", "", lambda x: x), *trials_for(images)):
        changed = trial.change(images)
        given = type(value)((changed, *value[1:])) if isinstance(value, tuple | list) else changed
        if not rows and isinstance(output, Tensor) and len(output) >= count and has_labels(value):
            scorer = Scorer(model, data)
            scorer.add(output[:count], value)
            found = _scores(scorer)
        else:
            found = _tried(model, network, data, given, device, call)
        if found is None:
            return None
        rows.append({"name": trial.name, "advice": trial.advice, "samples": len(images), **found})
    return pd.DataFrame(rows)


def has_labels(value: Any) -> bool:
    """Tell whether a batch has something in the place of labels."""
    return isinstance(value, tuple | list) and len(value) > 1


def _scores(scorer: Scorer) -> dict[str, float] | None:
    """Return accuracy and loss, where labels number the outputs."""
    scores = scorer.take()()
    if scores is None or scorer.label_problem([scores]):
        return None
    return {"accuracy": scores.correct / scores.samples, "loss": scores.loss / scores.samples}


def _tried(
    model: nn.Module | LoadedModel,
    network: nn.Module,
    data: Any,
    value: Any,
    device: torch.device,
    call: Call | None,
) -> dict[str, float] | None:
    """Return accuracy, loss and drift; None without labels and BatchNorm."""
    norm = next((m for m in network.modules() if isinstance(m, _Norm) and m.running_mean is not None), None)
    scorer = Scorer(model, data)
    found: dict[str, float] = {}

    def before(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if not found:
            found.update(drift(module, arguments[0]))
        if not has_labels(value):
            raise _Stop

    handle = None if norm is None else norm.register_forward_pre_hook(before)
    try:
        scorer.add(run(network, value, device, call), value)
    except _Stop:
        pass
    finally:
        if handle is not None:
            handle.remove()
    return found | (_scores(scorer) or {}) or None


def _normalised(images: Tensor) -> Tensor:
    return (images - _column(IMAGENET_MEAN, images)) / _column(IMAGENET_STD, images)


def _column(values: tuple[float, ...], like: Tensor) -> Tensor:
    return like.new_tensor(values).reshape(3, 1, 1)
