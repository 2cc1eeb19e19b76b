"""`fathometer show`: a sounding as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fathometer.cli import options as opt
from fathometer.cli.outputs import check_writable, print_result, write_files

if TYPE_CHECKING:
    from fathometer.results.sounding import Sounding

app = opt.new_app()


@app.command()
def show(
    file: Annotated[
        str, opt.argument("FILE", "A .json or .parquet file of `fathometer measure`; path or URL.")
    ],
    gauge: opt.GaugeOption = None,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
) -> None:
    """Show a sounding: a gauge at every site with a bar, or the parts of a transformer by layer.

    `--out` writes a .csv with every gauge of every site and batch.

    For example:

    - `fathometer show resnet18-photos.json`

    - `fathometer show resnet18-photos.json --gauge stable_rank_x --out ranks.csv`

    - `fathometer show s3://bucket/results/resnet18.json --json`
    """
    from rich.console import Group
    from rich.text import Text

    from fathometer.cli.layers_view import layers_view
    from fathometer.cli.results import choose_gauge, read_sounding
    from fathometer.cli.tables import sounding_json, sounding_view
    from fathometer.results.provenance import weights_identity

    sounding = read_sounding(file)
    layers = layers_view(sounding) if gauge is None else None
    gauge = choose_gauge(gauge, [sounding])
    check_writable(out, force, (".csv",))
    facts = sounding.provenance
    settings = facts.settings
    pooling = _pooling(settings.get("reduction"))
    inputs, unit = ("texts", " tokens") if pooling == "tokens" else ("samples", "")
    lines = [
        f"{facts.model.get('class', '?')}, {_count(facts.model.get('parameters', 0))} parameters, "
        f"checksum {weights_identity(facts.model)[:12] or '?'}…",
        f"{facts.data.get('samples_measured', '?')} {inputs} in batches of "
        f"{settings.get('samples', '?')}{unit}, reduced by {pooling}, seed {settings.get('seed', '?')}",
        f"{facts.device}, {facts.date}, {facts.seconds:.1f} s, "
        + ", ".join(f"{name} {version}" for name, version in list(facts.versions.items())[:3]),
        f"gauges: {', '.join(sounding.gauges)}",
    ]
    below = [*map(Text, _checked(sounding)), *(Text(line, style="dim") for line in lines)]
    view = layers or sounding_view(sounding, gauge)
    console = print_result(sounding_json(sounding), Group(view, *below), as_json)
    write_files({out: sounding.records} if out else {}, console)


def _checked(sounding: Sounding) -> list[str]:
    """Say in one line what a check finds; nothing if no rule could be applied."""
    found = sounding.check()
    if not found.applied:
        return []
    first = f"; first: {found.findings[0].sentence}" if found.findings else ""
    return [f"check: {found.summary}{first}"]


def _count(number: object) -> str:
    return f"{number:,}" if isinstance(number, int) else str(number)  # a file may hold anything


def _pooling(reduction: object) -> str:
    return str(reduction.get("pooling", "?") if isinstance(reduction, dict) else "?")
