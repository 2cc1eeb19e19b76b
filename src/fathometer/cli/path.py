"""`fathometer path`: the residual path of a network by name, and its bottleneck."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fathometer.cli import options as opt
from fathometer.cli.measure import load_model_and_data, skipped_line
from fathometer.cli.outputs import check_writable, print_result, slug

if TYPE_CHECKING:
    from fathometer.cli.tables import TableView
    from fathometer.results.sounding import Sounding

app = opt.new_app()

_COLUMNS = {
    "cost_of_identity": "COI",
    "speed": "speed",
    "affinity": "affinity",
    "stable_rank_centred": "centred rank",
    "nonnegativity_energy": "energy ≥ 0",
    "rms": "rms",
}
_MIN_PARTICIPATION = 0.1


@app.command()
@opt.with_options(
    *opt.measure_options("samples", "batches", "reduction", "channel_axis", "leftover", "seed", "call"),
    *opt.loading_options(),
)
def path(
    model: opt.ModelArgument,
    data: opt.DataOption,
    blocks: Annotated[
        list[str] | None,
        opt.option(
            "BLOCK",
            "The modules to measure, a pattern of names or a class. Repeatable. Default: those that add "
            "their input to their output.",
        ),
    ] = None,
    sigma: opt.SigmaOption = None,
    gamma: opt.GammaOption = 1e-3,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
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
    from fathometer.cli.tables import sounding_json
    from fathometer.residual import bottleneck, residual_path

    chosen = opt.chosen_options(options)
    out = out or Path(f"{slug(model)}-{slug(data)}-path.json")
    check_writable(out, force, (".json", ".parquet"))
    loaded = load_model_and_data(model, data, chosen.seed, options)
    sounding = residual_path(
        loaded.model,
        loaded.data,
        chosen,
        blocks=blocks,
        sigma=sigma,
        gamma=gamma,
        batch_size=options["batch_size"],
        device=loaded.device,
        progress=True,
    )
    sounding.save(out)
    console = print_result(sounding_json(sounding), _path_view(sounding), as_json)
    for line in (
        *_remarks(sounding, loaded.data.skipped),
        f"wrote {out}",
        f"bottleneck: {bottleneck(sounding)}",
    ):
        console.say(line)


def _path_view(path: Sounding) -> TableView:
    """Show a row for each block, after one for the input of the first."""
    import pandas as pd

    from fathometer.cli.tables import TableView, bar

    facts = path.provenance
    sigma = facts.settings["path"]["sigma"]
    by_block = sigma if isinstance(sigma, dict) else {}  # where blocks have different activations
    ranks, start = path.mean("stable_rank"), float(path.mean("stable_rank_in").iloc[0])
    top = max(start, float(ranks.max()), 1.0)
    frame = pd.DataFrame(index=pd.Index(["input", *(site.name for site in path.sites)], name="block"))
    if by_block:
        frame["σ"] = ["", *(by_block[site.name] for site in path.sites)]
    frame["width"] = pd.Series(["", *path.records.groupby("site", sort=False)["d"].first()], frame.index)
    frame["stable rank"] = [start, *ranks]
    frame[""] = [bar(rank / top, 10) for rank in (start, *ranks)]
    columns = {gauge: heading for gauge, heading in _COLUMNS.items() if gauge in path.gauges}
    for gauge, heading in columns.items():
        frame[heading] = pd.Series(["", *path.mean(gauge)], frame.index, dtype=object)
    words = "each block's own" if by_block else sigma or "unknown: no activation was called"
    return TableView(
        frame,
        f"{facts.model.get('name', '?')} on {facts.data.get('name', '?')}",
        f"mean over batches; σ is {words}",
        optional=list(columns.values())[2:],
    )


def _remarks(path: Sounding, skipped: list[str]) -> list[str]:
    speed = path.mean("speed")
    missing = [str(site) for site in speed.index if math.isnan(speed[site])]
    few = path.records[path.records["n"] < path.records["d"]]
    share = path.mean("participation")
    lines = []
    if share.min() < _MIN_PARTICIPATION:
        lines.append(
            f"a few samples carry the norm of {int((share < _MIN_PARTICIPATION).sum())} blocks "
            f"({share.min():.1%} of them at {share.idxmin()}): the values there describe these few"
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
