"""Arguments and options that several verbs share: the same name and words in each."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from fathometer.capture import Pooling
from fathometer.errors import InputError

_LARGEST_SEED = 2**63 - 1  # torch takes no larger one


def positive(option: typer.CallbackParam, value: float) -> float:
    """Refuse what is not a finite number above 0."""
    if not 0 < value < math.inf:
        raise InputError(f"{option.opts[0]}: expected a finite number > 0, got {value}")
    return value


def one_of(*words: str) -> Callable[[typer.CallbackParam, str | None], str | None]:
    """Refuse what is none of these words, and say which was meant."""

    def check(option: typer.CallbackParam, value: str | None) -> str | None:
        if value is None or value in words:
            return value
        near = [word for word in words if value and word.startswith(value)] or get_close_matches(value, words)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        expected = f"{', '.join(words[:-1])} or {words[-1]}"
        raise InputError(f"{option.opts[0]}: expected {expected}, got {value!r}{hint}")

    return check


def usable_seed(option: typer.CallbackParam, value: int) -> int:
    """Refuse what torch cannot take."""
    if value > _LARGEST_SEED:
        raise InputError(f"{option.opts[0]}: expected at most {_LARGEST_SEED}, got {value}")
    return value


# What is measured.
ModelArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="torchvision:resnet50, timm:vit_tiny_patch16_224, hf:gpt2 or hf:FOLDER, onnx:FILE, "
        "or package.module:factory.",
    ),
]
WeightsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="WHICH", help="default (downloaded if need be), none (random ones), or a file of tensors."
    ),
]
SitesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SITE",
        help="Only these sites: a pattern (layer1.\\*), an operator (relu), module:NAME. Repeatable.",
    ),
]
ActivationOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A class or function of your own that is an activation, as package.module:name. Repeatable.",
    ),
]

# What it is measured on.
DataOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="DATA",
        help="A folder of images, CIFAR binaries, an .npz, a text file, or random (random:1000).",
    ),
]
SamplesOption: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Samples that make a measured batch.", min=2)
]
BatchesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many batches to measure. Default: all that the data give.", min=1),
]
LeftoverOption: TypeAlias = Annotated[
    Literal["drop", "keep"],
    typer.Option(metavar="HOW", help="drop or keep the samples that do not fill a batch."),
]
LengthOption: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Tokens in a block of text.", min=2)
]
ShuffleOption: TypeAlias = Annotated[
    bool,
    typer.Option(metavar="", help="Take the data in a random order, since folders are sorted by class."),
]
StrictOption: TypeAlias = Annotated[
    bool, typer.Option("--strict", metavar="", help="Stop at an unreadable image; else skip it.")
]

# How.
ReductionOption: TypeAlias = Annotated[
    Pooling,
    typer.Option(
        metavar="HOW",
        help="How positions (pixels, tokens) are reduced: mean, sum, flatten, position, tokens or authors.",
    ),
]
ChannelAxisOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="AXIS", help="Axis of the channels. Default: found from the operators."),
]
GammaOption: TypeAlias = Annotated[
    float,
    typer.Option(metavar="γ₀", help="Of the ridge γ = γ₀‖K‖ in the cost of identity.", callback=positive),
]
BatchSizeOption: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Inputs in a forward pass; less needs less memory.", min=1)
]
WorkersOption: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Processes that read data ahead.", min=0)
]
DeviceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="As torch names it: cpu, cuda, cuda:1, mps, …; auto takes a CUDA GPU if there is one.",
    ),
]
DtypeOption: TypeAlias = Annotated[
    Literal["float32", "float64", "bfloat16", "float16"] | None,
    typer.Option(
        metavar="TYPE", help="Of the network: float32, float64, bfloat16 or float16. Default: as it is."
    ),
]
SeedOption: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N", help="Of the order of the data and of random weights.", min=0, callback=usable_seed
    ),
]


# What is written.
def out_option(metavar: str, words: str) -> Any:
    """`--out`, which every verb that writes has; what it writes differs."""
    return typer.Option("--out", "-o", metavar=metavar, help=words)


TableOption: TypeAlias = Annotated[Path | None, out_option("FILE", "A .csv of the same, with every column.")]
ForceOption: TypeAlias = Annotated[bool, typer.Option("--force", metavar="", help="Replace existing files.")]
ResumeOption: TypeAlias = Annotated[
    bool, typer.Option("--resume", metavar="", help="Go on where an interrupted run stopped.")
]
MismatchOption: TypeAlias = Annotated[
    bool,
    typer.Option("--allow-mismatch", metavar="", help="Only warn if data, reduction or samples differ."),
]


def given(context: typer.Context) -> list[str]:
    """The parameters that were written on the command line, by name."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
