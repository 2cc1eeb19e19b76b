"""`fathometer leaky train` and `sweep`: networks in a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from fathometer.cli import options as opt

PresetOption: TypeAlias = Annotated[
    Literal["quick", "paper", "softplus", "literal"],
    opt.option(
        "NAME",
        "quick: width 50, 12 layers, 300 samples, 4 s on one core. paper: 100, 20, 1000, two "
        "minutes. softplus: as quick, with a smooth σ, to a critical point. literal: the recipe as the paper "
        "words it, which does not converge.",
    ),
]
SchemeName: TypeAlias = Literal["equidistant", "irregular", "adaptive"]
_LAYERS = "Number of layers; in a sweep several, with commas. Default: the preset's."


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options that `train` and `sweep` share."""

    preset: PresetOption
    width: Annotated[
        int | None, opt.option("N", "Width of the representation. Default: the preset's.", min=1)
    ] = None
    decay: Annotated[float | None, opt.option("λ₀", "Strength of weight decay. Default: the preset's.")] = (
        None
    )
    sigma: opt.SigmaOption = None
    teacher: Annotated[
        Literal["fcnn", "resnet"] | None,
        opt.option("KIND", "Random networks that generate the task: fcnn (default) or resnet."),
    ] = None
    latents: Annotated[
        Literal["relu", "centred"] | None,
        opt.option(
            "KIND",
            "Representation between these networks: relu (default) or centred, from which rank k + 1 is "
            "learned.",
        ),
    ] = None
    task: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "Your own task instead of random networks: an .npz with x and y, samples × features each, "
            "and optionally x_test and y_test.",
        ),
    ] = None
    samples: Annotated[
        int | None,
        opt.option(
            "N",
            "Number of samples to train with, and as many to test with. Default: the preset's.",
            "--task-samples",
            min=2,
        ),
    ] = None
    epochs: Annotated[
        int | None, opt.option("N", "Number of epochs of the first phase. Default: the preset's.", min=1)
    ] = None
    learning_rate: Annotated[
        float | None,
        opt.option(
            "η", "Learning rate of the first phase, multiplied by the depth L̃. Default: the preset's."
        ),
    ] = None
    second_order: Annotated[
        int, opt.option("N", "Number of evaluations of L-BFGS in float64 at the end; 0 for none.", min=0)
    ] = 0
    tolerance: Annotated[
        float, opt.option("CRIT", "Stop when crit, the relative gradient, is below this; 0 for never.", min=0)
    ] = 0.0
    device: opt.DeviceOption = "auto"
    resume: opt.ResumeOption = False
    as_json: opt.JsonOption = False


@opt.with_options(*opt.fields_of(TrainingOptions))
def train(
    depth: Annotated[
        float | None, opt.option("L̃", "Effective depth; 0 is a plain ResNet. Default: the preset's.")
    ] = None,
    rank: Annotated[int | None, opt.option("k*", "Bottleneck rank of the task. Default: 3.", min=1)] = None,
    preset: PresetOption = "quick",
    layers: Annotated[int | None, opt.option("L", _LAYERS, min=1)] = None,
    scheme: Annotated[
        SchemeName,
        opt.option("NAME", "Scheme of the steps ρ: equidistant, irregular or adaptive."),
    ] = "equidistant",
    steps: Annotated[
        str | None, opt.option("ρ,…", "Your own steps, with commas and the sum 1, instead of a scheme.")
    ] = None,
    seed: opt.SeedOption = 0,
    out: opt.OutOption = None,
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
        rho = tuple(opt.numbers(steps, float, "steps"))
        design = replace(design, scheme="given", steps=rho, layers=layers or len(rho))
    name = chosen.task.stem if chosen.task else rank or 3
    out = out or Path(f"leaky-{design.effective_depth:g}-{name}-{seed}")
    train_and_print(grid(design, seeds=[seed]), chosen, out)


@opt.with_options(*opt.fields_of(TrainingOptions))
def sweep(
    depths: Annotated[
        str, opt.option("L̃,…", "Effective depths, with commas. Default: the paper's.")
    ] = "1,2,3,5,7,10,14,19",
    ranks: Annotated[
        str | None,
        opt.option(
            "k*,…", "Bottleneck ranks of the tasks, with commas; 6x3 for two inner dimensions. Default: 3."
        ),
    ] = None,
    layers: Annotated[str | None, opt.option("L", _LAYERS)] = None,
    schemes: Annotated[
        str,
        opt.option("NAMES", "Schemes of the steps ρ: some of equidistant, irregular, adaptive, with commas."),
    ] = "equidistant",
    seeds: Annotated[int, opt.option("N", "Number of seeds, from 0.", min=1)] = 3,
    preset: PresetOption = "paper",
    out: opt.OutOption = None,
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
    from fathometer.errors import check_choice
    from fathometer.leaky import grid

    chosen = TrainingOptions(preset=preset, **options)
    check_task_options(chosen, ranks=ranks)
    names = [name.strip() for name in schemes.split(",")]
    for name in names:
        check_choice("schemes", name, SchemeName)
    designs = []
    for inner in inner_dimensions(ranks or "3"):
        base = build_design(chosen, inner)
        designs += grid(
            base,
            effective_depth=opt.numbers(depths, float, "depths"),
            layers=opt.numbers(layers, int, "layers") if layers else [base.layers],
            scheme=names,
            seeds=seeds,
        )
    train_and_print(designs, chosen, out or Path("leaky-sweep"))
