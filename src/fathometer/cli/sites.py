"""`fathometer sites`: what would be measured."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fathometer.cli.options import (
    JsonOption,
    ModelArgument,
    WeightsOption,
    measure_flags,
    new_app,
    split_options,
)
from fathometer.cli.outputs import print_json
from fathometer.errors import FathometerError, ForwardError, InputError, first_line

app = new_app()


@app.command()
@measure_flags("sites", "activations")
def sites(
    model: ModelArgument,
    weights: WeightsOption = "none",
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """List the sites of a network: the calls of activation functions in one forward pass, on noise.

    Weights do not change which sites there are, so none are loaded by default.

    For example:

    - `fathometer sites torchvision:resnet50`

    - `fathometer sites torchvision:vit_b_16 --sites module:EncoderBlock --json`
    """
    import torch
    from rich.table import Table
    from rich.text import Text

    from fathometer.capture import watch
    from fathometer.data import open_data
    from fathometer.measuring.batches import run
    from fathometer.measuring.options import MeasureOptions
    from fathometer.models import load_model
    from fathometer.progress import Terminal

    chosen = MeasureOptions.from_plain(split_options(options)[0])
    loaded = load_model(model, weights)
    source = open_data("random:1", loaded.inputs, batch_size=1)  # every network accepts it
    with torch.no_grad(), watch(loaded.module, sites=chosen.sites, activations=[*chosen.activations]) as seen:
        try:
            run(loaded.module, next(iter(source)), torch.device("cpu"), None)
        except FathometerError:
            raise
        except Exception as error:
            raise ForwardError(
                f"{model}: failed on noise of shape {list(loaded.inputs.shape)} ({type(error).__name__}: "
                f"{first_line(error)})"
            ) from error
    found = [
        {"name": site.name, **asdict(site), "width": int(pair.x.shape[1])}
        for site, pair in seen.pairs.items()
    ]
    if as_json:
        print_json(found)
        return
    if not found:
        called = ", ".join(site.name for site in seen.called[:8]) or "none"
        raise InputError(f"no such site in {model}; the activation calls are: {called}", parameter="sites")
    view = Table(title=Text(f"{len(found)} sites of {model}"))
    for column in ("site", "operator"):
        view.add_column(column, overflow="fold")
    view.add_column("width", justify="right")
    for entry in found:
        view.add_row(Text(str(entry["name"])), Text(str(entry["operator"])), str(entry["width"]))
    Terminal().print(view)
