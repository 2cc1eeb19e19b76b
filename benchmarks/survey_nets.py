"""Defines small convolutional networks by name and depth: `benchmarks.survey_nets:cnn4`."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from fathometer.data import Inputs


def __getattr__(name: str) -> Callable[[], tuple[nn.Module, Inputs]]:
    if not name.startswith("cnn") or not name[3:].isdigit():
        raise AttributeError(name)

    def build() -> tuple[nn.Module, Inputs]:
        layers: list[nn.Module] = []
        for index in range(int(name[3:])):
            layers += [nn.Conv2d(16 if index else 3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
        return nn.Sequential(*layers, nn.AvgPool2d(32), nn.Flatten(), nn.Linear(16, 10)), Inputs(
            "image", (3, 32, 32)
        )

    return build
