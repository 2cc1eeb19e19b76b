"""Soundings of a network during training, on inputs that stay the same, within a share of its time."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.capture import unwrapped
from fathometer.errors import FathometerError, InputError, check_whole
from fathometer.measuring.measure import measure
from fathometer.measuring.options import MeasureOptions, with_changes
from fathometer.results.checkup import Finding
from fathometer.results.history import History, metrics_frame
from fathometer.results.sounding import Sounding
from fathometer.training.isolation import (
    restore_buffers,
    restore_loader_state,
    restore_random_state,
    take_probe_batch,
    without_autocast_cache,
)
from fathometer.training.record import Budget, Metrics

log = logging.getLogger(__name__)

Log: TypeAlias = "Callable[[int, Sounding], None]"
"""Called with the step and the sounding, as `TensorBoardLog` is."""


class Probe:
    """Measures a network from time to time while it is trained; `history` has all soundings.

    The first call of `step` always measures, and `finish` does once more. In between, a sounding is taken
    when a multiple of `every` has been reached *and* measuring stays within `max_overhead` of the total
    time. The rules of `fathometer.check` are applied to every sounding, and the first finding of each rule
    that is a warning or an error is logged and kept in `findings` (`gauges="check"` has what they need).
    Training continues as if there were no probe: weights, buffers, modes, gradients and random number
    generators, also those of a loader, are as before. What else a `forward` changes is not known, and an
    iterator stays advanced. With `torch.distributed` only the first process measures.

    Args:
        model: the network, also inside `DistributedDataParallel` or `torch.compile`.
        data: what to measure on: one batch (a tensor, a dict of tensors, a tuple `(inputs, labels)`), or a
            list, loader or data set to take it from. It is copied now.
        options: what decides the values, as in `measure` (`MeasureOptions`); usually given by name. Unlike
            there, the default is one batch, the affinity score alone, and `leftover="keep"`.
        every: the smallest number of steps between two soundings; `"auto"` leaves that to `max_overhead`.
        max_overhead: the largest share of time that measuring may take, the first and last sounding
            included; these are always taken, so that a very short training may exceed it. None for no limit.
        batch_size: the largest number of inputs in a forward pass.
        name: name of the network in the results.
        keep_on: the device where the batch is kept; the network's own one saves a copy each time.
        log: called with (step, sounding) after each sounding; or several such functions.
        changes: options by name: `samples`, `gauges`, `sites`, `reduction`, ….

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
        options: MeasureOptions | None = None,
        *,
        every: int | Literal["auto"] = "auto",
        max_overhead: float | None = 0.05,
        batch_size: int | None = None,
        name: str | None = None,
        keep_on: str | torch.device = "cpu",
        log: Log | Iterable[Log] = (),
        **changes: Any,
    ) -> None:
        self._every = _check_frequency(every, max_overhead)
        self._options = check_options(options, changes)
        self._model, self._batch_size, self._name = model, batch_size, name
        self._logs = (log,) if callable(log) else tuple(log)
        with restore_random_state(self.device), restore_loader_state(data):
            self._data = take_probe_batch(data, self._options, keep_on)
        self._budget = Budget(max_overhead)
        self._previous: int | None = None  # the last step that was announced
        self._soundings: dict[int, Sounding] = {}
        self._missed: list[tuple[int, str]] = []
        self._metrics = Metrics()
        self._warned: set[str] = set()
        self.findings: list[tuple[int, Finding]] = []
        """The first finding of each rule of `fathometer.check`, with its step."""
        self.within: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Returns the context in which soundings are taken."""

    @property
    def history(self) -> History:
        """All soundings so far."""
        if not self._soundings:
            raise InputError("history: nothing is measured yet; `probe.step(0)` takes the first sounding")
        return History(
            tuple(self._soundings),
            tuple(self._soundings.values()),
            metrics_frame({name: column.items() for name, column in self._metrics.fetch().items()}),
            self._budget.cost,
            tuple(self._missed),
        )

    @property
    def has_soundings(self) -> bool:
        """Whether there is a sounding yet."""
        return bool(self._soundings)

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        weights = unwrapped(self._model).parameters()
        return next((weight.device for weight in weights), torch.device("cpu"))

    def step(self, step: int, /, **metrics: float | Tensor) -> Sounding | None:
        """Announce the number of updates done, 0 before the first; return the sounding if one was taken.

        Metrics by name, such as losses, are kept in the history. Nothing waits for those on a GPU.
        """
        budget, previous = self._budget, self._previous
        began = budget.now()
        if _is_other_process():
            return None
        budget.start()
        self._previous = step = check_whole("step", step, previous or 0)
        if metrics:
            self._metrics.add(step, metrics)
        due = not self._soundings or (
            previous is not None and step // self._every != previous // self._every and budget.allows()
        )
        budget.spent(began)
        return self._take(step) if due else None

    def counted(self) -> AbstractContextManager[None]:
        """Return a context whose time counts as cost, for work such as saving the history."""
        return self._budget.counted()

    def note(self, step: int, metrics: Mapping[str, float | Tensor]) -> None:
        """Keep metrics of a step without measuring."""
        began = self._budget.now()
        self._metrics.add(check_whole("step", step), metrics)
        self._budget.spent(began)

    def finish(self) -> Sounding | None:
        """End the training: measure the last step, unless it was measured, and stop the clock."""
        if _is_other_process() or self._previous is None:
            return None
        measured = self._previous in self._soundings
        sounding = None if measured else self._take(self._previous)
        self._budget.stop()
        return sounding

    def resume(self, history: History, step: int | None = None) -> None:
        """Continue a history of the same network; what is later than `step` is dropped.

        It must have the options and inputs of this probe.
        """
        self._check_same(history)
        last = history.steps[-1] if step is None else step
        kept = dict(zip(history.steps, history.soundings, strict=True))
        self._soundings = {number: sounding for number, sounding in kept.items() if number <= last}
        self._missed = [entry for entry in history.missed if entry[0] <= last]
        rows = history.metrics.itertuples(index=False)
        self._metrics.restore((int(row[0]), str(row[1]), float(row[2])) for row in rows if row[0] <= last)
        self._previous = last if self._soundings else None
        recent = [sounding.provenance.seconds for sounding in self._soundings.values()]
        self._budget.resume(history.cost, recent)

    def _take(self, step: int) -> Sounding | None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # work that is still queued belongs to training
        with self._budget.counted(is_sounding=True):
            self._metrics.fetch()
            try:
                sounding = self._measured()
            except Exception as error:
                if not self._soundings:
                    raise
                self._miss(step, "no sounding", error)
                return None
            self._soundings[step] = sounding
            self._check(step, sounding)
            for write in self._logs:
                try:
                    write(step, sounding)
                except Exception as error:
                    self._miss(step, "not logged", error)
        return sounding

    def _check(self, step: int, sounding: Sounding) -> None:
        """Apply the rules of `fathometer.check`, and warn of each rule once."""
        for finding in sounding.check().unreported({known.rule for _, known in self.findings}):
            self.findings.append((step, finding))
            log.warning("step %d: %s Try: %s", step, finding, finding.advice)

    def _measured(self) -> Sounding:
        with (
            self.within(),
            restore_random_state(self.device),
            without_autocast_cache(self.device),
            restore_buffers(self._model),
        ):
            sounding = measure(
                self._model, self._data, self._options, batch_size=self._batch_size, name=self._name
            )
        first = next(iter(self._soundings.values()), sounding)
        if sounding.sites != first.sites:
            raise InputError("the sites of the network are not those of its first sounding")
        if sounding.gauges != first.gauges:
            raise InputError(
                f"the gauges return {', '.join(sounding.gauges)}, and at first {', '.join(first.gauges)}"
            )
        return sounding

    def _check_same(self, history: History) -> None:
        before = history.soundings[-1].provenance
        inputs = {name: self._data.description[name] for name in ("probe_inputs", "probe_sha256")}
        for earlier, now in ((before.settings, self._options.describe()), (before.data, inputs)):
            for name, value in now.items():
                if name in earlier and (was := _plain(earlier[name])) != _plain(value):
                    raise InputError(
                        f"resume: {name} was {was} in the history and is {_plain(value)} now; "
                        "a history has one network, the same options and the same inputs"
                    )

    def _miss(self, step: int, what: str, error: Exception) -> None:
        """Record a failure: it must not stop the training."""
        reason = str(error) if isinstance(error, FathometerError) else f"{type(error).__name__}: {error}"
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(
                f"{what} at step {step}: {reason} (this and later failures are in history.missed)",
                stacklevel=4,
            )
        self._missed.append((step, reason if what == "no sounding" else f"{what}: {reason}"))


def _plain(value: Any) -> str:
    """Return a value as a file has it."""
    return json.dumps(value, sort_keys=True, default=str)


def _is_other_process() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_rank() != 0


def check_options(options: MeasureOptions | None, changes: Mapping[str, Any]) -> MeasureOptions:
    """Return the options of a probe: one batch, the affinity score alone, and what is left over is kept."""
    usual = {"batches": 1, "gauges": "affinity", "leftover": "keep"} if options is None else {}
    return with_changes(options, {**usual, **changes}, caller="Probe")


def _check_frequency(every: Any, max_overhead: Any) -> int:
    if max_overhead is None and every == "auto":
        raise InputError("every='auto' needs max_overhead: give a number of steps, or a share of the time")
    if max_overhead is not None and not (isinstance(max_overhead, int | float) and 0 < max_overhead < 1):
        raise InputError(
            f"expected a share between 0 and 1 (0.05 for 5 %), got {max_overhead!r}", parameter="max_overhead"
        )
    return 1 if every == "auto" else check_whole("every", every, 1)
