"""Accuracy and loss of a classifier, perplexity of a causal language model, from the measured passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset

from fathometer.capture import unwrapped
from fathometer.errors import join_names
from fathometer.measuring.batches import labels_of
from fathometer.measuring.language_scores import next_token_sums
from fathometer.models import LoadedModel
from fathometer.models.language import head_of

_MAX_FOR_TOP1 = 10  # classes; for more of them, the accuracy of the best five is given, too


@dataclass(frozen=True)
class Scores:
    """Sums over samples with labels, as a line of the journal keeps them.

    Attributes:
        outputs: the number of the network's outputs.
        samples: the number of samples.
        correct: for how many the largest output is that of the label.
        top5: for how many the output of the label is among the five largest.
        invalid: how many labels stand for no output.
        loss: the sum of the cross-entropies, in nats.
        largest: the largest label.
        smallest: the smallest label.
        tokens: how many tokens a causal language model has predicted; it has no samples with labels.
        token_loss: the sum of −log p of these tokens, in nats.
    """

    outputs: int
    samples: int
    correct: int
    top5: int
    invalid: int
    loss: float
    largest: int
    smallest: int = 0
    tokens: int = 0
    token_loss: float = 0.0


class Scorer:
    """Compares the outputs of a network with the labels of the data; it never waits for a GPU in a pass.

    Labels are numbers of outputs. Where the data name their classes, these names are looked up among those
    of the network's classes; failing that, labels count if there are as many classes as outputs, or if the
    data say that labels are numbers of outputs.
    """

    def __init__(self, model: nn.Module | LoadedModel, data: Any) -> None:
        self._model, self._classes = model, classes_of(data)
        self._are_outputs = self._classes is None or bool(getattr(data, "labels_are_outputs", False))
        self._outputs: int | None = None
        self._output_of_label: Tensor | None = None  # None: labels are numbers of outputs
        self._passes: list[Tensor] = []
        self._token_passes: list[Tensor] = []
        self._is_causal = (
            head_of(unwrapped(model.module if isinstance(model, LoadedModel) else model)) == "causal"
        )
        self._reason = ""

    @torch.no_grad()
    def add(self, output: Any, value: Any, unfit: str = "") -> None:
        """Compare the output of a pass over `value`, if it looks like logits and there are labels.

        That of a causal language model is compared with the tokens themselves.

        `unfit` says why the labels cannot be used, if so.
        """
        if self._is_causal:
            self._add_tokens(output, value)
            return
        labels, logits = labels_of(value), _logits(output)
        if logits is None:
            return
        self._reason = self._reason or unfit
        # The watch sees every call of a torch function: these need not pass it.
        with torch.autocast(logits.device.type, enabled=False), torch._C.DisableTorchFunction():
            targets = self.targets(logits, labels)
            if targets is not None and labels is not None:
                sums = _sums(logits, targets)
                self._passes.append(torch.cat([sums, torch.stack([labels.max(), labels.min()]).to(sums)]))

    def targets(self, logits: Tensor, labels: Tensor | None) -> Tensor | None:
        """Return the number of the output of each label, −1 for none; None if they cannot be compared."""
        if labels is None or len(logits) != len(labels):
            return None
        if self._outputs is None:
            self._outputs = logits.shape[1]
            self._look_up_classes()
        if self._reason or logits.shape[1] != self._outputs:
            return None
        labels = labels.to(logits.device, torch.long, non_blocking=True)
        if self._output_of_label is None:
            return labels
        return _looked_up(labels, self._output_of_label.to(labels.device))

    def _add_tokens(self, output: Any, value: Any) -> None:
        logits = getattr(output, "logits", None)
        if not isinstance(logits, Tensor):
            return
        with torch.autocast(logits.device.type, enabled=False), torch._C.DisableTorchFunction():
            sums = next_token_sums(logits, value)
            if sums is not None:
                self._token_passes.append(torch.cat([sums.new_tensor([len(logits)]), sums]))

    def take(self, limit: float = math.inf) -> Callable[[], Scores | None]:
        """Return a function that adds up the passes since the last call, up to so many samples.

        It waits for a GPU.
        """
        passes, self._passes = self._passes, []
        token_passes, self._token_passes = self._token_passes, []
        if self._is_causal:
            return partial(_total_of_tokens, token_passes, limit)
        return partial(_total, passes, self._outputs, limit)

    def label_problem(self, scores: Sequence[Scores]) -> str:
        """Say why labels and outputs cannot be compared, or nothing if they can."""
        if self._reason or not scores or self._is_causal:
            return self._reason
        outputs, largest = scores[0].outputs, max(each.largest for each in scores)
        if any(each.invalid for each in scores):
            smallest = min(each.smallest for each in scores)
            return f"the labels go from {smallest} to {largest}, but the outputs from 0 to {outputs - 1}"
        is_doubtful = self._are_outputs and self._output_of_label is None
        if is_doubtful and 2 * (largest + 1) < outputs:  # 10 classes, and 512 features or ImageNet
            return f"the labels end at {largest}, but the network has {outputs} outputs"
        return ""

    def _look_up_classes(self) -> None:
        from fathometer.models.class_names import class_names, match_classes

        if self._classes is None:
            return
        known = class_names(self._model) if isinstance(self._model, LoadedModel) else []
        named = [label for label, name in enumerate(self._classes) if name]
        names = [self._classes[label] for label in named]
        found = match_classes(names, known) if len(known) == self._outputs else None
        if found is not None:
            self._output_of_label = torch.full((len(self._classes),), -1)
            self._output_of_label[named] = torch.tensor(found)
        elif len(self._classes) != self._outputs and not self._are_outputs:
            given = join_names(self._classes, 3)
            self._reason = f"the classes of the data ({given}) are not the {self._outputs} of the network"


def _total(passes: Sequence[Tensor], outputs: int | None, limit: float) -> Scores | None:
    if not passes or outputs is None:
        return None
    every = torch.stack(list(passes)).cpu().double()
    numbers = every[every[:, 0].cumsum(0) <= limit]
    *counts, loss, loss_of_shares, _, _ = numbers.sum(0).tolist()
    samples, correct, top5, invalid = map(int, counts)
    loss = loss if math.isnan(loss_of_shares) else loss_of_shares
    ends = int(every[:, -2].max()), int(every[:, -1].min())
    return Scores(outputs, samples, correct, top5, invalid, loss, *ends)


def _total_of_tokens(passes: Sequence[Tensor], limit: float) -> Scores | None:
    if not passes:
        return None
    every = torch.stack(list(passes)).cpu()
    _, tokens, loss = every[every[:, 0].cumsum(0) <= limit].sum(0).tolist()
    return Scores(0, 0, 0, 0, 0, 0.0, 0, tokens=int(tokens), token_loss=loss)


def outcome(scores: Sequence[Scores | None], samples: int, label_problem: str = "") -> dict[str, Any]:
    """Return accuracy and loss over all samples; nothing if some have no labels; why, if labels do not fit.

    Of a causal language model: its perplexity, exp(mean of −log p), its loss, and the number of tokens.
    """
    known = [each for each in scores if each is not None]
    if tokens := sum(each.tokens for each in known):
        loss = sum(each.token_loss for each in known) / tokens
        perplexity = math.exp(loss) if loss < 700 else math.inf
        found = {"perplexity": perplexity, "loss": loss, "tokens": tokens}
        return {name: number for name, number in found.items() if math.isfinite(number)}
    if label_problem:
        return {"no_accuracy": label_problem}
    if not known or sum(each.samples for each in known) != samples:
        return {}
    accuracy = sum(each.correct for each in known) / samples
    found = {"accuracy": accuracy, "classes": known[0].outputs}
    if known[0].outputs > _MAX_FOR_TOP1:
        found["top5"] = sum(each.top5 for each in known) / samples
    loss = sum(each.loss for each in known) / samples
    return {**found, "loss": loss} if math.isfinite(loss) else found


def classes_of(data: Any) -> tuple[str, ...] | None:
    """Return the names of the classes that labels number, as our data and torchvision's have them."""
    while isinstance(data, DataLoader | Subset):
        data = data.dataset
    names = getattr(data, "classes", None)
    if not isinstance(names, tuple | list) or not names:
        return None
    return tuple(", ".join(each) if isinstance(each, tuple | list) else str(each) for each in names)


def _logits(output: Any) -> Tensor | None:
    """Return `[n, classes]`: the output, its `logits`, or the first entry of a tuple."""
    if isinstance(output, Mapping):
        output = output.get("logits")
    elif not isinstance(output, Tensor):
        first = output[0] if isinstance(output, tuple | list) and output else None
        output = getattr(output, "logits", first)
    is_matrix = isinstance(output, Tensor) and output.ndim == 2 and output.is_floating_point()
    return output if is_matrix and output.shape[1] > 1 else None


def _looked_up(labels: Tensor, output_of_label: Tensor) -> Tensor:
    last = len(output_of_label) - 1
    is_known = (labels >= 0) & (labels <= last)
    return torch.where(is_known, output_of_label[labels.clamp(0, last)], -1)


def are_probabilities(rows: Tensor) -> Tensor:
    """Tell whether all rows are probabilities that add up to 1."""
    tolerance = max(1e-4, 2 * torch.finfo(rows.dtype).eps)
    return (rows >= 0).all() & ((rows.sum(-1, dtype=torch.float32) - 1).abs() <= tolerance).all()


def _sums(logits: Tensor, labels: Tensor) -> Tensor:
    """Return samples, correct, top5, invalid, loss, and the loss of probabilities, on the logits' device.

    The latter is the sum of -log p of the labels where the rows are probabilities p, otherwise NaN.
    """
    are_shares = are_probabilities(logits)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    outputs = logits.shape[1]
    invalid = (labels < 0) | (labels >= outputs)
    safe = labels.clamp(0, outputs - 1)
    correct = logits.argmax(1) == safe
    top5 = (logits.topk(min(5, outputs)).indices == safe[:, None]).any(1)
    loss = cross_entropy(logits, safe, reduction="sum")
    shares = logits.gather(1, safe[:, None]).clamp_min(torch.finfo(logits.dtype).tiny)  # log 0 is no number
    loss_of_shares = torch.where(are_shares, -shares.log().sum(), math.nan)
    count = torch.full_like(loss, len(labels))
    parts = [count, *(part.sum() for part in (correct, top5, invalid)), loss, loss_of_shares]
    return torch.stack([part.to(loss) for part in parts])
