"""Loads a network by its name, `SOURCE:NAME` or `package.module:factory`, with weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from fathometer.data import Inputs
from fathometer.errors import InputError, MissingExtraError, did_you_mean, first_line
from fathometer.models import from_factory, from_onnx, from_timm, from_torchvision, from_transformers
from fathometer.models.sources import SourceResult, ready
from fathometer.models.user_code import import_by_name, is_module
from fathometer.models.weights import load_weights


class Source(NamedTuple):
    """A library or a kind of file that networks come from.

    Attributes:
        load: makes a network from its name and its weights: `default`, `none`, a name, or the path of a file,
            which is loaded afterwards.
        names: lists the networks; raises `MissingExtraError` if the library is not installed.
        names_weights: whether weights have names.
    """

    load: Callable[[str, str | Path], SourceResult]
    names: Callable[[], list[str]] = list
    names_weights: bool = False


SOURCES = {
    "torchvision": Source(from_torchvision.load, from_torchvision.names, names_weights=True),
    "timm": Source(from_timm.load, from_timm.names),
    "hf": Source(from_transformers.load, from_transformers.names),
    "onnx": Source(from_onnx.load),
}
_USER_CODE = Source(from_factory.load)


@dataclass(frozen=True)
class LoadedModel:
    """A network that is ready to be measured.

    Attributes:
        module: the network, in eval mode on the CPU.
        name: its name as the user wrote it.
        weights: `none`, the name of the default weights if they have one, or the name of the file.
        inputs: what the network takes.
    """

    module: nn.Module
    name: str
    weights: str
    inputs: Inputs

    def cast(self, dtype: str) -> None:
        """Cast the weights to the precision of that name, unless they are quantised to one of their own."""
        try:
            self.module.to(getattr(torch, dtype))
        except ValueError as error:
            raise InputError(
                f"the weights of {self.name} cannot be cast to {dtype} ({first_line(error)}); leave it out",
                parameter="dtype",
            ) from error


def load_model(name: str, weights: str | Path = "default", *, seed: int | None = None) -> LoadedModel:
    """Load the network of that name, in eval mode on the CPU.

    Args:
        name: `torchvision:resnet50`, `timm:vit_tiny_patch16_224`, `hf:gpt2` (also a folder or a GGUF file),
            `onnx:file.onnx`, or `package.module:factory`, which runs code of the current folder.
        weights: `default` for those of the source, `none` for random ones, a file of tensors, or one of
            torchvision's names such as `IMAGENET1K_V1`.
        seed: seed for random weights; torch's generator is left as it is if none is given.

    Example:
        >>> model = load_model("torchvision:squeezenet1_1", weights="none")
        >>> model.weights, model.inputs.kind, model.inputs.shape
        ('none', 'image', (3, 224, 224))
    """
    source, rest = _source_of(name)
    file = _weights_file(weights, source)
    if source is _USER_CODE:
        import_by_name(rest, "a model")  # first, because importing may draw random numbers
    if seed is not None:
        torch.manual_seed(seed)
    module, label, inputs = source.load(rest, file or str(weights))
    if file:
        load_weights(module, file)
    return LoadedModel(ready(module), name, file.name if file else label, inputs)


def list_models(pattern: str = "*") -> list[str]:
    """List the names that the installed libraries know, e.g. `torchvision:res*` or, of any source, `*vit*`.

    Example:
        >>> list_models("torchvision:resnet5*")
        ['torchvision:resnet50']
    """
    found = []
    for prefix, source in SOURCES.items():
        if ":" in pattern and not fnmatchcase(prefix, pattern.partition(":")[0]):
            continue
        try:
            known = source.names()
        except MissingExtraError:
            continue
        found += [
            f"{prefix}:{n}"
            for n in sorted(known)
            if fnmatchcase(f"{prefix}:{n}", pattern) or fnmatchcase(n, pattern)
        ]
    return found


def _source_of(name: str) -> tuple[Source, str]:
    prefix, colon, rest = name.partition(":")
    if prefix in SOURCES and rest:
        return SOURCES[prefix], rest
    if colon and rest and prefix not in SOURCES:
        if is_module(prefix):
            return _USER_CODE, name
        similar = did_you_mean(name, (f"{source}:{rest}" for source in SOURCES), maximum=1, cutoff=0.7)
        hint = similar or f"the sources are {', '.join(SOURCES)}"
        raise InputError(f"{name!r}: {prefix!r} is neither a source nor an importable module; {hint}")
    near = [model for model in list_models() if model.partition(":")[2] == (rest or name)][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "`fathometer models` lists all"
    raise InputError(f"{name!r}: expected SOURCE:NAME, e.g. torchvision:resnet50; {hint}")


def _weights_file(weights: str | Path, source: Source) -> Path | None:
    """Return the file that `weights` names, or none if it is a word that the source understands."""
    path = Path(weights).expanduser()
    if isinstance(weights, str) and (
        weights in ("default", "none") or (source.names_weights and not path.suffix and path.name == weights)
    ):
        return None
    if not path.is_file():
        raise InputError(
            f"no such file: {str(weights)!r}; expected default, none or a file of tensors",
            parameter="weights",
        )
    return path
