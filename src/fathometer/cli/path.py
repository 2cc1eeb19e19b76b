"""`fathometer path`: the residual path of a network by name, and its bottleneck."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathometer.cli.measure import skipped_line
from fathometer.cli.options import (
    BatchSizeOption,
    DataOption,
    DeviceOption,
    ForceOption,
    GammaOption,
    JsonOption,
    ModelArgument,
    OutOption,
    SigmaOption,
    WeightsOption,
    WorkersOption,
    measure_flags,
    new_app,
    split_options,
)
from fathometer.cli.outputs import check_writable, print_result, slug

if TYPE_CHECKING:
    from rich.table import Table

    from fathometer.results.sounding import Sounding

app = new_app()

_COLUMNS = {  # as many as fit
    "cost_of_identity": "COI",
    "speed": "speed",
    "affinity": "affinity",
    "stable_rank_centred": "centred rank",
    "nonnegativity_energy": "energy ≥ 0",
    "rms": "rms",
}
_FRAME = 42  # characters of a row beside the name and the columns above
_CELL = 11
_FEW_CARRIERS = 0.1


@app.command()
@measure_flags(
    *("samples", "batches", "reduction", "channel_axis", "leftover", "seed"),
    *("dtype", "length", "shuffle", "strict"),
)
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
    sigma: SigmaOption = None,
    gamma: GammaOption = 1e-3,
    batch_size: BatchSizeOption = 32,
    workers: WorkersOption = 0,
    device: DeviceOption = "auto",
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Follow the representation along the residual blocks of a network, and find its bottleneck.

    After every block: the stable rank, the cost of identity (COI) with the block's own activation (or
    `--sigma`), and the speed. The result is one file, .json or .parquet (default: MODEL-DATA-path.json), a
    sounding for `fathometer show`, `fathometer plot` or `fathometer.load`.

    For example:

    - `fathometer path torchvision:resnet50 --data photos/`

    - `fathometer path hf:gpt2 --data book.txt --reduction tokens`

    - `fathometer path torchvision:vgg16 --data photos/ --blocks Conv2d`
    """
    from fathometer.cli.measure import load_model_and_data
    from fathometer.cli.tables import sounding_json
    from fathometer.measuring.options import MeasureOptions
    from fathometer.progress import progress_bar
    from fathometer.residual import bottleneck, residual_path

    measuring, opening = split_options(options)
    chosen = MeasureOptions.from_plain(measuring)
    out = out or Path(f"{slug(model)}-{slug(data)}-path.json")
    check_writable(out, force, (".json", ".parquet"))
    network, source, where = load_model_and_data(
        model,
        data,
        weights=weights,
        device=device,
        seed=chosen.seed,
        batch_size=batch_size,
        workers=workers,
        **opening,
    )
    with progress_bar("measuring") as progress:
        sounding = residual_path(
            network,
            source,
            chosen,
            blocks=blocks,
            sigma=sigma,
            gamma=gamma,
            batch_size=batch_size,
            device=where,
            progress=progress,
        )
    sounding.save(out)
    console = print_result(
        sounding_json(sounding), lambda console: path_table(sounding, console.width), as_json
    )
    for line in (*_remarks(sounding, source.skipped), f"wrote {out}", f"bottleneck: {bottleneck(sounding)}"):
        console.say(line)


def path_table(path: Sounding, room: int) -> Table:
    """Show a row for each block, after one for the input of the first."""
    from rich.table import Table
    from rich.text import Text

    from fathometer.cli.tables import bar

    facts = path.provenance
    sigma = facts.settings["path"]["sigma"]
    title = f"{facts.model.get('name', '?')} on {facts.data.get('name', '?')}"
    own = sigma if isinstance(sigma, dict) else {}  # by block, where they differ
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
            f"({carriers.min():.1%} of them at {carriers.idxmin()}): the values there describe these few"
        )
    if missing:
        lines.append(f"no speed where the width changes: {', '.join(missing)}")
    if len(few):
        lines.append(
            f"{few['site'].nunique()} blocks are wider than the {int(few['n'].max())} samples, "
            "which limits their ranks; use more samples"
        )
    if skipped:
        lines.append(skipped_line(skipped))
    return lines
