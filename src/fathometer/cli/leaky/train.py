"""`fathometer leaky train` and `fathometer leaky sweep`: networks in a folder."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fathometer.cli.leaky.options import (
    DecayOption,
    EpochsOption,
    LatentsOption,
    OwnDataOption,
    PresetOption,
    SecondOrderOption,
    TaskSamplesOption,
    TeacherOption,
    ToleranceOption,
    WidthOption,
)
from fathometer.cli.leaky.own_data import read_own_task
from fathometer.cli.leaky.tables import network_view, rank_lines, sweep_view
from fathometer.cli.options import DeviceOption, ResumeOption, usable_seed
from fathometer.errors import InputError
from fathometer.leaky import Design, LeakySweep, Phase, Recipe, Teacher, grid, preset
from fathometer.leaky import sweep as train_networks
from fathometer.leaky.plan import Scheme
from fathometer.leaky.run_files import PLAN
from fathometer.leaky.teacher import Latents, TeacherKind
from fathometer.progress import progress_bar
from fathometer.subject import check_device


def train(
    depth: Annotated[
        float | None,
        typer.Option(metavar="L̃", help="The effective depth; 0 is a plain ResNet. Default: of the preset."),
    ] = None,
    rank: Annotated[int, typer.Option(metavar="k*", help="The bottleneck of the task.", min=1)] = 3,
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
    teacher: TeacherOption = "fcnn",
    latents: LatentsOption = "relu",
    data: OwnDataOption = None,
    samples: TaskSamplesOption = None,
    epochs: EpochsOption = None,
    second_order: SecondOrderOption = 0,
    tolerance: ToleranceOption = 0.0,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of weights and teacher.", min=0, callback=usable_seed)
    ] = 0,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The folder to write. Default: leaky-DEPTH-RANK-SEED."),
    ] = None,
    resume: ResumeOption = False,
) -> None:
    """Train one Leaky ResNet on a task whose bottleneck is known, and measure it.

    For instance:

    - `fathometer leaky train --depth 7 --rank 3`

    - `fathometer leaky train --depth 7 --rank 3 --preset paper --out run`
    """
    base = _design(preset_name, width, decay, samples, teacher, latents, (rank,))
    depth = base.effective_depth if depth is None else depth
    base = replace(base, effective_depth=depth, layers=layers or base.layers)
    if steps is None:
        base = replace(base, scheme=scheme)
    else:
        rho = tuple(_numbers("--steps", steps, float))
        base = replace(base, scheme="given", steps=rho, layers=layers or len(rho))
    found = _trained(
        grid(base, seeds=[seed]),
        _recipe(preset_name, epochs, second_order, tolerance),
        data,
        device,
        out or Path(f"leaky-{depth:g}-{rank}-{seed}"),
        resume,
    )
    console = Console(emoji=False)
    console.print(network_view(found.runs[0], console))
    _say_rank(console, found)


def sweep(
    depths: Annotated[
        str, typer.Option(metavar="L̃,…", help="Effective depths, with commas. The default is the paper's.")
    ] = "1,2,3,5,7,10,14,19",
    ranks: Annotated[
        str,
        typer.Option(
            metavar="k*,…", help="Bottlenecks of the tasks, with commas; 6x3 for two inner dimensions."
        ),
    ] = "3",
    layers: Annotated[
        str | None, typer.Option(metavar="L,…", help="How many, with commas. Default: of the preset.")
    ] = None,
    schemes: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="How the steps ρ are laid: some of equidistant, irregular, adaptive, with commas.",
        ),
    ] = "equidistant",
    seeds: Annotated[int, typer.Option(metavar="N", help="How many of them, from 0.", min=1)] = 3,
    preset_name: PresetOption = "paper",
    width: WidthOption = None,
    decay: DecayOption = None,
    teacher: TeacherOption = "fcnn",
    latents: LatentsOption = "relu",
    data: OwnDataOption = None,
    samples: TaskSamplesOption = None,
    epochs: EpochsOption = None,
    second_order: SecondOrderOption = 0,
    tolerance: ToleranceOption = 0.0,
    device: DeviceOption = "auto",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write.")] = Path("leaky-sweep"),
    resume: ResumeOption = False,
) -> None:
    """Train many Leaky ResNets together: every depth, rank, number of layers, scheme and seed.

    On a GPU all networks of one shape are one stack, on a CPU there is one in each thread. An interrupted
    sweep goes on with `--resume` to the same result.

    For instance:

    - Figures 1 and 3: `fathometer leaky sweep --depths 1,2,3,5,7,10,14,19`

    - Figure 2: `fathometer leaky sweep --depths 3 --layers 6,10,18 --ranks 6x3 --teacher resnet
      --schemes equidistant,irregular,adaptive --seeds 16`

    - Four ranks, quickly: `fathometer leaky sweep --preset quick --depths 8 --ranks 2,3,4,5`
    """
    designs = []
    for inner in _dimensions(ranks):
        base = _design(preset_name, width, decay, samples, teacher, latents, inner)
        designs += grid(
            base,
            effective_depth=_numbers("--depths", depths, float),
            layers=_numbers("--layers", layers, int) if layers else [base.layers],
            scheme=[name.strip() for name in schemes.split(",")],
            seeds=seeds,
        )
    found = _trained(
        designs, _recipe(preset_name, epochs, second_order, tolerance), data, device, out, resume
    )
    console = Console(emoji=False)
    console.print(sweep_view(found, console))
    _say_rank(console, found)


def _design(
    name: str,
    width: int | None,
    decay: float | None,
    samples: int | None,
    kind: TeacherKind,
    latents: Latents,
    inner: tuple[int, ...],
) -> Design:
    base = preset(name).design
    assert base.teacher is not None
    ends = base.teacher.dimensions[0], base.teacher.dimensions[-1]
    return replace(
        base,
        width=width or base.width,
        decay=base.decay if decay is None else decay,
        samples=samples or base.samples,
        test_samples=samples or base.test_samples,
        teacher=Teacher((ends[0], *inner, ends[1]), kind, latents),
    )


def _recipe(name: str, epochs: int | None, second_order: int, tolerance: float) -> Recipe:
    first, *rest = preset(name).recipe.phases
    phases = (replace(first, epochs=epochs or first.epochs), *rest)
    if second_order:
        phases += (Phase("lbfgs", second_order),)
    return Recipe(phases, tolerance)


def _trained(
    designs: list[Design], recipe: Recipe, data: Path | None, device: str, out: Path, resume: bool
) -> LeakySweep:
    _check_folder(out, resume)
    task = None if data is None else read_own_task(data)
    if task is not None:
        designs = [
            replace(design, teacher=None, samples=len(task.x), test_samples=len(task.x_test))
            for design in designs
        ]
    where = check_device(device)
    try:
        with progress_bar("training") as progress:
            return train_networks(
                designs, recipe, task=task, device=where, out=out, resume=resume, progress=progress
            )
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command with --resume goes on", err=True)
        raise


def _check_folder(out: Path, resume: bool) -> None:
    """Networks are written into a folder of their own, or where they were begun."""
    if resume or not out.is_dir():
        return
    if (out / PLAN).exists():
        raise InputError(f"{out} holds trained networks; --resume goes on with them, or give another --out")
    if any(out.iterdir()):
        raise InputError(f"{out} is not empty; give another --out")


def _numbers(option: str, text: str, kind: type) -> list[float]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(f"{option}: expected {what} with commas, got {text!r}") from error


def _dimensions(ranks: str) -> list[tuple[int, ...]]:
    try:
        found = [tuple(int(inner) for inner in part.split("x")) for part in ranks.split(",")]
        if min(itertools.chain(*found)) < 1:
            raise ValueError
    except ValueError as error:
        raise InputError(
            f"--ranks: expected whole numbers from 1 with commas, as 2,3 or 6x3, got {ranks!r}"
        ) from error
    return found


def _say_rank(console: Console, found: LeakySweep) -> None:
    facts, count = found.provenance, len(found.runs)
    networks = "1 network" if count == 1 else f"{count} networks"
    console.print(f"trained {networks} in {facts.seconds:.1f} s on {facts.device}", highlight=False)
    for line in rank_lines(found.runs):
        console.print(line, highlight=False)
