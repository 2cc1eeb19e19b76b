"""Networks of torchvision, timm and transformers.

Every image classifier of torchvision, a small member of each family of timm, and small configurations of
transformers, with random weights, run with and without a watch, and once more with an exception in the
middle. It is a failure if an output (or a gradient, in transformers) differs in one bit; if there are not
as many sites as activation calls, which are counted below torch's dispatcher without any code of
fathometer; if a hook, function, attribute or mode is left behind; or if a network does not run. In
bfloat16, to save memory: the largest two of torchvision. Left out: timm's deepseek_vit (412 million weights
on large images).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from benchmarks.records import Row
from fathometer.models.sources import import_optional
from tests.robustness.watched import Made, try_network
from tests.zoo import families, tiny

SIDE = 64  # pixels of an image, where the network takes it


def _check(named: dict[str, Callable[[], Made]], row: Row, gradients: frozenset[str] = frozenset()) -> None:
    faults, sites = [], 0
    for name, build in named.items():
        torch.manual_seed(0)
        try:
            made = build()
            mode = torch.enable_grad if name in gradients else torch.no_grad
            trial = try_network(lambda made=made: made, mode, gradients=name in gradients)  # type: ignore[misc]
        except Exception as error:  # each library has its own
            faults.append(f"{name}: does not run ({error!r:.200})")
            continue
        sites += len(trial.sites)
        faults += [f"{name}: {fault}" for fault in trial.faults]
        if len(trial.sites) != len(trial.counted):
            faults.append(f"{name}: {len(trial.sites)} sites, {len(trial.counted)} calls counted")
    row |= {"networks": len(named), "sites": sites, "failed": len(faults)}
    assert faults == []


def _on_image(network: nn.Module, own: int, dtype: torch.dtype = torch.float32) -> Made:
    """Use a small image, or one of the network's own size if it takes no other."""
    network.eval()
    for side in (SIDE, own):
        image = torch.randn(1, 3, side, side, dtype=dtype)
        try:
            with torch.no_grad():
                network(image)
            break
        except Exception:  # each library has its own
            if side == own:
                raise
    return Made(network, (image,))


def test_torchvision(full: bool, row: Row) -> None:
    models = import_optional("torchvision", "models", extra="vision", purpose="this test").models

    def build(name: str) -> Made:
        dtype = torch.bfloat16 if name in families.TORCHVISION_LARGE else torch.float32
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        with _default_dtype(dtype):
            network = models.get_model(name, weights=None, **options)
        crop = models.get_model_weights(name).DEFAULT.transforms().crop_size[0]
        return _on_image(network, getattr(network, "image_size", crop), dtype)

    names = models.list_models(module=models) if full else families.TORCHVISION_SMOKE
    row["library"] = "torchvision"
    _check({name: lambda name=name: build(name) for name in names}, row)  # type: ignore[misc]


def test_timm(full: bool, row: Row) -> None:
    timm = import_optional("timm", extra="vision", purpose="this test")

    def build(name: str) -> Made:
        network = timm.create_model(name, pretrained=False)
        return _on_image(network, network.default_cfg["input_size"][-1])

    names = families.TIMM.values() if full else [families.TIMM[family] for family in families.TIMM_SMOKE]
    row["library"] = "timm"
    _check({name: lambda name=name: build(name) for name in names}, row)  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore")  # of torch, about how a network is written
def test_transformers(full: bool, row: Row) -> None:
    transformers = import_optional("transformers", extra="language", purpose="this test")

    def build(kind: str) -> Made:
        entry = tiny.TRANSFORMERS[kind]
        config = transformers.AutoConfig.for_model(kind, **entry.config)
        network = transformers.AutoModel.from_config(config).eval()
        return Made(network, (entry.inputs(),), lambda network, given: network(**given))

    kinds = tiny.TRANSFORMERS if full else tiny.TRANSFORMERS_SMOKE
    gradients = frozenset(kind for kind, entry in tiny.TRANSFORMERS.items() if entry.trains)
    row["library"] = "transformers"
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # it warns about kernels that are not installed
    try:
        _check({kind: lambda kind=kind: build(kind) for kind in kinds}, row, gradients)  # type: ignore[misc]
    finally:
        transformers.logging.set_verbosity(verbosity)


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
