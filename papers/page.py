"""Write all verdicts as pages of Markdown: a summary, and one page for each item."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from fathometer.errors import InputError
from fathometer.results import complete_file
from papers import ITEMS
from papers.item import SCALES, Item, Kind, Paper, Scale, time_in_words
from papers.running import verdict_file
from papers.verdict import MIN_POWER, Answer, Outcome, Verdict, read_verdict

_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_PAPERS: dict[Paper, str] = {
    "affinity": "The affinity score",
    "leaky": "Leaky ResNets",
    "joined": "Both papers joined",
}
_KINDS: dict[Kind, str] = {
    "paper": "Claims of the paper",
    "numerical": "Verified numerically",
    "ours": "Other readings and corrections (ours; they do not count)",
}
_WORDS = {True: "holds", False: "**does not hold**", None: "not decided"}

Found = Mapping[str, Mapping[Scale, Verdict]]

_HEAD = """\
# Reproduction of both papers

Every figure, table and statement of the paper on the affinity score (Bouniot, Redko et al.,
[arXiv:2310.11439](https://arxiv.org/abs/2310.11439)) and of the paper on Leaky ResNets (Jacot and Kaiser,
[arXiv:2405.17573](https://arxiv.org/abs/2405.17573)) is an item of `papers`, beside the package in its
repository. The texts that were read are the anonymous submissions; later public versions may have corrected
what is found here.

Each claim is decided by a test that was stated before it ran; an item says so where a test was changed after
numbers had been seen. A statistical test comes with its size and power, simulated at the effect that the
paper shows; with less than {power:.0%} power the answer is *not decided*. `python -m papers page` writes the
pages from records that a run wrote, with commit, machine and date; nothing is edited by hand.

Verdicts at scale `paper` that were recorded until commit 840f5c5, on an H200, have been removed: they had no
commit and no digest, and words in some of them had been edited by hand. They are to be run again on a GPU.

```bash
python -m papers list
python -m papers run leaky-figure-1a        # minutes on two cores, no download
```
"""


def write_pages(results: Path, page: Path) -> None:
    """Write the summary, and a page for each item to the folder of the results."""
    found = read_verdicts(results)
    if not any(found.values()):
        raise InputError(f"{results}: expected verdicts of other scales than smoke, found none")
    _write(page, _summary(found, Path(os.path.relpath(results, page.parent))))
    for name, verdicts in found.items():
        if verdicts:
            _write(results / f"{name}.md", _item_page(ITEMS[name], verdicts))


def read_verdicts(results: Path) -> Found:
    """Read all verdicts by item and scale, without smoke runs."""
    return {
        item.name: {
            scale: read_verdict(file)
            for scale in item.scales
            if scale != "smoke" and (file := verdict_file(item, scale, results)).exists()
        }
        for item in ITEMS.values()
    }


def _write(page: Path, lines: Iterator[str]) -> None:
    with complete_file(page) as part:
        part.write_text("\n".join(lines).rstrip() + "\n", "utf-8")


def _summary(found: Found, results: Path) -> Iterator[str]:
    yield _HEAD.format(power=MIN_POWER)
    every = [(ITEMS[name], verdict) for name, verdicts in found.items() for verdict in verdicts.values()]
    counts = Counter(verdict.outcome(item) for item, verdict in every if not verdict.is_stale(item))
    missing = sum(not verdicts for verdicts in found.values())
    counts["not run"] = missing
    yield (
        f"**{len(ITEMS)} items, {len(every)} verdicts**: "
        + ", ".join(f"{outcome} {counts[outcome]}" for outcome in _OUTCOMES if counts[outcome])
        + ".\n"
    )
    claims = Counter(
        _WORDS[verdict.answers[name].holds].strip("*")
        for item, verdict in every
        if not verdict.is_stale(item)
        for name, claim in item.claims.items()
        if claim.kind == "paper"
    )
    yield f"**Claims of the papers**: {', '.join(f'{words} {count}' for words, count in claims.items())}.\n"
    if stale := [f"{item.name} ({verdict.scale})" for item, verdict in every if verdict.is_stale(item)]:
        yield f"**Stale**, to be run again: {', '.join(stale)}.\n"
    for paper, title in _PAPERS.items():
        items = [item for item in ITEMS.values() if item.paper == paper]
        scales = [scale for scale in SCALES if any(scale in found[item.name] for item in items)]
        yield f"## {title}\n"
        yield f"| item | {' | '.join(f'`{scale}`' for scale in scales)} |"
        yield "|---" * (len(scales) + 1) + "|"
        for item in items:
            cells = [_brief(item, found[item.name].get(scale)) for scale in scales]
            link = (results / f"{item.name}.md").as_posix()
            name = f"[{_cell(item.title)}]({link})" if found[item.name] else _cell(item.title)
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""


def _brief(item: Item, verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    return "stale" if verdict.is_stale(item) else verdict.outcome(item)


def _item_page(item: Item, verdicts: Mapping[Scale, Verdict]) -> Iterator[str]:
    yield f"# {item.title}\n"
    for scale, verdict in verdicts.items():
        yield f"## `{scale}`: {_brief(item, verdict)}\n"
        yield f"{item.settings[scale][:1].upper()}{item.settings[scale][1:]}.\n"
        if verdict.is_stale(item):
            yield "The claims or tests of this item have changed since it was run. Run it again.\n"
            continue
        for figure in verdict.figures:
            yield f"![{item.title}]({scale}/{item.name}/{figure})\n"
        for kind, title in _KINDS.items():
            yield from _claims(item, kind, title, verdict)
        for note in verdict.notes(item):
            yield f"- {_cell(note)}"
        yield ""
        yield (
            f"`{verdict.command}`: {time_in_words(verdict.seconds)} on {verdict.machine}, "
            f"{verdict.date[:10]}, commit {verdict.commit} ([record]({scale}/{item.name}/verdict.json)).\n"
        )
    for change in item.changes:
        yield f"*Changed after numbers had been seen:* {_cell(change)}\n"


def _claims(item: Item, kind: Kind, title: str, verdict: Verdict) -> Iterator[str]:
    claims = {name: claim for name, claim in item.claims.items() if claim.kind == kind}
    if not claims:
        return
    yield f"### {title}\n"
    yield "| claim | test | measured | |\n|---|---|---|---|"
    for name, claim in claims.items():
        found = verdict.answers[name]
        words = (
            _WORDS[found.holds].replace("holds", "verified") if kind == "numerical" else _WORDS[found.holds]
        )
        test = _cell(claim.test) + _power(item, name, found)
        yield f"| {_cell(claim.words)} | {test} | {_cell(measured(item, name, found))} | {words} |"
    yield ""


def measured(item: Item, name: str, found: Answer) -> str:
    """Say what was measured for a claim, or what is missing."""
    if found.missing:
        return found.missing
    return item.claims[name].sentence(found.numbers)


def _power(item: Item, name: str, found: Answer) -> str:
    simulation = item.claims[name].simulation
    if simulation is None or found.size is None or found.power is None:
        return ""
    return (
        f" *Simulated: succeeds by chance in {found.size:.1%}, at the paper's effect "
        f"({_cell(simulation.effect)}) in {found.power:.0%} of experiments.*"
    )


def _cell(text: str) -> str:
    """Escape text for a cell of a table."""
    return " ".join(text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;").split())
