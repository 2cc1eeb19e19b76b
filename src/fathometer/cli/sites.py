"""`fathometer sites`: what would be measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import torch
import typer
from rich.table import Table
from rich.text import Text

from fathometer.capture import watch
from fathometer.cli.options import ActivationOption, ModelArgument, SitesOption, WeightsOption
from fathometer.data import open_data
from fathometer.errors import FathometerError, ForwardError, InputError, first_line
from fathometer.measuring.batches import run
from fathometer.models import load_model
from fathometer.models.user_code import import_by_name
from fathometer.progress import Terminal


def sites(
    model: ModelArgument,
    weights: WeightsOption = "none",
    sites: SitesOption = None,
    activation: ActivationOption = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="A JSON list, for programs.")] = False,
) -> None:
    """List the sites of a network: the calls of activation functions in one forward pass, on noise.

    Weights do not change which sites there are, so none are loaded unless you ask for them.

    For instance:

    - `fathometer sites torchvision:resnet50`

    - `fathometer sites torchvision:vit_b_16 --sites module:EncoderBlock --json`
    """
    loaded = load_model(model, weights)
    source = open_data("random:1", loaded.inputs, batch_size=1)  # which any network takes
    own = [import_by_name(name, "--activation") for name in activation or ()]
    with torch.no_grad(), watch(loaded.module, sites=sites, activations=own) as seen:
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
        typer.echo(json.dumps(found, indent=1))
        return
    if not found:
        called = ", ".join(site.name for site in seen.called[:8]) or "none"
        raise InputError(f"{model}: no such site; the activation calls seen are: {called}")
    view = Table(title=Text(f"{len(found)} sites of {model}"))
    for column in ("site", "operator"):
        view.add_column(column, overflow="fold")
    view.add_column("width", justify="right")
    for entry in found:
        view.add_row(Text(str(entry["name"])), Text(str(entry["operator"])), str(entry["width"]))
    Terminal().print(view)
