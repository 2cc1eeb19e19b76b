"""What must be true of whatever a loader gives."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
from torch import Tensor

from fathometer import History, Sounding
from fathometer.cli.show import show
from fathometer.errors import FathometerError
from fathometer.gauges import GAUGES
from fathometer.gauges.gauge import bounds_of
from fathometer.leaky import LeakySweep
from fathometer.report.page import page_of
from fathometer.results.history_file import load as load_history
from fathometer.results.sounding_file import load
from soak.files.limits import OutOfRangeError

_ROUNDING = 1e-6


def require(condition: bool, words: str) -> None:
    """Or else the trial is one of a value that cannot be."""
    if not condition:
        raise OutOfRangeError(words)


def check_sounding(sounding: Sounding, path: Path) -> None:
    """Numbers in their ranges; it can be shown, drawn as a page, saved, and is the same when loaded again."""
    records = sounding.records
    for name, least in (("n", 1), ("d", 1), ("batch", 0)):
        require(records[name].dtype.kind == "i" and records[name].min() >= least, f"{name} below {least}")
    require(not records.duplicated(["site", "batch"]).any(), "a site twice in a batch")
    columns = [(gauge, *item) for gauge in GAUGES.values() for item in gauge.ranges.items()]
    for gauge, column, bounds in columns:
        if column in sounding.gauges:
            for value, n, d in zip(records[column], records["n"], records["d"], strict=True):
                low, high = bounds_of(bounds, n, d)
                inside = low - _ROUNDING <= value <= high + _ROUNDING
                finite = math.isfinite(value) or gauge.infinite
                require(inside and finite, f"{column} of {value} where n = {n}, d = {d}")
    repr(sounding)
    sounding._repr_html_()
    page_of(sounding)
    copy = path.with_name(f"copy{path.suffix}")
    again = load(_saved(sounding, copy))
    require(again.sites == sounding.sites, "other sites when loaded again")
    require(again.provenance == sounding.provenance, "another provenance when loaded again")
    require(again.records.equals(records), "other values when loaded again")
    with redirect_stdout(io.StringIO()):
        show(copy)


def check_history(history: History, path: Path) -> None:
    """The same for every step of a history."""
    require(list(history.steps) == sorted(set(history.steps)), "steps that do not increase")
    require(history.cost.seconds >= 0 and math.isfinite(history.cost.total), "a cost that cannot be")
    repr(history)
    history._repr_html_()
    for gauge in history.gauges[:1]:
        history.table(gauge)
    page_of(history)
    again = load_history(_saved(history, path.with_name("copy.json")))
    require(again.steps == history.steps and again.missed == history.missed, "other steps when loaded again")
    pd.testing.assert_frame_equal(again.metrics, history.metrics)
    for one, two in zip(history.soundings, again.soundings, strict=True):
        require(one.records.equals(two.records), "other values when loaded again")


def check_sweep(sweep: LeakySweep, folder: Path) -> None:
    """Finite weights, steps that sum to 1, a table; it can be saved."""
    for run in sweep.runs:
        for name, tensor in run.net.state_dict().items():
            finite = bool(tensor.isfinite().all())
            require(finite or run.diverged is not None, f"{name} is not finite")
        require(abs(float(run.net.steps.sum()) - 1) < 1e-6, "steps that do not sum to 1")
        for part in (run.task.x, run.task.y, run.task.x_test, run.task.y_test):
            require(bool(part.isfinite().all()), "data that are not finite")
        require(run.diverged is None or run.diverged >= 0, "diverged before the beginning")
        require(list(run.history["epoch"]) == sorted(run.history["epoch"]), "epochs that do not increase")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was trained too short, which is so
        sweep.table  # noqa: B018
    sweep.save(folder.with_name(f"{folder.name}-copy"))


def check_batch(batch: Tensor | tuple[Tensor, Tensor] | Mapping[str, Tensor], shape: tuple[int, ...]) -> None:
    """Of the network's shape."""
    values = (
        batch["input_ids"] if isinstance(batch, Mapping) else batch[0] if isinstance(batch, tuple) else batch
    )
    require(tuple(values.shape[1:]) == shape, f"a batch of shape {list(values.shape)}")


def _saved(result: Sounding | History, path: Path) -> Path:
    try:
        return result.save(path)
    except FathometerError as error:
        raise OutOfRangeError(f"loaded, but cannot be saved: {error}") from error
