"""Arguments and options that several commands share: the same name, meaning and help in each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import typer

from fathometer.cli import FLAGS
from fathometer.errors import InputError
from fathometer.measuring.options import (
    PRESETS,
    LoadOptions,
    MeasureOptions,
    Option,
    Preset,
    options_of,
    plain_options,
)

Function = TypeVar("Function", bound=Callable[..., None])
Number = TypeVar("Number", int, float)

_HELP = {
    "seed": "Seed for everything that is random.",
    "strict": "Stop at an unreadable file instead of skipping it.",
    "call": plain_options()["call"].help.replace("a function", "package.module:name, a function"),
}
"""Where an option of a measurement means more on the command line."""


def new_app(summary: str | None = None, **settings: Any) -> typer.Typer:
    """Return an app for one command, or for several with a summary."""
    defaults: dict[str, Any] = {
        "no_args_is_help": summary is not None,
        "add_completion": False,
        "rich_markup_mode": "markdown",  # paragraphs fill the width of the terminal
        "pretty_exceptions_enable": False,
        "context_settings": {"help_option_names": ["-h", "--help"]},
    }
    app = typer.Typer(**(defaults | settings))
    if summary is not None:
        app.callback(help=summary)(lambda: None)  # a group, even with one command
    return app


def argument(metavar: str, help_text: str) -> Any:
    """Return an argument of a command."""
    return typer.Argument(metavar=metavar, help=help_text)


def option(metavar: str, help_text: str, *names: str, **settings: Any) -> Any:
    """Return an option with a value; its name is that of the parameter, unless names are given."""
    return typer.Option(*names, metavar=metavar, help=help_text, **settings)


def flag(name: str, help_text: str) -> Any:
    """Return an option without a value."""
    return typer.Option(name, metavar="", help=help_text)


def numbers(text: str, kind: Callable[[str], Number], parameter: str) -> list[Number]:
    """Read numbers such as `1,2.5,3`."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(f"expected {what} with commas, got {text!r}", parameter=parameter) from error


def with_options(*shared: inspect.Parameter) -> Callable[[Function], Function]:
    """Replace `**options` of a command by shared parameters, before its `out` if it has one."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values() if p.name != "options"]
        names = [p.name for p in own]
        place = names.index("out") if "out" in names else len(names)
        own[place:place] = [p for p in shared if p.name not in names]
        function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return function

    return decorate


def fields_of(options: type, without: str = "") -> list[inspect.Parameter]:
    """Return the fields of a dataclass of options as parameters."""
    found = inspect.signature(options, eval_str=True).parameters.values()
    return [p.replace(kind=p.KEYWORD_ONLY) for p in found if p.name != without]


def measure_options(*names: str) -> list[inspect.Parameter]:
    """Return options of `measure` as parameters, with their defaults and help."""
    return [_parameter(option) for name, option in plain_options().items() if name in names]


def loading_options() -> list[inspect.Parameter]:
    """Return the options for loading a network and data, of which plans have those of `LoadOptions`."""
    return [*fields_of(_Loading), *map(_parameter, options_of(LoadOptions).values())]


def _parameter(option: Option) -> inspect.Parameter:
    help_text = _HELP.get(option.name, option.help)
    default = option.default
    kind: Any = option.kind
    settings: dict[str, Any] = {"metavar": "N" if kind is int else "TEXT", "min": option.minimum}
    if option.choices:
        kind = Literal[option.choices]
        settings["metavar"] = "WORD"
        help_text += f" One of {', '.join(option.choices)}."
    if option.many:
        kind, default = list[kind] | None, None
        settings["metavar"] = "NAMES"
        own = "" if option.name == "sites" else " Your own are package.module:name; with commas."
        help_text += f"{own} Repeatable."
    elif default is None:
        kind = kind | None
    if kind is bool:
        settings["metavar"] = ""
    flag = f"--{option.name.replace('_', '-')}"
    declaration = f"{flag}/--no-{flag[2:]}" if default is True else flag
    info = typer.Option(declaration, help=help_text, **settings)
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def chosen_options(
    options: dict[str, Any], preset: str | None = None, context: typer.Context | None = None
) -> MeasureOptions:
    """Return the options of a measurement among those of a command.

    With a preset, those of its options count that are not on the command line.
    """
    chosen = {name: options[name] for name in plain_options() if options.get(name) is not None}
    if context is not None:
        ours = PRESETS[preset or "none"].keys() - given_options(context)
        chosen = {name: value for name, value in chosen.items() if name not in ours} | {"preset": preset}
    return MeasureOptions.from_plain(chosen)


# What is measured, and where.
ModelArgument: TypeAlias = Annotated[
    str,
    argument(
        "MODEL",
        "torchvision:resnet50, timm:vit_tiny_patch16_224, hf:gpt2 or hf:FOLDER, onnx:FILE, or "
        "package.module:factory.",
    ),
]
WeightsOption: TypeAlias = Annotated[
    str, option("WHICH", "default (downloaded if necessary), none (random weights), or a file of tensors.")
]
DATA_HELP = (
    "A folder of images, CIFAR binaries, an .npz, a text file, a .parquet or webdataset .tar (or a folder of "
    "them), a Hugging Face data set (hf:ylecun/mnist:test), or random (random:1000)."
)
DataOption: TypeAlias = Annotated[
    str,
    option(
        "DATA",
        DATA_HELP,
        "--data",  # in full: Typer 0.27 would call it --DATA, after its metavar
    ),
]
PresetOption: TypeAlias = Annotated[
    Preset | None,
    option(
        "WORD",
        "Options that are usual for a kind of network: language, or none; those that you give win. "
        "Default: language for language models of transformers.",
    ),
]
DeviceOption: TypeAlias = Annotated[
    str,
    option(
        "NAME", "Device as torch names it: cpu, cuda, cuda:1, mps, …; auto is a CUDA GPU if there is one."
    ),
]


_INSTEAD = "with any of --size, --crop, --mean, --std, --bgr, images are not prepared as the network's own"


@dataclass(frozen=True, kw_only=True)
class _Loading:
    weights: WeightsOption = "default"
    batch_size: Annotated[
        int, option("N", "Number of inputs in a forward pass; fewer need less memory.", min=1)
    ] = 32
    workers: Annotated[int, option("N", "Number of processes that read data ahead.", min=0)] = 0
    device: DeviceOption = "auto"
    size: Annotated[
        int | None, option("PIXELS", f"Short side of images before the crop; {_INSTEAD}.", min=1)
    ] = None
    crop: Annotated[int | None, option("PIXELS", f"Side of the centre crop; {_INSTEAD}.", min=1)] = None
    mean: Annotated[
        str | None, option("NUMBERS", f"Mean of pixels from 0 to 1, with commas; {_INSTEAD}.")
    ] = None
    std: Annotated[str | None, option("NUMBERS", f"Standard deviation of pixels; {_INSTEAD}.")] = None
    bgr: Annotated[bool, flag("--bgr", f"Channels in the order blue, green, red; {_INSTEAD}.")] = False


NameOption: TypeAlias = Annotated[
    str | None,
    option("TEXT", "Name of the network in tables, legends and file names."),
]
SamplesOption: TypeAlias = Annotated[int, option("N", plain_options()["samples"].help, min=2)]
SeedOption: TypeAlias = Annotated[int, option("N", _HELP["seed"], min=0)]
SigmaOption: TypeAlias = Annotated[
    str | None,
    option("σ", "Activation function σ: identity, or an elementwise one of torch, such as relu or softplus."),
]
GammaOption: TypeAlias = Annotated[float, option("γ₀", "Ridge γ = γ₀‖K‖ in the cost of identity.")]

# What is read.
ResultsArgument: TypeAlias = Annotated[
    list[str],
    argument("RESULTS…", "Files that `fathometer measure` wrote, or folders of them; paths or URLs."),
]
StrictOption: TypeAlias = Annotated[bool, flag("--strict", _HELP["strict"])]
GaugeOption: TypeAlias = Annotated[
    str | None,
    option(
        "NAME",
        "Gauge to use, or one of its columns, such as stable_rank_y. Default: affinity, or the first one.",
    ),
]
MetricOption: TypeAlias = Annotated[
    Literal["normalised", "banded", "paper", "euclidean", "wasserstein"] | None,
    option(
        "HOW",
        "Distance between signatures: normalised (DTW, mean difference along depth), banded (the same, "
        "between similar depths), paper (DTW with a sum, which grows with depth), euclidean (equal lengths), "
        "wasserstein (distributions of scores).",
    ),
]
LinkageOption: TypeAlias = Annotated[
    Literal["average", "complete", "single", "ward"],
    option("HOW", "Distance between clusters: average, complete, single or ward.", "--linkage"),
]
FamiliesOption: TypeAlias = Annotated[
    Path | None,
    option(
        "FILE",
        "CSV with columns network, family, and any of accuracy, depth, parameters, gflops, year. "
        "Default: what a survey recorded, or torchvision's metadata.",
    ),
]
FamilyOption: TypeAlias = Annotated[
    list[str] | None,
    option("NAME=PATTERN", "A family by a pattern of network names. Repeatable; comes before --families."),
]
MismatchOption: TypeAlias = Annotated[
    bool, flag("--allow-mismatch", "Only warn if data, reduction or samples differ.")
]

NetworkOption: TypeAlias = Annotated[
    int | None, option("N", "One network of a sweep, by its number from 0.", min=0)
]


# What is written.
def out_option(**settings: Any) -> Any:
    """Return `-o`, `--out`; the description of each command says what is written, and its default."""
    return typer.Option("--out", "-o", metavar="PATH", help="Where to write the result.", **settings)


def local_path(text: str) -> Path:
    """Return the path; refuse a URL, which as a path would be a folder such as `s3:`."""
    if "://" in text:
        raise typer.BadParameter(f"expected a path on this machine, got the URL {text}")
    return Path(text)


OutOption: TypeAlias = Annotated[Path | None, out_option(parser=local_path)]
ForceOption: TypeAlias = Annotated[bool, flag("--force", "Replace existing files.")]
ResumeOption: TypeAlias = Annotated[bool, flag("--resume", "Resume an interrupted run; keep a finished one.")]
JsonOption: TypeAlias = Annotated[bool, flag("--json", "Print JSON instead of tables.")]


def given_options(context: typer.Context) -> list[str]:
    """Return the parameters that are on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def refuse_unused(context: typer.Context, used: tuple[str, ...], what: str) -> None:
    """Refuse options on the command line that have no effect on what was asked for."""
    given = [name for name in given_options(context) if name not in used]
    if given:
        flags = ", ".join(FLAGS.get(name, name) for name in given)
        raise InputError(f"{flags}: has no effect on {what}; leave it out")
