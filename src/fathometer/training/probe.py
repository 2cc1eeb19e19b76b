"""Soundings of a network while it learns, on inputs that stay the same, within a share of its time."""

from __future__ import annotations

import json
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.capture import Pooling, Reduction, SiteFilter, unwrapped
from fathometer.errors import FathometerError, InputError
from fathometer.gauges.registry import Gauge, choose_gauges
from fathometer.measuring.measure import measure
from fathometer.measuring.options import Call
from fathometer.results.history import Cost, History, metrics_frame
from fathometer.results.sounding import Sounding
from fathometer.training.batch import hold
from fathometer.training.budget import Budget
from fathometer.training.metrics import Metrics
from fathometer.training.untouched import (
    autocast_cache_kept,
    buffers_kept,
    generators_kept,
    random_numbers_kept,
)

Log: TypeAlias = "Callable[[int, Sounding], None]"
"""Gets the step and the sounding, as `TensorBoardLog` does."""


class Probe:
    """Measures a network every now and then while it learns; `history` has all of it.

    The first call of `step` always measures, and `finish` does once more. In between, a sounding is taken
    when a multiple of `every` has been reached *and* measuring stays within `max_overhead` of all time: both
    hold, the bound wins. Training goes on as if there were no probe: weights, buffers, modes, gradients and
    the generators of random numbers, a loader's own too, are as before; what else a `forward` changes is not
    known here, and an iterator stays advanced. In `torch.distributed` only the first process measures.

    Args:
        model: the network, also inside `DistributedDataParallel` or `torch.compile`.
        data: what to measure on: one batch (a tensor, a dict of tensors, a tuple `(inputs, labels)`), or a
            list, loader or data set to take it from. It is copied now.
        every: how many steps there are between two soundings at least; `"auto"` leaves that to the bound.
        max_overhead: the share of time that measuring may take, the first and last sounding included; they
            are taken in any case, so that a very short training may exceed it. None for no bound.
        samples: how many samples to measure on, at most.
        batches: how many such batches, for error bars.
        gauges: what to read, as in `measure`; the affinity score if left out.
        sites: where to read it, as in `measure`.
        activations: classes and functions of your own that are activations.
        reduction: how tensors become matrices, as in `measure`.
        batch_size: at most so many inputs in a forward pass.
        call: how to run the network on a batch, `call(model, batch)`, where the usual ways fail.
        seed: of the order of a `Dataset` and of random positions.
        name: what to call the network.
        keep_on: the device where the batch waits; the network's own one saves a copy each time.
        log: called with (step, sounding) after each sounding, or several of these.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> optimiser = torch.optim.SGD(net.parameters(), 0.1)
        >>> probe = Probe(net, torch.randn(64, 4), every=10, max_overhead=None)
        >>> _ = probe.step(0)
        >>> for step in range(1, 26):
        ...     loss = net(torch.randn(16, 4)).square().mean()
        ...     loss.backward()
        ...     optimiser.step()
        ...     optimiser.zero_grad()
        ...     _ = probe.step(step, loss=loss)
        >>> _ = probe.finish()
        >>> probe.history.steps
        (0, 10, 20, 25)
    """

    def __init__(
        self,
        model: nn.Module,
        data: Any,
        *,
        every: int | Literal["auto"] = "auto",
        max_overhead: float | None = 0.05,
        samples: int = 512,
        batches: int = 1,
        gauges: str | Gauge | Iterable[str | Gauge] = "affinity",
        sites: SiteFilter | Iterable[SiteFilter] | None = None,
        activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
        reduction: Reduction | Pooling = "mean",
        batch_size: int | None = None,
        call: Call | None = None,
        seed: int = 0,
        name: str | None = None,
        keep_on: str | torch.device = "cpu",
        log: Log | Iterable[Log] = (),
    ) -> None:
        _check(every, max_overhead, samples, batches)
        self._model, self._every = model, 1 if every == "auto" else every
        self._logs = (log,) if callable(log) else tuple(log)
        reduction = reduction if isinstance(reduction, Reduction) else Reduction(reduction, seed=seed)
        gauges, sites = _listed(gauges), _listed(sites)
        chosen = choose_gauges(gauges)
        with random_numbers_kept(self.device), generators_kept(data):
            self._data = hold(
                data,
                samples=samples,
                batches=batches,
                tokens=reduction.pooling == "tokens",
                seed=seed,
                device=keep_on,
            )
        self._settings: dict[str, Any] = {
            "samples": samples,
            "batches": batches,
            "gauges": gauges,
            "sites": sites,
            "activations": activations,
            "reduction": reduction,
            "leftover": "keep",
            "batch_size": batch_size,
            "call": call,
            "seed": seed,
            "name": name,
        }
        self._budget = Budget(max_overhead)
        self._previous: int | None = None  # the step that was last told of
        self._soundings: dict[int, Sounding] = {}
        self._missed: list[tuple[int, str]] = []
        self._metrics = Metrics()
        self._warned: set[str] = set()
        self._facts = {
            "gauges": list(chosen),
            "samples": samples,
            "batches": batches,
            "reduction": asdict(reduction),
        }
        self.within: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Gives the context that soundings are taken in."""

    @property
    def history(self) -> History:
        """All soundings so far."""
        if not self._soundings:
            raise InputError("history: nothing is measured yet; `probe.step(0)` takes the first sounding")
        return History(
            tuple(self._soundings),
            tuple(self._soundings.values()),
            metrics_frame({name: column.items() for name, column in self._metrics.fetched().items()}),
            self._budget.cost,
            tuple(self._missed),
        )

    @property
    def has_soundings(self) -> bool:
        """Whether anything is measured yet."""
        return bool(self._soundings)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        weights = unwrapped(self._model).parameters()
        return next((weight.device for weight in weights), torch.device("cpu"))

    @property
    def cost(self) -> Cost:
        """The time that measuring took so far."""
        return self._budget.cost

    def step(self, step: int, /, **metrics: float | Tensor) -> Sounding | None:
        """Say that so many updates are done, 0 before the first; the sounding, if it was time for one.

        Numbers by name, losses for instance, are kept in the history. Those on a GPU are not waited for.
        """
        budget, previous = self._budget, self._previous
        began = budget.now()
        if _is_bystander():
            return None
        budget.start()
        self._previous = step = _whole(step, previous or 0)
        if metrics:
            self._metrics.note(step, metrics)
        due = not self._soundings or (
            previous is not None and step // self._every != previous // self._every and budget.allows()
        )
        budget.spent(began)
        return self._take(step) if due else None

    def counted(self) -> AbstractContextManager[None]:
        """A context for what else is done for the probe's sake, as saving its history: it counts as cost."""
        return self._budget.counted()

    def note(self, step: int, metrics: Mapping[str, float | Tensor]) -> None:
        """Keep numbers of a step, and measure nothing."""
        began = self._budget.now()
        self._metrics.note(_whole(step, 0), metrics)
        self._budget.spent(began)

    def finish(self) -> Sounding | None:
        """Training is over: measure the last step, unless it has been, and stop the clock."""
        if _is_bystander() or self._previous is None:
            return None
        measured = self._previous in self._soundings
        sounding = None if measured else self._take(self._previous)
        self._budget.stop()
        return sounding

    def resume(self, history: History, step: int | None = None) -> None:
        """Go on with a history of the same network, measured alike; forget what is later than `step`.

        Other gauges, samples, batches, reductions or inputs than this probe's are an error.
        """
        self._check_same(history)
        last = history.steps[-1] if step is None else step
        kept = dict(zip(history.steps, history.soundings, strict=True))
        self._soundings = {number: sounding for number, sounding in kept.items() if number <= last}
        self._missed = [entry for entry in history.missed if entry[0] <= last]
        rows = history.metrics.itertuples(index=False)
        self._metrics.keep((int(row[0]), str(row[1]), float(row[2])) for row in rows if row[0] <= last)
        self._previous = last if self._soundings else None
        recent = [sounding.provenance.seconds for sounding in self._soundings.values()]
        self._budget.resume(history.cost, recent)

    def _take(self, step: int) -> Sounding | None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # what is still to be done is training
        with self._budget.measuring():
            self._metrics.fetched()
            try:
                sounding = self._measured()
            except Exception as error:
                if not self._soundings:
                    raise
                self._miss(step, "no sounding", error)
                return None
            self._soundings[step] = sounding
            for log in self._logs:
                try:
                    log(step, sounding)
                except Exception as error:
                    self._miss(step, "not logged", error)
        return sounding

    def _measured(self) -> Sounding:
        with (
            self.within(),
            random_numbers_kept(self.device),
            autocast_cache_kept(self.device),
            buffers_kept(self._model),
        ):
            sounding = measure(self._model, self._data, **self._settings)
        first = next(iter(self._soundings.values()), sounding)
        if sounding.sites != first.sites:
            raise InputError("the network has other sites than at its first sounding")
        if sounding.gauges != first.gauges:
            raise InputError(
                f"the gauges give {', '.join(sounding.gauges)} and not {', '.join(first.gauges)} as at first"
            )
        return sounding

    def _check_same(self, history: History) -> None:
        before = history.soundings[-1].provenance
        inputs = {name: self._data.description[name] for name in ("probe_inputs", "probe_sha256")}
        for earlier, now in ((before.settings, self._facts), (before.data, inputs)):
            for name, value in now.items():
                if name in earlier and (was := _plain(earlier[name])) != _plain(value):
                    raise InputError(
                        f"resume: {name} was {was} in the history and is {_plain(value)} now; "
                        "a history is of one network, measured in one way on the same inputs"
                    )

    def _miss(self, step: int, what: str, error: Exception) -> None:
        """A training is not to die of being looked at."""
        reason = str(error) if isinstance(error, FathometerError) else f"{type(error).__name__}: {error}"
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(
                f"{what} at step {step}: {reason} (this and later failures are in history.missed)",
                stacklevel=4,
            )
        self._missed.append((step, reason if what == "no sounding" else f"{what}: {reason}"))


def _plain(value: Any) -> str:
    """As a file has it."""
    return json.dumps(value, sort_keys=True, default=str)


def _listed(choice: Any) -> Any:
    """What can be gone through once only, as a list."""
    return list(choice) if isinstance(choice, Iterable) and not isinstance(choice, str | type) else choice


def _is_bystander() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_rank() != 0


def _whole(step: Any, least: int) -> int:
    if type(step) is int and step >= least:
        return step
    try:
        if isinstance(step, bool) or (number := operator.index(step)) < least:
            raise TypeError("not one of these")
        return number
    except TypeError as error:
        raise InputError(f"step: expected a whole number from {least}, got {step!r}") from error


def _check(every: Any, max_overhead: Any, samples: Any, batches: Any) -> None:
    for option, value, least in (("every", every, 1), ("samples", samples, 2), ("batches", batches, 1)):
        if option == "every" and value == "auto":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            auto = " or 'auto'" if option == "every" else ""
            raise InputError(f"{option}: expected a whole number from {least}{auto}, got {value!r}")
    if max_overhead is None and every == "auto":
        raise InputError("every='auto' follows max_overhead: give one of both, a number of steps or a share")
    share = 0.5 if max_overhead is None else max_overhead
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise InputError(f"max_overhead: expected a share between 0 and 1 (0.05 for 5 %), got {share!r}")
