"""`fathometer leaky train` and `sweep`: networks in a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from fathometer.cli.options import (
    DeviceOption,
    JsonOption,
    OutOption,
    ResumeOption,
    SeedOption,
    fields_of,
    numbers,
    with_options,
)

PresetOption: TypeAlias = Annotated[
    Literal["quick", "paper", "literal"],
    typer.Option(
        metavar="NAME",
        help="quick: width 50, 12 layers, 300 samples, 4 s on one core. paper: 100, 20, 1000, two minutes. "
        "literal: the recipe as the paper words it, which does not converge.",
    ),
]
_LAYERS = "Number of layers; in a sweep several, with commas. Default: the preset's."


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options that `train` and `sweep` share."""

    preset: PresetOption
    width: Annotated[
        int | None,
        typer.Option(metavar="N", help="Width of the representation. Default: the preset's.", min=1),
    ] = None
    decay: Annotated[
        float | None, typer.Option(metavar="λ₀", help="Strength of weight decay. Default: the preset's.")
    ] = None
    sigma: Annotated[
        Literal["relu", "softplus", "identity"],
        typer.Option(metavar="σ", help="Activation function σ, such as relu."),
    ] = "relu"
    teacher: Annotated[
        Literal["fcnn", "resnet"] | None,
        typer.Option(
            metavar="KIND", help="Random networks that generate the task: fcnn (default) or resnet."
        ),
    ] = None
    latents: Annotated[
        Literal["relu", "centred"] | None,
        typer.Option(
            metavar="KIND",
            help="Representation between these networks: relu (default) or centred, from which rank k + 1 is "
            "learned.",
        ),
    ] = None
    task: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your own task instead of random networks: an .npz with x and y, samples × features each, "
            "and optionally x_test and y_test.",
        ),
    ] = None
    samples: Annotated[
        int | None,
        typer.Option(
            "--task-samples",
            metavar="N",
            help="Number of samples to train with, and as many to test with. Default: the preset's.",
            min=2,
        ),
    ] = None
    epochs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of epochs of the first phase. Default: the preset's.", min=1),
    ] = None
    learning_rate: Annotated[
        float | None,
        typer.Option(
            metavar="η",
            help="Learning rate of the first phase, in units of the weights, L̃. Default: the preset's.",
        ),
    ] = None
    second_order: Annotated[
        int,
        typer.Option(
            metavar="N", help="Number of evaluations of L-BFGS in float64 at the end; 0 for none.", min=0
        ),
    ] = 0
    tolerance: Annotated[
        float, typer.Option(metavar="CRIT", help="Stop when crit is below this; 0 for never.", min=0)
    ] = 0.0
    device: DeviceOption = "auto"
    resume: ResumeOption = False
    as_json: JsonOption = False


@with_options(*fields_of(TrainingOptions))
def train(
    depth: Annotated[
        float | None,
        typer.Option(metavar="L̃", help="Effective depth; 0 is a plain ResNet. Default: the preset's."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(metavar="k*", help="Bottleneck rank of the task. Default: 3.", min=1)
    ] = None,
    preset: PresetOption = "quick",
    layers: Annotated[int | None, typer.Option(metavar="L", help=_LAYERS, min=1)] = None,
    scheme: Annotated[
        Literal["equidistant", "irregular", "adaptive"],
        typer.Option(metavar="NAME", help="Scheme of the steps ρ: equidistant, irregular or adaptive."),
    ] = "equidistant",
    steps: Annotated[
        str | None,
        typer.Option(metavar="ρ,…", help="Your own steps, with commas and the sum 1, instead of a scheme."),
    ] = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    **options: Any,
) -> None:
    """Train one Leaky ResNet on a task with a known bottleneck, and measure it.

    The result is a folder (default: leaky-DEPTH-RANK-SEED).

    For example:

    - `fathometer leaky train --depth 7 --rank 3`

    - `fathometer leaky train --depth 7 --rank 3 --preset paper --out run`
    """
    from fathometer.cli.leaky.building import build_design, check_task_options, train_and_print
    from fathometer.leaky import grid

    chosen = TrainingOptions(preset=preset, **options)
    check_task_options(chosen, rank=rank)
    design = build_design(chosen, (rank or 3,))
    design = replace(
        design,
        effective_depth=design.effective_depth if depth is None else depth,
        layers=layers or design.layers,
        scheme=scheme,
    )
    if steps is not None:
        rho = tuple(numbers(steps, float, "steps"))
        design = replace(design, scheme="given", steps=rho, layers=layers or len(rho))
    name = chosen.task.stem if chosen.task else rank or 3
    out = out or Path(f"leaky-{design.effective_depth:g}-{name}-{seed}")
    train_and_print(grid(design, seeds=[seed]), chosen, out)


@with_options(*fields_of(TrainingOptions))
def sweep(
    depths: Annotated[
        str, typer.Option(metavar="L̃,…", help="Effective depths, with commas. Default: the paper's.")
    ] = "1,2,3,5,7,10,14,19",
    ranks: Annotated[
        str | None,
        typer.Option(
            metavar="k*,…",
            help="Bottleneck ranks of the tasks, with commas; 6x3 for two inner dimensions. Default: 3.",
        ),
    ] = None,
    layers: Annotated[str | None, typer.Option(metavar="L", help=_LAYERS)] = None,
    schemes: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Schemes of the steps ρ: some of equidistant, irregular, adaptive, with commas.",
        ),
    ] = "equidistant",
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of seeds, from 0.", min=1)] = 3,
    preset: PresetOption = "paper",
    out: OutOption = None,
    **options: Any,
) -> None:
    """Train many Leaky ResNets together: every depth, rank, number of layers, scheme and seed.

    On a GPU all networks of one shape are trained as one stack, on a CPU one in each thread. The result is a
    folder (default: leaky-sweep). After an interruption, `--resume` continues to the same result.

    For example:

    - Figures 1 and 3: `fathometer leaky sweep --depths 1,2,3,5,7,10,14,19`

    - Figure 2: `fathometer leaky sweep --depths 3 --layers 6,10,18 --ranks 6x3 --teacher resnet
      --schemes equidistant,irregular,adaptive --seeds 16`

    - Four ranks, quickly: `fathometer leaky sweep --preset quick --depths 8 --ranks 2,3,4,5`
    """
    from fathometer.cli.leaky.building import (
        build_design,
        check_task_options,
        inner_dimensions,
        train_and_print,
    )
    from fathometer.leaky import grid

    chosen = TrainingOptions(preset=preset, **options)
    check_task_options(chosen, ranks=ranks)
    designs = []
    for inner in inner_dimensions(ranks or "3"):
        base = build_design(chosen, inner)
        designs += grid(
            base,
            effective_depth=numbers(depths, float, "depths"),
            layers=numbers(layers, int, "layers") if layers else [base.layers],
            scheme=[name.strip() for name in schemes.split(",")],
            seeds=seeds,
        )
    train_and_print(designs, chosen, out or Path("leaky-sweep"))
