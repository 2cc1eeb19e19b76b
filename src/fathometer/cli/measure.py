"""`fathometer measure`: a network and data by name, a sounding in a file, or one for each class."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from fathometer.cli import options as opt
from fathometer.cli import resumable
from fathometer.cli.outputs import check_folder, check_writable, file_stems, print_result, slug
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.data import DataSource, Inputs
    from fathometer.measuring.options import MeasureOptions
    from fathometer.models import LoadedModel
    from fathometer.results.sounding import Sounding

app = opt.new_app()
log = logging.getLogger(__name__)


@app.command()
@opt.with_options(
    *opt.measure_options(
        *("samples", "batches", "gauges", "sites", "residual", "activations", "reduction", "pool_first"),
        *("channel_axis", "leftover", "seed", "call"),
    ),
    *opt.loading_options(),
)
def measure(
    context: typer.Context,
    model: opt.ModelArgument,
    data: opt.DataOption,
    preset: opt.PresetOption = None,
    with_map: Annotated[
        bool,
        opt.flag("--map", "Also compute the similarity (CKA) of every site with every other."),
    ] = False,
    by: Annotated[
        Literal["class"] | None,
        opt.option("class", "Measure the samples of each class by themselves; --out is a folder."),
    ] = None,
    name: opt.NameOption = None,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    resume: opt.ResumeOption = False,
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """Measure a network: every gauge at every activation.

    Every call of an activation function is a site. At each site every gauge is computed on batches of
    samples; the affinity scores of all sites are the network's non-linearity signature. The result is one
    file, .json or .parquet (default: MODEL-DATA.json), for `fathometer show` or `fathometer.load`. Where
    the data have labels that fit the network, it also has accuracy and loss.

    `--by class` writes a file for each class into a folder (default: MODEL-DATA-by-class), which `compare`,
    `report` and `plot` read; with `--force` it replaces all files of an earlier `--by class` there.

    After an interruption the same command resumes; `--force` starts again.

    For example:

    - `fathometer measure torchvision:resnet18 --data photos/`

    - `fathometer measure torchvision:resnet50 --data photos/ --map` (then `fathometer plot … --kind map`)

    - `fathometer measure torchvision:resnet18 --data imagenet/val --by class --samples 50`

    - `fathometer measure torchvision:vit_b_16 --weights none --data random:512 --samples 128`

    - `fathometer measure hf:./my-model --data book.txt --length 256` (a language model: `--preset language`)

    - `fathometer measure my_package.nets:build --weights best.safetensors --data test.npz --device cuda`
    """
    from fathometer.cli.layers_view import layers_view
    from fathometer.cli.tables import labels_view, sounding_json, sounding_view
    from fathometer.models.language import is_language_model
    from fathometer.results.files import locked

    options["map"] = "cka" if with_map else None
    chosen = opt.chosen_options(options, preset, context)
    out = out or Path(f"{slug(name or model)}-{slug(data)}" + (".json" if by is None else f"-by-{by}"))
    out.parent.mkdir(parents=True, exist_ok=True)
    with locked(out.with_name(f".{out.name}.lock")) as is_ours:
        if not is_ours:
            raise InputError(f"{out}: another process is measuring it; wait for it, or give another --out")
        if by is None:
            check_writable(out, force or resume, (".json", ".parquet"))
        elif out.suffix.lower() in (".json", ".parquet"):
            raise InputError(
                f"--out {out}: expected a folder for the files of --by {by}, got a name of a file"
            )
        else:
            check_folder(out, force or resume or _journal(out).exists())
        log.info("loading %s (weights: %s) and %s", model, options["weights"], data)
        loaded = load_model_and_data(model, data, chosen.seed, options)
        if name is not None:
            loaded = loaded._replace(model=replace(loaded.model, name=name))
        if preset is None and is_language_model(loaded.model):
            preset = "language"
            chosen = opt.chosen_options(options, preset, context)
        finished = _finished(out, loaded, chosen, by) if resume and not force else {}
        found = finished or _measured(out, loaded, chosen, by, options["batch_size"], force)
    content = {label: sounding_json(sounding) for label, sounding in found.items()}
    gauge = next(iter(found.values())).gauges[0]
    view = labels_view(found, gauge) if by else layers_view(found[""]) or sounding_view(found[""], gauge)
    console = print_result(content[""] if by is None else content, view, as_json)
    if by is not None and (reason := next(iter(found.values())).outcome).startswith("no accuracy"):
        console.say(reason)
    if preset == "language":
        console.say(preset_line(chosen, loaded.data.description, next(iter(found.values()))))
    elif loaded.model.inputs.kind == "tokens" and chosen.reduction.pooling == "mean":
        console.say("each sample is the mean over a text; with --reduction tokens it is one token")
    if loaded.data.skipped:
        console.say(skipped_line(loaded.data.skipped))
    files = "" if by is None else f" ({len(found)} files)"
    console.say(f"{out} is finished; --force measures it again" if finished else f"wrote {out}{files}")
    if with_map and by is None:
        console.say(f"`fathometer plot {out} --kind map` draws the map")


def preset_line(options: MeasureOptions, data: Mapping[str, Any], found: Sounding) -> str:
    """Say what the preset has made of the options, how the text was cut, and which gauges were read."""
    unit = "tokens" if options.counts_tokens else "texts"
    batches = {None: "all batches", 1: "1 batch"}.get(options.batches, f"{options.batches} batches")
    blocks = f", blocks of {data['length']} tokens (stride {data['stride']})" if "stride" in data else ""
    sites, gauges = (options.describe()[name] for name in ("sites", "gauges"))
    read = [name for name in gauges if any(f"{column}_".startswith(f"{name}_") for column in found.gauges)]
    return (
        f"preset language: {unit} as samples, {batches} of {options.samples}{blocks}; "
        f"sites {', '.join(sites)}; "
        f"gauges {', '.join(read)}; `--preset none` uses the general defaults"
    )


def skipped_line(skipped: list[str]) -> str:
    """Say how many files could not be read, and the first of them."""
    names = ", ".join(skipped[:3]) + (", …" if len(skipped) > 3 else "")
    return f"skipped {len(skipped)} unreadable: {names}"


class Loaded(NamedTuple):
    """A network, its data, and the device to measure it on."""

    model: LoadedModel
    data: DataSource
    device: str


def load_model_and_data(model: str, data: str, seed: int, options: dict[str, Any]) -> Loaded:
    """Load the network, on the CPU, and open its data; what can be checked quickly is checked first."""
    from fathometer.data import open_data
    from fathometer.data.opening import require_data
    from fathometer.errors import check_device
    from fathometer.models import load_model

    device = check_device(options["device"])
    location = require_data(data)
    loaded = load_model(model, options["weights"], seed=seed)
    if options["dtype"]:
        loaded.cast(options["dtype"])
    if any(options.get(name) for name in ("size", "crop", "mean", "std", "bgr")):
        loaded = replace(loaded, inputs=_prepared(loaded.inputs, options))
    reading = {name: options[name] for name in ("batch_size", "workers", "length", "shuffle", "strict")}
    return Loaded(loaded, open_data(location or data, loaded.inputs, seed=seed, **reading), device)


def _prepared(inputs: Inputs, options: dict[str, Any]) -> Inputs:
    """Return the inputs with the preparation of images that the flags describe."""
    from fathometer.data.preparation import Preparation, with_preparation

    numbers = {name: opt.numbers(options[name], float, name) for name in ("mean", "std") if options[name]}
    parts: dict[str, Any] = {name: tuple(values) for name, values in numbers.items()}
    return with_preparation(
        inputs, Preparation(options["size"], options["crop"], bgr=options["bgr"], **parts)
    )


def _measured(
    out: Path, loaded: Loaded, options: MeasureOptions, by: str | None, batch_size: int, force: bool
) -> dict[str, Sounding]:
    """Measure and save; finished batches are kept in a journal beside the file until it is written."""
    from fathometer.measuring.measure import measure_by_label

    journal = _journal(out)
    if force:
        journal.unlink(missing_ok=True)
    log.info("measuring on %s%s", loaded.device, ", resuming" if journal.exists() else "")
    with resumable(can_resume=journal.exists, force=force):
        found = measure_by_label(
            loaded.model,
            loaded.data,
            options,
            by=by,
            batch_size=batch_size,
            device=loaded.device,
            journal=journal,
            progress=True,
        )
    if by is None:
        found[""].save(out)
    else:
        _remove_split(out, by)
        for stem, sounding in zip(file_stems(found), found.values(), strict=True):
            sounding.save(out / f"{stem}.json")
    journal.unlink(missing_ok=True)
    return found


def _remove_split(folder: Path, by: str) -> None:
    """Remove the soundings of single labels that an earlier run wrote; all other files stay."""
    import fathometer
    from fathometer.results.sounding import Sounding

    for path in sorted(folder.glob("*.json")):
        try:
            found = fathometer.load(path)
        except InputError:
            continue
        if isinstance(found, Sounding) and found.provenance.settings.get("by") == by:
            path.unlink()


def _finished(out: Path, loaded: Loaded, options: MeasureOptions, by: str | None) -> dict[str, Sounding]:
    """Return what is finished, if it is what was asked for."""
    from fathometer.measuring.measure import expected_provenance
    from fathometer.measuring.splitting import of_label
    from fathometer.results.loading import open_results

    if not out.exists() or (by is not None and (_journal(out).exists() or not any(out.iterdir()))):
        return {}
    expected = expected_provenance(loaded.model, loaded.data, options, by=by)
    found = {}
    for sounding in open_results(out).soundings.values():
        label = "" if by is None else str(sounding.provenance.data.get("label", ""))
        differences = sounding.provenance.differences(expected if by is None else of_label(expected, label))
        if differences:
            raise InputError(
                f"{out} exists, with other {', '.join(differences)}; give another --out, or --force to "
                "replace it"
            )
        found[label] = sounding
    _journal(out).unlink(missing_ok=True)
    return found


def _journal(out: Path) -> Path:
    return out.with_name(f".{out.name}.journal")
