"""A figure that is drawn and saved with the settings for print."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure

from fathometer.report.figures.style import print_style


class Sheet(Figure):
    """A matplotlib figure in the style of print; notebooks show it."""

    def draw(self, renderer: RendererBase) -> None:
        """Draw as matplotlib does, in the style of print."""
        with print_style():
            super().draw(renderer)

    def savefig(self, fname: Any, *, transparent: Any = None, **kwargs: Any) -> None:
        """Save as matplotlib does, in the style of print: 300 dots per inch, embedded fonts."""
        with print_style():
            super().savefig(fname, transparent=transparent, **kwargs)

    def _repr_png_(self) -> bytes:
        """Return a picture for notebooks, with or without `%matplotlib inline`."""
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=150)
        return picture.getvalue()
