"""A progress bar with the time left, on stderr so that output can be piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Show(Protocol):
    """What to call with (done, total), where the total may be unknown, and a note on how it goes."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """Move the bar."""


@contextmanager
def progress_bar(what: str) -> Iterator[Show]:
    """A function that moves the bar; it may be called from several threads."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None, note="")

        def show(done: int, total: int | None, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield show
