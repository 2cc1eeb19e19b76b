"""Soundings during training with the Trainer of transformers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathometer.errors import FathometerError, MissingExtraError
from fathometer.models.sources import ensure_torchvision_operators
from fathometer.results.loading import load_history
from fathometer.results.sounding import Sounding
from fathometer.training.callbacks import ProbeCallback
from fathometer.training.logs import TensorBoardLog, summary_scalars
from fathometer.training.probe import Log
from fathometer.training.record import only_numbers

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
else:
    ensure_torchvision_operators()  # which transformers imports
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise MissingExtraError("transformers", "language", "fathometer.training.transformers") from error

HISTORY_FILE = "fathometer-history.json"
"""The history in each checkpoint folder."""


class FathometerCallback(ProbeCallback, TrainerCallback):
    """Measures the network at the start, from time to time, and at the end.

    Soundings go to TensorBoard if the Trainer reports to it (`report_to="tensorboard"`), into a folder
    `fathometer` beside its own, or to `log_dir`; their min, median and max to `state.log_history`. A
    checkpoint holds the history, and a training that is resumed from it continues it. The history also has
    what the Trainer logs, such as losses.

    Args:
        data: what to measure on, as for `Probe`: a dict of tensors (`input_ids`, `attention_mask`), or a
            loader or list of these.
        network: path of the module to measure, such as `"transformer"`; empty for the whole model.
        log_dir: where to write for TensorBoard; as above if left out.
        options: those of `Probe`: every, max_overhead, samples, gauges, sites, reduction, ….

    Example:
        `Trainer(..., callbacks=[FathometerCallback(tokenizer(texts, return_tensors="pt", padding=True))])`
    """

    def __init__(
        self, data: Any, *, network: str = "", log_dir: str | Path | None = None, **options: Any
    ) -> None:
        self._prepare(data, network, options)
        self._log_dir = log_dir
        self._tensorboard: TensorBoardLog | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Make the probe, and take the first sounding."""
        del control

        def log(step: int, sounding: Sounding) -> None:
            found = {"epoch": state.epoch, "step": step, **summary_scalars(sounding)}
            ended = bool(state.log_history) and "train_runtime" in state.log_history[-1]
            state.log_history.insert(
                len(state.log_history) - ended, found
            )  # the Trainer's summary stays last

        logs: list[Log] = [log]
        folder = self._folder(args)
        if folder is not None and state.is_world_process_zero:
            self._tensorboard = TensorBoardLog(folder)
            logs.append(self._tensorboard)
        kept = _checkpoint(args, state) / HISTORY_FILE
        if state.global_step and kept.exists():
            self._restore(lambda: load_history(kept))
        self._begin(others["model"], state.global_step, logs)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Take a sounding if one is due."""
        del args, control, others
        if self._probe is not None:
            self._probe.step(state.global_step)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Keep what the Trainer logs."""
        del args, control
        if self._probe is not None:
            self._probe.note(state.global_step, only_numbers(others.get("logs") or {}))

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Save the history in the checkpoint."""
        del control, others
        folder, probe = _checkpoint(args, state), self._probe
        if probe is not None and probe.has_soundings and folder.is_dir():
            with probe.counted():
                try:
                    probe.history.save(folder / HISTORY_FILE)
                except (FathometerError, OSError) as error:
                    warnings.warn(f"the checkpoint has no history: {error}", stacklevel=2)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Take the last sounding."""
        del args, state, control, others
        if self._probe is not None:
            self._probe.finish()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def _folder(self, args: TrainingArguments) -> Path | None:
        if self._log_dir is not None:
            return Path(self._log_dir)
        if "tensorboard" not in (args.report_to or ()):
            return None
        given = os.environ.get("TENSORBOARD_LOGGING_DIR") or getattr(args, "logging_dir", None)
        return Path(given or Path(str(args.output_dir)) / "runs") / "fathometer"


def _checkpoint(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
