"""What the callbacks share: a probe that is made once the network exists, and continues after a restart."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

from fathometer.errors import FathometerError, InputError
from fathometer.results.history import History
from fathometer.training.probe import Log, Probe, check_options


class ProbeCallback:
    """Makes the probe, and keeps its history over restarts; the base of both callbacks."""

    def _prepare(self, data: Any, network: str, options: Mapping[str, Any]) -> None:
        """Check the options now, before training begins."""
        bound = inspect.signature(Probe).bind(None, data, **options)
        check_options(bound.arguments.get("options"), bound.arguments.get("changes", {}))
        log = options.get("log", ())
        self._logs: tuple[Log, ...] = (log,) if callable(log) else tuple(log)
        self._data, self._network, self._options = data, network, dict(options)
        self._earlier: History | None = None  # from before a restart
        self._probe: Probe | None = None

    @property
    def probe(self) -> Probe | None:
        """The probe; None before training."""
        return self._probe

    @property
    def history(self) -> History:
        """All soundings so far; only the first process has them."""
        if self._probe is not None:
            return self._probe.history
        if self._earlier is None:
            raise InputError("history: nothing is measured yet; training takes the first sounding")
        return self._earlier

    def _restore(self, read: Callable[[], History | None]) -> None:
        """Continue the history of a checkpoint; one that cannot be read does not stop the training."""
        self._earlier = None
        try:
            self._earlier = read()
        except FathometerError as error:
            warnings.warn(f"the history starts again: {error}", stacklevel=3)

    def _begin(
        self,
        trained: nn.Module,
        step: int,
        logs: Iterable[Log],
        within: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Make the probe, continue an earlier history, and take the first sounding.

        Soundings are taken in the context that `within` returns.
        """
        if self._earlier is None and step and self._probe is not None and self._probe.has_soundings:
            self._earlier = self._probe.history
        try:
            network = trained.get_submodule(self._network)
        except AttributeError as error:
            raise InputError(
                f"expected the path of a module of what is trained, got {self._network!r}",
                parameter="network",
            ) from error
        self._probe = Probe(network, self._data, **{**self._options, "log": (*logs, *self._logs)})
        self._probe.within = within
        if self._earlier is not None:
            try:
                self._probe.resume(self._earlier, step)
            except InputError as error:
                warnings.warn(f"the history starts again: {error}", stacklevel=3)
            self._earlier = None
        self._probe.step(step)
