"""A figure that keeps the settings of print when it is drawn and saved."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure

from fathometer.report.figures.style import print_style


class Sheet(Figure):
    """A matplotlib figure, whose letters stay letters in PDF and SVG; notebooks show it."""

    def draw(self, renderer: RendererBase) -> None:
        """As matplotlib does, in the style of print."""
        with print_style():
            super().draw(renderer)

    def savefig(self, fname: Any, *, transparent: Any = None, **kwargs: Any) -> None:
        """As matplotlib does, in the style of print: 300 dots an inch, embedded letters."""
        with print_style():
            super().savefig(fname, transparent=transparent, **kwargs)

    def _repr_png_(self) -> bytes:
        """For notebooks, whether or not they were told of matplotlib."""
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=150)
        return picture.getvalue()
