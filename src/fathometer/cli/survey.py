"""`fathometer survey`: a plan in, a folder of soundings out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fathometer.cli import options as opt
from fathometer.cli import resumable
from fathometer.cli.outputs import check_writable, print_json
from fathometer.errors import InputError

if TYPE_CHECKING:
    from fathometer.survey import Task

app = opt.new_app(
    "Measure many networks by a plan: write one (`init`), run it (`run`), see what is done (`status`)."
)

PlanArgument = Annotated[Path, opt.argument("PLAN.toml", "The plan: what to measure.")]
FolderOption = Annotated[str, opt.out_option()]


@app.command()
def init(
    plan: Annotated[Path, opt.argument("PLAN.toml", "The file to write.")],
    imagenet: Annotated[str, opt.option("FOLDER", "ImageNet's validation images.")] = "imagenet/val",
    force: opt.ForceOption = False,
) -> None:
    """Write a plan to start from: the paper's own survey, with comments.

    For example:

    - `fathometer survey init plan.toml --imagenet ~/imagenet/val`
    """
    from fathometer.progress import Terminal
    from fathometer.results.files import complete_file
    from fathometer.survey import paper_plan

    check_writable(plan, force)
    place = Path(imagenet).expanduser()
    with complete_file(plan) as part:
        part.write_text(paper_plan(place.absolute() if place.is_dir() else imagenet, plan.name), "utf-8")
    Terminal().say(f"wrote {plan}")


@app.command()
def run(
    plan: PlanArgument,
    backend: Annotated[
        Literal["local", "ray"], opt.option("NAME", "local: in this process, or ray: on a cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        opt.option("HOST:PORT", "Address of a Ray cluster. Default: RAY_ADDRESS, or a local one is started."),
    ] = None,
    retry_failed: Annotated[bool, opt.flag("--retry-failed", "Try again what failed before.")] = False,
    out: FolderOption = "soundings",
) -> None:
    """Measure many networks: models × weights × data × settings × seeds, as a plan says.

    Each sounding becomes one file in the results folder, a path or a URL (default: soundings). A finished one
    is never measured again: run the same command after an interruption, or with a longer plan. New names and
    facts in the plan are written into finished files. A network that fails is recorded, and the rest
    continues. Two surveys can share a folder. `fathometer.atlas(FOLDER)` is a table of everything.

    A plan:

    ```
    seeds = [0]
    weights = ["default", "none"]     # or a file: "weights/{name}.safetensors"

    [data]
    photos = "photos/"                # paths are relative to the plan
    noise = "random:2048"

    [settings]                        # as the options of fathometer measure
    samples = 512
    batches = 4
    gauges = ["affinity", "cka_debiased"]

    [families.ResNet]
    models = ["torchvision:resnet*"]

    [families.ConvNeXt]
    models = ["torchvision:convnext_tiny", "torchvision:convnext_small"]
    batch_size = 16
    ```

    All keys are in docs/survey.md; `fathometer survey init` writes the plan of the paper.

    For example:

    - `fathometer survey run plan.toml --out results`

    - `fathometer survey run plan.toml --out s3://bucket/results --backend ray --address ray-head:6379`
    """
    from rich.live import Live

    from fathometer.cli.survey_view import SurveyProgress, print_outcome
    from fathometer.progress import Terminal
    from fathometer.survey import run_survey

    if address is not None and backend != "ray":
        raise InputError("is for a Ray cluster; give --backend ray with it", parameter="address")
    tasks = _tasks(plan)
    if out.startswith("memory:"):
        warnings.warn(
            f"--out {out}: is in memory, and lost when this command ends; give a folder", stacklevel=2
        )
    screen = Terminal(stderr=True)
    view = SurveyProgress(tasks, screen)
    live = Live(get_renderable=view.table, console=screen, refresh_per_second=2, transient=True)
    with live, resumable():
        outcome = run_survey(
            tasks, out, backend=backend, address=address, retry_failed=retry_failed, on_event=view.on_event
        )
    print_outcome(outcome, out, Terminal())
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
def status(plan: PlanArgument, out: FolderOption = "soundings", as_json: opt.JsonOption = False) -> None:
    """Show what is finished, in progress, failed and still to do; nothing is measured.

    For example:

    - `fathometer survey status plan.toml --out results`
    """
    from fathometer.cli.survey_view import print_status
    from fathometer.progress import Terminal
    from fathometer.survey import Store

    store = Store(out)
    status = {task: store.status(task) for task in _tasks(plan, preview=True)}
    if as_json:
        print_json(
            [{"sounding": task.title, "family": task.family, "state": status[task]} for task in status]
        )
    else:
        print_status(status, store, Terminal())


def _tasks(plan: Path, preview: bool = False) -> list[Task]:
    from fathometer.survey import read_plan, tasks_of

    return tasks_of(read_plan(plan, preview=preview))
