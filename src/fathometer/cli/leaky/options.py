"""Arguments and options that several verbs of the leaky lab share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from fathometer.leaky.teacher import Latents, TeacherKind

# What is trained.
PresetOption: TypeAlias = Annotated[
    Literal["quick", "paper", "literal"],
    typer.Option(
        "--preset",
        metavar="NAME",
        help="quick: width 50, 12 layers, 300 samples, 4 s on one core. paper: 100, 20, 1000, two minutes. "
        "literal: the recipe in the paper's own words, which does not converge.",
    ),
]
WidthOption: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Of the representation. Default: of the preset.", min=1)
]
DecayOption: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="λ₀", help="The strength of weight decay. Default: of the preset."),
]

# What it learns.
SigmaOption: TypeAlias = Annotated[
    Literal["relu", "softplus", "identity"],
    typer.Option(metavar="NAME", help="The nonlinearity: relu, softplus, or identity for linear networks."),
]
TeacherOption: TypeAlias = Annotated[
    TeacherKind | None,
    typer.Option(metavar="KIND", help="The random networks that make the task: fcnn (default) or resnet."),
]
LatentsOption: TypeAlias = Annotated[
    Latents | None,
    typer.Option(
        metavar="KIND",
        help="What lies between these networks: relu (default) or centred. From centred ones, rank k + 1 is "
        "learned.",
    ),
]
OwnDataOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Your own task in place of the random networks': an .npz with x and y, samples × features each; "
        "x_test and y_test if you have them.",
    ),
]
TaskSamplesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="To train with, and as many to test. Default: of the preset.", min=2),
]

# How it is trained.
EpochsOption: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Of the first phase. Default: of the preset.", min=1)
]
LearningRateOption: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="η", help="Of the first phase, in units of the weights, L̃. Default: of the preset."),
]
SecondOrderOption: TypeAlias = Annotated[
    int,
    typer.Option(metavar="N", help="Evaluations of L-BFGS in float64 after the rest; 0 for none.", min=0),
]
ToleranceOption: TypeAlias = Annotated[
    float, typer.Option(metavar="CRIT", help="Stop as soon as crit is below; 0 for never.", min=0)
]

# What was trained.
RunArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RUN", help="A folder that `fathometer leaky train` or `sweep` wrote.")
]
NetworkOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="One network of a sweep, by its number from 0.", min=0),
]
