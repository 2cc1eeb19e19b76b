"""The networks of torchvision, timm and transformers, with random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn

from fathometer.models.sources import import_optional
from soak.networks.trial import Made, Trial, try_network
from soak.program import Effort, Outcome, Program, Row
from tests.zoo import families, tiny

SIDE = 64
"""Of images, in pixels, where a network takes them."""

_ASKS = (
    "{what} run plainly and watched, and once more with an exception in the middle. A failure: an "
    "output{more} that differs in one bit; not as many sites as calls counted below torch's dispatcher; an "
    "exception that did not come; a hook, function, attribute or mode that is left behind; a network that "
    "does not run."
)

_COLUMNS = ("networks", "sites", "counted", "bit for bit", "interrupted", "left behind")
_COUNTED = "How calls are counted, and by which rules: [awkward networks](#awkward-networks)."


class Candidate(NamedTuple):
    """A network that is yet to be built."""

    family: str
    name: str
    build: Callable[[], Made]
    gradients: bool = False  # whether to compare those, too


def _try_all(candidates: Iterable[Candidate]) -> Outcome:
    rows: dict[str, Row] = {}
    failures: list[str] = []
    for family, name, build, gradients in candidates:
        mode = torch.enable_grad if gradients else torch.no_grad
        torch.manual_seed(0)
        try:
            made = build()
            trial = try_network(lambda made=made: made, mode, gradients=gradients)  # type: ignore[misc]
        except Exception as error:  # of whatever library
            failures.append(f"{name}: does not run ({error!r:.200})")
            trial = Trial([], [], ["outputs"], [])
        else:
            failures += [f"{name}: {fault}" for fault in trial.faults]
            if len(trial.sites) != len(trial.counted):
                failures.append(f"{name}: {len(trial.sites)} sites, {len(trial.counted)} calls counted")
        row = rows.setdefault(
            family,
            {"family": family} | dict.fromkeys(_COLUMNS, 0),
        )
        alike, left = not trial.changed, bool(trial.left)
        found = (1, len(trial.sites), len(trial.counted), alike, trial.interrupted, left)
        for column, more in zip(_COLUMNS, found, strict=True):
            row[column] = int(row[column]) + more
    return Outcome(list(rows.values()), failures, [_COUNTED])


def _on_image(network: nn.Module, own: int, dtype: torch.dtype = torch.float32) -> Made:
    """With a small image, or of the network's own size if it takes no other."""
    network.eval()
    for side in (SIDE, own):
        image = torch.randn(1, 3, side, side, dtype=dtype)
        try:
            with torch.no_grad():
                network(image)
        except Exception:  # each library says in its own way that the size is wrong
            if side == own:
                raise
        else:
            break
    return Made(network, (image,))


def _torchvision(effort: Effort) -> Outcome:
    models = import_optional("torchvision", "models", extra="vision", purpose="this program").models

    def build(name: str) -> Made:
        dtype = torch.bfloat16 if name in families.TORCHVISION_LARGE else torch.float32
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        with _default_dtype(dtype):
            network = models.get_model(name, weights=None, **options)
        crop = models.get_model_weights(name).DEFAULT.transforms().crop_size[0]
        return _on_image(network, getattr(network, "image_size", crop), dtype)

    names = models.list_models(module=models) if effort == "full" else families.TORCHVISION_SMOKE
    files = {name: models.get_model_builder(name).__module__.rpartition(".")[2] for name in names}
    candidates = (Candidate(files[name], name, lambda name=name: build(name)) for name in names)  # type: ignore[misc]
    outcome = _try_all(candidates)
    if effort == "full":
        outcome.notes.append(f"In bfloat16, for memory: {', '.join(families.TORCHVISION_LARGE)}.")
    return outcome


def _timm(effort: Effort) -> Outcome:
    timm = import_optional("timm", extra="vision", purpose="this program")

    def build(name: str) -> Made:
        network = timm.create_model(name, pretrained=False)
        return _on_image(network, network.default_cfg["input_size"][-1])

    chosen = families.TIMM
    if effort == "smoke":
        chosen = {family: chosen[family] for family in families.TIMM_SMOKE}
    outcome = _try_all(
        Candidate(f"{family}: {name}", name, lambda name=name: build(name))  # type: ignore[misc]
        for family, name in chosen.items()
    )
    if effort == "full":
        outcome.notes.extend(f"Left out: {family} ({why})." for family, why in families.TIMM_LEFT_OUT.items())
    return outcome


def _transformers(effort: Effort) -> Outcome:
    transformers = import_optional("transformers", extra="language", purpose="this program")

    def build(kind: str, entry: tiny.Tiny) -> Made:
        config = transformers.AutoConfig.for_model(kind, **entry.config)
        network = transformers.AutoModel.from_config(config).eval()
        return Made(network, (entry.inputs(),), lambda network, given: network(**given))

    chosen = tiny.TRANSFORMERS
    if effort == "smoke":
        chosen = {kind: chosen[kind] for kind in tiny.TRANSFORMERS_SMOKE}
    candidates = (
        Candidate(kind, kind, lambda kind=kind, entry=entry: build(kind, entry), entry.trains)  # type: ignore[misc]
        for kind, entry in chosen.items()
    )
    spoken = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # kernels that are not installed are no news
    try:
        return _try_all(candidates)
    finally:
        transformers.logging.set_verbosity(spoken)


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


TORCHVISION = Program(
    "networks-torchvision",
    "Networks of torchvision",
    _ASKS.format(what="All image classifiers of torchvision", more=""),
    _torchvision,
)
TIMM = Program(
    "networks-timm",
    "Networks of timm",
    _ASKS.format(what="A small member of each family of timm", more=""),
    _timm,
)
TRANSFORMERS = Program(
    "networks-transformers",
    "Networks of transformers",
    _ASKS.format(what="Small configurations of transformers' families", more=" or a gradient"),
    _transformers,
)
