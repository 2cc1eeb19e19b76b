"""`fathometer report`: results as one HTML file."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fathometer.cli.facts import FamiliesOption, FamilyOption, facts_for
from fathometer.cli.naming import slug
from fathometer.cli.options import ForceOption, MismatchOption, given, out_option
from fathometer.cli.outputs import check_writable
from fathometer.cli.results import Results, is_folder, read_results
from fathometer.errors import InputError
from fathometer.progress import Terminal
from fathometer.report.page import write_report
from fathometer.report.page.bundle import require_report
from fathometer.results.history import History

_ALWAYS = ("files", "out", "title", "view", "strict", "force")


def report(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT…",
            help="Soundings, a folder of them, the folder of a leaky sweep, or a history of a training: "
            "paths, or URLs such as s3://bucket/results.",
        ),
    ],
    out: Annotated[
        Path | None,
        out_option("FILE", "The file to write, .html. Default: by the input's name."),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What to call it.")] = None,
    families: FamiliesOption = None,
    family: FamilyOption = None,
    allow_mismatch: MismatchOption = False,
    view: Annotated[
        bool, typer.Option("--open", metavar="", help="Open it in the browser when it is written.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", metavar="", help="Stop at a file of a folder that is not a sounding.")
    ] = False,
    force: ForceOption = False,
) -> None:
    """Write a report: one HTML file that opens from disk, with everything inside it.

    What it shows depends on what is given:

    - one sounding: its signature along depth, the network as a strip, distribution, table, provenance

    - several: over each other, aligned by depth or by time warping, their differences, distances, families

    - a folder of soundings, as `fathometer survey` leaves it: the atlas, to search and to choose two from

    - the folder of a leaky sweep: spectra, energies, cost of identity, theory checks, training

    - a history of a training: the signature as a film

    For instance:

    - `fathometer report resnet18-photos.json`

    - `fathometer report resnet18.json vgg16.json -o both.html --open`

    - `fathometer report results/ -o atlas.html --families networks.csv`
    """
    require_report()
    out = out or Path(f"{slug(Path(files[0]).resolve().stem)}.html")
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {out}: expected a name that ends in .html")
    check_writable(out, force)
    results = read_results(files, strict=strict)
    folder = len(files) == 1 and is_folder(files[0])
    _check_options(given(context), results, folder)
    if isinstance(results, dict):
        facts = facts_for(results, families, family or [])
        shown = results if folder or len(results) > 1 else next(iter(results.values()))
        write_report(shown, out, title=title, facts=facts, atlas=folder, allow_mismatch=allow_mismatch)
    else:
        write_report(results, out, title=title)
    console = Terminal()
    console.print(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB)", soft_wrap=True)
    if view:
        webbrowser.open(out.resolve().as_uri())


def _check_options(names: list[str], results: Results, folder: bool) -> None:
    """Refuse options that the page does not look at."""
    looked_at: tuple[str, ...] = ()
    if not isinstance(results, dict):
        what = "a history" if isinstance(results, History) else "a leaky sweep"
    elif folder:
        what, looked_at = "an atlas", ("families", "family")
    elif len(results) == 1:
        what = "one sounding"
    else:
        what, looked_at = "several soundings", ("families", "family", "allow_mismatch")
    foreign = [f"--{name.replace(chr(95), chr(45))}" for name in names if name not in (*_ALWAYS, *looked_at)]
    if foreign:
        raise InputError(f"{', '.join(foreign)}: not looked at by the report of {what}; leave it out")
