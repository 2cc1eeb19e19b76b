"""`fathometer leaky train` and `fathometer leaky sweep`: networks in a folder."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
import torch
import typer
from rich.console import Console

from fathometer.cli.device import check_device
from fathometer.cli.leaky.tables import network_view, rank_line, sweep_view
from fathometer.errors import InputError
from fathometer.leaky import Design, LeakySweep, Phase, Recipe, Task, Teacher, grid, own_task, preset
from fathometer.leaky import sweep as train_networks
from fathometer.leaky.plan import Scheme
from fathometer.leaky.teacher import Latents, TeacherKind
from fathometer.progress import progress_bar

PresetOption: TypeAlias = Annotated[
    Literal["quick", "paper", "literal"],
    typer.Option(
        "--preset",
        help="quick: width 50, 12 layers, 300 samples, 4 s on one core. paper: 100, 20, 1000, two minutes. "
        "literal: the recipe in the paper's own words, which does not converge.",
    ),
]
WidthOption: TypeAlias = Annotated[int | None, typer.Option(help="Width. Default: of the preset.", min=1)]
DecayOption: TypeAlias = Annotated[
    float | None, typer.Option(help="λ₀, the strength of weight decay. Default: of the preset.")
]
TeacherOption: TypeAlias = Annotated[
    TeacherKind, typer.Option(help="The random networks that make the task.")
]
LatentsOption: TypeAlias = Annotated[
    Latents, typer.Option(help="What lies between them. From centred ones, rank k + 1 is learned.")
]
DataOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Your own task, an .npz with x and y, [samples, features], and x_test and y_test."),
]
SamplesOption: TypeAlias = Annotated[
    int | None, typer.Option(help="To train with, and as many to test. Default: of the preset.", min=2)
]
EpochsOption: TypeAlias = Annotated[
    int | None, typer.Option(help="Of the first phase. Default: of the preset.", min=1)
]
SecondOrderOption: TypeAlias = Annotated[
    int, typer.Option(help="Evaluations of L-BFGS in float64 after the rest; 0 for none.", min=0)
]
ToleranceOption: TypeAlias = Annotated[
    float, typer.Option(help="Stop as soon as crit is below; 0 for never.", min=0)
]
DeviceOption: TypeAlias = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:1; auto takes a GPU if there is one.")
]
ResumeOption: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")
]


def train(
    depth: Annotated[
        float | None,
        typer.Option(help="L̃, the effective depth; 0 is a plain ResNet. Default: of the preset."),
    ] = None,
    rank: Annotated[int, typer.Option(help="k*, the bottleneck of the task.", min=1)] = 3,
    preset_name: PresetOption = "quick",
    layers: Annotated[int | None, typer.Option(help="L. Default: of the preset.", min=1)] = None,
    width: WidthOption = None,
    decay: DecayOption = None,
    scheme: Annotated[Scheme, typer.Option(help="How the steps ρ are laid.")] = "equidistant",
    teacher: TeacherOption = "fcnn",
    latents: LatentsOption = "relu",
    data: DataOption = None,
    samples: SamplesOption = None,
    epochs: EpochsOption = None,
    second_order: SecondOrderOption = 0,
    tolerance: ToleranceOption = 0.0,
    seed: Annotated[int, typer.Option(help="Of weights and teacher.", min=0)] = 0,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None, typer.Option(help="The folder to write. Default: leaky-DEPTH-RANK-SEED.")
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
    base = replace(base, effective_depth=depth, layers=layers or base.layers, scheme=scheme)
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
        str, typer.Option(help="Effective depths L̃, with commas. Default: the paper's.")
    ] = "1,2,3,5,7,10,14,19",
    ranks: Annotated[str, typer.Option(help="k*, with commas; 6x3 for two inner dimensions.")] = "3",
    layers: Annotated[str | None, typer.Option(help="L, with commas. Default: of the preset.")] = None,
    schemes: Annotated[
        str, typer.Option(help="Of equidistant, irregular, adaptive, with commas.")
    ] = "equidistant",
    seeds: Annotated[int, typer.Option(help="How many of them.", min=1)] = 3,
    preset_name: PresetOption = "paper",
    width: WidthOption = None,
    decay: DecayOption = None,
    teacher: TeacherOption = "fcnn",
    latents: LatentsOption = "relu",
    data: DataOption = None,
    samples: SamplesOption = None,
    epochs: EpochsOption = None,
    second_order: SecondOrderOption = 0,
    tolerance: ToleranceOption = 0.0,
    device: DeviceOption = "auto",
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("leaky-sweep"),
    resume: ResumeOption = False,
) -> None:
    """Train many Leaky ResNets together: every depth, rank, number of layers, scheme and seed.

    On a GPU all networks of one shape are one stack, on a CPU there is one in each thread. An interrupted
    sweep goes on with `--resume` to the same result.

    For instance:

    - `fathometer leaky sweep --depths 1,2,3,5,7,10,14,19 --seeds 3`, Figures 1 and 3

    - `fathometer leaky sweep --depths 3 --layers 6,10,18 --ranks 6x3 --teacher resnet
      --schemes equidistant,irregular,adaptive --seeds 16`, Figure 2

    - `fathometer leaky sweep --preset quick --depths 8 --ranks 2,3,4,5`
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
    task = None if data is None else _own_task(data)
    if task is not None:
        designs = [
            replace(design, teacher=None, samples=len(task.x), test_samples=len(task.x_test))
            for design in designs
        ]
    where = check_device(device)
    with progress_bar("training") as progress:
        return train_networks(
            designs, recipe, task=task, device=where, out=out, resume=resume, progress=progress
        )


def _own_task(path: Path) -> Task:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: torch.from_numpy(np.asarray(file[name], dtype=np.float64)) for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"--data {path}: expected an .npz with arrays x and y ({error})") from error
    if not {"x", "y"} <= set(arrays):
        raise InputError(f"--data {path}: expected arrays x and y, got {', '.join(arrays) or 'none'}")
    return own_task(arrays["x"], arrays["y"], arrays.get("x_test"), arrays.get("y_test"))


def _numbers(option: str, text: str, kind: type) -> list[float]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} {text}: expected numbers with commas between them") from error


def _dimensions(ranks: str) -> list[tuple[int, ...]]:
    try:
        return [tuple(int(inner) for inner in part.split("x")) for part in ranks.split(",")]
    except ValueError as error:
        raise InputError(f"--ranks {ranks}: expected whole numbers with commas, as 2,3 or 6x3") from error


def _say_rank(console: Console, found: LeakySweep) -> None:
    seconds = found.provenance.seconds
    console.print(
        f"{len(found.runs)} trained in {seconds:.1f} s on {found.provenance.device}", highlight=False
    )
    console.print(rank_line(found.runs), highlight=False)
