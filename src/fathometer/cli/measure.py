"""`fathometer measure`: a network and data by name, a sounding in a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from rich.console import Console

from fathometer.capture import Pooling, Reduction
from fathometer.cli.device import check_device
from fathometer.cli.options import ActivationOption, SitesOption
from fathometer.cli.outputs import check_writable
from fathometer.cli.tables import sounding_view
from fathometer.data import open_data
from fathometer.errors import InputError
from fathometer.gauges.registry import GAUGES, Gauge
from fathometer.measure import measure as measure_network
from fathometer.models import load_model
from fathometer.progress import progress_bar
from fathometer.user_code import import_by_name

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def measure(
    model: Annotated[
        str,
        typer.Argument(
            help="torchvision:resnet50, timm:vit_tiny_patch16_224, hf:gpt2 or hf:FOLDER, onnx:FILE, "
            "or package.module:factory."
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            help="A folder of images, CIFAR binaries, an .npz, a text file, or random (random:1000)."
        ),
    ],
    weights: Annotated[
        str, typer.Option(help="default (downloaded if need be), none (random ones), or a file of tensors.")
    ] = "default",
    samples: Annotated[int, typer.Option(help="Samples that make a measured batch.", min=2)] = 512,
    batches: Annotated[
        int | None, typer.Option(help="How many batches to measure. Default: all that the data give.", min=1)
    ] = None,
    gauges: Annotated[
        str,
        typer.Option(
            help=f"all, or some of {', '.join(GAUGES)}, with commas; your own as package.module:function."
        ),
    ] = "standard",
    sites: SitesOption = None,
    activation: ActivationOption = None,
    reduction: Annotated[Pooling, typer.Option(help="How positions (pixels, tokens) are reduced.")] = "mean",
    pool_first: Annotated[
        bool, typer.Option("--pool-first", help="Pool before the activation (Definition 3.1), not after it.")
    ] = False,
    channel_axis: Annotated[
        int | None, typer.Option(help="Axis of the channels. Default: found from the operators.")
    ] = None,
    leftover: Annotated[
        Literal["drop", "keep"], typer.Option(help="What to do with samples that do not fill a batch.")
    ] = "drop",
    batch_size: Annotated[
        int, typer.Option(help="Inputs in a forward pass; less needs less memory.", min=1)
    ] = 32,
    workers: Annotated[int, typer.Option(help="Processes that read data ahead.", min=0)] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, mps; auto takes a GPU if there is one.")
    ] = "auto",
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16", "float16"] | None,
        typer.Option(help="Of the network. Default: as it is."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the order of the data and of random weights.", min=0)] = 0,
    shuffle: Annotated[
        bool, typer.Option(help="Take the data in a random order, since folders are sorted by class.")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at an unreadable image; else skip it.")
    ] = False,
    length: Annotated[int | None, typer.Option(help="Tokens in a block of text.", min=2)] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write, .json or .parquet. Default: MODEL-DATA.json.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing file; forget a broken-off run.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
) -> None:
    """Take soundings of a network: how non-linear is it, how many dimensions does it use, at every depth?

    Every call of an activation function becomes a site. At each, every gauge is read on batches of
    samples; the affinity score of all sites is the network's non-linearity signature. The result is one file,
    for `fathometer show` or `fathometer.load`.

    For instance:

    - `fathometer measure torchvision:resnet18 --data photos/`

    - `fathometer measure torchvision:vit_b_16 --weights none --data random:512 --samples 128`

    - `fathometer measure hf:./my-model --data book.txt --reduction tokens --gauges affinity,r2_heldout`

    - `fathometer measure my_package.nets:build --weights best.safetensors --data test.npz --device cuda`
    """
    out = out or Path(f"{slug(model)}-{slug(data)}.json")
    if out.suffix.lower() not in (".json", ".parquet"):
        raise InputError(f"--out {out}: expected a name that ends in .json or .parquet")
    check_writable(out, force)
    journal = _journal(out, resume, force)
    device = check_device(device)
    torch.manual_seed(seed)
    loaded = load_model(model, weights)
    if dtype:
        loaded.module.to(DTYPES[dtype])
    source = open_data(
        data,
        loaded.inputs,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        workers=workers,
        strict=strict,
        length=length,
    )
    with progress_bar("measuring") as progress:
        sounding = measure_network(
            loaded,
            source,
            samples=samples,
            batches=batches,
            gauges=[_gauge(name) for name in gauges.split(",")] if ":" in gauges else gauges,
            batch_size=batch_size,
            sites=sites,
            activations=[import_by_name(name, "--activation") for name in activation or ()],
            reduction=Reduction(reduction, pool_first, channel_axis, seed=seed),
            leftover=leftover,
            device=device,
            seed=seed,
            journal=journal,
            progress=progress,
        )
    sounding.save(out)
    journal.unlink(missing_ok=True)
    console = Console(emoji=False)
    console.print(sounding_view(sounding, sounding.gauges[0], console))
    if source.skipped:
        names = ", ".join(source.skipped[:3]) + (", …" if len(source.skipped) > 3 else "")
        console.print(f"skipped {len(source.skipped)} unreadable: {names}", markup=False, highlight=False)
    console.print(f"wrote {out}", markup=False, highlight=False, soft_wrap=True)


def _journal(out: Path, resume: bool, force: bool) -> Path:
    """Where finished batches are kept until the file is written."""
    journal = out.with_name(f".{out.name}.journal")
    if journal.exists() and not resume:
        if not force:
            raise InputError(
                f"{out}: an earlier run was interrupted; --resume goes on with it, --force begins anew"
            )
        journal.unlink()
    return journal


def _gauge(name: str) -> str | Gauge:
    return import_by_name(name, "--gauges") if ":" in name else name.strip()


def slug(name: str) -> str:
    """`resnet18` for `torchvision:resnet18`, `photos` for `some/photos/`, `random` for `random:600`."""
    last = name.partition(":")[0] if name.startswith("random:") else name.rpartition(":")[2]
    stem = Path(last).name.removesuffix(Path(last).suffix if Path(last).is_file() else "")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "data"
