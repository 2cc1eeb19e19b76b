"""Soundings in TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fathometer.errors import MissingExtraError
from fathometer.results.sounding import Sounding
from fathometer.training.scalars import clean, scalars


class TensorBoardLog:
    """Writes soundings where TensorBoard finds them; `Probe(..., log=TensorBoardLog("runs/mine"))`.

    Of every gauge there is a curve for each site, the min, median and max over the sites, and a histogram of
    the values of all sites. TensorBoard wants one writer for a folder: give it one of its own.

    Args:
        folder: for the event file; made if there is none.
        prefix: of all names.
    """

    def __init__(self, folder: str | Path, prefix: str = "fathometer") -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("tensorboard", "tensorboard", "a TensorBoard log") from error
        self.folder, self._prefix = Path(folder), prefix
        self._writer: Any = SummaryWriter(str(folder))

    def __call__(self, step: int, sounding: Sounding) -> None:
        """Write one sounding; it can be looked at from now on."""
        for name, value in scalars(sounding, self._prefix).items():
            self._writer.add_scalar(name, value, step)
        for gauge in sounding.gauges:
            values = sounding.mean(gauge).to_numpy()
            finite = values[np.isfinite(values)]
            if len(finite):
                self._writer.add_histogram(clean(f"{self._prefix}/{gauge}"), finite, step)
        self._writer.flush()

    def close(self) -> None:
        """Nothing more will come."""
        self._writer.close()

    def __enter__(self) -> TensorBoardLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
