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
_PLANNED = "networks of a plan in place of the paper's"
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

- Scales: `small` takes minutes on two cores and needs no download, `paper` is the published setting as far as
  it can be had; `smoke`, which CI runs, decides nothing. Times leave out what an earlier item had trained or
  measured.
- *Holds in part*: of the paper's claims some hold, and some do not or could not be decided. *Not run*: none
  could be decided, and the item says why.
- *Ours*: a wider or another reading, a correction, a check of what is printed. It is decided, and does not
  count.
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
    yield (f"**{len(ITEMS)} items**: " + ", ".join(f"{o}: {outcomes[o]}" for o in _OUTCOMES) + ".\n")
    for paper, title in _PAPERS.items():
        yield f"## {title}\n"
        items = [item for item in ITEMS.values() if item.paper == paper]
        yield from _overview(items, found)
        for item in items:
            yield from _section(item, found[item.name], results)


def _overview(items: list[Item], found: Found) -> Iterator[str]:
    yield "| item | `paper` | `small` |\n|---|---|---|"
    for item in items:
        cells = [_brief(found[item.name].get(scale)) for scale in _DECIDING]
        yield f"| [{_cell(item.title)}](#{item.name}) | {' | '.join(cells)} |"
    yield ""


def _brief(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    return verdict.outcome if verdict.why else f"{verdict.summary}, {_time(verdict.seconds)}"


def _section(item: Item, verdicts: Mapping[Scale, Verdict], results: Path) -> Iterator[str]:
    yield f"### {item.title} {{ #{item.name} }}\n"
    shown = _shown(verdicts)
    if shown is None:
        yield "**Not run.**\n"
    else:
        yield from _detail(item, shown, results)
    for scale, verdict in verdicts.items():
        if verdict.why:
            yield f"At scale `{scale}`: not run, {_cell(verdict.why)}.\n"
        elif verdict is not shown:
            yield f"At scale `{scale}` ({item.small}), {_time(verdict.seconds)} on {verdict.device}:\n"
            for name, answer in verdict.answers.items():
                words = _cell(verdict.claims[name].words)
                yield f"- {words} {_WORDS[answer.holds]}: {_cell(answer.measured)}"
            yield ""
    if shown is not None:
        for figure in shown.figures[:1]:
            yield f"![{item.title}]({(results / shown.scale / item.name / figure).as_posix()})\n"


def _detail(item: Item, shown: Verdict, results: Path) -> Iterator[str]:
    where = f"{_time(shown.seconds)} on {shown.device}, {shown.date[:10]}"
    file = (results / shown.scale / item.name / FILE).as_posix()
    setting = (
        item.small if shown.scale == "small" else _PLANNED if "--plan" in shown.command else item.published
    )
    head = f"**{shown.summary.capitalize()}**: {_cell(setting)}."
    yield f"{head} `{shown.command}`, {where} ([verdict]({file})).\n"
    yield "| claim | test, stated beforehand | measured | |\n|---|---|---|---|"
    for name, claim in shown.claims.items():
        answer = shown.answers[name]
        cells = (claim.test, answer.measured)
        words = f"*Ours:* {_cell(claim.words)}" if claim.ours else _cell(claim.words)
        yield f"| {words} | {' | '.join(map(_cell, cells))} | {_WORDS[answer.holds]} |"
    yield ""
    for note in shown.notes:
        yield f"- {_cell(note)}"
    if shown.notes:
        yield ""


def _shown(verdicts: Mapping[Scale, Verdict]) -> Verdict | None:
    """That of the larger scale at which it ran."""
    return next((verdicts[s] for s in _DECIDING if s in verdicts and not verdicts[s].why), None)


def _outcome(verdicts: Mapping[Scale, Verdict]) -> Outcome:
    shown = _shown(verdicts)
    return "not run" if shown is None else shown.outcome


def _cell(text: str) -> str:
    """Safe in a cell of a table."""
    return " ".join(text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;").split())


def _time(seconds: float) -> str:
    return f"{max(seconds, 1):.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
