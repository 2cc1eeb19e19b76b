"""What `fathometer survey` prints: a live table, or a line for each sounding in a log; status and outcome."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd
from rich.console import Console
from rich.text import Text

from fathometer.cli.tables import TableView
from fathometer.progress import Terminal
from fathometer.survey import Event, Failure, Outcome, Store, Task

_ROWS = 12  # rows of the live table
_FINISHED = ("measured", "kept", "failed", "failed before")
_COLUMNS = ("model", "weights", "data", "settings", "seed")
_OPTIONAL = ("settings", "seed")  # shown where there are several


class SurveyProgress:
    """Shows the progress of a survey: how many soundings are done, the time left, and the latest ones."""

    def __init__(self, tasks: list[Task], console: Console) -> None:
        self._count, self._began, self._console = len(tasks), time.monotonic(), console
        self._last: dict[str, Event] = {}
        several = {name: len({entry[name] for entry in map(_entries, tasks)}) > 1 for name in _OPTIONAL}
        self._columns = [name for name in _COLUMNS if several.get(name, True)]

    def on_event(self, event: Event) -> None:
        """Note an event; in a log, print a line for each finished sounding."""
        self._last.pop(event.task.stem, None)  # the latest come last
        self._last[event.task.stem] = event
        if not self._console.is_terminal and event.state in ("measured", "failed"):
            place = f"{self._count_finished()} of {self._count}: {event.task.title}: "
            self._console.print(Text.assemble(place, _describe(event)), soft_wrap=True)

    def _count_finished(self) -> int:
        events = list(self._last.values())  # a copy: another thread draws the table
        return sum(event.state in _FINISHED for event in events)

    def table(self) -> TableView:
        """Return the table of the latest soundings."""
        events = list(self._last.values())
        states: Counter[str] = Counter(event.state for event in events)
        finished = self._count_finished()
        rows = [{**_entries(event.task), "state": _describe(event)} for event in events[-_ROWS:]]
        frame = pd.DataFrame(rows, columns=[*self._columns, "state"]).set_index("model")
        title = f"{finished} of {self._count} soundings, {self._time_left(states, finished)}"
        return TableView(frame, title)

    def _time_left(self, states: Counter[str], finished: int) -> str:
        """Estimate the time left from what this survey has measured so far."""
        done = states["measured"] + states["failed"]
        if not done:
            return "time left not known yet"
        seconds = (time.monotonic() - self._began) / done * (self._count - finished)
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"


def _entries(task: Task) -> dict[str, str]:
    """Return what distinguishes a sounding from others, by column."""
    member = task.member
    values = (member.model, member.weights, task.data_name, task.settings_name, str(task.seed))
    return dict(zip(_COLUMNS, values, strict=True))


def _describe(event: Event) -> Text:
    if event.state == "in progress" and event.fraction is not None:
        return Text(f"{event.fraction:.0%}")
    if event.state == "measured":
        return Text(f"measured in {event.seconds:.1f} s", style="green")
    if event.message:
        return Text(f"{event.state}: {event.message.splitlines()[0][:60]}", style="red")
    return Text(event.state)


def print_status(status: Mapping[Task, str], store: Store, console: Terminal) -> None:
    """Print counts by family; then what is in progress, interrupted and failed, one by one."""
    console.print(TableView(_counts(status), f"{store.files}"))
    for task, state in status.items():
        batches = 0 if state in ("finished", "failed") else store.finished_batches(task)
        if state == "in progress" or batches:
            kept = f": {batches} {'batch' if batches == 1 else 'batches'} finished" if batches else ""
            console.say(f"{'in progress' if state == 'in progress' else 'interrupted'}: {task.title}{kept}")
    failed = [
        (task, failure)
        for task, state in status.items()
        if state == "failed" and (failure := store.failure(task)) is not None
    ]
    _say_failures(failed, console)
    if failed:
        console.say("--retry-failed tries these again")


def _counts(status: Mapping[Task, str]) -> pd.DataFrame:
    """Count the soundings of each family, and of all, by how far they are."""
    families: dict[str, Counter[str]] = {}
    for task, state in status.items():
        families.setdefault(task.family or "(none)", Counter())[state] += 1
    columns = ("finished", "in progress", "failed", "to do")
    rows = [
        (family, counts.total(), *(counts[name] for name in columns))
        for family, counts in [*families.items(), ("all", sum(families.values(), Counter()))]
    ]
    return pd.DataFrame(rows, columns=["family", "soundings", *columns]).set_index("family")


def print_outcome(outcome: Outcome, out: str, console: Terminal) -> None:
    """Print what failed, and how many soundings were measured."""
    _say_failures(outcome.failed, console)
    counts = f"{len(outcome.measured)} measured, {len(outcome.kept)} kept, {len(outcome.failed)} failed"
    hint = "; --retry-failed tries these again" if outcome.failed else ""
    console.say(f"{out}: {counts}{hint}")


def _say_failures(failed: Iterable[tuple[Task, Failure]], console: Terminal) -> None:
    """Print every reason once, and below it the networks."""
    reasons: dict[str, dict[tuple[str, str], list[Task]]] = {}
    for task, failure in failed:
        networks = reasons.setdefault((failure.message.splitlines() or [failure.kind])[0], {})
        networks.setdefault((task.member.model, task.member.weights), []).append(task)
    for reason, networks in reasons.items():
        console.say(f"failed: {reason}", "red")
        for network, tasks in networks.items():
            many = f"{' · '.join(network)} ({len(tasks)} soundings)"
            console.say(f"  {tasks[0].title if len(tasks) == 1 else many}")
