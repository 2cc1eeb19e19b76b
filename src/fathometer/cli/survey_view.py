"""A survey as it goes on: a live table on a terminal, a line for each sounding in a log."""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fathometer.survey import Event, Task

_ROWS = 12  # of the live table
_OVER = ("measured", "kept", "failed", "failed before")
_COLUMNS = ("model", "weights", "data", "settings", "seed")
_OPTIONAL = ("settings", "seed")  # shown where there are several


class View:
    """What is going on, as a table: how many are done, how long the rest will take, and the latest."""

    def __init__(self, tasks: list[Task], console: Console) -> None:
        self._count, self._began, self._console = len(tasks), time.monotonic(), console
        self._last: dict[str, Event] = {}
        self._reasons: dict[str, str] = {}  # that a log has told, and of what
        several = {name: len({entry[name] for entry in map(_entries, tasks)}) > 1 for name in _OPTIONAL}
        self._columns = [name for name in _COLUMNS if several.get(name, True)]

    def tell(self, event: Event) -> None:
        """Note what happens; in a log, say what is over."""
        self._last.pop(event.task.stem, None)  # the latest stand last
        self._last[event.task.stem] = event
        if not self._console.is_terminal and event.state in ("measured", "failed"):  # a log: a line for each
            title = event.task.title
            first = self._reasons.setdefault(event.message, title) if event.message else title
            words = _words(event) if first == title else Text(f"failed as {first}", "red")
            line = Text.assemble(f"{self._over()} of {self._count}: {title}: ", words)
            self._console.print(line, soft_wrap=True)

    def _over(self) -> int:
        events = list(self._last.values())  # at once: the table is drawn by a thread of its own
        return sum(event.state in _OVER for event in events)

    def table(self) -> Table:
        """The latest soundings."""
        events = list(self._last.values())
        states: Counter[str] = Counter(event.state for event in events)
        over = self._over()
        view = Table(title=f"{over} of {self._count} soundings, {self._left(states, over)}", expand=False)
        for column in (*self._columns, "state"):
            view.add_column(column, overflow="fold")
        for event in events[-_ROWS:]:
            entries = _entries(event.task)
            view.add_row(*(Text(entries[column]) for column in self._columns), _words(event))
        return view

    def _left(self, states: Counter[str], over: int) -> str:
        """The time that the rest will take, from what this survey has measured so far."""
        done = states["measured"] + states["failed"]
        if not done:
            return "time left not known yet"
        seconds = (time.monotonic() - self._began) / done * (self._count - over)
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"


def _entries(task: Task) -> dict[str, str]:
    """What tells a sounding from the others, by column."""
    member = task.member
    values = (member.model, member.weights, task.data_name, task.settings_name, str(task.seed))
    return dict(zip(_COLUMNS, values, strict=True))


def _words(event: Event) -> Text:
    if event.state == "in progress" and event.share is not None:
        return Text(f"{event.share:.0%}")
    if event.state == "measured":
        return Text(f"measured in {event.seconds:.1f} s", style="green")
    if event.message:
        return Text(f"{event.state}: {event.message.splitlines()[0][:60]}", style="red")
    return Text(event.state)
