"""Defines any number of tiny networks by name: `benchmarks.survey_nets:tiny7`."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from fathometer.data import Inputs


def __getattr__(name: str) -> Callable[[], tuple[nn.Module, Inputs]]:
    if not name.startswith("tiny") or not name[4:].isdigit():
        raise AttributeError(name)
    width = 8 + int(name[4:]) % 8

    def build() -> tuple[nn.Module, Inputs]:
        return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 8), nn.Tanh()), Inputs(
            "tensor", (8,)
        )

    return build
