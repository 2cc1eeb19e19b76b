"""Numbers that come beside the soundings; those on a GPU are fetched later, many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from fathometer.errors import InputError

_MANY = 1024  # numbers on a GPU that are put together, so as not to hold a block of memory for each


class _Awaited:
    """Stands for a number that is still on a GPU."""


class Metrics:
    """By name and step, the last that was said of each."""

    def __init__(self) -> None:
        self._columns: dict[str, dict[int, float | _Awaited]] = {}
        self._loose: list[tuple[str, int, _Awaited, Tensor]] = []
        self._bundles: list[tuple[list[tuple[str, int, _Awaited]], Tensor]] = []

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep these; nothing waits for a GPU."""
        for name, value in values.items():
            number = _number(name, value)
            if isinstance(number, Tensor):
                awaited = _Awaited()
                self._loose.append((name, step, awaited, number))
                self._columns.setdefault(name, {})[step] = awaited
                if len(self._loose) >= _MANY:
                    self._bundle()
            else:
                self._columns.setdefault(name, {})[step] = number

    def keep(self, rows: Iterable[tuple[int, str, float]]) -> None:
        """Begin with those of an earlier process."""
        self._columns, self._loose, self._bundles = {}, [], []
        for step, name, value in rows:
            self._columns.setdefault(name, {})[step] = value

    def fetched(self) -> dict[str, dict[int, float]]:
        """All of them, those on a GPU too."""
        self._bundle()
        for places, numbers in self._bundles:
            for (name, step, awaited), number in zip(places, numbers.tolist(), strict=True):
                if self._columns[name][step] is awaited:
                    self._columns[name][step] = float(number)
        self._bundles = []
        return self._columns  # type: ignore[return-value]

    def _bundle(self) -> None:
        alike: dict[tuple[torch.device, torch.dtype], list[tuple[str, int, _Awaited, Tensor]]] = {}
        for entry in self._loose:
            alike.setdefault((entry[3].device, entry[3].dtype), []).append(entry)
        self._loose = []
        for entries in alike.values():
            places = [(name, step, awaited) for name, step, awaited, _ in entries]
            self._bundles.append((places, torch.stack([number for *_, number in entries])))


def _number(name: Any, value: Any) -> float | Tensor:
    if not isinstance(name, str):
        raise InputError(f"metrics: expected text as a name, got {name!r}")
    try:
        if isinstance(value, Tensor):
            if not value.is_cpu and value.numel() == 1:
                return value.detach().reshape(()).clone()  # to be fetched when it is needed
            return float(value.item())
        if isinstance(value, str):
            raise TypeError("text")
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name}: expected a number or a tensor of one element, got {type(value).__name__}"
        ) from error
