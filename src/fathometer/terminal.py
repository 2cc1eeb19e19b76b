"""The terminal as verbs and progress bars write to it: names from files and networks cannot command it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_KEPT = "\n\t"
_REPLACEMENT = "\ufffd"
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # text to the left
_BREAKS = (0x2028, 0x2029)  # of lines and paragraphs, at which some cut a text
_VISIBLE = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT},  # ␛ for the escape
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *_BREAKS, *_TURNING, *range(0xD800, 0xE000)), _REPLACEMENT),
}


class Terminal(Console):
    """A console of rich without its markup, in which control characters are seen and not obeyed.

    Bytes of a name that were no UTF-8, which no terminal can be sent, become �.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is written, in pieces; those that rich makes itself to move the cursor stay as they are."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def visible(text: str) -> str:
    r"""The text with its control characters as pictures.

    Example:
        >>> visible("net\x1b[31m\r")
        'net␛[31m␍'
    """
    return text.translate(_VISIBLE)
