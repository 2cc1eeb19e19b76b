"""`fathometer survey`: a plan in, a folder of soundings out."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fathometer.cli.options import ForceOption, out_option
from fathometer.cli.outputs import check_writable
from fathometer.cli.survey_view import View
from fathometer.errors import InputError
from fathometer.progress import Terminal
from fathometer.results.files import complete_file
from fathometer.survey import (
    Failure,
    Outcome,
    Store,
    Task,
    paper_plan,
    read_plan,
    run_survey,
    tasks_of,
)


def survey(
    plan: Annotated[Path | None, typer.Argument(metavar="PLAN.toml", help="What to measure.")] = None,
    out: Annotated[
        str,
        out_option("FOLDER", "The results folder: a path, or a URL that fsspec opens."),
    ] = "soundings",
    backend: Annotated[
        Literal["local", "ray"],
        typer.Option(metavar="NAME", help="local: in this process, or ray: on a cluster."),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Of a Ray cluster. Default: RAY_ADDRESS, or a local one is started."
        ),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", metavar="", help="Say what is done and what is not; measure nothing.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", metavar="", help="Try again what failed before.")
    ] = False,
    paper: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the paper's own plan to a file, and stop.")
    ] = None,
    imagenet: Annotated[
        str, typer.Option(metavar="FOLDER", help="With --paper: ImageNet's validation images.")
    ] = "imagenet/val",
    force: ForceOption = False,
) -> None:
    """Measure many networks: models × weights × data × settings × seeds, as a plan says.

    Each sounding becomes one file in the results folder. A finished one is never measured twice: give the
    same command again after an interruption, or with a longer plan. New names and facts in the plan are
    written into finished files. A network that fails is recorded, and the rest goes on. Two surveys may share
    a folder. `fathometer.atlas(FOLDER)` is a table of everything.

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
    gauges = ["affinity", "cka"]

    [families.ResNet]
    models = ["torchvision:resnet*"]

    [families.ConvNeXt]
    models = ["torchvision:convnext_tiny", "torchvision:convnext_small"]
    batch_size = 16
    ```

    At the top stand `models`, `without` (patterns of models to leave out), `weights`, `seeds`. Several
    settings are `[settings.NAME]` each. `[run]` has `batch_size`, `workers`, `device`, `threads`, and for Ray
    `gpus`, `memory`, `retries`. A family has `models`, `without`, `weights` and every key of
    `[run]`. `[facts."MODEL"]` has numbers for the table. All keys are in docs/survey.md.

    For instance:

    - `fathometer survey plan.toml --out results`

    - `fathometer survey plan.toml --out results --status`

    - `fathometer survey plan.toml --out s3://bucket/results --backend ray --address ray-head:6379`

    - `fathometer survey --paper paper.toml --imagenet ~/imagenet/val`
    """
    console = Terminal()
    if paper is not None:
        _write_paper(paper, imagenet, force)
        console.print(f"wrote {paper}", soft_wrap=True)
        return
    if plan is None:
        raise InputError("expected a plan, PLAN.toml; fathometer survey --paper FILE writes an example")
    if address is not None and backend != "ray":
        raise InputError(f"--address {address}: is of a Ray cluster; give --backend ray with it")
    tasks = tasks_of(read_plan(plan, preview=status))
    if status:
        _print_status(tasks, Store(out), console)
        return
    if out.startswith("memory:"):
        warnings.warn(
            f"--out {out}: is in memory, and forgotten when this command ends; give a folder", stacklevel=2
        )
    screen = Terminal(stderr=True)
    view = View(tasks, screen)
    with Live(
        get_renderable=view.table,
        console=screen,
        refresh_per_second=2,
        transient=True,
    ):
        try:
            outcome = run_survey(
                tasks, out, backend=backend, address=address, retry_failed=retry_failed, tell=view.tell
            )
        except KeyboardInterrupt:
            typer.echo("interrupted; the same command goes on", err=True)
            raise typer.Exit(130) from None
    _summarise(outcome, out, console)
    if outcome.failed:
        raise typer.Exit(1)


def _print_status(tasks: list[Task], store: Store, console: Console) -> None:
    """Family by family; then what is in progress, interrupted and failed, one by one."""
    standing = {task: store.standing(task) for task in tasks}
    console.print(_counts(standing, f"{store.files}"))
    for task, state in standing.items():
        batches = 0 if state in ("finished", "failed") else store.finished_batches(task)
        if state == "in progress" or batches:
            kept = f": {batches} {'batch' if batches == 1 else 'batches'} finished" if batches else ""
            _say(console, f"{'in progress' if state == 'in progress' else 'interrupted'}: {task.title}{kept}")
    failures = [(task, store.failure(task)) for task, state in standing.items() if state == "failed"]
    failed = [(task, failure) for task, failure in failures if failure is not None]
    _say_failures(failed, console)
    if failed:
        _say(console, "--retry-failed tries these again")


def _counts(standing: Mapping[Task, str], title: str) -> Table:
    view = Table(title=title)
    view.add_column("family")
    columns = ("finished", "in progress", "failed", "to do")
    for column in ("soundings", *columns):
        view.add_column(column, justify="right")
    families: dict[str, Counter[str]] = {}
    for task, state in standing.items():
        families.setdefault(task.family or "(none)", Counter())[state] += 1
    for family, counts in [*families.items(), ("all", sum(families.values(), Counter()))]:
        view.add_row(Text(family), *map(str, (counts.total(), *(counts[name] for name in columns))))
    return view


def _summarise(outcome: Outcome, out: str, console: Console) -> None:
    _say_failures(outcome.failed, console)
    counts = f"{len(outcome.measured)} measured, {len(outcome.kept)} kept, {len(outcome.failed)} failed"
    hint = "; --retry-failed tries these again" if outcome.failed else ""
    _say(console, f"{out}: {counts}{hint}")


def _say_failures(failed: Iterable[tuple[Task, Failure]], console: Console) -> None:
    """Every reason once, and below it the networks; one sounding of a network by its title."""
    reasons: dict[str, dict[tuple[str, str], list[Task]]] = {}
    for task, failure in failed:
        networks = reasons.setdefault((failure.message.splitlines() or [failure.kind])[0], {})
        networks.setdefault((task.member.model, task.member.weights), []).append(task)
    for reason, networks in reasons.items():
        _say(console, f"failed: {reason}", "red")
        for network, tasks in networks.items():
            many = f"{' · '.join(network)} ({len(tasks)} soundings)"
            _say(console, f"  {tasks[0].title if len(tasks) == 1 else many}")


def _say(console: Console, line: str, style: str | None = None) -> None:
    console.print(line, style=style, soft_wrap=True)


def _write_paper(path: Path, imagenet: str, force: bool) -> None:
    check_writable(path, force)
    place = Path(imagenet).expanduser()
    with complete_file(path) as part:
        part.write_text(paper_plan(place.absolute() if place.is_dir() else imagenet, path.name), "utf-8")
