"""`fathometer measure`: a network and data by name, a sounding in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fathometer.capture import Reduction
from fathometer.cli.naming import skipped_line, slug
from fathometer.cli.options import (
    ActivationOption,
    BatchesOption,
    BatchSizeOption,
    ChannelAxisOption,
    DataOption,
    DeviceOption,
    DtypeOption,
    ForceOption,
    LeftoverOption,
    LengthOption,
    ModelArgument,
    ReductionOption,
    ResumeOption,
    SamplesOption,
    SeedOption,
    ShuffleOption,
    SitesOption,
    StrictOption,
    WeightsOption,
    WorkersOption,
    out_option,
)
from fathometer.cli.outputs import check_sounding_file
from fathometer.cli.tables import sounding_view
from fathometer.errors import InputError
from fathometer.gauges.registry import GAUGES, GaugeChoice, choose_gauges
from fathometer.measuring.measure import measure as measure_network
from fathometer.measuring.subject import load_subject
from fathometer.models.user_code import import_by_name
from fathometer.progress import Terminal, progress_bar
from fathometer.results.locks import locked
from fathometer.results.sounding import Sounding
from fathometer.results.sounding_file import load


def measure(
    model: ModelArgument,
    data: DataOption,
    weights: WeightsOption = "default",
    samples: SamplesOption = 512,
    batches: BatchesOption = None,
    gauges: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"all, or some of {', '.join(GAUGES)}, with commas; your own as package.module:function.",
        ),
    ] = "standard",
    sites: SitesOption = None,
    activation: ActivationOption = None,
    reduction: ReductionOption = "mean",
    pool_first: Annotated[
        bool,
        typer.Option(
            "--pool-first", metavar="", help="Pool before the activation (Definition 3.1), not after it."
        ),
    ] = False,
    channel_axis: ChannelAxisOption = None,
    leftover: LeftoverOption = "drop",
    batch_size: BatchSizeOption = 32,
    workers: WorkersOption = 0,
    device: DeviceOption = "auto",
    dtype: DtypeOption = None,
    seed: SeedOption = 0,
    shuffle: ShuffleOption = True,
    strict: StrictOption = False,
    length: LengthOption = None,
    out: Annotated[
        Path | None,
        out_option("FILE", "The file to write, .json or .parquet. Default: MODEL-DATA.json."),
    ] = None,
    force: ForceOption = False,
    resume: ResumeOption = False,
) -> None:
    """Take soundings of a network: how non-linear is it, how many dimensions does it use, at every depth?

    Every call of an activation function becomes a site. At each, every gauge is read on batches of
    samples; the affinity score of all sites is the network's non-linearity signature. The result is one file,
    for `fathometer show` or `fathometer.load`.

    An interrupted run goes on with `--resume`, or begins anew with `--force`.

    For instance:

    - `fathometer measure torchvision:resnet18 --data photos/`

    - `fathometer measure torchvision:vit_b_16 --weights none --data random:512 --samples 128`

    - `fathometer measure hf:./my-model --data book.txt --reduction tokens --gauges affinity,r2_heldout`

    - `fathometer measure my_package.nets:build --weights best.safetensors --data test.npz --device cuda`
    """
    out = out or Path(f"{slug(model)}-{slug(data)}.json")
    wanted = [_gauge(name) for name in gauges.split(",")] if ":" in gauges else gauges
    choose_gauges(wanted)  # refuses what is none, before a network is loaded
    console = Terminal()
    with _claimed(out, force, resume) as journal:
        if resume and not force and out.exists() and not journal.exists():
            sounding = _finished(out, model=model, samples=samples, batches=batches, seed=seed)
            console.print(sounding_view(sounding, sounding.gauges[0], console))
            console.print(f"{out} is finished; --force measures it anew", soft_wrap=True)
            return
        network, source, where = load_subject(
            model,
            data,
            weights=weights,
            device=device,
            dtype=dtype,
            seed=seed,
            batch_size=batch_size,
            shuffle=shuffle,
            workers=workers,
            strict=strict,
            length=length,
        )
        with _told(out), progress_bar("measuring") as progress:
            sounding = measure_network(
                network,
                source,
                samples=samples,
                batches=batches,
                gauges=wanted,
                batch_size=batch_size,
                sites=sites,
                activations=[import_by_name(name, "--activation") for name in activation or ()],
                reduction=Reduction(reduction, pool_first, channel_axis, seed=seed),
                leftover=leftover,
                device=where,
                seed=seed,
                journal=journal,
                progress=progress,
            )
        sounding.save(out)
        journal.unlink(missing_ok=True)
    console.print(sounding_view(sounding, sounding.gauges[0], console))
    if network.inputs.kind == "tokens" and reduction == "mean":
        console.print(
            "a sample is the mean of a text; with --reduction tokens each token is one", soft_wrap=True
        )
    if source.skipped:
        console.print(skipped_line(source.skipped))
    console.print(f"wrote {out}", soft_wrap=True)


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """Say how to go on after an interruption."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"{out}: interrupted; the same command with --resume goes on", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _claimed(out: Path, force: bool, resume: bool) -> Iterator[Path]:
    """Where finished batches are kept until the file is written; no other process writes it meanwhile."""
    journal = out.with_name(f".{out.name}.journal")
    check_sounding_file(out, force or resume)
    with locked(out.with_name(f".{out.name}.lock")) as mine:
        if not mine:
            raise InputError(f"{out}: another process is measuring it; let it end, or give another --out")
        check_sounding_file(out, force or resume)  # once more: it may have ended since
        if journal.exists() and not resume:
            if not force:
                raise InputError(
                    f"{out}: an earlier run was interrupted; --resume goes on with it, --force begins anew"
                )
            journal.unlink()
        yield journal


def _finished(out: Path, *, model: str, samples: int, batches: int | None, seed: int) -> Sounding:
    """What an interrupted run has written before it was interrupted; an error if it is not that run's."""
    found = load(out)
    facts = found.provenance
    asked = {"model": model, "samples": samples, "batches": batches, "seed": seed}
    there = {**facts.settings, "model": facts.model.get("name")}
    if other := [name for name, value in asked.items() if there.get(name) != value]:
        raise InputError(
            f"{out} exists, with other {', '.join(other)}; give another name, or --force to replace it"
        )
    return found


def _gauge(name: str) -> GaugeChoice:
    return import_by_name(name, "--gauges") if ":" in name else name.strip()
