"""A history of networks made of numbers, in which everything is as the paper says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fathometer import Site, Sounding
from papers.affinity.census import Census
from tests.compare.soundings import sounding

Scores = Mapping[str, Any]

YEARS = {
    "AlexNet": 2012,
    "VGG": 2014,
    "Inception": 2015,
    "ResNet": 2015,
    "DenseNet": 2016,
    "MNASNet": 2018,
    "EfficientNet": 2019,
    "ViT": 2020,
    "Swin": 2021,
    "ConvNeXt": 2022,
    "SqueezeNet": 2016,  # none of the paper's
}
MEMBERS = {
    "AlexNet": ["alexnet"],
    "VGG": ["vgg11", "vgg13", "vgg16", "vgg19"],
    "Inception": ["googlenet", "inception_v3"],
    "ResNet": ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152"],
    "DenseNet": ["densenet121", "densenet161", "densenet169", "densenet201"],
    "MNASNet": ["mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"],
    "EfficientNet": ["efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4"],
    "ViT": ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"],
    "Swin": ["swin_t", "swin_s", "swin_b"],
    "ConvNeXt": ["convnext_tiny", "convnext_small", "convnext_base"],
    "SqueezeNet": ["squeezenet1_0", "squeezenet1_1"],
}
FAMILY = {name: family for family, members in MEMBERS.items() for name in members}
_DEPTH = 20
_RISE = np.linspace(0, 1, _DEPTH)


def history() -> dict[str, Any]:
    """Scores by network: narrow at first, ever wider and more linear, ViTs low, Swins as at first."""
    found: dict[str, Any] = {}
    for family, members in MEMBERS.items():
        for number, name in enumerate(members):
            found[name] = _scores(family) + 0.001 * number
    found["googlenet"] = 0.6 + 0.3 * _RISE
    found["inception_v3"] = 0.595 + 0.325 * _RISE
    for name in ("vit_b_32", "vit_l_32"):
        found[name] = np.append(0.3 + 0.002 * np.cos(9 * _RISE), 0.45)
    return found


def _scores(family: str) -> Any:
    if family in ("AlexNet", "VGG"):
        return 0.72 + 0.02 * _RISE - 0.005 * (family == "VGG")
    if family in ("Swin", "ConvNeXt"):
        return 0.65 + 0.05 * _RISE
    if family == "ViT":
        return 0.3 + 0.1 * _RISE**3  # skewed to the right
    if family == "ResNet":
        return np.where(np.arange(_DEPTH) % 2, 0.96, 0.6) + 0.03 * _RISE
    if family == "DenseNet":
        return 0.85 - 0.4 * (1 - _RISE) ** 3
    width = 0.35 + 0.05 * (YEARS[family] - 2015)
    return 1 - 0.003 * (2022 - YEARS[family]) - width * (1 - _RISE) ** 3  # skewed to the left


def census(scores: Scores) -> Census:
    """With families and years, and blocks and transitions as in torchvision."""
    soundings = {name: _at_sites(sounding(name, of), FAMILY[name]) for name, of in scores.items()}
    facts = pd.DataFrame(
        {
            "family": [FAMILY[name] for name in scores],
            "year": [2014 if name == "googlenet" else YEARS[FAMILY[name]] for name in scores],
            "depth": [float(len(of)) + place % 5 for place, of in enumerate(scores.values())],
            "parameters": [1e6 * (1 + 7 * place % 11) for place in range(len(scores))],
            "gflops": [1.0 + 5 * place % 7 for place in range(len(scores))],
            "accuracy": [70.0 + 3 * place % 5 for place in range(len(scores))],
        },
        index=pd.Index(list(scores), name="network"),
    )
    return Census(soundings, {name: np.asarray(of, float) for name, of in scores.items()}, facts)


def relus(names: Sequence[str]) -> list[Site]:
    """Sites of these modules, in this order."""
    return [Site(name, "relu", 1, place, True) for place, name in enumerate(names)]


def _at_sites(of: Sounding, family: str) -> Sounding:
    """The same numbers at the modules of a family: every other site of a ResNet is after a sum."""
    names = [
        f"layer1.{place // 2}.relu{place % 2}"
        if family == "ResNet"
        else f"{'transition' if place > 15 else 'dense'}{place}"
        for place in range(len(of.sites))
    ]
    sites = relus(names)
    renamed = dict(zip([site.name for site in of.sites], [site.name for site in sites], strict=True))
    return replace(of, sites=tuple(sites), records=of.records.assign(site=of.records["site"].map(renamed)))
