"""Show progress bars, and print text so that control characters in names have no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment

_KEPT = "\n\t"
_REPLACEMENT = "\ufffd"
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # from right to left
_BREAKS = (0x2028, 0x2029)  # of lines and paragraphs
_VISIBLE = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT},  # ␛ for the escape
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *_BREAKS, *_DIRECTIONS, *range(0xD800, 0xE000)), _REPLACEMENT),
}


class Terminal(Console):
    """A console of rich without markup that shows control characters instead of obeying them.

    Bytes of a name that are not UTF-8 become �.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def say(self, line: str, style: str = "") -> None:
        """Print a line that the terminal itself breaks, so that a copied path stays whole."""
        self.print(line, style=style, soft_wrap=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the text in segments; those by which rich moves the cursor stay as they are."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def visible(text: str) -> str:
    r"""Return the text with its control characters as pictures.

    Example:
        >>> visible("net\x1b[31m\r")
        'net␛[31m␍'
    """
    return text.translate(_VISIBLE)


class ProgressCallback(Protocol):
    """Moves a bar: called with (done, total), where the total may be unknown, and a note to show."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """Move the bar."""


class ProgressBar:
    """A bar, and below it another one for part of the work; several threads may move them."""

    def __init__(self, what: str, bars: Progress, console: Terminal) -> None:
        self._bars, self._console = bars, console
        self._whole = bars.add_task(visible(what), total=None, note="")
        self._part = bars.add_task("", visible=False, note="")

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """Move the bar."""
        self._bars.update(self._whole, completed=done, total=total, note=visible(note))

    def part(self, what: str, done: int, total: int) -> None:
        """Move the bar of a part, which begins with 0 done; it is shown until all is done."""
        if done == 0:
            self._bars.reset(self._part, total=total, description=visible(what), visible=True)
        self._bars.update(self._part, completed=done, visible=done < total)

    def say(self, line: str) -> None:
        """Print a line above the bars; also where bars are not shown."""
        self._console.say(line)


def show_nothing(*_: object, **__: object) -> None:
    """Take the place of a bar where there is none."""


@contextmanager
def progress_bar(what: str) -> Iterator[ProgressBar]:
    """Show a bar, and yield what moves it; outside a terminal only its lines are shown."""
    console = Terminal(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not (console.is_terminal or console.is_jupyter),  # in a file it would leave an empty line
    ) as bars:
        yield ProgressBar(what, bars, console)


@contextmanager
def shown(
    progress: bool | ProgressBar | Callable[[int, int | None], None], what: str
) -> Iterator[ProgressCallback]:
    """Yield what moves a bar: one of its own for True, the caller's bar or function, or nothing."""
    if progress is True:
        with progress_bar(what) as bar:
            yield bar
    elif isinstance(progress, ProgressBar):
        yield progress
    elif progress:
        own = progress
        yield lambda done, total, note="": own(done, total)  # noqa: ARG005 - the note is for bars
    else:
        yield show_nothing
