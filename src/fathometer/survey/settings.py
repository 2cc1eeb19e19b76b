"""How a survey measures: what decides the values, and what decides only where and how fast."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

import torch

from fathometer.capture import Pooling
from fathometer.errors import InputError
from fathometer.gauges.registry import Gauge, choose_gauges
from fathometer.measuring.subject import DTYPES
from fathometer.models.user_code import import_by_name
from fathometer.survey.section import Section, suggestion


@dataclass(frozen=True)
class Settings:
    """What decides the values; each is an option of `fathometer measure`."""

    samples: int = 512
    batches: int | None = None
    gauges: tuple[str, ...] = tuple(choose_gauges())
    sites: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()
    reduction: Pooling = "mean"
    pool_first: bool = False
    channel_axis: int | None = None
    leftover: str = "drop"
    length: int | None = None
    dtype: str | None = None
    shuffle: bool = True
    strict: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class RunOptions:
    """What decides where and how fast, and values only in their last digits.

    Attributes:
        batch_size: inputs in a forward pass.
        workers: processes that read data ahead; each counts as a CPU on Ray.
        device: as torch names it, or `auto`.
        threads: of torch; as torch chooses if left out, and 1 on Ray.
        gpus: on Ray, for each task; a part of one lets several tasks share it. If left out, one where the
            device is `cuda`, or `auto` on a cluster that has any, and else none.
        memory: on Ray, GB for each task.
        range: on Ray, how many batches make a task; a whole sounding if left out.
        retries: on Ray, how often a task is repeated when its worker dies or is killed for its memory.
    """

    batch_size: int = 32
    workers: int = 0
    device: str = "auto"
    threads: int | None = None
    gpus: float | None = None
    memory: float | None = None
    range: int | None = None
    retries: int = 3


def read_settings(section: Section) -> Settings:
    """The settings of a table."""
    section.only(field.name for field in fields(Settings))
    usual = Settings()
    axis = section.values.get("channel_axis")
    if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
        raise section.error(f"channel_axis: expected a whole number, got {axis!r}", "channel_axis")
    return Settings(
        samples=section.whole("samples", usual.samples, 2),
        batches=section.whole("batches", None, 1),
        gauges=_gauges(section),
        sites=section.words("sites"),
        activations=_importable(section, "activations"),
        reduction=section.word("reduction", usual.reduction, get_args(Pooling)),
        pool_first=section.flag("pool_first", usual.pool_first),
        channel_axis=axis,
        leftover=section.word("leftover", usual.leftover, ("drop", "keep")),
        length=section.whole("length", None, 2),
        dtype=section.word("dtype", None, tuple(DTYPES)),
        shuffle=section.flag("shuffle", usual.shuffle),
        strict=section.flag("strict", usual.strict),
    )


def read_run_options(section: Section, usual: RunOptions) -> RunOptions:
    """The options of a table; those that it leaves out are the usual ones."""
    return RunOptions(
        batch_size=section.whole("batch_size", usual.batch_size, 1),
        workers=section.whole("workers", usual.workers, 0),
        device=_device(section, usual.device),
        threads=section.whole("threads", usual.threads, 1),
        gpus=_gpus(section, usual.gpus),
        memory=section.number("memory", usual.memory),
        range=section.whole("range", usual.range, 1),
        retries=section.whole("retries", usual.retries, 0),
    )


def _device(section: Section, usual: str) -> str:
    name: str = section.word("device", usual)
    if name == "auto":
        return name
    try:
        torch.device(name)
    except RuntimeError as error:
        hint = suggestion(name, ("auto", "cpu", "cuda", "cuda:0", "mps", "xpu"))
        raise section.error(
            f"device: expected auto or a device of torch, got {name!r}; {hint}", "device"
        ) from error
    return name


def _gpus(section: Section, usual: float | None) -> float | None:
    gpus: float | None = section.number("gpus", usual)
    if gpus is not None and gpus > 1 and gpus != int(gpus):
        raise section.error(f"gpus: expected a whole number, or a part of one GPU, got {gpus!r}", "gpus")
    return gpus


def gauges_of(names: tuple[str, ...]) -> list[str | Gauge]:
    """The gauges by name, and functions of the user's own as `package.module:function`."""
    return [import_by_name(name, "gauges") if ":" in name else name for name in names]


def _gauges(section: Section) -> tuple[str, ...]:
    entries = section.words("gauges", ("standard",))
    names = tuple(name.strip() for entry in entries for name in entry.split(","))
    if names in (("standard",), ("all",)):
        return tuple(choose_gauges(names[0]))
    for name in names:
        try:
            choose_gauges(gauges_of((name,)))
        except InputError as error:
            value = next(entry for entry in entries if name in entry)
            raise section.error(str(error), "gauges", value) from error
    return names


def _importable(section: Section, key: str) -> tuple[str, ...]:
    names = section.words(key)
    for name in names:
        try:
            import_by_name(name, key)
        except InputError as error:
            raise section.error(str(error), key, name) from error
    return names
