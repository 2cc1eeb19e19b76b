"""What training leaves: networks, how they came about, and what can be asked of them."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import torch

from fathometer.errors import InputError
from fathometer.leaky.energy import GAMMA
from fathometer.leaky.measures import CRITICAL, PathMeasures, measure_path
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import RepresentationPath, path_of
from fathometer.leaky.plan import Design, Recipe
from fathometer.leaky.teacher import Task
from fathometer.leaky.threads import in_threads
from fathometer.results.provenance import Provenance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure


HISTORY = ["epoch", "error", "decay", "crit"]
"""What is known along training."""


def history_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of a training as a table; a `ValueError` or `TypeError` if they cannot be such."""
    if any(set(row) != set(HISTORY) for row in rows):
        raise ValueError(f"a history has the columns {', '.join(HISTORY)}")
    table = pd.DataFrame(rows, columns=HISTORY).astype(float).astype({"epoch": int})
    if not table["epoch"].is_monotonic_increasing or (table["epoch"] < 0).any():
        raise ValueError("a history goes from one epoch to the next")
    return table


@dataclass(frozen=True, eq=False)
class LeakyRun:
    """One trained network.

    Attributes:
        design: what it is.
        task: what it learned.
        net: the network, float64; if it diverged, as it was when its loss was last finite.
        history: along training: epoch, error, decay, crit.
        diverged: the epoch at which its loss was found not to be finite, or None.
        gamma0: γ₀ of its measures.
    """

    design: Design
    task: Task
    net: LeakyResNet
    history: pd.DataFrame
    diverged: int | None = None
    gamma0: float = GAMMA

    @cached_property
    def path(self) -> RepresentationPath:
        """A, B and W on the training data."""
        return path_of(self.net, self.task.x, self.task.y, self.design.regularisation)

    @property
    def measures(self) -> PathMeasures:
        """Everything measured along the path."""
        return self.measure()

    def measure(self, warn: bool = True) -> PathMeasures:
        """The same; measured once, when a warning may say that the network is not critical."""
        if "measured" not in self.__dict__:
            self.__dict__["measured"] = measure_path(self.path, gamma0=self.gamma0, warn=warn)
        found: PathMeasures = self.__dict__["measured"]
        return found

    @property
    def train_error(self) -> float:
        """The mean squared error on the training data."""
        return self._error(self.task.x, self.task.y)

    @property
    def test_error(self) -> float:
        """The mean squared error on held-out data; NaN without any."""
        return self._error(self.task.x_test, self.task.y_test)

    def plot(self, kind: str = "1c", *, columns: Literal[1, 2] = 2) -> Figure:
        """A figure along the path. `figure.savefig("energies.pdf")` keeps it.

        Args:
            kind: `1b` (spectra), `1c` (energies), `affinity`, `ranks`, `training` or `projection`.
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report.figures.leaky import draw_leaky

        return draw_leaky(self, kind, columns=columns)

    @torch.no_grad()
    def _error(self, x: torch.Tensor, y: torch.Tensor) -> float:
        return (self.net(x) - y).square().mean().item()


@dataclass(frozen=True, eq=False)
class LeakySweep:
    """Networks that were trained together.

    Attributes:
        runs: in the order of their designs.
        recipe: how they were trained.
        provenance: versions, device, date, time taken.
    """

    runs: tuple[LeakyRun, ...]
    recipe: Recipe
    provenance: Provenance

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each network: design, errors, and what was measured."""
        table = pd.DataFrame(in_threads(_row, self.runs))
        loose = int((table["crit"] > CRITICAL).sum())
        if loose:
            warnings.warn(
                f"{loose} of {len(table)} networks are not at a critical point (crit above {CRITICAL:g}): "
                "their Hamiltonian means little; train longer, or with a smaller learning rate",
                stacklevel=3,
            )
        return table

    @property
    def trained(self) -> list[LeakyRun]:
        """The networks that did not diverge; an error where there is none."""
        found = [run for run in self.runs if run.diverged is None]
        if not found:
            raise InputError(
                f"sweep: expected a network that did not diverge, got {len(self.runs)} that did; "
                "train with a smaller learning rate"
            )
        return found

    def siblings(self, run: LeakyRun) -> list[LeakyRun]:
        """The networks of other depths L̃ > 0 that are like `run` in everything else and did not diverge."""
        return [
            other
            for other in self.runs
            if other.diverged is None and differs_in_depth(other.design, run.design)
        ]

    def with_gamma(self, gamma0: float) -> LeakySweep:
        """The same networks, to be measured with another ridge."""
        return replace(self, runs=tuple(replace(run, gamma0=gamma0) for run in self.runs))

    def save(self, folder: str | Path) -> Path:
        """Write a folder of safetensors and JSON that `load_sweep` reads."""
        from fathometer.leaky.run_files import save_sweep

        return save_sweep(self, Path(folder))

    def plot(self, kind: str | None = None, *, columns: Literal[1, 2] = 2) -> Figure:
        """A figure of the networks. `figure.savefig("depths.pdf")` keeps it.

        Args:
            kind: `1a`, `3` (several depths), `2a`, `2b`, `2c` (several schemes), or one of a run: that
                with L̃ nearest 7 then. Default: what the networks can show first.
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report.figures.leaky import draw_leaky, usual_picture

        return draw_leaky(self, kind or usual_picture(self), columns=columns)

    def chosen(self, **attributes: Any) -> Sequence[LeakyRun]:
        """The runs whose design has these attributes."""
        return [
            run
            for run in self.runs
            if all(getattr(run.design, name) == value for name, value in attributes.items())
        ]


def differs_in_depth(design: Design, other: Design) -> bool:
    """Whether two designs differ in L̃, and in nothing else; the depth of the first is not 0."""
    differing = {
        field.name for field in fields(Design) if getattr(design, field.name) != getattr(other, field.name)
    }
    return differing == {"effective_depth"} and design.effective_depth > 0


def _row(run: LeakyRun) -> dict[str, Any]:
    """Design, errors and the summary of the measures, one row of a table."""
    plain = {key: value for key, value in asdict(run.design).items() if key != "teacher"}
    return {
        **plain,
        "rank_of_task": run.task.rank,
        "diverged": run.diverged is not None,
        "train_error": run.train_error,
        "test_error": run.test_error,
        **run.measure(warn=False).summary,
    }
