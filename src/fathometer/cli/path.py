"""`fathometer path`: the residual path of a network by name, and its bottleneck."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from fathometer.capture import Reduction
from fathometer.cli.naming import skipped_line, slug
from fathometer.cli.options import (
    BatchesOption,
    BatchSizeOption,
    ChannelAxisOption,
    DataOption,
    DeviceOption,
    DtypeOption,
    ForceOption,
    GammaOption,
    LeftoverOption,
    LengthOption,
    ModelArgument,
    ReductionOption,
    SamplesOption,
    SeedOption,
    ShuffleOption,
    StrictOption,
    WeightsOption,
    WorkersOption,
    out_option,
)
from fathometer.cli.outputs import check_sounding_file
from fathometer.cli.tables import bar
from fathometer.measuring.subject import load_subject
from fathometer.progress import Terminal, progress_bar
from fathometer.residual import bottleneck, residual_path
from fathometer.results.sounding import Sounding

_COLUMNS = {  # as many as there is room for
    "cost_of_identity": "COI",
    "speed": "speed",
    "affinity": "affinity",
    "stable_rank_centred": "centred rank",
    "nonnegativity_energy": "energy ≥ 0",
    "rms": "rms",
}
_FRAME = 42  # what a row takes beside the name and the columns above
_CELL = 11
_FEW_CARRIERS = 0.1


def path(
    model: ModelArgument,
    data: DataOption,
    weights: WeightsOption = "default",
    blocks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BLOCK",
            help="The modules to measure, a pattern of names or a class. Repeatable. Default: those that add "
            "their input to their output.",
        ),
    ] = None,
    sigma: Annotated[
        str | None,
        typer.Option(metavar="σ", help="The activation, such as relu. Default: each block's own."),
    ] = None,
    gamma: GammaOption = 1e-3,
    samples: SamplesOption = 512,
    batches: BatchesOption = None,
    reduction: ReductionOption = "mean",
    channel_axis: ChannelAxisOption = None,
    leftover: LeftoverOption = "drop",
    batch_size: BatchSizeOption = 32,
    workers: WorkersOption = 0,
    device: DeviceOption = "auto",
    dtype: DtypeOption = None,
    seed: SeedOption = 0,
    shuffle: ShuffleOption = True,
    strict: StrictOption = False,
    length: LengthOption = None,
    out: Annotated[
        Path | None,
        out_option("FILE", "The file to write, .json or .parquet. Default: MODEL-DATA-path.json."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Follow the representation along the residual blocks of a network: where is its bottleneck?

    After every block: the stable rank, the cost of identity (COI) with the block's own activation, and the
    speed. The result is one file, a sounding for `fathometer show`, `fathometer plot` or `fathometer.load`.

    For instance:

    - `fathometer path torchvision:resnet50 --data photos/`

    - `fathometer path hf:gpt2 --data book.txt --reduction tokens`

    - `fathometer path torchvision:vgg16 --data photos/ --blocks Conv2d`
    """
    out = out or Path(f"{slug(model)}-{slug(data)}-path.json")
    check_sounding_file(out, force)
    network, source, where = load_subject(
        model,
        data,
        weights=weights,
        device=device,
        dtype=dtype,
        seed=seed,
        batch_size=batch_size,
        shuffle=shuffle,
        workers=workers,
        strict=strict,
        length=length,
    )
    with progress_bar("measuring") as progress:
        sounding = residual_path(
            network,
            source,
            blocks=blocks,
            sigma=sigma,
            gamma=gamma,
            samples=samples,
            batches=batches,
            reduction=Reduction(reduction, channel_axis=channel_axis, seed=seed),
            leftover=leftover,
            batch_size=batch_size,
            device=where,
            seed=seed,
            progress=progress,
        )
    sounding.save(out)
    console = Terminal()
    console.print(path_table(sounding, console.width))
    for line in _remarks(sounding, source.skipped):
        console.print(line, soft_wrap=True)
    console.print(f"wrote {out}", soft_wrap=True)
    console.print(f"bottleneck: {bottleneck(sounding)}", soft_wrap=True)


def path_table(path: Sounding, room: int) -> Table:
    """A row for each block, after one for the input of the first."""
    facts = path.provenance
    sigma = facts.settings["path"]["sigma"]
    title = f"{facts.model.get('name', '?')} on {facts.data.get('name', '?')}"
    own = sigma if isinstance(sigma, dict) else {}  # of each block, where they differ
    words = "each block's own" if own else sigma or "unknown: no activation was called"
    view = Table(title=Text(title), caption=f"mean over batches; σ is {words}")
    view.add_column("block", overflow="fold")
    longest = max(len(site.name) for site in path.sites)
    columns = {gauge: text for gauge, text in _COLUMNS.items() if gauge in path.gauges}
    fitting = max(2, (room - _FRAME - longest) // _CELL - bool(own))
    columns = dict(list(columns.items())[:fitting])
    if own:
        view.add_column("σ", overflow="fold")
    for head in ("width", "stable rank"):
        view.add_column(head, justify="right", no_wrap=True)
    view.add_column("", width=10, no_wrap=True)
    for text in columns.values():
        view.add_column(text, justify="right")
    ranks, start = path.mean("stable_rank"), float(path.mean("stable_rank_in").iloc[0])
    top = max(start, float(ranks.max()), 1.0)
    view.add_row(
        "input", *([""] if own else []), "", f"{start:.2f}", bar(start / top, 10), *("" for _ in columns)
    )
    width = path.records.groupby("site", sort=False)["d"].first()
    means = {gauge: path.mean(gauge) for gauge in columns}
    for site in (site.name for site in path.sites):
        cells = (f"{means[gauge][site]:.3f}" for gauge in columns)
        cells = ("–" if cell == "nan" else cell for cell in cells)
        names = [Text(site), *([own[site]] if own else [])]
        view.add_row(*names, str(width[site]), f"{ranks[site]:.2f}", bar(ranks[site] / top, 10), *cells)
    return view


def _remarks(path: Sounding, skipped: list[str]) -> list[str]:
    speed = path.mean("speed")
    missing = [str(site) for site in speed.index if math.isnan(speed[site])]
    few = path.records[path.records["n"] < path.records["d"]]
    carriers = path.mean("carriers")
    lines = []
    if carriers.min() < _FEW_CARRIERS:
        lines.append(
            f"a few samples carry the norm of {int((carriers < _FEW_CARRIERS).sum())} blocks "
            f"({carriers.min():.1%} of them at {carriers.idxmin()}): the numbers there are theirs"
        )
    if missing:
        lines.append(f"no speed where the width changes: {', '.join(missing)}")
    if len(few):
        lines.append(
            f"{few['site'].nunique()} blocks are wider than the {int(few['n'].max())} samples, "
            "which bound their ranks: more samples would show more"
        )
    if skipped:
        lines.append(skipped_line(skipped))
    return lines
