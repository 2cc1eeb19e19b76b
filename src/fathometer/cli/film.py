"""`fathometer film`: checkpoints of one training as a history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathometer.cli import options as opt
from fathometer.cli.measure import load_model_and_data, preset_line
from fathometer.cli.outputs import check_writable, print_result, slug
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.models import LoadedModel

app = opt.new_app()


@app.command()
@opt.with_options(
    *opt.measure_options(
        *("samples", "batches", "gauges", "sites", "residual", "activations", "reduction", "leftover"),
        *("seed", "call"),
    ),
    *(option for option in opt.loading_options() if option.name != "weights"),
)
def film(
    context: typer.Context,
    checkpoints: Annotated[
        list[str],
        opt.argument(
            "CKPT…", "Files of weights, or folders that transformers wrote, such as checkpoint-500."
        ),
    ],
    data: opt.DataOption,
    model: Annotated[
        str | None,
        opt.option(
            "MODEL",
            "The network that files of weights are loaded into, as for `fathometer measure`; folders of "
            "transformers need none.",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        opt.option(
            "NUMBERS",
            "Step of each checkpoint, with commas. Default: from its name: step=300, epoch-2, net-5.",
        ),
    ] = None,
    preset: opt.PresetOption = None,
    name: opt.NameOption = None,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    as_json: opt.JsonOption = False,
    **options: Any,
) -> None:
    """Turn checkpoints of one training into a film: every gauge at every activation, step by step.

    The result is a history, one .json file (default: MODEL-DATA-film.json), as the probe of
    `fathometer.training` writes it: `fathometer report` shows it as a film, `fathometer plot` as a picture.
    Rules of `fathometer check` that find something are listed with the first step.

    For example:

    - `fathometer film runs/epoch-*.pt --model my_package.nets:build --data test.npz`

    - `fathometer film out/checkpoint-* --data book.txt --gauges check`

    - `fathometer film first.pt last.pt --steps 0,9000 --model torchvision:resnet18 --data photos/`
    """
    from fathometer.cli.tables import TableView
    from fathometer.models import load_model
    from fathometer.models.language import is_language_model
    from fathometer.models.weights import load_weights
    from fathometer.training import film as film_of
    from fathometer.training.film import steps_of

    chosen = opt.chosen_options(options, preset, context)
    paths = [Path(path) for path in checkpoints]
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(f"{missing[0]}: no such file or folder")
    if model is None and (files := [path for path in paths if path.is_file()]):
        raise InputError(f"needed to load {files[0]}, e.g. package.module:factory", parameter="model")
    numbers = opt.numbers(steps, int, "steps") if steps else steps_of(paths)
    title = name or model or paths[0].resolve().parent.name
    out = out or Path(f"{slug(title)}-{slug(data)}-film.json")
    check_writable(out, force, (".json",))
    options["weights"] = "default" if model is None else str(paths[0])
    loaded = load_model_and_data(model or f"hf:{paths[0]}", data, chosen.seed, options)
    if preset is None and is_language_model(loaded.model):
        preset = "language"
        chosen = opt.chosen_options(options, preset, context)

    def load(path: Path) -> LoadedModel:
        if model is None:
            found = load_model(f"hf:{path}")
            if options["dtype"]:
                found.cast(options["dtype"])
            return found
        load_weights(loaded.model.module, path)
        return replace(loaded.model, weights=path.name)

    history = film_of(
        paths,
        load,
        loaded.data,
        chosen,
        steps=numbers,
        batch_size=options["batch_size"],
        device=loaded.device,
        name=title,
        progress=True,
    )
    history.save(out)
    gauge = history.gauges[0]
    table = history.table(gauge)
    shown = history.metrics.pivot_table(index="step", columns="name", values="value").reindex(table.index)
    for statistic in ("min", "median", "max"):
        shown[statistic] = table.agg(statistic, axis=1)
    heading = f"{title} on {slug(data)}: {len(table)} checkpoints"
    console = print_result(shown, TableView(shown, heading, f"{gauge} over {table.shape[1]} sites"), as_json)
    if preset == "language":
        console.say(preset_line(chosen, loaded.data.description, history.soundings[0]))
    for step, finding in history.findings():
        console.say(f"step {step}: {finding}")
    console.say(f"wrote {out}; `fathometer report {out}` shows it as a film")
