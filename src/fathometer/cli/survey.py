"""`fathometer survey`: a plan in, a folder of soundings out."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fathometer.cli.options import ForceOption
from fathometer.cli.outputs import check_writable
from fathometer.errors import InputError
from fathometer.files import complete_file
from fathometer.survey import Event, Outcome, Store, Task, paper_plan, read_plan, run_survey, tasks_of

_ROWS = 12  # of the live table
_OVER = ("measured", "kept", "failed", "failed before")


def survey(
    plan: Annotated[Path | None, typer.Argument(metavar="PLAN.toml", help="What to measure.")] = None,
    out: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="The results folder: a path, or a URL that fsspec knows."),
    ] = "soundings",
    on: Annotated[
        Literal["here", "ray"],
        typer.Option(metavar="WHERE", help="here, one after the other, or ray, on a cluster."),
    ] = "here",
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

    For instance:

    - `fathometer survey plan.toml --out results`

    - `fathometer survey plan.toml --out results --status`

    - `fathometer survey plan.toml --out s3://bucket/results --on ray --address ray-head:6379`

    - `fathometer survey --paper paper.toml --imagenet ~/imagenet/val`
    """
    console = Console(emoji=False)
    if paper is not None:
        _write_paper(paper, imagenet, force)
        console.print(f"wrote {paper}", markup=False, highlight=False, soft_wrap=True)
        return
    if plan is None:
        raise InputError("expected a plan, PLAN.toml; fathometer survey --paper FILE writes an example")
    if address is not None and on != "ray":
        raise InputError(f"--address {address}: is of a Ray cluster; give --on ray with it")
    tasks = tasks_of(read_plan(plan))
    if status:
        console.print(_status(tasks, Store(out)))
        return
    screen = Console(stderr=True, emoji=False)
    view = _View(tasks, screen)
    with Live(
        get_renderable=view.table,
        console=screen,
        refresh_per_second=2,
        transient=True,
    ):
        try:
            outcome = run_survey(
                tasks, out, on=on, address=address, retry_failed=retry_failed, tell=view.tell
            )
        except KeyboardInterrupt:
            typer.echo("interrupted; the same command goes on", err=True)
            raise typer.Exit(130) from None
    _summarise(outcome, out, console)
    if outcome.failed:
        raise typer.Exit(1)


class _View:
    """What is going on, as a table: how many are done, how long the rest will take, and the latest."""

    def __init__(self, tasks: list[Task], console: Console) -> None:
        self._count, self._began, self._console = len(tasks), time.monotonic(), console
        self._last: dict[str, Event] = {}

    def tell(self, event: Event) -> None:
        self._last.pop(event.task.stem, None)  # the latest stand last
        self._last[event.task.stem] = event
        if not self._console.is_terminal and event.state in ("measured", "failed"):  # a log: a line for each
            line = Text.assemble(f"{self._over()} of {self._count}: {event.task.title}: ", _words(event))
            self._console.print(line, soft_wrap=True)

    def _over(self) -> int:
        events = list(self._last.values())  # at once: the table is drawn by a thread of its own
        return sum(event.state in _OVER for event in events)

    def table(self) -> Table:
        events = list(self._last.values())
        states: Counter[str] = Counter(event.state for event in events)
        over = self._over()
        view = Table(title=f"{over} of {self._count} soundings, {self._left(states, over)}", expand=False)
        for column in ("model", "weights", "data", "state"):
            view.add_column(column, overflow="fold")
        for event in events[-_ROWS:]:
            task = event.task
            view.add_row(
                Text(task.member.model), Text(task.member.weights), Text(task.data_name), _words(event)
            )
        return view

    def _left(self, states: Counter[str], over: int) -> str:
        """The time that the rest will take, from what this survey has measured so far."""
        done = states["measured"] + states["failed"]
        if not done:
            return "time left not known yet"
        seconds = (time.monotonic() - self._began) / done * (self._count - over)
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"


def _words(event: Event) -> Text:
    if event.state == "under way" and event.share is not None:
        return Text(f"{event.share:.0%}")
    if event.state == "measured":
        return Text(f"measured in {event.seconds:.1f} s", style="green")
    if event.message:
        return Text(f"{event.state}: {event.message.splitlines()[0][:60]}", style="red")
    return Text(event.state)


def _status(tasks: list[Task], store: Store) -> Table:
    """Family by family."""
    view = Table(title=f"{store.folder}")
    view.add_column("family")
    columns = ("finished", "under way", "failed", "to do")
    for column in ("soundings", *columns):
        view.add_column(column, justify="right")
    families: dict[str, Counter[str]] = {}
    for task in tasks:
        families.setdefault(task.family or "(none)", Counter())[store.standing(task)] += 1
    for family, counts in [*families.items(), ("all", sum(families.values(), Counter()))]:
        view.add_row(Text(family), *map(str, (counts.total(), *(counts[name] for name in columns))))
    return view


def _summarise(outcome: Outcome, out: str, console: Console) -> None:
    for task, failure in outcome.failed:
        message = f"failed: {task.title}: {failure.message.splitlines()[0]}"
        console.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    counts = f"{len(outcome.measured)} measured, {len(outcome.kept)} kept, {len(outcome.failed)} failed"
    hint = "; --retry-failed tries these again" if outcome.failed else ""
    console.print(f"{out}: {counts}{hint}", markup=False, highlight=False, soft_wrap=True)


def _write_paper(path: Path, imagenet: str, force: bool) -> None:
    check_writable(path, force)
    place = Path(imagenet).expanduser()
    with complete_file(path) as part:
        part.write_text(paper_plan(place.absolute() if place.is_dir() else imagenet, path.name), "utf-8")
