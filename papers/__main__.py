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
from papers import Item, Scale, Verdict, chosen_items, read_verdict
from papers import reproduce as run_item
from papers.item import Source, time_in_words
from papers.page import measured, write_pages
from papers.running import verdict_file

_COLOURS = {
    "holds": "green",
    "verified numerically": "green",
    "holds in part": "yellow",
    "does not hold": "red",
}
_MARKS = {True: Text("yes", "green"), False: Text("no", "red"), None: Text("–", "dim")}
_LABELS = {"paper": "claim", "ours": "ours", "numerical": "verify"}


app = typer.Typer(
    name="python -m papers",
    help="Reproduce both papers, figure by figure; each item states the test that decides it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

OutOption = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Folder of all results; each item gets SCALE/ITEM in it."
    ),
]
OUT = Path("reproduction")


@app.command("list")
def list_items(
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM…]", help="Names or patterns of items, or `all`.")
    ] = None,
) -> None:
    """List the items, what each needs and how long it takes."""
    view = Table("item", "scales", "paper needs", caption_justify="left")
    for item in chosen_items(items or ["all"]):
        needs = [*(f"--{name}" for name in item.sources), *(["a GPU"] if item.device == "cuda" else [])]
        times = [f"{scale} {time_in_words(seconds)}" for scale, seconds in item.seconds.items()]
        name = Text(item.name, "bold").append(f"\n{item.title}", "not bold")
        view.add_row(name, "\n".join(times), ", ".join(needs) or "–")
    view.caption = (
        "Times are about: smoke and small on two cores, paper on an H200 where it needs a GPU. What several "
        "items share is trained or measured by the first of them."
    )
    Terminal().print(view)


@app.command("page")
def page(
    file: Annotated[Path, typer.Argument(metavar="FILE.md", help="The summary to write.")],
    out: OutOption = OUT,
) -> None:
    """Write all verdicts of a folder as pages: a summary, and one for each item in the folder."""
    write_pages(out, file)
    Terminal().print(f"wrote {file}, and a page for each item to {out}")


@app.command("run")
def run(
    items: Annotated[
        list[str], typer.Argument(metavar="ITEM…", help="Names or patterns of items, or `all`.")
    ],
    scale: Annotated[
        Scale,
        typer.Option(
            "--scale",
            metavar="SCALE",
            help="smoke (seconds), small (minutes, no download), paper; items about trained networks: "
            "imagenet or cifar10.",
        ),
    ] = "small",
    out: OutOption = OUT,
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Torch device: cpu, cuda, cuda:1; auto takes a GPU if there is one."
        ),
    ] = "cpu",
    cifar10: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="CIFAR-10: its binaries, or cifar10_train.npz and cifar10_test.npz."
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

    Before an item starts, the command prints what was published, the test that decides each claim, and how
    long it takes. A finished item is not run again without `--force`; an interrupted training resumes. Of
    several items, those that have no such scale are skipped.

    Examples:
    - `python -m papers run leaky-figure-1a`

    - `python -m papers run "leaky-*" --scale paper --device cuda`

    - `python -m papers run "affinity-*" --scale imagenet`
    """
    console = Terminal()
    chosen = chosen_items(items)
    if len(chosen) > 1:
        chosen = [item for item in chosen if scale in item.scales]
    require_matplotlib()
    where = check_device(device)
    named: dict[Source, Path | None] = {"cifar10": cifar10, "resnets": resnets}
    sources = {name: path for name, path in named.items() if path is not None}
    for name, path in sources.items():
        if not path.exists():
            raise InputError(f"--{name} {path}: no such file or folder")
    failed = 0
    for item in chosen:
        file = verdict_file(item, scale, out)
        if file.exists() and not force and not (there := read_verdict(file)).is_stale(item):
            console.print(_view(item, there, file, again=True))
            continue
        console.print(_announcement(item, scale))
        try:
            verdict = run_item(item, scale, out=out, device=where, sources=sources)
        except FathometerError as error:
            if len(chosen) == 1:
                raise
            failed += 1
            console.print(f"{item.name}: {error}", style="yellow")
            continue
        except KeyboardInterrupt:
            typer.echo("Interrupted. Run the same command again to resume.", err=True)
            raise typer.Exit(130) from None
        console.print(_view(item, verdict, file))
    if failed:
        console.print(f"{failed} of {len(chosen)} items could not be run", style="yellow")
        raise typer.Exit(1)


def _announcement(item: Item, scale: Scale) -> Panel:
    lines = [Text(item.title, "bold")]
    for claim in item.claims.values():
        lines += [Text(f"\n{_LABELS[claim.kind]:<7}{claim.words}"), Text(f"test   {claim.test}", "dim")]
    lines += [Text(f"\nchanged after numbers had been seen: {change}", "dim") for change in item.changes]
    setting = item.settings.get(scale, "few of everything: shows that it runs, and decides nothing")
    about = f"; about {time_in_words(item.seconds[scale])}" if scale in item.seconds else ""
    lines.append(Text(f"\nscale  {scale}: {setting}{about}, not counting what several items share"))
    return Panel(Group(*lines), title=item.name, title_align="left")


def _view(item: Item, verdict: Verdict, file: Path, *, again: bool = False) -> Group:
    table = Table("", "claim", "measured", title_justify="left", show_lines=True, expand=True)
    smoke = verdict.scale == "smoke"
    for name, claim in item.claims.items():
        found = verdict.answers[name]
        mark = _MARKS[None if smoke else found.holds]
        table.add_row(mark, Text(claim.words), Text(measured(item, name, found)))
    outcome = verdict.outcome(item)
    head = Text(f"{verdict.item}: ", "bold")
    if smoke:
        head.append("it runs; a smoke run decides nothing", "dim not bold")
    else:
        head.append(outcome, _COLOURS.get(outcome, "dim"))
    where = f"{file.parent}, {verdict.seconds:.0f} s" + ("; --force runs it again" if again else "")
    notes = [Text(note, "dim") for note in verdict.notes(item)]
    return Group(head, table, *notes, Text(where, "dim"), Text())


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
