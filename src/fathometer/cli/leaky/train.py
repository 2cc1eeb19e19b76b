"""`fathometer leaky train`: one network in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fathometer.cli.leaky.building import (
    build_design,
    build_recipe,
    check_task_options,
    numbers,
    say_what_was_found,
    train_all,
)
from fathometer.cli.leaky.options import (
    DecayOption,
    EpochsOption,
    LatentsOption,
    LearningRateOption,
    OwnDataOption,
    PresetOption,
    SecondOrderOption,
    SigmaOption,
    TaskSamplesOption,
    TeacherOption,
    ToleranceOption,
    WidthOption,
)
from fathometer.cli.leaky.tables import network_view
from fathometer.cli.options import DeviceOption, ResumeOption, out_option, usable_seed
from fathometer.leaky import grid
from fathometer.leaky.plan import Scheme
from fathometer.progress import Terminal


def train(
    depth: Annotated[
        float | None,
        typer.Option(metavar="L̃", help="The effective depth; 0 is a plain ResNet. Default: of the preset."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(metavar="k*", help="The bottleneck of the task. Default: 3.", min=1)
    ] = None,
    preset_name: PresetOption = "quick",
    layers: Annotated[
        int | None, typer.Option(metavar="L", help="How many. Default: of the preset.", min=1)
    ] = None,
    width: WidthOption = None,
    decay: DecayOption = None,
    scheme: Annotated[
        Scheme,
        typer.Option(metavar="NAME", help="How the steps ρ are laid: equidistant, irregular or adaptive."),
    ] = "equidistant",
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="ρ,…", help="Steps of your own, with commas and the sum 1, in place of a scheme."
        ),
    ] = None,
    sigma: SigmaOption = "relu",
    teacher: TeacherOption = None,
    latents: LatentsOption = None,
    data: OwnDataOption = None,
    samples: TaskSamplesOption = None,
    epochs: EpochsOption = None,
    learning_rate: LearningRateOption = None,
    second_order: SecondOrderOption = 0,
    tolerance: ToleranceOption = 0.0,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of weights and teacher.", min=0, callback=usable_seed)
    ] = 0,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None,
        out_option("FOLDER", "The folder to write. Default: leaky-DEPTH-RANK-SEED."),
    ] = None,
    resume: ResumeOption = False,
) -> None:
    """Train one Leaky ResNet on a task whose bottleneck is known, and measure it.

    For instance:

    - `fathometer leaky train --depth 7 --rank 3`

    - `fathometer leaky train --depth 7 --rank 3 --preset paper --out run`
    """
    check_task_options(data, rank=rank, samples=samples, teacher=teacher, latents=latents)
    inner = (rank or 3,)
    base = build_design(preset_name, width, decay, sigma, samples, teacher, latents, inner)
    depth = base.effective_depth if depth is None else depth
    base = replace(base, effective_depth=depth, layers=layers or base.layers)
    if steps is None:
        base = replace(base, scheme=scheme)
    else:
        rho = tuple(numbers("--steps", steps, float))
        base = replace(base, scheme="given", steps=rho, layers=layers or len(rho))
    out = out or Path(f"leaky-{depth:g}-{data.stem if data else rank or 3}-{seed}")
    found = train_all(
        grid(base, seeds=[seed]),
        build_recipe(preset_name, epochs, learning_rate, second_order, tolerance),
        data,
        device,
        out,
        resume,
    )
    console = Terminal()
    console.print(network_view(found.runs[0], console))
    say_what_was_found(console, found, out)
