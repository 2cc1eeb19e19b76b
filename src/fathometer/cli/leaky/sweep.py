"""`fathometer leaky sweep`: many networks in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fathometer.cli.leaky import options
from fathometer.cli.options import DeviceOption, JsonOption, OutOption, ResumeOption, numbers


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
    layers: Annotated[str | None, typer.Option(metavar="L", help=options.LAYERS_HELP)] = None,
    schemes: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Schemes of the steps ρ: some of equidistant, irregular, adaptive, with commas.",
        ),
    ] = "equidistant",
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of seeds, from 0.", min=1)] = 3,
    preset_name: options.PresetOption = "paper",
    width: options.WidthOption = None,
    decay: options.DecayOption = None,
    sigma: options.SigmaOption = "relu",
    teacher: options.TeacherOption = None,
    latents: options.LatentsOption = None,
    task: options.OwnDataOption = None,
    samples: options.TaskSamplesOption = None,
    epochs: options.EpochsOption = None,
    learning_rate: options.LearningRateOption = None,
    second_order: options.SecondOrderOption = 0,
    tolerance: options.ToleranceOption = 0.0,
    device: DeviceOption = "auto",
    out: OutOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
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
    from fathometer.cli.leaky import building
    from fathometer.cli.leaky.tables import sweep_view
    from fathometer.leaky import grid

    out = out or Path("leaky-sweep")
    building.check_task_options(task, ranks=ranks, samples=samples, teacher=teacher, latents=latents)
    designs = []
    for inner in building.inner_dimensions(ranks or "3"):
        base = building.build_design(preset_name, width, decay, sigma, samples, teacher, latents, inner)
        designs += grid(
            base,
            effective_depth=numbers(depths, float, "depths"),
            layers=numbers(layers, int, "layers") if layers else [base.layers],
            scheme=[name.strip() for name in schemes.split(",")],
            seeds=seeds,
        )
    found = building.train_all(
        designs,
        building.build_recipe(preset_name, epochs, learning_rate, second_order, tolerance),
        task,
        device,
        out,
        resume,
    )
    building.print_trained(found, out, lambda console: sweep_view(found, console), as_json)
