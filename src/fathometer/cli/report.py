"""`fathometer report`: results as one HTML file."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fathometer.cli import options as opt
from fathometer.cli.outputs import check_writable, slug

app = opt.new_app()

_ALWAYS = ("files", "out", "title", "view", "force", "strict")


@app.command()
def report(
    context: typer.Context,
    files: opt.ResultsArgument,
    title: Annotated[str | None, opt.option("TEXT", "Title of the report.")] = None,
    families: opt.FamiliesOption = None,
    family: opt.FamilyOption = None,
    allow_mismatch: opt.MismatchOption = False,
    strict: opt.StrictOption = False,
    view: Annotated[bool, opt.flag("--open", "Open the report in the browser when it is written.")] = False,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
) -> None:
    """Write a report: one HTML file that works from disk, with everything inside it.

    What it shows depends on what is given (the default name of the file is that of the input):

    - one sounding: its signature along depth, the network as a strip, distribution, table, provenance

    - several: over each other, aligned by depth or by time warping, their differences, distances, families

    - transformers with parts, one or several: first by layer, with every gauge as a heat map for one

    - a folder of soundings, as `fathometer survey run` writes it: the atlas, to search and to choose two from

    - the folder of a leaky sweep: spectra, energies, cost of identity, theory checks, training

    - the history of a training: the signature as a film

    - a map of two networks (`fathometer compare map`): which sites are similar

    - a linearized network (`fathometer linearize`): what was lost after each step, and the cost of each site

    For example:

    - `fathometer report resnet18-photos.json`

    - `fathometer report resnet18.json vgg16.json -o both.html --open`

    - `fathometer report s3://bucket/results -o atlas.html --families networks.csv`
    """
    from fathometer.cli.results import facts_for, is_folder, read_results
    from fathometer.progress import Terminal
    from fathometer.report import write_report
    from fathometer.report.page.document import require_report

    require_report()
    out = out or Path(f"{slug(Path(files[0]).resolve().stem)}.html")
    check_writable(out, force, (".html", ".htm"))
    results = read_results(files, strict=strict)
    folder = len(files) == 1 and is_folder(files[0])
    if folder and isinstance(results, dict):
        opt.refuse_unused(context, (*_ALWAYS, "families", "family"), "a report of an atlas")
    elif not isinstance(results, dict) or len(results) == 1:
        what = "one sounding" if isinstance(results, dict) else "one result of another kind"
        opt.refuse_unused(context, _ALWAYS, f"a report of {what}")
    if isinstance(results, dict):
        facts = facts_for(results, families, family or [])
        shown = results if folder or len(results) > 1 else next(iter(results.values()))
        write_report(shown, out, title=title, facts=facts, atlas=folder, allow_mismatch=allow_mismatch)
    else:
        write_report(results, out, title=title)
    Terminal().say(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB)")
    if view:
        webbrowser.open(out.resolve().as_uri())
