"""How a survey measures: settings decide the values, run options only where and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar

import msgspec
import torch

from fathometer.errors import InputError, did_you_mean
from fathometer.gauges.registry import choose_gauges
from fathometer.measuring.options import LoadOptions, MeasureOptions, options_of, plain_options, with_preset

_T = TypeVar("_T")

Count = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=2**63 - 1)]  # no infinity either

_LOADING = options_of(LoadOptions)
_OPTIONS = {name: option for name, option in plain_options().items() if name != "seed"} | _LOADING
_LATER = (("map", None), ("residual", "without"), ("call", None))  # not in the first version


@dataclass(frozen=True, init=False)
class Settings:
    """What decides the values: the options of `fathometer measure`, as text and numbers, by name.

    A `preset` stands for those of its options that are not given.

    Example:
        >>> settings = Settings(samples=64, gauges="affinity, cka")
        >>> settings.samples, settings.gauges, settings.leftover
        (64, ('affinity', 'cka'), 'drop')
    """

    entries: tuple[tuple[str, Any], ...]

    def __init__(self, **given: Any) -> None:
        given = with_preset(given)
        _refuse_unknown(given, list(_OPTIONS))
        found = {name: option.check(given.get(name, option.default)) for name, option in _OPTIONS.items()}
        found["gauges"] = tuple(dict.fromkeys(_gauges(found["gauges"])))
        object.__setattr__(self, "entries", tuple(found.items()))
        self.options(seed=0)  # refuses unknown gauges and code that cannot be imported

    def __getattr__(self, name: str) -> Any:
        if name not in _OPTIONS:
            raise AttributeError(name)
        return dict(self.entries)[name]

    def changed(self, **values: Any) -> Settings:
        """Return the settings with some of them changed."""
        return Settings(**{**self.as_dict(), **values})

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, which are part of a sounding's address.

        Without a map, a residual sum and a call, they are those of versions that had none, so that their
        soundings are found again.
        """
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self.entries}
        return {name: value for name, value in plain.items() if (name, value) not in _LATER}

    def options(self, seed: int) -> MeasureOptions:
        """Return the options of `measure`; the user's functions are imported."""
        values = {name: value for name, value in self.entries if name not in _LOADING and value is not None}
        return MeasureOptions.from_plain({**values, "seed": seed})

    def is_one_batch(self, count: int) -> bool:
        """Say whether a sounding of so many inputs is a single batch."""
        filled = self.reduction != "tokens" and self.leftover == "drop" and count < 2 * self.samples
        return self.batches == 1 or filled

    @property
    def loading(self) -> LoadOptions:
        """Return how the network and the data are opened."""
        return LoadOptions(**{name: value for name, value in self.entries if name in _LOADING})


def _gauges(names: tuple[str, ...]) -> list[str]:
    """Return single names: `standard` and `all` are replaced by what they stand for today.

    `language` stays, since it also says at which sites its gauges are read.
    """
    found: list[str] = []
    for name in (part.strip() for entry in names for part in entry.split(",")):
        found += choose_gauges(name) if name in ("standard", "all") else [name]
    return found


@dataclass(frozen=True)
class RunOptions:
    """What decides where and how fast, and the values only in their last digits.

    Attributes:
        batch_size: number of inputs in a forward pass.
        workers: number of processes that read data ahead; each counts as a CPU on Ray.
        device: a device of torch, or `auto`.
        threads: number of torch's threads. Default: torch's own choice, and 1 on Ray.
        gpus: on Ray, number of GPUs of a task; with 0.5 two tasks share one. Default: 1 if the device is
            `cuda`, or `auto` on a cluster that has GPUs or can add them, and otherwise 0.
        memory: on Ray, memory of a task in GB.
        retries: on Ray, how often a task is repeated if its worker dies.
    """

    batch_size: Count = 32
    workers: Whole = 0
    device: str = "auto"
    threads: Count | None = None
    gpus: Amount | None = None
    memory: Amount | None = None
    retries: Whole = 3

    def __post_init__(self) -> None:
        if self.gpus is not None and self.gpus > 1 and self.gpus != int(self.gpus):
            raise InputError(
                f"expected a whole number or a fraction of one GPU, got {self.gpus}", parameter="gpus"
            )
        try:
            torch.device("cpu" if self.device == "auto" else self.device)
        except RuntimeError as error:
            hint = did_you_mean(self.device, ("auto", "cpu", "cuda", "cuda:0", "mps", "xpu"))
            raise InputError(
                f"expected auto or a device of torch, got {self.device!r}{hint and f'; {hint}'}",
                parameter="device",
            ) from error


def converted(values: Mapping[str, Any], kind: type[_T], where: str = "", also: Sequence[str] = ()) -> _T:
    """Return a table as an object of a class; unknown keys and wrong types are refused after `where`.

    `also` has keys of the same table that belong to another class, for the message.
    """
    own = list(getattr(kind, "__struct_fields__", ())) or [each.name for each in fields(kind)]  # type: ignore[arg-type]
    _refuse_unknown(values, [*own, *also], where)
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:  # "Expected `int` >= 2 - at `$.samples`"
        message, _, path = str(error).partition(" - at `$.")
        raise InputError(f"{where}{path and path.rstrip('`') + ': '}{message}") from error


def _refuse_unknown(keys: Iterable[str], known: Sequence[str], where: str = "") -> None:
    for key in keys:
        if key not in known:
            hint = did_you_mean(key, known) or f"expected {', '.join(known)}"
            raise InputError(f"{where}unknown key {key!r}; {hint}")
