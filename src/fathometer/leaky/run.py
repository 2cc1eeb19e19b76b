"""The results of training: networks with their histories and measures, one by one and as a sweep."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pandas as pd
import torch

from fathometer.errors import InputError, check_whole
from fathometer.leaky.energy import GAMMA
from fathometer.leaky.measures import CRITICAL, PathMeasures, measure_path
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import RepresentationPath, path_of
from fathometer.leaky.plan import Design, Recipe
from fathometer.leaky.teacher import Task
from fathometer.results.provenance import Provenance
from fathometer.threads import pool_of_single_threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")
Result = TypeVar("Result")


def history_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a table from the rows of a history; raise `ValueError` if the epochs do not increase."""
    table = pd.DataFrame(rows, columns=["epoch", "error", "decay", "crit"])
    table = table.astype(float).astype({"epoch": int})
    if not table["epoch"].is_monotonic_increasing or (table["epoch"] < 0).any():
        raise ValueError("epochs of a history increase")
    return table


@dataclass(frozen=True, eq=False)
class LeakyRun:
    """One trained network.

    Attributes:
        design: the network and its task.
        task: the data.
        net: the network, float64; if it diverged, as it was when its loss was last finite.
        history: along training: epoch, error, decay, and crit, which is 0 at a critical point.
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
        """All measures along the path, with a warning if the network is not critical."""
        return self.measure()

    def measure(self, warn: bool = True) -> PathMeasures:
        """Measure the path, when first called; `warn` says whether to warn then."""
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
        """The mean squared error on held-out data; NaN if there are none."""
        return self._error(self.task.x_test, self.task.y_test)

    def plot(self, kind: str = "1c", *, columns: Literal[1, 2] = 2) -> Figure:
        """Draw a figure along the path. `figure.savefig("energies.pdf")` saves it.

        Args:
            kind: `1b` (spectra), `1c` (energies), `affinity`, `ranks`, `training` or `projection`.
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report.figures.kinds import draw_leaky

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
        """One row for each network: design, errors, and the summary of its measures."""
        table = pd.DataFrame(in_threads(_row, self.runs))
        not_critical = int((table["crit"] > CRITICAL).sum())
        if not_critical:
            warnings.warn(
                f"{not_critical} of {len(table)} networks are not at a critical point (crit above "
                f"{CRITICAL:g}): their Hamiltonian means little; train longer, or with a lower learning rate",
                stacklevel=3,
            )
        return table

    @property
    def trained(self) -> list[LeakyRun]:
        """The networks that did not diverge; an error if all did."""
        found = [run for run in self.runs if run.diverged is None]
        if not found:
            raise InputError(
                f"sweep: expected a network that did not diverge, got {len(self.runs)} that did; "
                "train with a smaller learning rate"
            )
        return found

    def siblings(self, run: LeakyRun) -> list[LeakyRun]:
        """Return the networks of other depths L̃ > 0 that equal `run` in all else and did not diverge."""
        return siblings_of(run, self.runs)

    def only(self, **attributes: Any) -> LeakySweep:
        """Return the networks whose design has these attributes, as a sweep; `rank` is that of the task.

        Example:
            `sweep.only(rank=3, seed=0)` keeps every depth of one task.
        """
        known = {each.name for each in fields(Design)} | {"rank"}
        if unknown := sorted(set(attributes) - known):
            raise InputError(
                f"expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}", parameter="only"
            )
        found = [
            run
            for run in self.runs
            if all(_attribute(run, name) == value for name, value in attributes.items())
        ]
        if not found:
            raise InputError(
                f"no network of the sweep has {_in_words(attributes)}{self._varied()}", parameter="only"
            )
        return replace(self, runs=tuple(found))

    def _varied(self) -> str:
        """Say what the networks differ in, for an error."""
        names = ("effective_depth", "rank", "layers", "scheme", "decay", "sigma", "seed")
        values = {name: sorted({str(_attribute(run, name)) for run in self.runs}) for name in names}
        return "; it has " + "; ".join(f"{name} {', '.join(each)}" for name, each in values.items())

    def with_gamma(self, gamma0: float) -> LeakySweep:
        """Return the same networks, to be measured with another ridge."""
        return replace(self, runs=tuple(replace(run, gamma0=gamma0) for run in self.runs))

    def save(self, folder: str | Path) -> Path:
        """Write a folder of safetensors and JSON that `load_sweep` reads."""
        from fathometer.leaky.run_files import save_sweep

        return save_sweep(self, Path(folder))

    def plot(self, kind: str | None = None, *, columns: Literal[1, 2] = 2) -> Figure:
        """Draw a figure of the networks. `figure.savefig("depths.pdf")` saves it.

        Args:
            kind: `1a`, `3` (several depths), `2a`, `2b`, `2c` (several schemes), or one of `LeakyRun.plot`
                for the network with L̃ nearest 7. Default: the first that these networks allow.
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report.figures.kinds import default_leaky_kind, draw_leaky

        return draw_leaky(self, kind or default_leaky_kind(self), columns=columns)


def _attribute(run: LeakyRun, name: str) -> Any:
    return run.task.rank if name == "rank" else getattr(run.design, name)


def _in_words(attributes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in attributes.items())


def siblings_of(run: LeakyRun, runs: Iterable[LeakyRun]) -> list[LeakyRun]:
    """Return the networks of other depths L̃ > 0 that equal `run` in all else and did not diverge."""
    alike = [each.name for each in fields(Design) if each.name != "effective_depth"]
    return [
        other
        for other in runs
        if other.diverged is None
        and other.design.effective_depth not in (0, run.design.effective_depth)
        and all(getattr(other.design, name) == getattr(run.design, name) for name in alike)
    ]


def in_threads(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int | None = None,
    on_failure: Callable[[], object] = lambda: None,
) -> list[Result]:
    """Apply `work` to each item, one network per thread, and return the results in order.

    Many small products are faster this way than with all threads on one of them. `on_failure` tells the
    others to stop.

    Example:
        >>> in_threads(abs, [-1, 2, -3], threads=2)
        [1, 2, 3]
    """
    if threads is not None:
        threads = check_whole("threads", threads, 1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with pool_of_single_threads(threads or max(torch.get_num_threads(), cores)) as pool:
        waiting = [pool.submit(work, item) for item in items]
        try:
            done, _ = wait(waiting, return_when=FIRST_EXCEPTION)
            for one in done:
                one.result()  # raises what one has raised, before the others have ended
            return [one.result() for one in waiting]
        except BaseException:
            on_failure()
            for one in waiting:
                one.cancel()
            wait(waiting)  # they stop soon, and what they have trained is kept
            raise


def _row(run: LeakyRun) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(run.design).items() if key != "teacher"}
    return {
        **plain,
        "rank_of_task": run.task.rank,
        "diverged": run.diverged is not None,
        "train_error": run.train_error,
        "test_error": run.test_error,
        **run.measure(warn=False).summary,
    }
