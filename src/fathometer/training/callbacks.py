"""What the callbacks share: a probe that is made once the network exists, and continues after a restart."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from torch import nn

from fathometer.errors import InputError
from fathometer.results.history import History
from fathometer.training.probe import Log, Probe, check_options


class CallbackProbe:
    """Makes the probe, and keeps its history over restarts.

    Args:
        data: what to measure on (`Probe`).
        network: path of the module to measure inside the one that is trained; empty for all of it.
        options: of the probe.
    """

    def __init__(self, data: Any, network: str, options: Mapping[str, Any]) -> None:
        bound = inspect.signature(Probe).bind(None, data, **options)  # wrong names fail now, not in training
        check_options(bound.arguments.get("options"), bound.arguments.get("changes", {}))
        log = options.get("log", ())
        self._logs: tuple[Log, ...] = (log,) if callable(log) else tuple(log)
        self._data, self._network, self._options = data, network, dict(options)
        self.earlier: History | None = None  # from before a restart
        self.probe: Probe | None = None

    @property
    def history(self) -> History:
        """All soundings so far."""
        if self.probe is not None:
            return self.probe.history
        if self.earlier is None:
            raise InputError("history: nothing is measured yet; training takes the first sounding")
        return self.earlier

    def restore(self, read: Callable[[], History | None]) -> None:
        """Continue the history of a checkpoint; one that cannot be read does not stop the training."""
        self.earlier = None
        try:
            self.earlier = read()
        except InputError as error:
            warnings.warn(f"the history starts again: {error}", stacklevel=3)

    def begin(
        self,
        trained: nn.Module,
        step: int,
        logs: Iterable[Log],
        within: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> Probe:
        """Return a probe for this training, which continues an earlier history.

        Soundings are taken in the context that `within` returns.
        """
        if self.earlier is None and step and self.probe is not None and self.probe.has_soundings:
            self.earlier = self.probe.history
        try:
            network = trained.get_submodule(self._network)
        except AttributeError as error:
            raise InputError(
                f"expected the path of a module of what is trained, got {self._network!r}",
                parameter="network",
            ) from error
        options = {**self._options, "log": (*logs, *self._logs)}
        self.probe = Probe(network, self._data, **options)
        if within is not None:
            self.probe.within = within
        if self.earlier is not None:
            try:
                self.probe.resume(self.earlier, step)
            except InputError as error:
                warnings.warn(f"the history starts again: {error}", stacklevel=3)
            self.earlier = None
        return self.probe
