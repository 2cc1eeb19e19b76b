"""Verdicts as one page of Markdown."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from fathometer.files import complete_file
from fathometer.reproduce.catalogue import ITEMS
from fathometer.reproduce.item import Item, Paper
from fathometer.reproduce.running import folder_of
from fathometer.reproduce.scales import Scale
from fathometer.reproduce.verdict import FILE, Outcome, Verdict, read_verdict

_DECIDING: tuple[Scale, ...] = ("paper", "small")  # the larger one is shown
_OUTCOMES: tuple[Outcome, ...] = ("holds", "holds in part", "does not hold", "not run")
_PAPERS: dict[Paper, str] = {
    "affinity": "The affinity score",
    "leaky": "Leaky ResNets",
    "joined": "Both papers joined",
}
_WORDS = {True: "holds", False: "**does not hold**", None: "not decided"}

Found = Mapping[str, Mapping[Scale, Verdict]]

_HEAD = """\
# Reproduction of both papers

Every figure, table and statement of [the paper on the affinity score](affinity-score.md) and of
[the one on Leaky ResNets](leaky.md) is a command:

```bash
fathometer reproduce list
fathometer reproduce leaky-figure-1a                # minutes on two cores, no download
fathometer reproduce "leaky-*" --scale paper --device cuda
```

An item says beforehand what was published, by which test that will be decided, what it needs and how long it
takes. It leaves its data, its figure and `verdict.json`. This page is written from these files
(`fathometer reproduce --out docs/reproduction --page docs/reproduction.md`); no verdict was given by eye.

Scales: `small` takes minutes on two cores and needs no download, `paper` is the published setting as far as
it can be had; `smoke`, which CI runs, decides nothing. *Holds in part*: some claims of an item do, some
do not. *Not run*: nothing could be decided, and the item says why.
"""


def write_page(results: Path, page: Path) -> None:
    """The page of all verdicts in a folder of results; pictures are linked from where it stands."""
    text = page_of(read_verdicts(results), Path(os.path.relpath(results, page.parent)))
    with complete_file(page) as part:
        part.write_text(text, "utf-8")


def read_verdicts(results: Path) -> Found:
    """By item and scale; smoke runs are left out."""
    return {
        item.name: {
            scale: read_verdict(file)
            for scale in _DECIDING
            if (file := folder_of(item, scale, results) / FILE).exists()
        }
        for item in ITEMS.values()
    }


def page_of(found: Found, results: Path) -> str:
    """The Markdown; `results` is where the folder of results lies, seen from the page."""
    return "\n".join(_lines(found, results)).rstrip() + "\n"


def _lines(found: Found, results: Path) -> Iterator[str]:
    yield _HEAD
    outcomes = Counter(_outcome(found[name]) for name in ITEMS)
    yield (
        f"**{len(ITEMS)} items**: "
        + ", ".join(f"{outcomes[o]} {o}" for o in _OUTCOMES if outcomes[o])
        + ".\n"
    )
    for paper, title in _PAPERS.items():
        yield f"## {title}\n"
        items = [item for item in ITEMS.values() if item.paper == paper]
        yield from _overview(items, found)
        for item in items:
            yield from _section(item, found[item.name], results)


def _overview(items: list[Item], found: Found) -> Iterator[str]:
    yield "| item | `paper` | `small` |\n|---|---|---|"
    for item in items:
        cells = [
            f"{verdict.outcome}, {_time(verdict.seconds)}"
            if (verdict := found[item.name].get(scale))
            else "–"
            for scale in _DECIDING
        ]
        yield f"| [{_cell(item.title)}](#{item.name}) | {' | '.join(cells)} |"
    yield ""


def _section(item: Item, verdicts: Mapping[Scale, Verdict], results: Path) -> Iterator[str]:
    yield f"### {item.title} {{ #{item.name} }}\n"
    shown = next((verdicts[scale] for scale in _DECIDING if scale in verdicts), None)
    if shown is None:
        yield "**Not run.**\n\n| claim | test |\n|---|---|"
        yield from (f"| {_cell(claim.words)} | {_cell(claim.test)} |" for claim in item.claims.values())
        yield ""
        return
    where = f"{_time(shown.seconds)} on {shown.device}, {shown.date[:10]}"
    file = (results / shown.scale / item.name / FILE).as_posix()
    yield f"**{shown.outcome.capitalize()}.** `{shown.command}`, {where} ([verdict]({file})).\n"
    yield "| claim | test, stated beforehand | measured | |\n|---|---|---|---|"
    for name, claim in shown.claims.items():
        answer = shown.answers[name]
        cells = (claim.words, claim.test, answer.measured)
        yield f"| {' | '.join(map(_cell, cells))} | {_WORDS[answer.holds]} |"
    yield ""
    for note in shown.notes:
        yield f"- {note}"
    if shown.notes:
        yield ""
    for scale, verdict in verdicts.items():
        if verdict is not shown:
            answers = "; ".join(
                f"{_WORDS[answer.holds]}: {_cell(answer.measured)}" for answer in verdict.answers.values()
            )
            took = f"{_time(verdict.seconds)} on {verdict.device}"
            yield f"At scale `{scale}` ({item.small}), {took}: {answers}.\n"
    for figure in shown.figures[:1]:
        yield f"![{item.title}]({(results / shown.scale / item.name / figure).as_posix()})\n"


def _outcome(verdicts: Mapping[Scale, Verdict]) -> Outcome:
    """Of the larger scale."""
    return next((verdicts[scale].outcome for scale in _DECIDING if scale in verdicts), "not run")


def _cell(text: str) -> str:
    """Safe in a cell of a table."""
    return " ".join(text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;").split())


def _time(seconds: float) -> str:
    return f"{max(seconds, 1):.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
