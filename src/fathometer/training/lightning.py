"""Soundings during training with Lightning."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from fathometer.errors import MissingExtraError
from fathometer.models.sources import ensure_torchvision_operators
from fathometer.results.history import from_json, to_json
from fathometer.results.sounding import Sounding
from fathometer.training.callbacks import ProbeCallback
from fathometer.training.logs import scalars
from fathometer.training.record import only_numbers

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    ensure_torchvision_operators()  # which torchmetrics imports
    _NAMES = ["lightning.pytorch", "pytorch_lightning"]  # one library under two names
    _NAMES.sort(key=lambda name: name not in sys.modules)  # the one that is in use first
    for _name in _NAMES:
        try:
            Callback = importlib.import_module(_name).Callback
        except ModuleNotFoundError:
            continue
        break
    else:
        raise MissingExtraError("lightning", "lightning", "fathometer.training.lightning")


class FathometerCallback(ProbeCallback, Callback):
    """Measures the network at the start, from time to time, and at the end; logs to Lightning's loggers.

    Every logger gets `fathometer/<gauge>/<site>` for every site and `fathometer/<gauge>_min`, `_median` and
    `_max`. A checkpoint holds the history, and a training that is resumed from it continues it. The history
    also has the loss of every step and the metrics after each validation.

    Args:
        data: what to measure on, as for `Probe`: one batch, or a loader to take it from.
        network: path of the module to measure, `"net"` for `self.net`; empty for the LightningModule, which
            must have a `forward` then.
        prefix: start of all names in the logs; give another to a second callback.
        options: those of `Probe`: every, max_overhead, samples, gauges, sites, ….

    Example:
        `Trainer(callbacks=[FathometerCallback(images, network="net", max_overhead=0.02)])`
    """

    def __init__(self, data: Any, *, network: str = "", prefix: str = "fathometer", **options: Any) -> None:
        super().__init__()
        self._prepare(data, network, options)
        self._prefix = prefix
        self._step, self._losses = 0, list[Any]()  # losses of the micro-batches since the last update

    @property
    def state_key(self) -> str:
        """The name of the callback in a checkpoint."""
        return f"FathometerCallback[{self._prefix}]"

    def state_dict(self) -> dict[str, Any]:
        """Return the history as text, for a checkpoint."""
        probe = self._probe
        if probe is None or not probe.has_soundings:
            return {"history": None if self._earlier is None else to_json(self._earlier)}
        with probe.counted():
            return {"history": to_json(probe.history)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the history of a checkpoint."""
        text = state_dict.get("history")
        self._restore(lambda: None if text is None else from_json(text, "history in the checkpoint"))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Make the probe, and take the first sounding."""

        def log(step: int, sounding: Sounding) -> None:
            found = scalars(sounding, self._prefix)
            for logger in trainer.loggers:
                logger.log_metrics(found, step)

        within = trainer.precision_plugin.forward_context  # measure in the precision of the training
        self._step, self._losses = trainer.global_step, []
        self._begin(pl_module, self._step, [log], within)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Take a sounding if there was an update and one is due."""
        del batch, batch_idx
        probe = self._probe
        if probe is None:
            return
        found = outputs.get("loss") if isinstance(outputs, dict) else outputs
        self._losses += only_numbers({"loss": found}).values()
        if trainer.global_step == self._step:
            return  # gradients are still being accumulated
        self._step, losses, self._losses = trainer.global_step, self._losses, []
        if not losses:
            probe.step(self._step)
            return
        loss = losses[0] if len(losses) == 1 else sum(losses) / len(losses)
        if pl_module.automatic_optimization and trainer.accumulate_grad_batches > 1:
            loss = loss * trainer.accumulate_grad_batches  # Lightning has divided it by that
        probe.step(self._step, loss=loss)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the metrics of the validation."""
        del pl_module
        if self._probe is not None and not trainer.sanity_checking:
            self._probe.note(trainer.global_step, only_numbers(trainer.callback_metrics))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the last sounding."""
        del trainer, pl_module
        if self._probe is not None:
            self._probe.finish()
