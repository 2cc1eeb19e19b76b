"""Write all verdicts as one page of Markdown."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from fathometer.errors import InputError
from fathometer.results import complete_file
from papers import ITEMS
from papers.item import Answer, Claim, Item, Paper, Scale, time_in_words
from papers.running import verdict_file
from papers.verdict import Outcome, Verdict, read_verdict

_DECIDING: tuple[Scale, ...] = ("paper", "small")  # the larger one is shown
_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
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

Every figure, table and statement of the paper on the affinity score
([Bouniot, Redko et al.](https://arxiv.org/abs/2310.11439)) and of that on Leaky ResNets
([Jacot and Kaiser](https://arxiv.org/abs/2405.17573)) is an item of
`papers`, which lies beside the package in its repository. In a clone, with the extra `papers` installed:

```bash
python -m papers list
python -m papers run leaky-figure-1a                # minutes on two cores, no download
python -m papers run "leaky-*" --scale paper --device cuda
```

Before an item runs, it states what was published, the test that will decide it, what it needs and how long it
takes. It writes its data, its figure and `verdict.json`. This page is written from these files by
`python -m papers page`; no verdict was decided by eye. If a test was changed after numbers had been seen, the
item says so.

- Scales: `small` takes minutes on two cores and needs no download; `paper` is the published setting, as far
  as its data are available; `smoke`, which CI runs, decides nothing. Times do not include what an earlier
  item had trained or measured. `--plan` was `examples/imagenet_networks.toml`.
- *Holds in part*: some of the paper's claims hold, others do not or could not be decided. *Does not hold*
  includes claims that the numbers do not show: most tests require an interval on one side of a limit. *Not
  decided*: it ran, but with random weights or too few networks.
- *Ours*: a wider or another reading, a correction, a check of what is printed. It is decided, but does not
  count. Which claims are ours was decided in review, after the first runs; all are shown.
"""


def write_page(results: Path, page: Path) -> None:
    """Write the page of all verdicts in a folder; pictures are linked relative to the page."""
    found = read_verdicts(results)
    if not any(found.values()):
        raise InputError(f"{results}: expected verdicts of the scales small or paper, found none")
    text = page_of(found, Path(os.path.relpath(results, page.parent)))
    with complete_file(page) as part:
        part.write_text(text, "utf-8")


def read_verdicts(results: Path) -> Found:
    """Read all verdicts by item and scale, without smoke runs."""
    return {
        item.name: {
            scale: read_verdict(file)
            for scale in _DECIDING
            if (file := verdict_file(item, scale, results)).exists()
        }
        for item in ITEMS.values()
    }


def page_of(found: Found, results: Path) -> str:
    """Return the Markdown; `results` is the folder of results relative to the page."""
    return "\n".join(_lines(found, results)).rstrip() + "\n"


def _lines(found: Found, results: Path) -> Iterator[str]:
    yield _HEAD
    outcomes = Counter(_outcome(found[name]) for name in ITEMS)
    yield (f"**{len(ITEMS)} items**: " + ", ".join(f"{o}: {outcomes[o]}" for o in _OUTCOMES) + ".\n")
    every = [verdict for verdicts in found.values() for verdict in verdicts.values()]
    if unsealed := [verdict for verdict in every if not verdict.commit]:
        yield (
            f"{len(unsealed)} of {len(every)} verdicts were recorded before a verdict named its commit and "
            "had a digest that tells whether it was edited. Words in some of them were changed by hand; "
            "their notes say so. They are to be run again.\n"
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
        cells = [_brief(found[item.name].get(scale)) for scale in _DECIDING]
        yield f"| [{_cell(item.title)}](#{item.name}) | {' | '.join(cells)} |"
    yield ""


def _brief(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    return verdict.outcome if verdict.why else f"{verdict.summary}, {time_in_words(verdict.seconds)}"


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
            file = verdict_file(item, scale, results).as_posix()
            took = f"{time_in_words(verdict.seconds)} on {verdict.device}"
            yield f"At scale `{scale}` ({item.small}), {took} ([verdict]({file})):\n"
            yield "| claim | measured | |\n|---|---|---|"
            for name, answer in verdict.answers.items():
                yield f"| {_claim(verdict.claims[name])} | {_measured(answer)} | {_WORDS[answer.holds]} |"
            yield ""
    for change in item.changes:
        yield f"*Changed after numbers had been seen:* {_cell(change)}\n"
    if shown is not None:
        for figure in shown.figures[:1]:
            picture = verdict_file(item, shown.scale, results).with_name(figure)
            yield f"![{item.title}]({picture.as_posix()})\n"


def _detail(item: Item, shown: Verdict, results: Path) -> Iterator[str]:
    where = f"{time_in_words(shown.seconds)} on {shown.device}, {shown.date[:10]}"
    where += f", commit {shown.commit}" if shown.commit else ""
    file = verdict_file(item, shown.scale, results)
    setting = (
        item.small if shown.scale == "small" else _PLANNED if "--plan" in shown.command else item.published
    )
    head = f"**{shown.summary.capitalize()}**: {_cell(setting)}."
    command = shown.command.replace("fathometer reproduce", "python -m papers run")  # its name until 2026-11
    yield f"{head} `{command}`, {where} ([verdict]({file.as_posix()})).\n"
    if shown.claims != item.claims:
        yield "*Stale:* the claims or tests of this item have changed since; run it again.\n"
    yield "| claim | test, stated beforehand | measured | |\n|---|---|---|---|"
    for name, claim in shown.claims.items():
        answer = shown.answers[name]
        cells = (_claim(claim), _cell(claim.test), _measured(answer), _WORDS[answer.holds])
        yield f"| {' | '.join(cells)} |"
    yield ""
    for note in shown.notes:
        yield f"- {_cell(note)}"
    if shown.notes:
        yield ""


def _shown(verdicts: Mapping[Scale, Verdict]) -> Verdict | None:
    """Choose the verdict of the larger scale at which it ran."""
    return next((verdicts[s] for s in _DECIDING if s in verdicts and not verdicts[s].why), None)


def _outcome(verdicts: Mapping[Scale, Verdict]) -> Outcome:
    shown = _shown(verdicts)
    return "not run" if shown is None else shown.outcome


def _claim(claim: Claim) -> str:
    return f"*Ours:* {_cell(claim.words)}" if claim.ours else _cell(claim.words)


def _measured(answer: Answer) -> str:
    return _cell(answer.measured.removeprefix("not decided: "))


def _cell(text: str) -> str:
    """Escape text for a cell of a table."""
    return " ".join(text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;").split())
