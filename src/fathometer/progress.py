"""A progress bar with the time left, on stderr so that output can be piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fathometer.terminal import Terminal, visible


class Show(Protocol):
    """What to call with (done, total), where the total may be unknown, and a note on how it goes."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """Move the bar."""


@contextmanager
def progress_bar(what: str) -> Iterator[Show]:
    """A function that moves the bar; it may be called from several threads. Notes are text, not markup."""
    console = Terminal(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not (console.is_terminal or console.is_jupyter),  # a file would keep an empty line of it
    ) as bar:
        task = bar.add_task(visible(what), total=None, note="")

        def show(done: int, total: int | None, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=visible(note))

        yield show
