"""Soundings while Lightning trains."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from fathometer.errors import MissingExtraError
from fathometer.models.torchvision_operators import ensure_torchvision_operators
from fathometer.results.history import History
from fathometer.results.history_file import from_json, to_json
from fathometer.results.sounding import Sounding
from fathometer.training.follower import Follower, numbers
from fathometer.training.probe import Probe
from fathometer.training.scalars import scalars

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    ensure_torchvision_operators()  # which torchmetrics imports
    _HOMES = ["lightning.pytorch", "pytorch_lightning"]  # one library under two names
    _HOMES.sort(key=lambda home: home not in sys.modules)  # whichever is in use
    for _home in _HOMES:
        try:
            Callback = importlib.import_module(_home).Callback
        except ModuleNotFoundError:
            continue
        break
    else:
        raise MissingExtraError("lightning", "lightning", "fathometer.training.lightning")


class FathometerCallback(Callback):
    """Measures the network at the beginning, every now and then, and at the end; logs to Lightning's loggers.

    Every logger gets `fathometer/<gauge>/<site>` for every site and `fathometer/<gauge>_min`, `_median` and
    `_max`. A checkpoint holds the history, and a training that is resumed from it goes on with it. The loss
    of every step and the metrics after each validation are in the history, too.

    Args:
        data: what to measure on, as for `Probe`: one batch, or a loader to take it from.
        network: path of the module to measure, `"net"` for `self.net`; empty for the LightningModule, which
            must have a `forward` then.
        prefix: of all names in the logs; give another to a second callback.
        options: of `Probe`: every, max_overhead, samples, gauges, sites, ….

    Example:
        `Trainer(callbacks=[FathometerCallback(images, network="net", max_overhead=0.02)])`
    """

    def __init__(self, data: Any, *, network: str = "", prefix: str = "fathometer", **options: Any) -> None:
        super().__init__()
        self._follower, self._prefix = Follower(data, network, options), prefix
        self._step, self._losses = 0, list[Any]()  # of the micro-batches since the last update

    @property
    def history(self) -> History:
        """All soundings so far; of the first process only."""
        return self._follower.history

    @property
    def probe(self) -> Probe | None:
        """What measures; None before training."""
        return self._follower.probe

    @property
    def state_key(self) -> str:
        """Its name in a checkpoint."""
        return f"FathometerCallback[{self._prefix}]"

    def state_dict(self) -> dict[str, Any]:
        """The history, as text."""
        probe, earlier = self._follower.probe, self._follower.earlier
        if probe is None or not probe.has_soundings:
            return {"history": None if earlier is None else to_json(earlier)}
        with probe.counted():
            return {"history": to_json(probe.history)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the history of a checkpoint."""
        text = state_dict.get("history")
        self._follower.remember(
            lambda: None if text is None else from_json(text, "history in the checkpoint")
        )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Make the probe, and take the first sounding."""

        def log(step: int, sounding: Sounding) -> None:
            found = scalars(sounding, self._prefix)
            for logger in trainer.loggers:
                logger.log_metrics(found, step)

        within = trainer.precision_plugin.forward_context  # in the precision that it is trained in
        self._step, self._losses = trainer.global_step, []
        self._follower.begin(pl_module, self._step, [log], within).step(self._step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Take a sounding if there was an update and it is time for one."""
        del batch, batch_idx
        probe = self._follower.probe
        if probe is None:
            return
        found = outputs.get("loss") if isinstance(outputs, dict) else outputs
        self._losses += numbers({"loss": found}).values()
        if trainer.global_step == self._step:
            return  # gradients are still gathered
        self._step, losses, self._losses = trainer.global_step, self._losses, []
        if not losses:
            probe.step(self._step)
            return
        loss = losses[0] if len(losses) == 1 else sum(losses) / len(losses)
        if pl_module.automatic_optimization and trainer.accumulate_grad_batches > 1:
            loss = loss * trainer.accumulate_grad_batches  # by which Lightning has divided it
        probe.step(self._step, loss=loss)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep what was found."""
        del pl_module
        if self._follower.probe is not None and not trainer.sanity_checking:
            self._follower.probe.note(trainer.global_step, numbers(trainer.callback_metrics))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the last sounding."""
        del trainer, pl_module
        if self._follower.probe is not None:
            self._follower.probe.finish()
