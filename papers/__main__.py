"""`python -m papers list|run|page`: the figures, tables and statements of both papers."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fathometer.errors import FathometerError, InputError, check_device
from fathometer.progress import Terminal
from fathometer.report import require_matplotlib
from papers import SCALES, Item, Scale, Verdict, chosen_items, read_verdict
from papers import reproduce as run_item
from papers.item import Source, time_in_words
from papers.page import write_page
from papers.running import missing_sources, record_not_run, recover, verdict_file

_COLOURS = {
    "holds": "green",
    "holds in part": "yellow",
    "does not hold": "red",
    "not decided": "dim",
    "not run": "dim",
}
_SHARED = ", not counting what several items share"
_MARKS = {True: Text("yes", "green"), False: Text("no", "red"), None: Text("–", "dim")}


app = typer.Typer(
    name="python -m papers",
    help="Reproduce both papers, figure by figure; each item states the test that decides it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

ItemsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ITEM…]", help="Names or patterns of items, or `all`.")
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Folder of all results; each item gets SCALE/ITEM in it."
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="Torch device: cpu, cuda, cuda:1; auto takes a GPU if there is one."),
]
OUT = Path("reproduction")


@app.command("list")
def list_items(items: ItemsArgument = None) -> None:
    """List the items, what each needs and how long it takes."""
    Terminal().print(_listing(chosen_items(items or ["all"])))


@app.command("page")
def page(
    file: Annotated[Path, typer.Argument(metavar="FILE.md", help="The page to write.")], out: OutOption = OUT
) -> None:
    """Write all verdicts of a folder as one page."""
    write_page(out, file)
    Terminal().print(f"wrote {file}")


@app.command("run")
def run(
    items: Annotated[
        list[str], typer.Argument(metavar="ITEM…", help="Names or patterns of items, or `all`.")
    ],
    scale: Annotated[
        Scale,
        typer.Option(
            "--scale", metavar="SCALE", help="smoke (seconds), small (minutes, no download) or paper."
        ),
    ] = "small",
    out: OutOption = OUT,
    device: DeviceOption = "cpu",
    cifar10: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="CIFAR-10: its binaries, or cifar10_train.npz and cifar10_test.npz."
        ),
    ] = None,
    imagenet: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="ImageNet's validation images.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN.toml", help="Networks in place of the paper's, as fathometer survey takes."
        ),
    ] = None,
    resnets: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Published ResNets for CIFAR-10, resnet20*.th …")
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", metavar="", help="Run finished items again; trained networks and soundings are kept."
        ),
    ] = False,
) -> None:
    """Run items: each leaves a folder with its data, its figure and `verdict.json`.

    Before an item starts, the command prints what was published, the test that decides each claim, what the
    item needs and how long it takes. A finished item is not run again without `--force`; an interrupted
    training resumes. Claims marked `ours` are readings, corrections and checks of the print: they are
    decided, but do not count towards the outcome.

    Scales: `smoke` shows that an item runs, and decides nothing; `small` needs no download; `paper` is the
    published setting, on data that you name.

    Examples:
    - `python -m papers run leaky-figure-1a`

    - `python -m papers run "leaky-*" --scale paper --device cuda`

    - `python -m papers run affinity-figure-8 --scale paper --device cuda --cifar10 cifar-10-batches-bin`
    """
    console = Terminal()
    chosen = chosen_items(items)
    require_matplotlib()
    if out.is_file():
        raise InputError(f"--out {out}: expected a folder, got a file")
    where = check_device(device)
    named: dict[Source, Path | None] = {
        "cifar10": cifar10,
        "imagenet": imagenet,
        "plan": plan,
        "resnets": resnets,
    }
    sources = {name: path for name, path in named.items() if path is not None}
    for name, path in sources.items():
        if not path.exists():
            raise InputError(f"--{name} {path}: no such file or folder")
    failed = 0
    for item in chosen:
        file = verdict_file(item, scale, out)
        recover(item, scale, out)
        if file.exists() and not force and not (there := read_verdict(file)).why:
            console.print(_view(there, file, again=True))
            continue
        if not missing_sources(item, scale, sources):
            console.print(_announcement(item, scale))
            if scale == "paper" and item.device == "cuda" and where == "cpu":
                warnings.warn(f"{item.name}: made for a GPU; on a CPU it may take hours", stacklevel=2)
        try:
            verdict = run_item(item, scale, out=out, device=where, sources=sources)
        except FathometerError as error:
            if len(chosen) == 1:
                raise
            failed += 1
            verdict = record_not_run(item, scale, str(error), out=out)
        except KeyboardInterrupt:
            typer.echo("Interrupted. Run the same command again to resume.", err=True)
            raise typer.Exit(130) from None
        console.print(_view(verdict, file))
    if failed:
        console.print(f"{failed} of {len(chosen)} items could not be run", style="yellow")
        raise typer.Exit(1)


def _listing(items: list[Item]) -> Table:
    view = Table("item", caption_justify="left")
    for column in SCALES:
        view.add_column(column, justify="right", no_wrap=True)
    view.add_column("paper needs")
    for item in items:
        needs = ", ".join(
            (*(f"--{name}" for name in item.sources), *(["a GPU"] if item.device == "cuda" else []))
        )
        times = [time_in_words(seconds) for seconds in item.seconds]
        name = Text(item.name, "bold").append(f"\n{item.title}", "not bold")
        view.add_row(name, *times, needs or "–")
    view.caption = (
        "Times are about: smoke and small on two cores, paper on an H200 where it needs a GPU. What several "
        "items share is trained or measured by the first of them."
    )
    return view


def _announcement(item: Item, scale: Scale) -> Panel:
    lines = [Text(item.title, "bold")]
    for claim in item.claims.values():
        label = "ours " if claim.ours else "claim"
        lines += [Text(f"\n{label}  {claim.words}"), Text(f"test   {claim.test}", "dim")]
    lines += [Text(f"\nchanged after numbers had been seen: {change}", "dim") for change in item.changes]
    setting = {
        "smoke": "few of everything: shows that it runs, and decides nothing",
        "small": item.small,
        "paper": item.published + (", on a GPU" if item.device == "cuda" else ""),
    }[scale]
    seconds = dict(zip(SCALES, item.seconds, strict=True))[scale]
    lines.append(Text(f"\nscale  {scale}: {setting}; about {time_in_words(seconds)}{_SHARED}"))
    if scale == "paper" and (item.sources or item.optional):
        named = [f"--{name}" for name in item.sources] + [
            f"--{name} if there is one" for name in item.optional
        ]
        lines.append(Text(f"data   {', '.join(named)}"))
    return Panel(Group(*lines), title=item.name, title_align="left")


def _view(verdict: Verdict, file: Path, *, again: bool = False) -> Group:
    table = Table("", "claim", "measured", title_justify="left", show_lines=True, expand=True)
    for name, answer in verdict.answers.items():
        claim = verdict.claims[name]
        words = Text("ours: ", "dim").append(claim.words, "not dim") if claim.ours else Text(claim.words)
        table.add_row(_MARKS[answer.holds], words, Text(answer.measured))
    head = Text(f"{verdict.item}: ", "bold")
    head.append(verdict.summary, _COLOURS[verdict.outcome])
    if verdict.why:
        head.append(f", {verdict.why}", "dim not bold")
        return Group(head, Text())
    if verdict.scale == "smoke":
        head.append(" (a smoke run decides nothing)", "dim not bold")
    where = f"{file.parent}, {verdict.seconds:.0f} s" + (
        "; finished before, --force runs it again" if again else ""
    )
    return Group(head, table, *(Text(note, "dim") for note in verdict.notes), Text(where, "dim"), Text())


def main() -> None:
    """Run `python -m papers`; an expected error is one line on stderr and exit code 2."""
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
    try:
        app()
    except FathometerError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
