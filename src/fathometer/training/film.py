"""The history of a training that is over, from its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fathometer.errors import InputError
from fathometer.measuring.measure import measure
from fathometer.measuring.options import MeasureOptions
from fathometer.models import LoadedModel
from fathometer.progress import progress_bar
from fathometer.results.history import Cost, History, metrics_frame


def film(
    checkpoints: Iterable[str | Path],
    load: Callable[[Path], nn.Module | LoadedModel],
    data: Any,
    options: MeasureOptions | None = None,
    *,
    steps: Sequence[int] | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: bool = False,
    **changes: Any,
) -> History:
    """Measure checkpoints of one training, and return them as a history, in the order of their steps.

    Where the data have labels, accuracy and loss of every checkpoint are among its metrics.

    Args:
        checkpoints: files or folders.
        load: returns the network with the weights of a checkpoint.
        data: as for `measure`; every checkpoint is measured on the same data.
        options: what decides the values, as in `measure` (`MeasureOptions`); usually given by name.
        steps: the step of each checkpoint. Default: the last number in its name, 300 for `epoch=2-step=300`.
        batch_size: the largest number of inputs in a forward pass.
        device: where to run; where the network is if left out.
        name: name of the network in the results.
        progress: whether to show a bar.
        changes: options of `measure` by name.

    Example:
        >>> import tempfile
        >>> net, folder = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), Path(tempfile.mkdtemp())
        >>> for step in (0, 100):
        ...     torch.save(net.state_dict(), folder / f"net-{step}.pt")
        >>> def load(path):
        ...     net.load_state_dict(torch.load(path))
        ...     return net
        >>> film(folder.iterdir(), load, torch.randn(200, 4), samples=100).steps
        (0, 100)
    """
    paths = [Path(path) for path in checkpoints]
    numbers = steps_of(paths) if steps is None else list(steps)
    if len(numbers) != len(paths) or len(set(numbers)) != len(numbers):
        raise InputError(
            f"expected {len(paths)} different numbers, one for each checkpoint, got {numbers}",
            parameter="steps",
        )
    ordered = dict(sorted(zip(numbers, paths, strict=True)))
    with progress_bar("measuring") as show:
        found = {}
        for place, (step, path) in enumerate(ordered.items()):
            if progress:
                show(place, len(ordered), path.name)
            found[step] = measure(
                load(path), data, options, batch_size=batch_size, device=device, name=name, **changes
            )
    known = {kind: [(step, getattr(each, kind)) for step, each in found.items()] for kind in _METRICS}
    metrics = {kind: [pair for pair in pairs if pair[1] is not None] for kind, pairs in known.items()}
    cost = Cost(seconds=sum(each.provenance.seconds for each in found.values()))
    return History(tuple(found), tuple(found.values()), metrics_frame(metrics), cost)


_METRICS = ("accuracy", "loss", "perplexity")


def steps_of(paths: Sequence[Path]) -> list[int]:
    """Return the last number in each name.

    Example:
        >>> steps_of([Path("net/epoch=2-step=300.ckpt"), Path("checkpoint-500")])
        [300, 500]
    """
    found = []
    for path in paths:
        parts = re.findall(r"\d+", path.name if path.is_dir() else path.stem)
        if not parts:
            raise InputError(f"the name {path.name} has no number; give them", parameter="steps")
        found.append(int(parts[-1]))
    return found
