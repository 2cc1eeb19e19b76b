"""`fathometer sites`: what would be measured."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fathometer.cli import options as opt
from fathometer.cli.linearize import InputsOption, ReplacementOption
from fathometer.cli.measure import load_model_and_data
from fathometer.cli.outputs import print_result
from fathometer.errors import FathometerError, ForwardError, InputError, first_line

app = opt.new_app()

_WITHOUT_COST = ("model", "weights", "cost", "sites", "residual", "activations", "call", "as_json")


@app.command()
@opt.with_options(
    *opt.measure_options("sites", "residual", "activations", "seed", "call"), *opt.loading_options()
)
def sites(
    model: opt.ModelArgument,
    context: typer.Context,
    weights: opt.WeightsOption = "none",
    cost: Annotated[
        bool, opt.flag("--cost", "Measure what it costs to replace each activation by lines; needs --data.")
    ] = False,
    data: opt.DataOption = "",
    criteria: Annotated[
        str,
        opt.option(
            "NAMES",
            "What --cost shows, separated by commas: kl, quick-kl, taylor, or gauges, such as affinity.",
            "--criteria",
        ),
    ] = "kl",
    replacement: ReplacementOption = "channel",
    samples: InputsOption = 1024,
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """List the sites of a network: the calls of activation functions in one forward pass, on noise.

    Weights do not change which sites there are, so none are loaded by default.

    With `--cost` and `--data`, the default weights are loaded, and each site is replaced by lines in turn:
    `kl` is the divergence of the outputs that this causes, `quick-kl` the same on few inputs, `r2` the share
    of the variance that the lines explain.

    For example:

    - `fathometer sites torchvision:resnet50`

    - `fathometer sites torchvision:resnet18 --cost --data photos/`

    - `fathometer sites torchvision:vit_b_16 --sites module:EncoderBlock --json`

    - `fathometer sites hf:gpt2 --sites mlp,attention,block --residual both`
    """
    import msgspec
    import pandas as pd
    import torch

    from fathometer.capture import watch
    from fathometer.cli.tables import TableView
    from fathometer.data import open_data
    from fathometer.measuring.batches import run
    from fathometer.measuring.texts import missing_input
    from fathometer.models import load_model

    chosen = opt.chosen_options(options)
    if cost:
        if not data:
            raise InputError("--cost needs --data: costs are measured on data")
        if chosen.call is not None:
            raise InputError("is not supported with --cost", parameter="call")
        options["weights"] = weights if "weights" in opt.given_options(context) else "default"
        _costs(model, data, criteria, chosen, replacement, samples, as_json, options)
        return
    opt.refuse_unused(context, _WITHOUT_COST, "a list of sites without --cost")
    loaded = load_model(model, weights)
    source = open_data("random:1", loaded.inputs, batch_size=1)  # every network accepts it
    with (
        torch.no_grad(),
        watch(
            loaded.module,
            sites=chosen.sites,
            activations=[*chosen.activations],
            residual=chosen.residual,
            widths="any",
        ) as record,
    ):
        try:
            run(loaded.module, next(iter(source)), torch.device("cpu"), chosen.call)
        except FathometerError:
            raise
        except Exception as error:
            raise ForwardError(
                f"{model}: failed on noise of shape {list(loaded.inputs.shape)} ({type(error).__name__}: "
                f"{first_line(error)}){missing_input(loaded.module, None)}"
            ) from error
    found = [
        {"name": site.name, **msgspec.to_builtins(site), "width": int(pair.x.shape[1])}
        for site, pair in record.pairs.items()
    ]
    if not found and not as_json:
        called = ", ".join(site.name for site in record.called[:8]) or "none"
        raise InputError(f"no such site in {model}; the activation calls are: {called}", parameter="sites")
    columns = ["name", "kind", "layer", "operator", "width"]
    shown = pd.DataFrame(found, columns=columns).rename(columns={"name": "site"}).convert_dtypes()
    if set(shown["kind"]) <= {"activation"}:
        shown = shown.drop(columns=["kind", "layer"])
    print_result(found, TableView(shown.set_index("site"), f"{len(found)} sites of {model}"), as_json)


def _costs(
    model: str,
    data: str,
    criteria: str,
    chosen: Any,
    replacement: Any,
    samples: int,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Show what it costs to replace each site, the cheapest first."""
    from fathometer.cli.tables import TableView
    from fathometer.linearizing import site_costs
    from fathometer.linearizing.criteria import smallest_first

    loaded = load_model_and_data(model, data, chosen.seed, options)
    found = site_costs(
        loaded.model,
        loaded.data,
        criteria,
        sites=chosen.sites,
        replacement=replacement,
        activations=[*chosen.activations],
        samples=samples,
        batch_size=options["batch_size"],
        device=loaded.device,
        seed=chosen.seed,
        progress=True,
    )
    first, *_ = names = criteria.replace(" ", "").split(",")
    found = found.sort_values(found.columns[-len(names)], ascending=smallest_first(first))
    title = f"{len(found)} sites of {model} on {data}, in the order in which {first} would replace them"
    notes = {
        "kl": "kl: divergence of the outputs if the site alone is replaced",
        "quick-kl": "quick-kl: the same, on few inputs",
        "taylor": "taylor: first-order change of the loss",
    }
    shown = [text for name, text in notes.items() if name in names]
    note = "; ".join([*shown, "r2: share of the variance that the lines explain"])
    print_result(found, TableView(found, title, note, ".3g"), as_json)
