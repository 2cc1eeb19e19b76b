"""Training of networks of one shape, in segments.

After each segment losses are recorded, and a training can be saved and resumed with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.adam import Adam, Descent, cosine
from fathometer.leaky.lbfgs import LBFGS
from fathometer.leaky.plan import Design, Phase, Recipe
from fathometer.leaky.run import history_table
from fathometer.leaky.run_files import TensorFile
from fathometer.leaky.stack import Stack, capture_cuda_graph, flattened
from fathometer.leaky.steps import rebalanced
from fathometer.leaky.teacher import Task

SEGMENTS = 40  # of a phase
MIN_SEARCH = 200  # evaluations in a segment of L-BFGS, which begins each with an empty memory
REBALANCE_EVERY, REBALANCE_UNTIL = 20, 0.7  # epochs; share of the first phase
WARM_UP = 3  # epochs before a CUDA graph is captured


class Training:
    """A stack of networks of one shape, and how far its training is.

    Attributes:
        nets: the networks after the last segment; one that diverged, or was critical enough to stop, as it
            was before.
        history: for each network, a row per segment until then: epoch, error, decay, crit.
        diverged: for each network, the epoch at which its loss was found not to be finite, or None.
        converged: for each network, the epoch at which `crit` was first within the tolerance, or None.
        done: epochs so far, over all phases.
    """

    def __init__(
        self, designs: Sequence[Design], tasks: Sequence[Task], recipe: Recipe, device: torch.device
    ) -> None:
        self._designs, self._tasks, self.recipe = designs, tasks, recipe
        self._device = device
        self.nets = [
            design.network(task.x.shape[1], task.y.shape[1])
            for design, task in zip(designs, tasks, strict=True)
        ]
        self.history: list[list[dict[str, float]]] = [[] for _ in designs]
        self.diverged: list[int | None] = [None for _ in designs]
        self.converged: list[int | None] = [None for _ in designs]
        adaptive = [design.scheme == "adaptive" for design in designs]
        self._adaptive, self._rebalances = torch.tensor(adaptive, device=device), any(adaptive)
        self._phase, self._epoch = 0, 0
        self._stack: Stack | None = None
        self._method: _FirstOrder | _SecondOrder | None = None

    @property
    def done(self) -> int:
        """Epochs so far, over all phases."""
        return sum(phase.epochs for phase in self.recipe.phases[: self._phase]) + self._epoch

    @property
    def finished(self) -> bool:
        """Whether all is done."""
        return all(map(self._has_stopped, range(len(self.nets)))) or self._phase >= len(self.recipe.phases)

    def advance(self) -> None:
        """Train for one segment, and record losses."""
        phase = self.recipe.phases[self._phase]
        stack, method = self._prepared(phase)
        stop = min(self._epoch + _segment(phase), phase.epochs)
        while self._epoch < stop:
            if self._rebalances and _may_rebalance(self._phase, phase, self._epoch):
                self._rebalance(stack)
            self._epoch += method.advance(self._epoch, stop)
        self._record(stack)
        if self._epoch >= phase.epochs:
            self._phase, self._epoch, self._stack, self._method = self._phase + 1, 0, None, None

    def _prepared(self, phase: Phase) -> tuple[Stack, _FirstOrder | _SecondOrder]:
        if self._stack is None or self._method is None:
            dtype = torch.float64 if phase.method == "lbfgs" else getattr(torch, self.recipe.precision)
            decays = [design.weight_decay for design in self._designs]
            self._stack = Stack(self.nets, self._tasks, decays, self._device, dtype)
            if phase.method == "lbfgs":
                self._method = _SecondOrder(self._stack)
            else:
                rates = [phase.rate(design) for design in self._designs]
                self._method = _FirstOrder(self._stack, phase, rates)
        return self._stack, self._method

    def _rebalance(self, stack: Stack) -> None:
        steps = stack.steps[..., 0, 0].double()
        better = rebalanced(steps.T, stack.moves().T).T
        stack.set_steps(torch.where(self._adaptive, better, steps).to(stack.steps))

    def _has_stopped(self, number: int) -> bool:
        """Whether a network is final. In a stack it is still computed, and ignored."""
        return self.diverged[number] is not None or self.converged[number] is not None

    def _record(self, stack: Stack) -> None:
        crit = stack.criticality().tolist()
        error, decay = (part.tolist() for part in stack.losses())
        good = [False for _ in self.nets]
        for number in range(len(self.nets)):
            if self._has_stopped(number):
                continue
            row = {"error": error[number], "decay": decay[number], "crit": crit[number]}
            good[number] = math.isfinite(error[number]) and math.isfinite(decay[number])
            if good[number]:
                self.history[number].append({"epoch": self.done, **row})
                if crit[number] <= self.recipe.tolerance:
                    self.converged[number] = self.done
            else:
                self.diverged[number] = self.done
        stack.store(good)

    def state(self) -> TensorFile:
        """Return what is needed to resume from here: tensors, and plain values."""
        tensors: dict[str, Tensor] = {}
        for number, net in enumerate(self.nets):
            tensors |= {f"{number}.{name}": value for name, value in net.state_dict().items()}
        if self._stack is not None and self._method is not None:
            tensors |= {f"stack.{name}": value for name, value in self._stack.state().items()}
            tensors |= {f"method.{name}": value for name, value in self._method.state().items()}
        facts = {
            "phase": self._phase,
            "epoch": self._epoch,
            "history": self.history,
            "diverged": self.diverged,
            "converged": self.converged,
        }
        return TensorFile({name: value.detach().cpu() for name, value in tensors.items()}, facts)

    def restore(self, state: TensorFile) -> None:
        """Resume from a state; raise an error if it belongs to other networks, or is broken."""
        try:
            self._restore(*state)
        except (KeyError, IndexError, RuntimeError, TypeError, ValueError, OverflowError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            raise InputError(f"the checkpoint belongs to other networks, or is broken ({reason})") from error

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        phase, epoch = facts["phase"], facts["epoch"]
        phases = self.recipe.phases
        if phase > len(phases):
            raise ValueError(f"phase {phase}, epoch {epoch}")
        if epoch >= (phases[phase].epochs if phase < len(phases) else 1):
            raise ValueError(f"epoch {epoch} of phase {phase}")
        for name in ("history", "diverged", "converged"):
            if len(facts[name]) != len(self.nets):
                raise ValueError(f"{name} of {len(self.nets)} networks")
        for rows in facts["history"]:
            history_table(rows)
        if "method.epoch" in tensors and tensors["method.epoch"].tolist() != [epoch]:
            raise ValueError(f"epoch {epoch}, but the optimiser is elsewhere")
        for number, net in enumerate(self.nets):
            net.load_state_dict(_with_prefix(tensors, f"{number}."))
        self._phase, self._epoch = phase, epoch
        self.history, self.diverged, self.converged = facts["history"], facts["diverged"], facts["converged"]
        if epoch:
            stack, method = self._prepared(phases[phase])
            stack.load(_with_prefix(tensors, "stack."))
            method.load(_with_prefix(tensors, "method."))


class _FirstOrder:
    """Adam or gradient descent, one epoch at a time; on a GPU as a graph that is replayed."""

    def __init__(self, stack: Stack, phase: Phase, rates: list[float]) -> None:
        schedule = cosine(phase.epochs) if phase.decreasing else torch.ones(phase.epochs, dtype=torch.float64)
        self._optimiser = (Adam if phase.method == "adam" else Descent)(stack, rates, schedule)
        self._graphed = stack.x.is_cuda
        self._replay: Callable[[], object] | None = None
        self._warm = 0

    def advance(self, epoch: int, stop: int) -> int:
        """Train for one epoch."""
        del epoch, stop
        if self._graphed and self._replay is None and self._warm >= WARM_UP:
            self._replay = capture_cuda_graph(self._optimiser.step)
        (self._replay or self._optimiser.step)()
        self._warm += 1
        return 1

    def state(self) -> dict[str, Tensor]:
        return self._optimiser.state()

    def load(self, tensors: dict[str, Tensor]) -> None:
        self._optimiser.load(tensors)


class _SecondOrder:
    """L-BFGS, one segment at a time."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def advance(self, epoch: int, stop: int) -> int:
        """Train for the whole segment, with an empty memory."""
        search = LBFGS(self._values, flattened(self._stack.parameters))
        for _ in range(stop - epoch - 1):
            if search.stuck.all():
                break
            search.step()
        self._stack.load_flat(search.point)
        return stop - epoch

    def _values(self, points: Tensor) -> tuple[Tensor, Tensor]:
        self._stack.load_flat(points)
        losses = self._stack.losses(self._stack.differentiate())
        return losses.error + losses.decay, flattened(self._stack.gradients)

    def state(self) -> dict[str, Tensor]:
        return {}

    def load(self, tensors: dict[str, Tensor]) -> None:
        del tensors


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _segment(phase: Phase) -> int:
    length = -(-phase.epochs // SEGMENTS)
    return max(length, MIN_SEARCH) if phase.method == "lbfgs" else length


def _may_rebalance(number: int, phase: Phase, epoch: int) -> bool:
    if number > 0 or phase.method == "lbfgs" or epoch == 0:
        return False
    return epoch % REBALANCE_EVERY == 0 and epoch < REBALANCE_UNTIL * phase.epochs
