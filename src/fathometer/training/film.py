"""The history of a training that is over, from its checkpoints."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fathometer.errors import InputError, first_line, join_names
from fathometer.measuring.measure import measure
from fathometer.measuring.options import MeasureOptions
from fathometer.models import LoadedModel
from fathometer.progress import progress_bar, show_nothing
from fathometer.results.history import Cost, History, metrics_frame
from fathometer.results.sounding import Sounding


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

    Where the data have labels, accuracy and loss of every checkpoint are among its metrics. Checkpoints that
    cannot be measured, for example because weights are NaN, give a warning and an entry in `History.missed`;
    an error is raised if there is no other.

    Args:
        checkpoints: files or folders.
        load: returns the network with the weights of a checkpoint.
        data: as for `measure`; every checkpoint is measured on the same data.
        options: what decides the values, as in `measure` (`MeasureOptions`); usually given by name.
        steps: the step of each checkpoint. Default: the number after `step` in its name (300 for
            `epoch=2-step=300`), else that after `epoch`, else that of `checkpoint-500` or the only one.
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
    found: dict[int, Sounding] = {}
    errors: dict[int, Exception] = {}
    with ExitStack() as stack:
        show: Any = stack.enter_context(progress_bar("measuring")) if progress else show_nothing
        for place, (step, path) in enumerate(ordered.items()):
            show(place, len(ordered), path.name)
            try:
                found[step] = measure(
                    load(path), data, options, batch_size=batch_size, device=device, name=name, **changes
                )
            except Exception as error:  # a training that diverges is worth a film as well
                errors[step] = error
                warnings.warn(f"{path.name} was not measured: {first_line(error)}", stacklevel=2)
    if errors and not found:
        raise next(iter(errors.values()))
    known = {kind: [(step, getattr(each, kind)) for step, each in found.items()] for kind in _METRICS}
    metrics = {kind: [pair for pair in pairs if pair[1] is not None] for kind, pairs in known.items()}
    cost = Cost(seconds=sum(each.provenance.seconds for each in found.values()))
    missed = tuple((step, first_line(error)) for step, error in errors.items())
    return History(tuple(found), tuple(found.values()), metrics_frame(metrics), cost, missed)


_METRICS = ("accuracy", "loss", "perplexity")
_STEPS = (r"step[=_-]?(\d+)", r"epoch[=_-]?(\d+)", r"checkpoint-(\d+)", r"^\D*(\d+)\D*$")


def steps_of(paths: Sequence[Path]) -> list[int]:
    """Return the step in each name, else the epoch, else the only number.

    Example:
        >>> steps_of([Path("net/epoch=2-step=300.ckpt"), Path("net/epoch=3-step=400.ckpt")])
        [300, 400]
        >>> steps_of([Path("epoch=02-val_loss=0.35.ckpt")]), steps_of([Path("checkpoint-500")])
        ([2], [500])
    """
    names = [path.name if path.is_dir() else path.stem for path in paths]
    for pattern in _STEPS:
        found = [match for name in names if (match := re.search(pattern, name, re.IGNORECASE))]
        if len(found) == len(names):
            return [int(match[1]) for match in found]
    raise InputError(
        f"the steps are not clear from {join_names(names)}; give them, one number for each checkpoint",
        parameter="steps",
    )
