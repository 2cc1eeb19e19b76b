"""`fathometer check`: what is wrong with a network, in sentences; the exit code says how bad it is."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathometer.cli import options as opt
from fathometer.cli.measure import load_model_and_data
from fathometer.cli.outputs import check_writable, print_result
from fathometer.errors import InputError
from fathometer.results.severity import Severity

if TYPE_CHECKING:
    from rich.console import Group

    from fathometer.results.checkup import Checkup

app = opt.new_app()
log = logging.getLogger(__name__)

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@app.command()
@opt.with_options(
    *opt.measure_options("samples", "batches", "sites", "activations", "reduction", "seed", "call"),
    *opt.loading_options(),
)
def check(
    context: typer.Context,
    model: Annotated[
        str,
        opt.argument("MODEL", "A network by name, as for `fathometer measure`; or the file of a sounding."),
    ],
    data: Annotated[str | None, opt.option("DATA", opt.DATA_HELP, "--data")] = None,
    fail_on: Annotated[
        Severity,
        opt.option("SEVERITY", "Exit code 1 from this severity on: error, warning or note.", "--fail-on"),
    ] = "error",
    name: opt.NameOption = None,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """Check a network: say what is wrong with it, why that matters, and what to try.

    It looks at the activations, the weights, BatchNorm, the inputs and, where the data have labels, at the
    accuracy, in one pass over a batch of samples. `--out` writes a .json file, which `fathometer.load` reads.

    The exit code is 0 if nothing as severe as `--fail-on` was found, otherwise 1.

    For example:

    - `fathometer check torchvision:resnet18 --data photos/`

    - `fathometer check my_package.nets:build --weights best.pt --data test.npz --fail-on warning`

    - `fathometer check resnet18-photos.json` (an existing sounding: rules that need the network are skipped)
    """
    import fathometer
    from fathometer.cli.results import read_sounding

    check_writable(out, force, (".json",))
    if data is None:
        if not Path(model).is_file():
            raise InputError("needs --data, or the file of a sounding as MODEL", parameter="model")
        opt.refuse_unused(
            context, ("model", "data", "fail_on", "out", "force", "as_json"), "the check of a sounding"
        )
        found = read_sounding(model).check()
    else:
        log.info("loading %s (weights: %s) and %s", model, options["weights"], data)
        loaded = load_model_and_data(model, data, options["seed"], options)
        chosen = opt.chosen_options(options)
        names = ("samples", "batches", "sites", "activations", "reduction", "seed", "call")
        given = {name: getattr(chosen, name) for name in names if name in opt.given_options(context)}
        found = fathometer.check(
            loaded.model,
            loaded.data,
            batch_size=options["batch_size"],
            device=loaded.device,
            name=name,
            progress=True,
            **given,
        )
    console = print_result(found.to_plain(), checkup_view(found), as_json)
    if out is not None:
        console.say(f"wrote {found.save(out)}")
    if found.at_least(fail_on):
        raise typer.Exit(1)


def checkup_view(checkup: Checkup) -> Group:
    """Show the findings of each rule with why they matter and what to try."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from fathometer.results.checkup import MAX_PLACES, skipped_lines

    facts = checkup.provenance
    name = f"{facts.model.get('name', 'network')} on {facts.data.get('name', 'data')}"
    parts: list[Any] = [Text(f"{name}: {checkup.summary}", style="bold")]
    for group in checkup.groups():
        first = group[0]
        parts.append(Text())
        for finding in group[:MAX_PLACES]:
            parts.append(
                Text.assemble(
                    (finding.severity, _STYLES[finding.severity]), f"  {finding.sentence} [{finding.rule}]"
                )
            )
        below = [f"… and at {len(group) - MAX_PLACES} more places"] if len(group) > MAX_PLACES else []
        below += [first.why, f"Try: {first.advice}"]
        parts += [Padding(Text(line), (0, 0, 0, 2)) for line in below]
    if checkup.skipped:
        parts += [Text(), *(Text(line, style="dim") for line in skipped_lines(checkup.skipped))]
    return Group(*parts)
