"""`fathometer leaky train`: one network in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from fathometer.cli.leaky import options
from fathometer.cli.options import DeviceOption, JsonOption, OutOption, ResumeOption, SeedOption, numbers


def train(
    depth: Annotated[
        float | None,
        typer.Option(metavar="L̃", help="Effective depth; 0 is a plain ResNet. Default: the preset's."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(metavar="k*", help="Bottleneck rank of the task. Default: 3.", min=1)
    ] = None,
    preset_name: options.PresetOption = "quick",
    layers: Annotated[int | None, typer.Option(metavar="L", help=options.LAYERS_HELP, min=1)] = None,
    width: options.WidthOption = None,
    decay: options.DecayOption = None,
    scheme: Annotated[
        Literal["equidistant", "irregular", "adaptive"],
        typer.Option(metavar="NAME", help="Scheme of the steps ρ: equidistant, irregular or adaptive."),
    ] = "equidistant",
    steps: Annotated[
        str | None,
        typer.Option(metavar="ρ,…", help="Your own steps, with commas and the sum 1, instead of a scheme."),
    ] = None,
    sigma: options.SigmaOption = "relu",
    teacher: options.TeacherOption = None,
    latents: options.LatentsOption = None,
    task: options.OwnDataOption = None,
    samples: options.TaskSamplesOption = None,
    epochs: options.EpochsOption = None,
    learning_rate: options.LearningRateOption = None,
    second_order: options.SecondOrderOption = 0,
    tolerance: options.ToleranceOption = 0.0,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    out: OutOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train one Leaky ResNet on a task with a known bottleneck, and measure it.

    The result is a folder (default: leaky-DEPTH-RANK-SEED).

    For example:

    - `fathometer leaky train --depth 7 --rank 3`

    - `fathometer leaky train --depth 7 --rank 3 --preset paper --out run`
    """
    from fathometer.cli.leaky import building
    from fathometer.cli.leaky.tables import network_view
    from fathometer.leaky import grid

    building.check_task_options(task, rank=rank, samples=samples, teacher=teacher, latents=latents)
    inner = (rank or 3,)
    base = building.build_design(preset_name, width, decay, sigma, samples, teacher, latents, inner)
    depth = base.effective_depth if depth is None else depth
    base = replace(base, effective_depth=depth, layers=layers or base.layers)
    if steps is None:
        base = replace(base, scheme=scheme)
    else:
        rho = tuple(numbers(steps, float, "steps"))
        base = replace(base, scheme="given", steps=rho, layers=layers or len(rho))
    out = out or Path(f"leaky-{depth:g}-{task.stem if task else rank or 3}-{seed}")
    found = building.train_all(
        grid(base, seeds=[seed]),
        building.build_recipe(preset_name, epochs, learning_rate, second_order, tolerance),
        task,
        device,
        out,
        resume,
    )
    building.print_trained(found, out, lambda console: network_view(found.runs[0], console), as_json)
