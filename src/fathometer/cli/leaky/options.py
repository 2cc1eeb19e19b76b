"""Arguments and options that several commands of the leaky lab share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

# What is trained.
PresetOption: TypeAlias = Annotated[
    Literal["quick", "paper", "literal"],
    typer.Option(
        "--preset",
        metavar="NAME",
        help="quick: width 50, 12 layers, 300 samples, 4 s on one core. paper: 100, 20, 1000, two minutes. "
        "literal: the recipe as the paper words it, which does not converge.",
    ),
]
WidthOption: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Width of the representation. Default: the preset's.", min=1)
]
DecayOption: TypeAlias = Annotated[
    float | None, typer.Option(metavar="λ₀", help="Strength of weight decay. Default: the preset's.")
]

# What it learns.
SigmaOption: TypeAlias = Annotated[
    Literal["relu", "softplus", "identity"],
    typer.Option(metavar="σ", help="Activation function σ, such as relu."),
]
TeacherOption: TypeAlias = Annotated[
    Literal["fcnn", "resnet"] | None,
    typer.Option(metavar="KIND", help="Random networks that generate the task: fcnn (default) or resnet."),
]
LatentsOption: TypeAlias = Annotated[
    Literal["relu", "centred"] | None,
    typer.Option(
        metavar="KIND",
        help="Representation between these networks: relu (default) or centred, from which rank k + 1 is "
        "learned.",
    ),
]
OwnDataOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--task",
        metavar="FILE",
        help="Your own task instead of random networks: an .npz with x and y, samples × features each, and "
        "optionally x_test and y_test.",
    ),
]
TaskSamplesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--task-samples",
        metavar="N",
        help="Number of samples to train with, and as many to test with. Default: the preset's.",
        min=2,
    ),
]

# How it is trained.
EpochsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of epochs of the first phase. Default: the preset's.", min=1),
]
LearningRateOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="η",
        help="Learning rate of the first phase, in units of the weights, L̃. Default: the preset's.",
    ),
]
SecondOrderOption: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N", help="Number of evaluations of L-BFGS in float64 at the end; 0 for none.", min=0
    ),
]
ToleranceOption: TypeAlias = Annotated[
    float, typer.Option(metavar="CRIT", help="Stop when crit is below this; 0 for never.", min=0)
]

# What was trained.
RunArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RUN", help="A folder that `fathometer leaky train` or `sweep` wrote.")
]

LAYERS_HELP = "Number of layers; in a sweep several, with commas. Default: the preset's."
