"""`fathometer linearize`: a network with lines instead of the activations that it needs least."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from fathometer.cli import options as opt
from fathometer.cli import resumable
from fathometer.cli.measure import load_model_and_data, skipped_line
from fathometer.cli.outputs import check_writable, print_result, slug
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.cli.tables import TableView
    from fathometer.results.linearized import Linearized

app = opt.new_app()

ReplacementOption: TypeAlias = Annotated[
    Literal["channel", "slope", "identity", "affine"],
    opt.option(
        "WORD",
        "What takes the place of a call: a line for each channel, one slope, the identity, or an affine map "
        "of all channels (for whole modules).",
        "--replacement",
    ),
]
InputsOption: TypeAlias = Annotated[
    int, opt.option("N", "Number of inputs to use of the data.", "--inputs", min=2)
]


@app.command()
@opt.with_options(*opt.measure_options("sites", "activations", "seed"), *opt.loading_options())
def linearize(
    model: opt.ModelArgument,
    data: opt.DataOption,
    budget: Annotated[
        str,
        opt.option(
            "AMOUNT",
            "How much to replace: a number of sites (12, 25%), elements that may stay ('50k elements'), or "
            "percentage points of accuracy that may be lost ('0.5 points').",
        ),
    ],
    criterion: Annotated[
        str,
        opt.option(
            "NAME",
            "How to choose: greedy-kl, kl, quick-kl, taylor, random, depth, or a gauge such as affinity "
            "(-NAME: the smallest first).",
        ),
    ] = "greedy-kl",
    replacement: ReplacementOption = "channel",
    samples: InputsOption = 1024,
    test: Annotated[
        str | None, opt.option("DATA", "Data that the curve is measured on. Default: --data.", "--test")
    ] = None,
    save: Annotated[
        Path | None, opt.option("FILE", "Also save the state dict of the network, by torch.save.", "--save")
    ] = None,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """Replace the activations that a network needs least by straight lines, one after the other.

    The result is one file (default: MODEL-DATA-linearized.json) with what was lost after each step, for
    `fathometer report`, `fathometer plot` or `fathometer.load`. After an interruption, the same command
    resumes. `fathometer sites MODEL --cost --data DATA` shows the cost of each site alone.

    For example:

    - `fathometer linearize torchvision:resnet18 --data photos/ --budget 25%`

    - `fathometer linearize my_nets:build --weights net.pt --data train.npz --budget "0.5 points"`

    - `fathometer linearize hf:gpt2 --data book.txt --sites "module:*.mlp" --replacement affine --budget 3`
    """
    import torch

    from fathometer.cli.tables import TableView
    from fathometer.data import open_data
    from fathometer.linearizing.linearize import linearize as linearized
    from fathometer.results.files import complete_file

    chosen = opt.chosen_options(options)
    out = out or Path(f"{slug(model)}-{slug(data)}-linearized.json")
    check_writable(out, force, (".json",))
    check_writable(save, force, (".pt", ".pth"), "--save")
    if save is not None and options["weights"] == str(save):
        raise InputError("--save: would replace the weights of the original network; give another name")
    journal = out.with_name(f".{out.name}.journal")
    if force:
        journal.unlink(missing_ok=True)
    loaded = load_model_and_data(model, data, chosen.seed, options)
    reading = {name: options[name] for name in ("batch_size", "workers", "length", "strict")}
    held = None if test is None else open_data(test, loaded.model.inputs, seed=chosen.seed, **reading)
    with resumable(can_resume=journal.exists, force=force):
        network = linearized(
            loaded.model,
            loaded.data,
            sites=chosen.sites,
            budget=budget,
            criterion=criterion,
            replacement=replacement,
            activations=[*chosen.activations],
            test=held,
            samples=samples,
            batch_size=options["batch_size"],
            device=loaded.device,
            seed=chosen.seed,
            journal=journal,
            progress=True,
        )
    result: Linearized = network.linearized  # type: ignore[assignment]
    if save is not None:
        with complete_file(save) as part:
            torch.save(network.state_dict(), part)
    result.save(out)
    journal.unlink(missing_ok=True)
    content = {"curve": result.curve, "sites": result.table, "provenance": result.provenance.as_dict()}
    console = print_result(content, _view(result, TableView), as_json)
    for line in (*([skipped_line(loaded.data.skipped)] if loaded.data.skipped else []), result.outcome):
        console.say(line)
    console.say(f"wrote {out}" + (f" and {save}" if save else ""))


def _view(result: Linearized, view: type[TableView]) -> TableView:
    shown = result.curve.drop(columns=["flops", "seconds"]).rename(columns={"replaced": "sites"})
    shown["site"] = shown["site"].where(shown["site"] != "", "(original)")
    facts = result.provenance
    data = facts.settings.get("test", facts.data.get("name", "?"))
    names = f"{facts.model.get('name', '?')} on {data}"
    note = f"divergence: {result.divergence_name} of the outputs; elements: of sites not replaced"
    return view(shown.set_index("sites"), f"{names}, by {facts.settings['criterion']}", note, ".4g")
