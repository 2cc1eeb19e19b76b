"""Soundings as named numbers, for loggers, TensorBoard and Weights & Biases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fathometer.errors import MissingExtraError
from fathometer.results.sounding import Sounding


def scalars(sounding: Sounding, prefix: str = "fathometer") -> dict[str, float]:
    """Return `fathometer/affinity/layer1.0.relu` for every gauge and site, and the `summary_scalars`.

    Loggers differ in the characters they allow: anything but letters, digits, dots, slashes and underscores
    becomes a hyphen, as in `layer1.0.relu-2` for the second call. Of names that become equal, all but the
    first get a number.
    """
    found = summary_scalars(sounding, prefix)
    for gauge in sounding.gauges:
        for site, value in sounding.mean(gauge).items():
            name = unique = clean(f"{prefix}/{gauge}/{str(site).lstrip('/')}")
            number = 1
            while unique in found:
                unique = f"{name}-{(number := number + 1)}"
            found[unique] = float(value)
    return found


def summary_scalars(sounding: Sounding, prefix: str = "fathometer") -> dict[str, float]:
    """Return `fathometer/affinity_min`, `_median` and `_max` over the sites, for every gauge."""
    return {
        clean(f"{prefix}/{gauge}_{name}"): float(sounding.summary(gauge)[name])
        for gauge in sounding.gauges
        for name in ("min", "median", "max")
    }


def clean(name: str) -> str:
    """Return a name that every logger accepts."""
    return re.sub(r"[^\w./-]", "-", name, flags=re.ASCII)


class WandbLog:
    """Writes soundings to a run of Weights & Biases: `Probe(..., log=WandbLog(wandb.init()))`.

    The numbers are those of `scalars`, and `fathometer/step`, which charts can have as their x-axis. The
    first finding of each rule of `fathometer.check` is an alert.

    Args:
        run: what `wandb.init` returns; it is not closed.
        prefix: start of all names.
    """

    def __init__(self, run: Any, prefix: str = "fathometer") -> None:
        self._run, self._prefix = run, prefix
        self._reported: set[str] = set()

    def __call__(self, step: int, sounding: Sounding) -> None:
        """Log one sounding."""
        self._run.log({**scalars(sounding, self._prefix), f"{self._prefix}/step": step})
        for finding in sounding.check().unreported(self._reported):
            self._run.alert(title=f"{finding.rule} at step {step}", text=f"{finding} Try: {finding.advice}")


class TensorBoardLog:
    """Writes soundings for TensorBoard: `Probe(..., log=TensorBoardLog("runs/mine"))`.

    Every gauge has a curve for each site, the min, median and max over the sites, and a histogram of the
    values of all sites. The first finding of each rule of `fathometer.check` is a text. TensorBoard expects
    one writer per folder: give this one a folder of its own.

    Args:
        folder: for the event file; it is created if needed.
        prefix: start of all names.
    """

    def __init__(self, folder: str | Path, prefix: str = "fathometer") -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("tensorboard", "tensorboard", "a TensorBoard log") from error
        self.folder, self._prefix = Path(folder), prefix
        self._writer: Any = SummaryWriter(str(folder))
        self._reported: set[str] = set()

    def __call__(self, step: int, sounding: Sounding) -> None:
        """Write one sounding; TensorBoard can show it from now on."""
        for name, value in scalars(sounding, self._prefix).items():
            self._writer.add_scalar(name, value, step)
        for gauge in sounding.gauges:
            values = sounding.mean(gauge).to_numpy()
            finite = values[np.isfinite(values)]
            if len(finite):
                self._writer.add_histogram(clean(f"{self._prefix}/{gauge}"), finite, step)
        for finding in sounding.check().unreported(self._reported):
            self._writer.add_text(clean(f"{self._prefix}/check"), f"{finding} Try: {finding.advice}", step)
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()

    def __enter__(self) -> TensorBoardLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
