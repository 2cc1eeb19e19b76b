"""`fathometer sites`: what would be measured."""

from __future__ import annotations

from typing import Any

from fathometer.cli import options as opt
from fathometer.cli.outputs import print_result
from fathometer.errors import FathometerError, ForwardError, InputError, first_line

app = opt.new_app()


@app.command()
@opt.with_options(*opt.measure_options("sites", "residual", "activations"))
def sites(
    model: opt.ModelArgument,
    weights: opt.WeightsOption = "none",
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """List the sites of a network: the calls of activation functions in one forward pass, on noise.

    Weights do not change which sites there are, so none are loaded by default.

    For example:

    - `fathometer sites torchvision:resnet50`

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
            run(loaded.module, next(iter(source)), torch.device("cpu"), None)
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
